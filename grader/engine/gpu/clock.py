"""Times on a GPU: medians of many repeats between events, with L2 flushed before each.

Only functions of the grader that launch kernels are timed, never host code of a learner.
"""

import contextlib
import functools
import math
import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.engine.gpu import nvml
from grader.engine.gpu.measurement import SPREAD, Measurement

LEAST_REPEATS, MOST_REPEATS = 20, 100
BUDGET_MS = 400.0  # of one case, the flushes not counted
SMALL_MS = 0.03  # below, a call is timed among many, as events are no finer than some microseconds
_CALLS_MS, _MOST_CALLS = 1.0, 256  # of the graph that holds many
_FLUSHES = 2.25  # times L2 that a flush writes
_LEAST_FLUSH = 256 << 20  # bytes; meanwhile Python has the time to launch what comes next
_TRIES = 3  # a spread that is too wide is measured again
_FIRST = 3  # repeats that estimate how long one takes
_WARM_MS, _MOST_WARM = 25.0, 50  # of work before the first repeat, in which clocks rise


class Cuda:
    """The current device of CUDA, as torch reaches it."""

    def __init__(self, monitor: nvml.Monitor | None = None) -> None:
        properties = torch.cuda.get_device_properties()
        self._monitor = monitor or nvml.Monitor(uuid_of(properties))
        size = max(_LEAST_FLUSH, int(_FLUSHES * properties.L2_cache_size))
        self._flushing = torch.empty(size, dtype=torch.uint8, device="cuda")

    def event(self) -> Any:
        return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def look(self) -> nvml.ClockState:
        return self._monitor.look()

    def flush(self) -> None:
        """Writes more than twice L2, so that it holds nothing of what ran before."""
        self._flushing.zero_()

    def capture(self, work: Callable[[], object]) -> Callable[[], object] | None:
        """Captures ``work`` as a graph, replayed without Python; None if that fails."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(graph):
                work()
        except Exception:
            with contextlib.suppress(Exception):
                torch.cuda.synchronize()
            return None
        graph.replay()
        torch.cuda.synchronize()
        return graph.replay


def uuid_of(properties: Any) -> str:
    """The UUID as the driver writes it, ``GPU-…``; empty if torch has none."""
    uuid = str(getattr(properties, "uuid", ""))
    return uuid if uuid.startswith("GPU-") or not uuid else f"GPU-{uuid}"


@dataclass(frozen=True)
class TimingJob:
    """Work on one set of inputs, at one set of addresses."""

    work: Callable[[], object]  # launches; only this is timed
    before: Callable[[], object] = lambda: None  # before the flush: spoils outputs
    after: Callable[[], object] = lambda: None  # when the clock has stopped: compares outputs
    once: bool = False  # the work changes its inputs, so that ``before`` runs before each repeat


def measure(jobs: Sequence[TimingJob], device: Cuda, *, config: str = "",
            budget_ms: float = BUDGET_MS) -> Measurement:
    """Times jobs that do the same work, in turn; each has run before, so all is compiled.

    Where a graph of each can be captured, no measurement contains the time that Python takes for a
    launch. Work of less than ``SMALL_MS`` is timed in a graph of many calls that cycles through
    all jobs, unless work is done once. A measurement with too wide a spread is repeated.
    """
    graphs = [device.capture(job.work) for job in jobs]
    captured = all(graph is not None for graph in graphs)
    rounds = [TimingJob(graph if captured and graph else job.work, job.before, job.after)
              for graph, job in zip(graphs, jobs, strict=True)]
    first, _, _ = _times(rounds, device, max(_FIRST, len(rounds)))
    one = statistics.median(first)
    calls = 1
    repeatable = not any(job.once for job in jobs)
    many = len(jobs) * math.ceil(min(_MOST_CALLS, math.ceil(_CALLS_MS / max(one, 1e-3)))
                                 / len(jobs))
    if captured and repeatable and one < SMALL_MS and (together := _together(jobs, device, many)):
        rounds, calls = [together], many
        one = statistics.median(_times(rounds, device, _FIRST)[0]) / calls
    each = max(one * calls, 1e-3)
    repeats = math.ceil(min(MOST_REPEATS, max(LEAST_REPEATS, budget_ms / each)))
    if _FIRST * each < _WARM_MS:
        _times(rounds, device, math.ceil(min(_MOST_WARM, _WARM_MS / each)))
    tries: list[Measurement] = []
    while len(tries) < _TRIES and (not tries or tries[-1].spread > SPREAD):
        times, clocks, reasons = _times(rounds, device, repeats)
        times = [t / calls for t in times]
        median = statistics.median(times)
        tries.append(Measurement(
            median, min(median, part(times, 0.2)), max(median, part(times, 0.8)), len(times),
            captured, clocks, nvml.words(reasons), config))
    return min(tries, key=lambda measurement: measurement.spread)


def milliseconds(work: Callable[[], Any], *, flush: bool = True,
                 budget_ms: float = BUDGET_MS) -> dict[str, float]:
    """Median, 20th and 80th percentile of the time of one call in ms, and the repeats.

    Without a graph, for the grader's own benchmarks of any Python; ``measure`` times recordings.
    """
    device = Cuda()
    if not flush:
        device.flush = lambda: None  # type: ignore[method-assign]
    for _ in range(_FIRST):
        work()
    job = [TimingJob(work)]
    one = statistics.median(_times(job, device, _FIRST)[0])
    repeats = int(min(MOST_REPEATS, max(LEAST_REPEATS, budget_ms / max(one, 1e-3))))
    times, _, _ = _times(job, device, repeats)
    return {"median": statistics.median(times), "p20": part(times, 0.2), "p80": part(times, 0.8),
            "repeats": repeats}


def part(values: Sequence[float], share: float) -> float:
    """The quantile of values: a fraction ``share`` of them is below it."""
    ascending = sorted(values)
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def _times(jobs: Sequence[TimingJob], device: Cuda, repeats: int
           ) -> tuple[list[float], tuple[int, int], int]:
    """Milliseconds of each repeat, the lowest clocks, and all reasons that held them back.

    The clocks are read while the device works; no event is read before all streams are idle.
    """
    pairs = []
    device.synchronize()
    for number in range(repeats):
        job = jobs[number % len(jobs)]
        job.before()
        device.flush()
        start, end = device.event(), device.event()
        start.record()
        job.work()
        end.record()
        job.after()
        pairs.append((start, end))
    states = [device.look()]
    while len(states) < 8 and not end.query():
        states.append(device.look())
    device.synchronize()
    clocks = (min(state.sm_mhz for state in states), min(state.memory_mhz for state in states))
    reasons = functools.reduce(operator.or_, (state.reasons for state in states))
    return [start.elapsed_time(end) for start, end in pairs], clocks, reasons


def _together(jobs: Sequence[TimingJob], device: Cuda, calls: int) -> TimingJob | None:
    """Captures many calls as one graph that cycles through all jobs, whose buffers exceed L2."""
    def work() -> None:
        for number in range(calls):
            jobs[number % len(jobs)].work()

    graph = device.capture(work)
    return TimingJob(graph, lambda: [job.before() for job in jobs],
                     lambda: [job.after() for job in jobs]) if graph else None
