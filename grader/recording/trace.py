"""A trace: every line that some programs of a run executed, with its variables and accesses."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

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
    the loaded element was never stored.
    """

    kind: Literal["load", "store", "atomic"]
    tensor: int
    offset: int
    mask: int | None
    value: int | None
    undefined: int | None = None


class TracedStep(msgspec.Struct, omit_defaults=True):
    """One executed line.

    ``turn``: how often the line ran before in this call of its function. ``values``: the variables
    that it changed.
    """

    line: int
    function: str
    depth: int = 0
    turn: int = 0
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
    around the call (None where it is too large); ``undefined`` says that nothing was stored there
    before the call.
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


class Trace(msgspec.Struct):
    """The launches of one call, in order. ``cut``: steps were left out, as there were too many."""

    tensors: list[TracedTensor]
    launches: list[TracedLaunch]
    arrays: list[TracedArray]
    data: bytes
    cut: bool = False


def decode(data: bytes) -> Trace:
    """Reads the executor's trace.

    Raises:
        ValueError: it has another form.
    """
    trace: Trace = msgspec.msgpack.decode(data, type=Trace)
    return trace


def encode(trace: Trace) -> bytes:
    return msgspec.msgpack.encode(trace)


def plain(trace: Trace) -> Any:
    """The trace as plain data, ready for ``json.dumps``; the bytes are base64."""
    return msgspec.to_builtins(trace)
