"""Runs one launch under watch, as many programs at once as go the same way.

The ladder: a group of programs runs as one. Where they go different ways the attempt is undone and
each part runs by itself, from the start. A group that fails runs again one program at a time, so
that the program at fault is known and the others have done their work. A group that waits for
programs that are not in it is put off until what it waits for has changed. If all wait, they run as
one group; if that parts, they run side by side, each until it waits again.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import triton.language as tl
from triton import knobs
from triton.runtime import interpreter
from triton.runtime.jit import mangle_type

from grader.engine.interpreter import analysis
from grader.engine.interpreter.address_space import Storage
from grader.engine.interpreter.block_value import Array, Handle, constant
from grader.engine.interpreter.builder import Options
from grader.engine.interpreter.errors import KernelError, NotInAKernel, explain
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.numerics import TRITON, numpy_dtype
from grader.engine.interpreter.patch_triton import installed
from grader.engine.interpreter.rewrite import rewritten
from grader.engine.interpreter.transaction import Attempt, Diverged, Poll, Spinning
from grader.recording.launch_stats import Footprint, Traffic
from grader.report import Finding

Order = Literal["forward", "reverse"]

_FIRST_CHUNK = 64  # programs at most, before the size of their blocks is known
_CHUNK_ELEMENTS = 1 << 16  # of the largest block, over all programs of a chunk: fits the cache
_FIRST_ELEMENTS = 4 * _CHUNK_ELEMENTS  # of the first chunk, by the kernel's constants
_MOST_PROGRAMS = 4096
_MOST_TOGETHER = 512  # programs side by side; each has a thread of its own
_STACK_BYTES = 1 << 20


@dataclass(frozen=True)
class Pointer:
    """A tensor argument: the view's dtype (torch's name), first byte and extent in bytes."""

    storage: Storage
    dtype: str
    start: int
    nbytes: int


@dataclass(frozen=True)
class HostDescriptor:
    """A ``TensorDescriptor`` that host code made, or its record, and the tensor behind it."""

    base: Pointer
    descriptor: Any  # strides and shapes in elements


@dataclass(frozen=True)
class LaunchOutcome:
    """The outcome of one launch. ``failure`` is the finding that stopped it."""

    programs: int
    idle_programs: int = 0
    failure: Finding | None = None
    flops: int = 0  # of tl.dot, two for each multiplication
    traffic: tuple[Traffic, ...] = ()
    footprint: dict[str, Footprint] = field(default_factory=dict)  # by parameter name

    @property
    def bytes_loaded(self) -> int:
        return sum(t.bytes for t in self.traffic if t.kind != "store")

    @property
    def bytes_stored(self) -> int:
        return sum(t.bytes for t in self.traffic if t.kind != "load")

    @property
    def sectors_loaded(self) -> int:
        return sum(t.sectors for t in self.traffic if t.kind != "store")

    @property
    def sectors_stored(self) -> int:
        return sum(t.sectors for t in self.traffic if t.kind != "load")


def run(kernel: Any, grid: tuple[int, int, int], arguments: Mapping[str, Any], memory: Memory, *,
        order: Order = "forward", sample: int | None = None, chunk: int | None = None,
        options: Mapping[str, Any] | None = None) -> LaunchOutcome:
    """Runs a launch of a ``JITFunction``.

    ``arguments`` binds every parameter: ``Pointer`` for tensors, plain values, tuples of these;
    constexpr parameters get plain values. Findings about memory are left in ``memory.observed``.
    With ``sample=k`` only the first and last k programs run. ``chunk``: programs at once, at most;
    None leaves it to the size of the blocks. ``options``: launch options such as num_warps.
    """
    file = kernel.fn.__code__.co_filename
    running = memory.begin(grid, file)
    failure = None
    with installed(memory) as builder:
        options = options or {}
        warps = options.get("num_warps")
        if type(warps) is int and warps > 0:  # the compiler rejects other values
            running.warps = warps
        debug = bool(options.get("debug", kernel.debug) or knobs.runtime.debug)
        builder.options = Options(num_warps=running.warps, debug=debug)
        try:
            alone = analysis.one_at_a_time(kernel.fn)
            stored = analysis.stored_into(kernel.fn)
            call = partial(rewritten(kernel.fn), **bind(kernel, arguments, memory))
            running.watched = {  # who reads what the kernel may store into has to be known
                id(region.storage) for region in running.regions if stored is None
                or region.name.split("[")[0].split(".")[0] in stored}  # of a tuple too
            _run_all(call, memory, _turns(running.all_programs, order, sample),
                     1 if alone else chunk, _first_chunk(kernel, arguments))
        except Exception as error:
            failure = explain(error, file, kernel.fn.__name__)
        finally:
            running.attempt.commit(running.ledger, memory.observed)
    ledger = running.ledger
    return LaunchOutcome(running.all_programs, running.idle, failure, ledger.flops,
                         ledger.traffic(), ledger.footprint())


def _turns(programs: int, order: Order, sample: int | None) -> Array:
    turns: Array = np.arange(programs)
    if sample is not None and 2 * sample < programs:
        turns = np.r_[0:sample, programs - sample:programs]
    return turns[::-1] if order == "reverse" else turns


# -- groups of programs -------------------------------------------------------------------------


def _first_chunk(kernel: Any, arguments: Mapping[str, Any]) -> int:
    """Returns the number of programs to start together, by their largest block."""
    constants = [arguments[p.name] for p in kernel.params if p.is_constexpr]
    sizes = sorted(n for n in constants if isinstance(n, int) and n >= 16)
    return max(1, min(_FIRST_CHUNK, _FIRST_ELEMENTS // math.prod(sizes[-2:])))


def _run_all(call: Callable[[], None], memory: Memory, turns: Array, chunk: int | None,
             first: int) -> None:
    """Run the programs in turn, group after group.

    Args:
        chunk: programs at once, at most; None goes by the size of their blocks.
        first: programs that start together before that is known.

    Raises:
        KernelError: programs wait for ever.
        Exception: what the kernel raised.
    """
    size = chunk or first
    ways = 1  # in which the last group parted: so many groups of the right size come out of one
    groups: deque[Array] = deque()
    rest = turns
    waiting: list[tuple[Array, Poll]] = []
    together = False  # whether all that wait were tried as one group already
    while groups or len(rest) or waiting:
        if not groups and len(rest):
            taken = size if chunk else min(size * ways, _MOST_PROGRAMS)
            groups.append(rest[:taken])
            rest = rest[taken:]
        elif not groups:
            left, waiting = np.concatenate([group for group, _ in waiting]), []
            if together:
                _side_by_side(call, memory, left)
                break
            together = True
            groups.append(left)
        group = groups.popleft()
        attempt = memory.try_with(group)
        attempt.others = bool(groups or len(rest) or waiting)
        try:
            call()
        except Diverged as apart:
            attempt.roll_back()
            parts = _split(group, apart.labels)
            ways = len(parts)
            groups.extendleft(part[i:i + size] for part in reversed(parts)
                              for i in range((len(part) - 1) // size * size, -1, -size))
        except Spinning as spin:
            attempt.roll_back()
            waiting.append((group, spin.poll))
        except Exception:
            if len(group) == 1:
                raise
            attempt.roll_back()
            groups.extendleft(group[i:i + 1] for i in range(len(group) - 1, -1, -1))
        else:
            memory.settle()
            groups.extend(group for group, poll in waiting if poll.changed())
            waiting = [(group, poll) for group, poll in waiting if not poll.changed()]
            if chunk is None:
                size = max(1, min(_MOST_PROGRAMS, _CHUNK_ELEMENTS // attempt.largest))


def _split(group: Array, labels: Array) -> list[Array]:
    """The group by label, the part of the first program first."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return [group[which.reshape(-1) == label] for label in np.argsort(first)]


