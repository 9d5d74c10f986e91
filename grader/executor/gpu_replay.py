"""Replays a recording on a GPU: once and checked, or many times under the clock."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from grader.engine.gpu.clock import Cuda, TimingJob, measure
from grader.engine.gpu.measurement import Measurement
from grader.engine.gpu.memory import GpuMemory, Overrun, differs
from grader.executor.binding import Binder, Kernels, LaunchRefused, host_descriptor
from grader.executor.memory import host_write, within_host
from grader.finding import fault
from grader.recording.arena import itemsize
from grader.recording.model import Alloc, Descriptor, Fill, Launch, Move, Recording, views_of
from grader.report import Finding, Refusal

MOST_COPIES = 32  # of the buffers of a small job
_ROTATE = 2.25  # times L2 that the buffers of all copies take together
_SHORT_MS = 60.0  # of a configuration that may not be the fastest
_MOST_CONFIGURATIONS = 64

# Launches a kernel with bound arguments, or raises LaunchRefused where Triton does not take it.
Launcher = Callable[[Any, Launch, Mapping[str, Any]], None]


@dataclass
class Replay:
    """The steps of a recording on one memory, ready to be run again and again."""

    memory: GpuMemory
    steps: list[tuple[Launch | None, Callable[[], object]]]
    results: list[torch.Tensor]
    in_place: bool = False  # what it works on has to be given anew before it is run again

    def run(self) -> None:
        """Replays all events without reading results."""
        for _, step in self.steps:
            step()


def prepare(recording: Recording, memory: GpuMemory, kernels: Kernels,
            launcher: Launcher) -> Replay:
    """Allocate what a recording allocates and bind its launches; nothing runs yet.

    Raises:
        MalformedRecording: views, names or arguments do not fit together.
        LaunchRefused: a kernel cannot be used.
    """
    for view in recording.inputs:
        memory.check(view)
    if recording.in_place:
        memory.change(recording.results)
    steps: list[tuple[Launch | None, Callable[[], object]]] = []
    for event in recording.events:
        match event:
            case Alloc(storage, nbytes):
                memory.allocate(storage, nbytes)
            case Fill() | Move():
                steps.append((None, partial(within_host, host_write(event, memory.tensor))))
            case Launch():
                if event.programs:
                    steps.append((event, _launch_step(event, memory, kernels, launcher)))
    return Replay(memory, steps, [memory.tensor(view) for view in recording.results],
                  recording.in_place)


def _launch_step(launch: Launch, memory: GpuMemory, kernels: Kernels,
                 launcher: Launcher) -> Callable[[], object]:
    def descriptor(given: Descriptor) -> Any:
        memory.check(given.reach)
        return host_descriptor(given, memory.tensor(given.base))

    kernel, bound = Binder(kernels, memory.tensor, descriptor).bind(launch)
    return partial(launcher, kernel, launch, bound)


# -- once, with all checks ----------------------------------------------------------------------


def run_checked(replay: Replay, recording: Recording) -> list[Finding]:
    """Run the steps, and look at every red zone after each launch; what was found ends the run.

    Raises:
        LaunchRefused: a launch does not compile.
    """
    memory = replay.memory
    for launch, step in replay.steps:
        step()
        if launch is not None and (overruns := memory.overruns()):
            return [overrun(one, launch) for one in overruns]
    return modified(memory, recording)


def overrun(overruns: Overrun, launch: Launch) -> Finding:
    """M02, with the tensor that the zone belongs to and how far away from it was written."""
    name, size = _owner(overruns.storage, launch)
    return Finding("M02", fault(
        "overrun", kernel=launch.kernel, n_bytes=overruns.count, tensor=name,
        side="after" if overruns.behind else "before", nearest=overruns.nearest // size,
        farthest=overruns.farthest // size), line=launch.line)


def _owner(storage: int, launch: Launch) -> tuple[str, int]:
    """The launch's parameter with a storage, or nothing, and the bytes of its elements there."""
    for name, argument in launch.arguments.items():
        for view in views_of(argument):
            if view.storage == storage:
                return name, itemsize(view)
    return "", 1


def modified(memory: GpuMemory, recording: Recording) -> list[Finding]:
    """M07 for inputs that are not what they were."""
    changed = memory.changed_inputs()
    if not changed:
        return []
    number = next((n for n, view in enumerate(recording.inputs) if view.storage in changed), None)
    return [Finding("M07", fault("input on GPU", number=number))]


# -- many times, under the clock ----------------------------------------------------------------


@dataclass
class Timing:
    """The timing of a call; ``results`` are device tensors, a list for each set."""

    findings: list[Finding] = field(default_factory=list)
    configurations: list[Measurement] = field(default_factory=list)
    best: Measurement | None = None
    results: list[list[torch.Tensor]] = field(default_factory=list)
    untimed: list[list[torch.Tensor]] = field(default_factory=list)  # where they differ


