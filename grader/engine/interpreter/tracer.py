"""Traces programs while they run: the lines they execute, their variables and accesses.

Lines come from ``sys.settrace``, accesses from ``TracingMemory``. A run that is not traced uses
neither, so it costs nothing there.
"""

import linecache
import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
import triton.language as tl

from grader.engine.interpreter import source_blocks
from grader.engine.interpreter.block_value import Array, Handle, aligned
from grader.engine.interpreter.descriptors import BlockDescriptor, BlockPointer
from grader.engine.interpreter.index_runs import Runs
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.shadow_memory import NOBODY
from grader.engine.interpreter.transaction import Attempt
from grader.recording.trace import Group, TracedAccess, TracedArray, TracedStep, Value

# Of all arrays of one trace, by what they take when they are deflated: floats hardly shrink, masks
# and offsets to a tenth. A page of them has at most 2 MB.
MAX_BYTES = 1_400_000
_WEIGHTS = {"f": 1.0, "i": 0.1, "u": 0.1}
MAX_STEPS = 20_000
MAX_VALUE_ELEMENTS = 1 << 16  # of one program's block
AFTER_CUT_S = 5.0
MAX_TEXT = 80
_INT32 = 1 << 31


class TraceFull(BaseException):
    """The programs do more than a trace may hold; no failure of the kernel."""


class TraceStopped(BaseException):
    """The programs ran on for ``AFTER_CUT_S`` after the trace was cut, as an endless loop does."""


class _LeftOut(Exception):
    """An array is not in the trace, which was cut before it."""


@dataclass
class _Frame:
    """A running function: the line it is at, and its variables before that line."""

    depth: int
    step: TracedStep | None = None
    names: dict[str, Any] = field(default_factory=dict)
    turns: Counter[int] = field(default_factory=Counter)


@dataclass
class _Attempt:
    """What a group of programs did since it was started."""

    rows: Array  # which of its programs are traced
    programs: list[int]
    steps: list[TracedStep] = field(default_factory=list)
    frames: dict[FrameType, _Frame] = field(default_factory=dict)