# ---------------------------------------------------------------------------------------------
# Programs that wait for each other, side by side: one goes on until it waits, then the next


class _Abandoned(BaseException):
    """Nobody will hand over to this program again."""


class _Program(threading.Thread):
    """One program, which runs only between ``go_on`` and its next wait."""

    def __init__(self, call: Callable[[], None], attempt: Attempt) -> None:
        super().__init__(daemon=True)
        self.attempt = attempt
        self.error: BaseException | None = None
        self.poll: Poll | None = None
        self.done = self.for_ever = self._given_up = False
        self._call = call
        self._mine, self._yours = threading.Semaphore(0), threading.Semaphore(0)
        attempt.on_wait = self._wait

    def run(self) -> None:
        self._mine.acquire()
        try:
            with np.errstate(all="ignore"):
                if not self._given_up:
                    self._call()
        except _Abandoned:
            pass
        except BaseException as error:
            self.error = error
        self.done = True
        self._yours.release()

    def go_on(self) -> None:
        """Run until the program waits or ends."""
        self._mine.release()
        self._yours.acquire()

    def give_up(self) -> None:
        self._given_up = True
        if not self.done:
            self.go_on()

    def _wait(self, poll: Poll, for_ever: bool) -> None:
        self.poll, self.for_ever = poll, for_ever
        self._yours.release()
        self._mine.acquire()
        if self._given_up:
            raise _Abandoned


def _side_by_side(call: Callable[[], None], memory: Memory, programs: Array) -> None:
    """Run programs that wait for each other; nothing is undone.

    Raises:
        KernelError: all of them wait, and nothing changes any more.
        Exception: what a program raised.
    """
    if len(programs) > _MOST_TOGETHER:
        raise KernelError(f"{len(programs)} programs wait for each other in different ways; "
                          f"{_MOST_TOGETHER} can be run side by side here", code="R02")
    previous = threading.stack_size(_STACK_BYTES)
    try:
        threads = [_Program(call, memory.try_with(np.array([program])))
                   for program in programs.tolist()]
        for thread in threads:
            thread.attempt.others = True
            thread.start()
    finally:
        threading.stack_size(previous)
    try:
        _rounds(memory, deque(threads))
    finally:
        for thread in threads:
            thread.give_up()