@dataclass
class _Attempt:
    """One configuration: a replay for each set of inputs, what its check gave, and copies."""

    replays: list[Replay]
    expected: list[list[torch.Tensor]]
    copies: list[tuple[Replay, int]]  # with the number of their set
    differ: torch.Tensor

    def jobs(self) -> list[TimingJob]:
        every = [*((replay, number) for number, replay in enumerate(self.replays)), *self.copies]
        return [TimingJob(replay.run, replay.memory.spoil, self._comparison(replay, number),
                    once=replay.in_place) for replay, number in every]

    def _comparison(self, replay: Replay, number: int) -> Callable[[], object]:
        """Nobody waits for what it finds until all times are taken."""
        def compare() -> None:
            for result, right in zip(replay.results, self.expected[number], strict=True):
                if result.numel():
                    self.differ.logical_or_(differs(result, right))
        return compare


def time_call(recordings: Sequence[Recording], inputs: Sequence[GpuMemory], kernels: Kernels,
              launcher: Launcher, device: Cuda, l2_bytes: int,
              room: Callable[[], int] = lambda: 1 << 62) -> Timing:
    """Time a call: each configuration of its autotuners, of which the fastest counts.

    Every repeat runs on the next set of inputs, at other addresses, its outputs poisoned before
    and compared behind the clock with those of a run that was checked.

    Args:
        recordings: of the same call, one for each configuration.
        inputs: memories that hold the sets of inputs, and nothing else.
        room: bytes that are free.
    """
    timing = Timing()
    several = len(recordings) > 1
    chosen = recordings[0]
    try:
        if several:
            number, chosen = _fastest(timing, recordings, inputs, kernels, launcher, device)
        attempt = _attempt(chosen, inputs, kernels, launcher)
        attempt.copies.extend(_copies(chosen, inputs, kernels, launcher, l2_bytes, room))
        name = _name(number, len(recordings)) if several else ""
        timing.best = measure(attempt.jobs(), device, config=name)
    except (_Found, LaunchRefused) as refusal:
        timing.findings = [*refusal.findings]
    else:
        if not several:
            timing.configurations = [timing.best]
        # Atomics add in any order, so floats may differ from run to run.
        atomics = any("atomic_" in getattr(kernel, "src", "") for kernel in kernels.values())
        _look_back(timing, attempt, chosen, atomics=atomics)
    return timing


def _name(number: int, count: int) -> str:
    return f"configuration {number + 1} of {count}"


def _fastest(timing: Timing, recordings: Sequence[Recording], inputs: Sequence[GpuMemory],
             kernels: Kernels, launcher: Launcher, device: Cuda) -> tuple[int, Recording]:
    """Returns the fastest configuration, by a short timing of each.

    An autotuner passes over what does not compile; where nothing does, that is what is told.

    Raises:
        LaunchRefused, _Found: there is nothing to time.
    """
    refusal: LaunchRefused | None = None
    times: list[tuple[float, int]] = []
    for number, recording in enumerate(recordings[:_MOST_CONFIGURATIONS]):
        try:
            attempt = _attempt(recording, inputs, kernels, launcher)
        except LaunchRefused as refused:
            refusal = refusal or refused
            continue
        measurement = measure(attempt.jobs(), device, config=_name(number, len(recordings)),
                       budget_ms=_SHORT_MS)
        timing.configurations.append(measurement)
        times.append((measurement.ms, number))
    if not times:
        assert refusal is not None
        raise refusal
    _, best = min(times)
    return best, recordings[best]


class _Found(Refusal):
    """The checked run of a configuration has findings."""


def _attempt(recording: Recording, inputs: Sequence[GpuMemory], kernels: Kernels,
             launcher: Launcher) -> _Attempt:
    """Run each set once, checked, and make ready what is timed."""
    replays, expected = [], []
    for memory in inputs:
        memory.forget()
        replay = prepare(recording, memory, kernels, launcher)
        if overruns := run_checked(replay, recording):
            raise _Found(*overruns)
        replays.append(replay)
        expected.append([result.clone() for result in replay.results])
    return _Attempt(replays, expected, [],
                    torch.zeros((), dtype=torch.bool, device=inputs[0].device))


def _copies(recording: Recording, inputs: Sequence[GpuMemory], kernels: Kernels,
            launcher: Launcher, l2_bytes: int, room: Callable[[], int]
            ) -> Iterator[tuple[Replay, int]]:
    """The same at further addresses, until all buffers together are more than L2 holds."""
    each = max(1, sum(memory.nbytes for memory in inputs) // len(inputs))
    for number in range(len(inputs), min(MOST_COPIES, math.ceil(_ROTATE * l2_bytes / each))):
        if room() < 4 * each:
            return
        of = number % len(inputs)
        copy = prepare(recording, inputs[of].copy(), kernels, launcher)
        copy.run()
        yield copy, of


def _look_back(timing: Timing, attempt: _Attempt, recording: Recording, *, atomics: bool) -> None:
    """Checks red zones, inputs and results after the timed runs."""
    for replay in (*attempt.replays, *(copy for copy, _ in attempt.copies)):
        for launch in recording.launches[-1:]:
            timing.findings += [overrun(one, launch) for one in replay.memory.overruns()]
        timing.findings += modified(replay.memory, recording)
    timing.results = [replay.results for replay in attempt.replays]
    if bool(attempt.differ):
        timing.untimed = attempt.expected
        if not atomics:
            timing.findings.append(Finding("M09", fault("timed results")))
