"""Times of works that are to be compared: each once, then each again, so that all drift alike."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import torch

from grader.engine.gpu.clock import Cuda, part

_LEAST_ROUNDS, _MOST_ROUNDS = 40, 100
_HEAD_START_CYCLES = 1_000_000  # about half a millisecond


def together(works: Mapping[str, Callable[[], Any]], device: Cuda, budget_ms: float
             ) -> dict[str, dict[str, float]]:
    """Median, 20th and 80th percentile of each, L2 flushed before each start.

    Every round has an order of its own: a work that comes after one that draws much power finds the
    clock lower than others do.

    The GPU waits a little before each work, while Python gets ahead of it: else a short work would
    seem slower the longer its Python takes.
    """
    first = 0.0
    for work in works.values():
        work()
        first += _round({"": work}, device)[""]
    rounds = int(min(_MOST_ROUNDS, max(_LEAST_ROUNDS, budget_ms / max(first, 1e-3))))
    taken: dict[str, list[float]] = {name: [] for name in works}
    order, shuffled = list(works), random.Random(0)
    for _ in range(rounds):
        shuffled.shuffle(order)
        for name, ms in _round({name: works[name] for name in order}, device).items():
            taken[name].append(ms)
    return {name: {"median": statistics.median(times), "p20": part(times, 0.2),
                   "p80": part(times, 0.8), "repeats": rounds} for name, times in taken.items()}


def _round(works: Mapping[str, Callable[[], Any]], device: Cuda) -> dict[str, float]:
    """Milliseconds of each, run once."""
    pairs = {}
    for name, work in works.items():
        torch.cuda._sleep(_HEAD_START_CYCLES)
        device.flush()
        start, end = device.event(), device.event()
        start.record()
        work()
        end.record()
        pairs[name] = (start, end)
    device.synchronize()
    return {name: start.elapsed_time(end) for name, (start, end) in pairs.items()}
