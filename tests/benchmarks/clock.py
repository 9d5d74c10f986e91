"""Times on a GPU: medians of many repeats between events, with L2 flushed before each."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch

FLUSH_BYTES = 256 << 20  # several times what any L2 holds
LEAST_REPEATS, MOST_REPEATS = 20, 100
BUDGET_MS = 400.0  # of one case, the flushes not counted
_WARM_UP = 3
MOST_ROUNDS, ROUNDS_MS = 50, 500.0  # of works that are compared, the flushes not counted
HEAD_START_CYCLES = 1_000_000  # about half a millisecond


def milliseconds(work: Callable[[], Any], *, flush: bool = True) -> dict[str, float]:
    """Median, 20th and 80th percentile of what one call takes, and how often it was measured."""
    flushing = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    for _ in range(_WARM_UP):
        work()
    torch.cuda.synchronize()
    first = _times(work, flushing, 3, flush)
    repeats = int(min(MOST_REPEATS, max(LEAST_REPEATS, BUDGET_MS / max(first[1], 1e-3))))
    times = _times(work, flushing, repeats, flush)
    return {"median": statistics.median(times), "p20": _part(times, 0.2), "p80": _part(times, 0.8),
            "repeats": repeats}


def _times(work: Callable[[], Any], flushing: torch.Tensor, repeats: int, flush: bool
           ) -> list[float]:
    """Ascending, in ms. The GPU is kept busy by the flush while Python makes the launch."""
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
             for _ in range(repeats)]
    for start, end in pairs:
        if flush:
            flushing.zero_()
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return sorted(start.elapsed_time(end) for start, end in pairs)


def _part(ascending: list[float], share: float) -> float:
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def together(works: dict[str, Callable[[], Any]], *, rounds: int = 0) -> dict[str, dict[str, float]]:
    """The same for several works that are to be compared: each once, then each again, so that what
    drifts meanwhile drifts for all.

    The GPU waits a little at the start of a round, while Python gets ahead of it: short works are
    else slower the longer their Python takes.
    """
    flushing = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    first = {}
    for name, work in works.items():
        work()
        first[name] = _times(work, flushing, 2, True)[0]
    if not rounds:
        rounds = int(min(MOST_ROUNDS, max(LEAST_REPEATS, ROUNDS_MS / max(sum(first.values()), 1e-3))))
    pairs: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in works}
    for _ in range(rounds):
        torch.cuda._sleep(HEAD_START_CYCLES)
        for name, work in works.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flushing.zero_()
            start.record()
            work()
            end.record()
            pairs[name].append((start, end))
        torch.cuda.synchronize()
    times = {name: sorted(start.elapsed_time(end) for start, end in made)
             for name, made in pairs.items()}
    return {name: {"median": statistics.median(ascending), "p20": _part(ascending, 0.2),
                   "p80": _part(ascending, 0.8), "repeats": rounds}
            for name, ascending in times.items()}
