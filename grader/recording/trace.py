"""A trace: every line that some programs of a run executed, with its variables and accesses."""

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

MAX_TRACE_BYTES = 1 << 26  # encoded; the executor keeps far below it

Count = Annotated[int, Meta(ge=0)]


class TracedArray(msgspec.Struct, frozen=True):
    """Numbers, little-endian, in C order.

    ``dtype``: ``f4``, ``f8``, ``i4`` or ``u1``. The first axis of ``shape`` counts the programs of
    the group; along every axis an array has the full length, or 1 where all values are equal.
    ``start``: its first byte in ``Trace.data``.
    """

    dtype: Literal["f4", "f8", "i4", "u1"]
    shape: tuple[Count, ...]
    start: Count


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """A variable's value.

    ``array`` holds numbers, or, where ``tensor`` is given, the elements that pointers point to,
    counted from the tensor's first one. ``text`` stands for anything else.
    """

    dtype: str = ""
    shape: tuple[Count, ...] = ()
    array: int | None = None
    tensor: int | None = None
    text: str = ""


class TracedAccess(msgspec.Struct, frozen=True, omit_defaults=True):
    """One load, store or atomic of all programs of a group.

    The fields ``offset`` to ``undefined`` are numbers of arrays. ``offset``: elements from the
    tensor's first one (addresses where ``tensor`` is -1). ``mask``: 1 where an element is accessed;
    all are where it is None. ``value``: loaded (after masking), or stored. ``undefined``: 1 where
    the loaded element was never stored. ``filled``: masked-off elements of a load get ``other``;
    without it they are undefined.
    """

    kind: Literal["load", "store", "atomic"]
    tensor: int
    offset: int
    mask: int | None
    value: int | None
    undefined: int | None = None
    filled: bool = False


class TracedStep(msgspec.Struct, omit_defaults=True):
    """One executed statement.

    ``turn``: how often it ran before in this call of its function. ``end``: its last line, where it
    has several; 0 where it has one. ``values``: the variables that it changed, and at the first
    statement of a helper its parameters.
    """

    line: int
    function: str
    depth: int = 0
    turn: int = 0
    end: int = 0
    values: dict[str, Value] = {}
    accesses: list[TracedAccess] = []


class Group(msgspec.Struct, frozen=True):
    """Programs that executed the same lines. ``failed``: they stopped at the last one."""

    programs: list[int]
    steps: list[TracedStep]
    failed: bool = False


class TracedLaunch(msgspec.Struct, frozen=True):
    """One launch. ``arguments``: what each parameter was bound to. ``line``: of the launch."""

    kernel: str
    line: int | None
    grid: tuple[int, int, int]
    arguments: dict[str, Value]
    groups: list[Group]


class TracedTensor(msgspec.Struct, frozen=True):
    """A view that launches got. ``names``: of the parameters.

    Strides are in elements; ``offset`` is that of its first element in the storage, ``elements``
    how far it reaches from there. ``before`` and ``after`` are arrays [1, *shape] of its values
    around the call (None where it is too large), and ``writers`` of the program that stored each
    element last, -1 where none did. ``undefined`` says that nothing was stored there before.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    storage: int
    offset: int
    elements: int
    undefined: bool
    names: list[str]
    before: int | None = None
    after: int | None = None
    writers: int | None = None

    def index(self, offset: int) -> tuple[int, ...] | None:
        """The index of an element, by its offset from the first one; None outside."""
        if not 0 <= offset < self.elements:
            return None
        index = [0] * len(self.shape)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -self.stride[axis]):
            if self.stride[axis]:
                index[axis] = min(offset // self.stride[axis], self.shape[axis] - 1)
                offset -= index[axis] * self.stride[axis]
        return tuple(index) if offset == 0 else None  # between the rows of a view


class Trace(msgspec.Struct):
    """The launches of one call, in order. ``cut``: steps were left out, as there were too many."""

    tensors: list[TracedTensor]
    launches: list[TracedLaunch]
    arrays: list[TracedArray]
    data: bytes
    cut: bool = False

    def numbers(self, array: int) -> NDArray[Any]:
        """The values of an array.

        Raises:
            ValueError: there is none, or it reaches beyond the data.
        """
        one = self.arrays[array] if 0 <= array < len(self.arrays) else None
        if one is None:
            raise ValueError(f"a trace without array {array}")
        return np.frombuffer(self.data, f"<{one.dtype}", prod(one.shape),
                             one.start).reshape(one.shape)

    def writer(self, tensor: int, index: Sequence[int]) -> int | None:
        """The program that stored an element of a tensor last."""
        one = self.tensors[tensor]
        if one.writers is None or len(index) != len(one.shape):
            return None
        program = int(self.numbers(one.writers)[(0, *index)])
        return None if program < 0 else program


def decode(data: bytes) -> Trace:
    """Reads the executor's trace.

    Raises:
        ValueError: it has another form.
    """
    trace: Trace = msgspec.msgpack.decode(data, type=Trace)
    return trace


def encode(trace: Trace) -> bytes:
    return msgspec.msgpack.encode(trace)
