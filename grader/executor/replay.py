"""Replays a recording on the engine: allocations, host moves, launches, then the results."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.engine.interpreter.launch import HostDescriptor, LaunchOutcome, Order, Pointer, run
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.numerics import TRITON
from grader.engine.interpreter.patch_triton import installed
from grader.executor.binding import Binder, Kernels, NoSuchLaunch
from grader.executor.memory import Storages, windows_of
from grader.finding import Fault, fault
from grader.recording.arena import extent, itemsize
from grader.recording.model import (
    MAX_PROGRAMS,
    MAX_SAMPLED_PROGRAMS,
    Alloc,
    Descriptor,
    Fill,
    Launch,
    MalformedRecording,
    Move,
    Recording,
    View,
)
from grader.report import Finding

_TMA_ALIGNMENT = 16  # bytes, of a descriptor's base and strides
_MOST_PLACES = 64  # lines and tensors of one launch whose traffic is told, the heaviest
_LONGEST_NAME = 200  # characters of a tensor's name


@dataclass(frozen=True)
class Settings:
    """How to replay: see the executor's ``run`` request."""

    order: Order = "forward"
    poison: int = 0
    duplicate_writes: bool = False
    zeroed: bool = False
    sample: int | None = None
    windows: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()  # of the results, for what is said of them


@dataclass
class Replayed:
    """What a replay found and made."""

    findings: list[Finding] = field(default_factory=list)
    results: list[list[Any]] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    modified_inputs: list[int] = field(default_factory=list)
    determined: bool = False  # another order or other garbage would have given the same
    other: list[list[Any]] = field(default_factory=list)  # results of a run that was so
    printed: list[str] = field(default_factory=list)  # by tl.device_print, its first lines

    def to_json(self) -> dict[str, Any]:
        return {
            "status": "done",
            "findings": [finding.to_json() for finding in self.findings],
            "results": self.results,
            "launches": self.launches,
            "modified_inputs": self.modified_inputs,
            "determined": self.determined,
            "other": self.other,
            "printed": self.printed,
        }


class _Stopped(Exception):
    """A kernel could not go on; the findings say why."""


def replay(recording: Recording, layout: Sequence[Sequence[int]], arena: int, output: int,
           kernels: Kernels, settings: Settings) -> Replayed:
    """Replay a recording and write its results to the file ``output``.

    After a kernel failed nothing later is run and no result is written.

    Raises:
        MalformedRecording: views, names or arguments do not fit together.
    """
    storages = Storages(arena, layout, recording, settings.poison)
    memory = Memory(settings.poison, duplicate_writes=settings.duplicate_writes)
    replayed = Replayed()
    memory.printed = replayed.printed
    try:
        with installed(memory):
            for event in recording.events:
                _step(event, storages, memory, kernels, settings, replayed)
        if settings.sample is None:
            for finding in (*storages.coverage(recording, settings.names,
                                                zeroed=settings.zeroed),
                            *storages.outside(recording)):
                memory.observed.add(finding)
        views = list(recording.results)
        if settings.windows:
            views = [part for view in views for part in windows_of(view, settings.windows)]
        replayed.results = _written(storages, output, views)
    except _Stopped:
        pass
    except MemoryError as error:
        memory.observed.add(Finding("R04", out_of_memory(error)))
    finally:
        memory.end()
    replayed.findings = memory.observed.findings()
    replayed.determined = memory.determined
    replayed.modified_inputs = storages.modified_inputs(recording)
    return replayed


def out_of_memory(error: MemoryError) -> Fault:
    shape = getattr(error, "shape", None)  # of the array that NumPy could not make
    return fault("no memory for shape", shape=tuple(shape)) if shape else \
        fault("no memory", text=str(error))


def _written(storages: Storages, output: int, views: Sequence[View]) -> list[list[Any]]:
    try:
        return storages.write(output, views)
    except OSError as error:  # a file may grow so far and no further
        if error.errno != errno.EFBIG:
            raise
        raise MemoryError("a result this large") from error