class Tracer:
    """Collects the steps of the launches of one run.

    ``programs``: which are traced, None for all. With ``cuts`` a trace that is full ends; otherwise
    it raises ``TraceFull``.
    """

    def __init__(self, programs: Collection[int] | None = None, *, cuts: bool = False) -> None:
        self.arrays: list[TracedArray] = []
        self.data = bytearray()
        self.groups: list[Group] = []
        self.cut = False
        self.programs = programs
        self._cuts = cuts
        self._steps = 0
        self._weight = 0.0
        self._deadline = math.inf
        self._known: dict[Any, tuple[int, Any]] = {}  # by id; the second keeps the id's owner
        self._attempts: dict[int, tuple[Attempt, _Attempt]] = {}
        self._memory: TracingMemory | None = None
        self._tensors: Mapping[str, int] = {}
        self._spans: dict[str, dict[int, tuple[int, int]]] = {}  # by file

    # -- launches ------------------------------------------------------------------------------

    @contextmanager
    def launch(self, memory: "TracingMemory", tensors: Mapping[str, int]) -> Iterator[None]:
        """Traces the launch that runs inside; its groups are in ``groups`` afterwards.

        Args:
            tensors: the numbers of the traced tensors, by the names that the launch has for them.
        """
        self.groups, self._attempts = [], {}
        self._memory, self._tensors = memory, tensors
        memory.tracer = self
        before = sys.gettrace()
        threading.settrace(self._call)
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)
            memory.tracer = None
            for attempt, traced in list(self._attempts.values()):
                self._finish(attempt, traced, failed=True)
            self._attempts, self._memory = {}, None

    def settled(self, attempt: Attempt) -> None:
        """The group ended; its steps stay."""
        kept = self._attempts.pop(id(attempt), None)
        if kept is not None:
            self._finish(*kept, failed=False)

    def undone(self, attempt: Attempt) -> None:
        """The group is started again in other parts; its steps go."""
        if kept := self._attempts.pop(id(attempt), None):
            self._steps -= len(kept[1].steps)

    def _finish(self, attempt: Attempt, traced: _Attempt, *, failed: bool) -> None:
        if traced.steps:
            self.groups.append(Group(traced.programs, traced.steps, failed))

    def _current(self) -> _Attempt | None:
        assert self._memory is not None
        attempt = self._memory.running.attempt
        if not attempt.count:
            return None
        kept = self._attempts.get(id(attempt))
        if kept is None:
            programs = attempt.programs.tolist()
            rows = [row for row, program in enumerate(programs)
                    if self.programs is None or program in self.programs]
            kept = attempt, _Attempt(np.array(rows, np.int64), [programs[row] for row in rows])
            self._attempts[id(attempt)] = kept
        return kept[1] if len(kept[1].rows) else None

    # -- lines ---------------------------------------------------------------------------------

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        assert self._memory is not None
        if code.co_filename != self._memory.running.file or code.co_name.startswith(
                ("<", "__tritonlab")):
            return None
        traced = None if self.cut else self._current()
        if traced is None:
            return None
        depth = sum(1 for other in traced.frames if other is not frame)
        traced.frames[frame] = _Frame(depth, names=self._own(frame))
        return self._line

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if self.cut and time.monotonic() > self._deadline:
            raise TraceStopped
        if self.cut or event not in ("line", "return"):
            return self._line
        traced = self._current()
        if traced is None or frame not in traced.frames:
            return None
        state = traced.frames[frame]
        now = self._own(frame)
        if state.step is not None:
            for name, value in now.items():
                if name not in state.names or state.names[name] is not value:
                    with suppress(_LeftOut):
                        self._add(state.step.values, name, value, traced.rows)
        state.names = now
        if event == "return":
            del traced.frames[frame]
            return None
        line, last = self._statements().get(frame.f_lineno, (frame.f_lineno, frame.f_lineno))
        end = last if last > line else 0
        if state.step is not None and state.step.line == line and (
                end or (not state.step.values and not state.step.accesses)):
            return self._line  # another line of the same statement
        passed = now if state.step is None and state.depth else {}
        state.step = TracedStep(line, frame.f_code.co_name, state.depth, state.turns[line], end)
        state.turns[line] += 1
        traced.steps.append(state.step)
        for name, value in passed.items():
            with suppress(_LeftOut):
                self._add(state.step.values, name, value, traced.rows)
        self._steps += 1
        if self._steps > MAX_STEPS:
            self._full()
        return self._line

    def _statements(self) -> dict[int, tuple[int, int]]:
        assert self._memory is not None
        file = self._memory.running.file
        if file not in self._spans:
            self._spans[file] = source_blocks.statements("".join(linecache.getlines(file)))
        return self._spans[file]

    @staticmethod
    def _own(frame: FrameType) -> dict[str, Any]:
        return {name: value for name, value in frame.f_locals.items()
                if not name.startswith("__tritonlab")}

    def _full(self) -> None:
        if not self._cuts:
            raise TraceFull
        self.cut, self._deadline = True, time.monotonic() + AFTER_CUT_S

    # -- accesses ------------------------------------------------------------------------------

    def access(self, kind: Any, pointers: Handle, mask: Handle | None, value: Handle,
               undefined: Array | None = None, *, filled: bool = False) -> None:
        """Notes a load, store or atomic at the line that is running."""
        traced = None if self.cut else self._current()
        if traced is None or not traced.frames:
            return
        step = next(reversed(traced.frames.values())).step
        if step is None:
            return
        with suppress(_LeftOut):
            tensor, offset = self._pointers(pointers, traced.rows)
            step.accesses.append(TracedAccess(
                kind, tensor, offset,
                None if mask is None else self._numbers(mask.data, traced.rows),
                self._numbers(value.data, traced.rows),
                None if undefined is None else self._numbers(undefined, traced.rows), filled))

    def _pointers(self, pointers: Handle, rows: Array) -> tuple[int, int]:
        """The tensor that pointers point into, and the number of the array of their elements."""
        assert self._memory is not None
        data = pointers.data
        region = next((region for address in (data.flat[0], data.flat[-1])
                       if (region := self._memory.running.regions.of(int(address)))), None)
        if region is None:
            return -1, self._numbers(data, rows)
        offsets = (data - region.base) // region.itemsize
        return self._tensors.get(region.name, -1), self._numbers(offsets, rows, of=data)

    # -- values --------------------------------------------------------------------------------

    def _add(self, values: dict[str, Value], name: str, value: Any, rows: Array) -> None:
        """Adds a variable's value of the traced programs; each item of a tuple has a name."""
        if isinstance(value, tuple | tl.tuple):
            for number, item in enumerate(value):
                self._add(values, f"{name}[{number}]", item, rows)
            return
        handle = getattr(value, "handle", None)
        if isinstance(handle, Handle):
            values[name] = self._block(handle, rows)
        elif isinstance(handle, BlockPointer | BlockDescriptor):
            tensor, _ = self._pointers(handle.base, rows)
            block = " x ".join(map(str, handle.block_shape))
            values[name] = Value(tensor=tensor, text=f"{block} block")
        else:
            plain = value.value if isinstance(value, tl.constexpr) else value
            values[name] = Value(text=str(getattr(plain, "__name__", plain))[:MAX_TEXT])

    def _block(self, handle: Handle, rows: Array) -> Value:
        data, dtype = handle.data, str(handle.dtype)
        if data[0].size > MAX_VALUE_ELEMENTS:
            return Value(dtype, handle.shape, text="too large to show")
        if handle.dtype.is_ptr():
            tensor, array = self._pointers(handle, rows)
            return Value(dtype, handle.shape, array, tensor)
        return Value(dtype, handle.shape, self._numbers(data, rows))

    def numbers(self, data: Array) -> int:
        """Adds an array that belongs to no group, between launches; it always finds room."""
        return self._numbers(data, np.zeros(1, np.int64))

    def _numbers(self, data: Array, rows: Array, *, of: Array | None = None) -> int:
        """The number of an array with these values, which is added unless it was before."""
        owner = data if of is None else of
        key = id(owner), of is None, rows.tobytes() if len(owner) > 1 else b""
        kept = self._known.get(key)
        if kept is not None:
            return kept[0]
        if len(data) > 1:
            data = data[rows]
        numbers = _shown(data)
        self._weight += numbers.nbytes * _WEIGHTS[numbers.dtype.kind]
        if self._weight > MAX_BYTES and self._memory is not None:
            self._full()
            raise _LeftOut
        number = len(self.arrays)
        self.arrays.append(TracedArray(numbers.dtype.str[1:], numbers.shape,  # type: ignore[arg-type]
                                       len(self.data)))
        self.data += numbers.tobytes()
        self._known[key] = number, owner
        return number


