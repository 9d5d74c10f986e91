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
