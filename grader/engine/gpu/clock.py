"""Times on a GPU: medians of many repeats between events, with L2 flushed before each.

Nothing here ever runs host code of a learner: what is timed is a function of ours that launches.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
_FIRST = 3  # repeats that tell how long one takes
_WARM_MS, _MOST_WARM = 25.0, 50  # of work before the first repeat, in which clocks rise


class TimedDevice(Protocol):
    """What the clock needs of a GPU."""

    def event(self) -> Any: ...
    def synchronize(self) -> None: ...
    def look(self) -> nvml.ClockState: ...
    def flush(self) -> None: ...
    def capture(self, work: Callable[[], object]) -> Callable[[], object] | None: ...


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
        """Write more than twice L2, so that nothing of what came before is in it."""
        self._flushing.zero_()

    def capture(self, work: Callable[[], object]) -> Callable[[], object] | None:
        """``work`` as one graph, to be replayed without Python; None where it cannot be captured.
        """
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
    """As the driver writes it, ``GPU-…``; empty where torch does not tell."""
    found = str(getattr(properties, "uuid", ""))
    return found if found.startswith("GPU-") or not found else f"GPU-{found}"


@dataclass(frozen=True)
class TimingJob:
    """One way of doing the work: on one set of inputs, at one set of addresses.

    ``work`` launches. ``before`` runs ahead of the flush, and ``after`` when the clock has stopped:
    there outputs are spoilt and compared. Neither is in the time. Work that is done ``once``
    changes what it works on, so that ``before`` comes ahead of each time.
    """

    work: Callable[[], object]
    before: Callable[[], object] = lambda: None
    after: Callable[[], object] = lambda: None
    once: bool = False


def measure(jobs: Sequence[TimingJob], device: TimedDevice, *, config: str = "",
            budget_ms: float = BUDGET_MS) -> Measurement:
    """Time jobs that do the same work in turn; each has run before, so that all is compiled.

    A graph is captured of each where that works: then the time that Python takes for a launch is
    in no measurement. What takes less than ``SMALL_MS`` is timed as part of a graph of many calls
    that goes round all the jobs, unless work is done once. A run that spreads too far is repeated.
    """
    graphs = [device.capture(job.work) for job in jobs]
    captured = all(graph is not None for graph in graphs)
    works = [graph if captured and graph else job.work
             for graph, job in zip(graphs, jobs, strict=True)]
    rounds = [TimingJob(work, job.before, job.after) for work, job in zip(works, jobs, strict=True)]
    first, _, _ = _times(rounds, device, max(_FIRST, len(rounds)))
    one = statistics.median(first)
    calls = 1
    repeatable = not any(job.once for job in jobs)
    if captured and repeatable and one < SMALL_MS and (together := _together(jobs, device, one)):
        rounds, calls = [together], _calls(len(jobs), one)
        one = statistics.median(_times(rounds, device, _FIRST)[0]) / calls
    each = max(one * calls, 1e-3)
    repeats = math.ceil(min(MOST_REPEATS, max(LEAST_REPEATS, budget_ms / each)))
    if _FIRST * each < _WARM_MS:
        _times(rounds, device, math.ceil(min(_MOST_WARM, _WARM_MS / each)))
    best: Measurement | None = None
    for _ in range(_TRIES):
        times, clocks, reasons = _times(rounds, device, repeats)
        made = _measurement([t / calls for t in times], captured, clocks, reasons, config)
        if best is None or made.spread < best.spread:
            best = made
        if best.spread <= SPREAD:
            break
    assert best is not None
    return best


def milliseconds(work: Callable[[], Any], *, flush: bool = True,
                 budget_ms: float = BUDGET_MS) -> dict[str, float]:
    """Median, 20th and 80th percentile of what one call takes, and how often it was measured.

    Eager, for benchmarks of ours whose work is any Python; ``measure`` times recordings.
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
    """The value that ``share`` of all are below, as they lie in order."""
    ascending = sorted(values)
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def _times(jobs: Sequence[TimingJob], device: TimedDevice, repeats: int
           ) -> tuple[list[float], tuple[int, int], int]:
    """Milliseconds of each repeat, the lowest clocks that were seen, and all that held them back.

    The device is looked at while it works; no event is read before all of it has come to rest, on
    whatever stream.
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
    seen = list(_watched(device, pairs[-1][1]))
    device.synchronize()
    clocks = (min(state.sm_mhz for state in seen), min(state.memory_mhz for state in seen))
    reasons = 0
    for state in seen:
        reasons |= state.reasons
    return [start.elapsed_time(end) for start, end in pairs], clocks, reasons


def _watched(device: TimedDevice, last: Any) -> Iterator[nvml.ClockState]:
    """Looks at the device until the last event is over, some times at most."""
    for _ in range(8):
        yield device.look()
        if last.query():
            return


def _calls(jobs: int, one: float) -> int:
    """How many calls a graph of many holds: all jobs, and long enough for an event."""
    needed = min(_MOST_CALLS, math.ceil(_CALLS_MS / max(one, 1e-3)))
    return jobs * max(1, math.ceil(needed / jobs))


def _together(jobs: Sequence[TimingJob], device: TimedDevice, one: float) -> TimingJob | None:
    """Many calls as one graph, round all the jobs, whose buffers are more than L2 holds."""
    def work() -> None:
        for number in range(_calls(len(jobs), one)):
            jobs[number % len(jobs)].work()

    def before() -> None:
        for job in jobs:
            job.before()

    def after() -> None:
        for job in jobs:
            job.after()

    graph = device.capture(work)
    return TimingJob(graph, before, after) if graph else None


def _measurement(times: Sequence[float], graph: bool, clocks: tuple[int, int], reasons: int,
                 config: str) -> Measurement:
    middle = statistics.median(times)
    return Measurement(middle, min(middle, part(times, 0.2)), max(middle, part(times, 0.8)),
                       len(times), graph, clocks, nvml.words(reasons), config)