def _shown(data: Array) -> Array:
    """The same numbers in one of the four types that a trace has."""
    kind, size = data.dtype.kind, data.dtype.itemsize
    if kind == "b" or (kind == "u" and size == 1):
        return data.astype("u1")
    if kind in "iu":
        fits = size < 4 or (kind, size) == ("i", 4) or (
            data.size and int(data.min()) >= -_INT32 and int(data.max()) < _INT32)
        return data.astype("<i4" if fits or not data.size else "<f8")
    return data.astype("<f8" if kind == "f" and size == 8 else "<f4")


class TracingMemory(Memory):
    """Memory whose accesses are traced too."""

    def __init__(self, pattern: int = 0, **options: Any) -> None:
        self.tracer: Tracer | None = None
        self._nested = False
        super().__init__(pattern, **options)

    def try_with(self, programs: Array) -> Attempt:
        attempt = super().try_with(programs)
        if self.tracer is not None:
            roll_back, tracer = attempt.roll_back, self.tracer

            def undone() -> None:
                tracer.undone(attempt)
                roll_back()

            attempt.roll_back = undone  # type: ignore[method-assign]
        return attempt

    def settle(self) -> None:
        if self.tracer is not None:
            self.tracer.settled(self.attempt)
        super().settle()

    def load(self, pointers: Handle, mask: Handle | None, other: Handle | None, *,
             volatile: bool = False) -> Handle:
        if self.tracer is None or self._nested:
            return super().load(pointers, mask, other, volatile=volatile)
        undefined = self._undefined(pointers, mask)
        with self._once():
            value = super().load(pointers, mask, other, volatile=volatile)
        self.tracer.access("load", pointers, mask, value, undefined, filled=other is not None)
        return value

    def store(self, pointers: Handle, mask: Handle | None, value: Handle) -> None:
        if self.tracer is None or self._nested:
            return super().store(pointers, mask, value)
        self.tracer.access("store", pointers, mask, value)
        with self._once():
            super().store(pointers, mask, value)
        return None

    def atomic(self, operation: str, pointers: Handle, mask: Handle | None, value: Handle, *,
               ordered: bool, compare: Handle | None = None) -> Handle:
        tracer = None if self._nested else self.tracer
        if tracer is not None:
            tracer.access("atomic", pointers, mask, value)
        with self._once():
            return super().atomic(operation, pointers, mask, value, ordered=ordered,
                                  compare=compare)

    @contextmanager
    def _once(self) -> Iterator[None]:
        """Calls inside are parts of one access."""
        before, self._nested = self._nested, True
        try:
            yield
        finally:
            self._nested = before

    def _undefined(self, pointers: Handle, mask: Handle | None) -> Array | None:
        """Which elements of a load are undefined values; None where none is."""
        region = self.running.regions.of(int(pointers.data.flat[0]))
        if region is None or region.storage.shadow.paged:
            return None
        storage = region.storage
        cells = (pointers.data - region.base + region.start) // storage.granule
        inside = (cells >= 0) & (cells < storage.shadow.cells)
        states = storage.shadow.get(Runs(np.where(inside, cells, 0).reshape(-1)))
        undefined: Array = (states.reshape(cells.shape) == NOBODY) & inside
        if mask is not None:
            undefined = undefined & aligned(pointers, mask)[1]
        return undefined if undefined.any() else None