def _rounds(memory: Memory, queue: deque[_Program]) -> None:
    order, idle = memory.running.order, 0
    while queue:
        program = queue.popleft()
        before = order.changes
        memory.running.attempt = program.attempt
        program.go_on()
        if program.error is not None:
            raise program.error
        if program.done:
            memory.settle()
            idle = 0
            continue
        queue.append(program)
        idle = idle + 1 if program.for_ever and order.changes == before else 0
        if idle >= len(queue):
            _stuck(memory, queue)


def _stuck(memory: Memory, queue: deque[_Program]) -> None:
    for program in queue:
        program.attempt.commit(memory.running.ledger, memory.observed)
    first = min(queue, key=lambda program: int(program.attempt.programs[0]))
    poll = first.poll
    place = memory.running.place(int(first.attempt.programs[0]))
    if poll is None or not poll.place:
        raise KernelError(f"{place} did not finish: an iteration of its loop changes neither "
                          "memory nor a variable", code="R02", line=poll.line if poll else None)
    raise KernelError(f"{place} waits forever: it polls {poll.place}, and no program changes it",
                      code="R02", line=poll.line)


# -- arguments ----------------------------------------------------------------------------------


def bind(kernel: Any, arguments: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    """Builds the arguments of the rewritten kernel; tensors are bound to the launch."""
    return {p.name: _bind(p, arguments[p.name], memory) for p in kernel.params}


def _bind(parameter: Any, value: Any, memory: Memory) -> Any:
    if parameter.is_constexpr:
        return value
    if isinstance(value, Pointer):
        return _pointer(parameter.name, value, memory, constant=parameter.is_const)
    if type(value) is int and value == 1 and parameter.do_not_specialize:
        return _scalar(1, _SCALARS.get(parameter.annotation_type) or tl.int32)
    return _convert(parameter.name, value, parameter.annotation_type, memory)


def _convert(name: str, value: Any, annotation: str, memory: Memory) -> Any:
    """Converts an argument as for a GPU: address, 32- or 64-bit integer, float32, bit.

    The integer 1 is compiled into the kernel as a constant, unless its type is annotated.
    """
    if type(value) is int and value == 1 and not annotation:
        return value
    match value:
        case Pointer():
            return _pointer(name, value, memory)
        case HostDescriptor():
            return _descriptor(name, value, memory)
        case tuple():
            fields = getattr(value, "_fields", range(len(value)))
            items = (_convert(f"{name}.{key}" if isinstance(key, str) else f"{name}[{key}]", item,
                              "", memory)
                     for key, item in zip(fields, value, strict=True))
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        case bool() | int() | float():
            return _scalar(value, _SCALARS.get(annotation) or _natural(value))
        case None:
            return None
    if isinstance(value, (str, tl.dtype)):
        raise NotInAKernel(f"parameter `{name}` gets {value!r:.40} and is not a tl.constexpr")
    return value  # a jit function


def _pointer(name: str, pointer: Pointer, memory: Memory, *, constant: bool = False) -> Any:
    element = TRITON[pointer.dtype]
    if element.is_fp8() and element.name not in Options.supported_fp8_dtypes:
        raise NotInAKernel(f"parameter `{name}` points to {element}, a type of AMD's GPUs")
    itemsize = numpy_dtype(element).itemsize
    address = memory.running.regions.add(
        name, pointer.storage, itemsize, pointer.start, pointer.nbytes)
    kind = tl.pointer_type(element, 1, constant)
    return tl.tensor(Handle(np.array([address]), kind), kind)


def _descriptor(name: str, host: HostDescriptor, memory: Memory) -> Any:
    given = host.descriptor
    strides = [_scalar(stride, tl.int64) for stride in given.strides[:-1]]
    descriptor = interpreter.interpreter_semantic.make_tensor_descriptor(
        _pointer(name, host.base, memory),
        [_scalar(size, tl.int32) for size in given.shape],
        [*strides, tl.constexpr(given.strides[-1])],
        [tl.constexpr(size) for size in given.block_shape], given.padding)
    descriptor.handle.rounds_to_tf32 = getattr(given, "round_f32_to_tf32", False)  # not in 3.6
    return descriptor


_SCALARS: dict[str, Any] = {name: tl.str_to_ty(name, None) for name in (
    "i1", "u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32",
    "fp64")}


def _natural(value: bool | int | float) -> Any:
    """The type that Triton gives a number by itself."""
    if isinstance(value, int) and not -1 << 63 <= value < 1 << 64:
        raise NotInAKernel(f"the integer {value} does not fit 64 bits")
    return _SCALARS[mangle_type(value)]


def _scalar(value: Any, kind: Any) -> Any:
    return tl.tensor(constant(value, kind), kind)