def _step(event: Any, storages: Storages, memory: Memory, kernels: Kernels, settings: Settings,
          replayed: Replayed) -> None:
    finding: Finding | None = None
    match event:
        case Alloc():
            storages.allocate(event)
        case Fill(target, value):
            finding = storages.fill(target, value)
        case Move():
            finding = storages.move(event)
        case Launch():
            outcome = _launch(event, storages, memory, kernels, settings)
            replayed.launches.append(_facts(event, outcome, kernels))
            if outcome.failure is not None:
                memory.observed.add(outcome.failure)
                raise _Stopped
    if finding is not None:
        memory.observed.add(finding)


def _launch(launch: Launch, storages: Storages, memory: Memory, kernels: Kernels,
            settings: Settings) -> LaunchOutcome:
    limit = MAX_PROGRAMS if settings.sample is None else MAX_SAMPLED_PROGRAMS
    if launch.programs > limit:
        return LaunchOutcome(launch.programs, failure=Finding(
            "T03", fault("too many programs", kernel=launch.kernel, count=launch.programs,
                         most=limit), line=launch.line))
    binder = Binder(kernels, lambda view: pointer_of(view, storages),
                    lambda descriptor: descriptor_of(descriptor, storages))
    try:
        kernel, bound = binder.bind(launch)
    except NoSuchLaunch as error:
        return LaunchOutcome(launch.programs, failure=error.finding)
    return run(kernel, launch.grid, bound, memory, order=settings.order, sample=settings.sample,
               options=launch.options)


def pointer_of(view: View, storages: Storages) -> Pointer:
    storage = storages.check(view)
    if view.dtype not in TRITON:
        raise MalformedRecording(f"Triton has no elements of dtype {view.dtype!r:.40}")
    size = itemsize(view)
    return Pointer(storage, view.dtype, view.offset * size, extent(view) * size)


def descriptor_of(descriptor: Descriptor, storages: Storages) -> HostDescriptor:
    """The base reaches as far as shape and strides say, whatever view it was made of."""
    storages.check(descriptor.base)
    size = itemsize(descriptor.base)
    steps = (descriptor.base.offset, *descriptor.strides[:-1])
    if any(step * size % _TMA_ALIGNMENT for step in steps):
        raise MalformedRecording(f"a descriptor's base or stride is no multiple of "
                                 f"{_TMA_ALIGNMENT} bytes")
    return HostDescriptor(pointer_of(descriptor.reach, storages), descriptor)


def _facts(launch: Launch, outcome: LaunchOutcome, kernels: Kernels) -> dict[str, Any]:
    return {
        "kernel": launch.kernel,
        "programs": outcome.programs,
        "idle_programs": outcome.idle_programs,
        "bytes_loaded": outcome.bytes_loaded,
        "bytes_stored": outcome.bytes_stored,
        "block": _block(launch, kernels.get(launch.kernel)),
        "flops": outcome.flops,
        "sectors_loaded": outcome.sectors_loaded,
        "sectors_stored": outcome.sectors_stored,
        "traffic": _traffic(outcome),
        "footprint": _footprint(outcome),
    }


def _traffic(outcome: LaunchOutcome) -> list[list[Any]]:
    """What moved at each line of the source, in the order of the fields of ``facts.Traffic``."""
    heaviest = sorted(outcome.traffic, key=lambda t: -t.sectors)[:_MOST_PLACES]
    return [
        [t.line, t.kind, t.tensor[:_LONGEST_NAME], t.lanes, t.bytes, t.sectors, t.ideal_sectors,
         t.unique_sectors]
        for t in sorted(heaviest, key=lambda t: (t.line or 0, t.kind, t.tensor))
    ]


def _footprint(outcome: LaunchOutcome) -> dict[str, list[int]]:
    """Distinct sectors read and written of each tensor."""
    sectors = {name: [f.read_sectors, f.written_sectors] for name, f in outcome.footprint.items()}
    heaviest = sorted(sectors, key=lambda name: -sum(sectors[name]))[:_MOST_PLACES]
    return {name[:_LONGEST_NAME]: sectors[name] for name in heaviest}


def _block(launch: Launch, kernel: Any) -> int | None:
    """The value of the first constexpr parameter whose name starts with BLOCK."""
    for parameter in getattr(kernel, "params", ()):  # none where the file has no such kernel to use
        argument = launch.arguments.get(parameter.name)
        if parameter.is_constexpr and parameter.name.upper().startswith("BLOCK"):
            if argument is not None and argument.kind == "int":
                return int(argument.value)
            return None
    return None
