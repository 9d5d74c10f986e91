"""Replays a recording with every step of some programs traced."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.launch import run
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.numerics import TRITON, numpy_dtype
from grader.engine.interpreter.patch_triton import installed
from grader.engine.interpreter.shadow_memory import KERNEL
from grader.engine.interpreter.tracer import (
    MAX_TEXT,
    TraceFull,
    Tracer,
    TraceStopped,
    TracingMemory,
)
from grader.executor.binding import Binder, Kernels, LaunchRefused
from grader.executor.memory import Storages
from grader.finding import fault
from grader.recording.arena import extent, itemsize
from grader.recording.model import (
    MAX_PROGRAMS,
    Alloc,
    Argument,
    Launch,
    Recording,
    View,
    views_of,
)
from grader.recording.trace import Trace, TracedLaunch, TracedTensor, Value
from grader.report import Finding

MAX_ELEMENTS = 1 << 15  # of a tensor whose values are in the trace
MAX_WRITERS = 1 << 18  # of one with the program that stored each element
_FEW = 2  # programs at each end of the grid, where all are too many


@dataclass
class _Tensor:
    """``names`` of its parameters, the array of its values before the call, and who stored."""

    names: list[str]
    before: int | None
    writers: Array | None = None  # [*shape]



def trace(recording: Recording, layout: Sequence[Sequence[int]], arena: int, kernels: Kernels,
          programs: Collection[int] = ()) -> tuple[Trace, list[Finding]]:
    """Traces all programs of each launch, or some where all are too many.

    Args:
        programs: which are traced in any case.

    Returns:
        The trace, and the findings of the run.

    Raises:
        MalformedRecording: views, names or arguments do not fit together.
    """
    for few, cuts in ((None, False), (4 * _FEW, False), (_FEW, False), (1, True)):
        try:
            return _traced(recording, layout, arena, kernels, programs, few, cuts)
        except TraceFull:
            continue
    raise AssertionError("the last attempt cuts what does not fit")


def _traced(recording: Recording, layout: Sequence[Sequence[int]], arena: int, kernels: Kernels,
            programs: Collection[int], few: int | None, cuts: bool) -> tuple[Trace, list[Finding]]:
    storages, memory = Storages(arena, layout, recording, 0), TracingMemory()
    memory.printed = []
    tracer = Tracer(cuts=cuts)
    launches: list[TracedLaunch] = []
    tensors: dict[View, _Tensor] = {}
    try:
        with installed(memory):
            for event in recording.events:
                match event:
                    case Alloc():
                        storages.allocate(event)
                    case Launch():
                        names = _tensors_of(event, tensors, storages, tracer)
                        tracer.programs = _chosen(event.programs, programs, few)
                        failure, stopped = None, False
                        with tracer.launch(memory, names):
                            try:
                                failure = _run(event, storages, memory, kernels)
                            except TraceStopped:
                                stopped = True
                        for view in {*map(list(tensors).__getitem__, names.values())}:
                            _note_writers(view, tensors[view], storages, memory)
                        launches.append(TracedLaunch(
                            event.kernel, event.line, event.grid,
                            {name: _argument(one, names.get(name))
                             for name, one in event.arguments.items()}, tracer.groups))
                        if failure is not None:
                            memory.observed.add(failure)
                        if failure is not None or stopped:
                            break
                    case _:
                        if finding := storages.replay(event):
                            memory.observed.add(finding)
    finally:
        memory.end()
    given = {view.storage for view in recording.inputs}
    traced = [TracedTensor(view.dtype, view.shape, view.stride, view.storage, view.offset,
                           extent(view), view.storage not in given, one.names, one.before,
                           _values(view, storages, tracer),
                           None if one.writers is None else tracer.numbers(one.writers[None]))
              for view, one in tensors.items()]
    return (Trace(traced, launches, tracer.arrays, bytes(tracer.data), tracer.cut),
            memory.observed.findings())


def _run(launch: Launch, storages: Storages, memory: TracingMemory,
         kernels: Kernels) -> Finding | None:
    """Runs a launch. Returns what stopped it."""
    if launch.programs > MAX_PROGRAMS:
        return Finding("T03", fault("too many programs", kernel=launch.kernel,
                                    count=launch.programs, most=MAX_PROGRAMS), line=launch.line)
    try:
        kernel, bound = Binder(kernels, storages.pointer, storages.descriptor).bind(launch)
    except LaunchRefused as error:
        return error.finding
    return run(kernel, launch.grid, bound, memory, options=launch.options).failure


def _tensors_of(launch: Launch, tensors: dict[View, _Tensor], storages: Storages,
                tracer: Tracer) -> dict[str, int]:
    """The number of the tensor behind each pointer of a launch, by the name that it has there."""
    numbers = {}
    for name, view in _named_views(launch.arguments.items()):
        if view not in tensors:
            tensors[view] = _Tensor([], _values(view, storages, tracer))
        if name not in tensors[view].names:
            tensors[view].names.append(name)
        numbers[name] = list(tensors).index(view)
    return numbers


def _named_views(arguments: Iterable[tuple[str, Argument]]) -> Iterator[tuple[str, View]]:
    for name, argument in arguments:
        if argument.kind == "tuple":
            keys = ([f".{field}" for field in argument.fields] if argument.fields
                    else [f"[{number}]" for number in range(len(argument.value))])
            yield from _named_views((name + key, item)
                                    for key, item in zip(keys, argument.value, strict=True))
        elif views := views_of(argument):
            yield name, views[0]


def _argument(argument: Argument, tensor: int | None) -> Value:
    if tensor is not None:
        return Value(tensor=tensor)
    value = argument.value
    if argument.kind == "tuple":
        value = tuple(item.value for item in argument.value if not views_of(item))
    return Value(text=str(value)[:MAX_TEXT])


def _note_writers(view: View, tensor: _Tensor, storages: Storages, memory: Memory) -> None:
    """Notes the program of the last launch that stored each element last."""
    storage, order = storages.check(view), memory.running.order
    if not 0 < prod(view.shape) <= MAX_WRITERS or storage.shadow.paged:
        return
    ratio = max(1, itemsize(view) // storage.granule)
    cells = storage.shadow.strided(view.offset * ratio, view.shape,
                                   tuple(step * ratio for step in view.stride))
    segments = np.where(cells < KERNEL, -cells, cells)  # negative: by an atomic
    own = segments > order.floor
    if tensor.writers is None:
        tensor.writers = np.full(view.shape, -1, np.int32)
    tensor.writers[own] = order.owners(segments[own])


def _values(view: View, storages: Storages, tracer: Tracer) -> int | None:
    """The array of a tensor's values; None if it is too large."""
    if prod(view.shape) > MAX_ELEMENTS or view.dtype not in TRITON:
        return None
    storage, dtype = storages.check(view), numpy_dtype(TRITON[view.dtype])
    typed = storage.typed(dtype)[view.offset:]
    strided = np.lib.stride_tricks.as_strided(
        typed, view.shape, [step * dtype.itemsize for step in view.stride])
    return tracer.numbers(strided[None].copy())


def _chosen(all_programs: int, wanted: Collection[int], few: int | None) -> Collection[int] | None:
    """The programs that are traced; None for all."""
    if few is None or all_programs <= 2 * few:
        return None
    return {*range(few), *range(all_programs - few, all_programs), *wanted}
