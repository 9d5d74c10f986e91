"""Replays a recording on the engine: allocations, host moves, launches, then the results."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta, structs

from grader.engine.interpreter.launch import LaunchOutcome, Order, run
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.patch_triton import installed
from grader.executor.binding import Binder, Kernels, LaunchRefused
from grader.executor.memory import Storages, windows_of
from grader.finding import fault
from grader.recording.launch_stats import LaunchFacts
from grader.recording.model import (
    MAX_PROGRAMS,
    MAX_SAMPLED_PROGRAMS,
    Alloc,
    Event,
    Launch,
    Recording,
)
from grader.report import Finding

_MOST_PLACES = 64  # lines and tensors of one launch whose traffic is told, the heaviest
_LONGEST_NAME = 200  # characters of a tensor's name


@dataclass(frozen=True)
class Settings:
    """The options of a replay, from the fields of a ``run`` request."""

    order: Order = "forward"
    poison: Literal[0, 1] = 0
    duplicate_writes: bool = False
    zeroed: bool = False
    sample: Annotated[int, Meta(ge=1)] | None = None
    windows: tuple[tuple[int, int], ...] | None = None
    names: tuple[str, ...] = ()  # of the results, for what is said of them


@dataclass
class Replayed:
    """The outcome of a replay, in the fields of the reply."""

    findings: list[Finding] = field(default_factory=list)
    results: list[list[Any]] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    determined: bool = False  # another order or other garbage would have given the same
    other: list[list[Any]] = field(default_factory=list)  # results of a run that was so
    printed: list[str] = field(default_factory=list)  # by tl.device_print, its first lines


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
        replayed.results = storages.append_results(output, views)
    except _Stopped:
        pass
    except MemoryError as error:
        shape = getattr(error, "shape", None)  # of the array that NumPy could not make
        memory.observed.add(Finding("R04", fault("no memory for shape", shape=tuple(shape))
                                    if shape else fault("no memory", text=str(error))))
    finally:
        memory.end()
    replayed.findings = memory.observed.findings()
    replayed.determined = memory.determined
    return replayed


def _step(event: Event, storages: Storages, memory: Memory, kernels: Kernels, settings: Settings,
          replayed: Replayed) -> None:
    match event:
        case Alloc():
            storages.allocate(event)
        case Launch():
            outcome = _launch(event, storages, memory, kernels, settings)
            replayed.launches.append(_facts(event, outcome, kernels))
            if outcome.failure is not None:
                memory.observed.add(outcome.failure)
                raise _Stopped
        case _:
            if finding := storages.replay(event):
                memory.observed.add(finding)


def _launch(launch: Launch, storages: Storages, memory: Memory, kernels: Kernels,
            settings: Settings) -> LaunchOutcome:
    limit = MAX_PROGRAMS if settings.sample is None else MAX_SAMPLED_PROGRAMS
    if launch.programs > limit:
        return LaunchOutcome(launch.programs, failure=Finding(
            "T03", fault("too many programs", kernel=launch.kernel, count=launch.programs,
                         most=limit), line=launch.line))
    try:
        kernel, bound = Binder(kernels, storages.pointer, storages.descriptor).bind(launch)
    except LaunchRefused as error:
        return LaunchOutcome(launch.programs, failure=error.finding)
    return run(kernel, launch.grid, bound, memory, order=settings.order, sample=settings.sample,
               options=launch.options)


def _facts(launch: Launch, outcome: LaunchOutcome, kernels: Kernels) -> dict[str, Any]:
    traffic = sorted(outcome.traffic, key=lambda t: -t.sectors)[:_MOST_PLACES]
    tensors = sorted(outcome.footprint.items(),
                     key=lambda item: -item[1].read_sectors - item[1].written_sectors)
    return LaunchFacts(
        launch.kernel, outcome.programs, outcome.idle_programs, outcome.bytes_loaded,
        outcome.bytes_stored, _block(launch, kernels.get(launch.kernel)), outcome.flops,
        outcome.sectors_loaded, outcome.sectors_stored,
        tuple(structs.replace(t, tensor=t.tensor[:_LONGEST_NAME])
              for t in sorted(traffic, key=lambda t: (t.line or 0, t.kind, t.tensor))),
        {name[:_LONGEST_NAME]: footprint for name, footprint in tensors[:_MOST_PLACES]}).to_dict()


def _block(launch: Launch, kernel: Any) -> int | None:
    """The value of the first constexpr parameter whose name starts with BLOCK."""
    name = next((one.name for one in getattr(kernel, "params", ())  # none of an unusable kernel
                 if one.is_constexpr and one.name.upper().startswith("BLOCK")), "")
    argument = launch.arguments.get(name)
    return int(argument.value) if argument is not None and argument.kind == "int" else None
