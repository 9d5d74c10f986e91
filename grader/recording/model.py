"""A recording: the allocations, fills, copies and launches of one call, from worker to executor."""

import keyword
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, structs

from grader.finding import Fault, fault
from grader.recording.codec import WHOLE, JsonArray, convert

MAX_LAUNCHES = 64  # per call; a right solution of the course needs fewer than ten
MAX_EVENTS = 4096
MAX_FINDINGS = 16  # of one call
MAX_PRINTED, MAX_PRINTED_LINE = 24, 160  # lines that kernels print in one run; characters
MAX_MESSAGE = 2000  # characters of an exception's message; the rest is cut
MAX_TEXT = 4096  # characters of a name, or of an argument that is a text
# Of one launch that is run whole. So many take 0.1 s where each moves one element; with 64 elements
# each, 1 s for a softmax and 2 s for a sum of vectors; 3.5 s where all add to one place. That is at
# most a sixth of the judge's patience. With larger blocks, a result's 64 MiB are full before.
MAX_PROGRAMS = 1 << 18
MAX_SAMPLED_PROGRAMS = 1 << 24  # of a launch of which only a few run; 64 such fit 31 bits
MAX_BLOCK = 1 << 20  # elements; Triton's own limit
MAX_ELEMENTS = 1 << 40  # of a view, and from the start of its storage to its end
MAX_LINE = 1 << 20  # a learner's file has at most so many bytes
MAX_GRID = (2**31 - 1, 65_535, 65_535)  # programs along each axis, on any GPU
MAX_OPTIONS, MAX_WORD = 16, 64  # of a launch: how many, and characters of a name or a word
DTYPES = frozenset((  # of tensors that cross: those whose elements are whole bytes, and plain ones
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"))
FILLS = (0, 1, -1, float("inf"), float("-inf"))  # what host code may write into a new tensor

Index = Annotated[int, Meta(ge=0, lt=1 << 62)]
Line = Annotated[int, Meta(ge=0, le=MAX_LINE)] | None
Text = Annotated[str, Meta(max_length=MAX_TEXT, pattern=WHOLE)]
_Word = Annotated[str, Meta(max_length=MAX_WORD, pattern=WHOLE)]
_Option = Annotated[int, Meta(gt=-1 << 31, lt=1 << 31)] | bool | _Word | None
_Size = Annotated[int, Meta(ge=1, lt=1 << 31)]

class MalformedRecording(ValueError):
    """The worker's reply is not a recording."""


class View(JsonArray, frozen=True):
    """A strided tensor in a storage. Strides and offset are in elements of ``dtype``."""

    storage: Index
    dtype: str  # torch's name without the prefix: "float32", "bfloat16", "int64" …
    shape: tuple[Index, ...]
    stride: tuple[Index, ...]
    offset: Index


class Alloc(JsonArray, frozen=True, tag="alloc"):
    """A new storage, uninitialized."""

    storage: Index
    nbytes: Index


class Fill(JsonArray, frozen=True, tag="fill"):
    """``target[...] = value`` by host code; the values that may be written are ``FILLS``."""

    target: View
    value: Any  # a number; read as a text where JSON has none for it
    line: Line = None  # of the learner's file


class Move(JsonArray, frozen=True, tag="move"):
    """``target[...] = source`` by host code, cast to the target's dtype.

    With ``conjugate`` the source is read as torch's lazily conjugated views are.
    """

    target: View
    source: View
    line: Line = None
    conjugate: bool = False


class Descriptor(JsonArray, frozen=True):
    """A ``TensorDescriptor`` of host code; shape and strides are in elements of ``base``.

    They are its own: of ``base`` only the first element and the dtype count.
    """

    base: View
    shape: tuple[_Size, ...]
    strides: tuple[Index, ...]
    block_shape: tuple[_Size, ...]
    padding: str = "zero"
    round_f32_to_tf32: bool = False  # Triton 3.6 has no such field

    @property
    def reach(self) -> View:
        """The view that blocks are taken from."""
        base = self.base
        return View(base.storage, base.dtype, self.shape, self.strides, base.offset)


class Argument(JsonArray, frozen=True):
    """A kernel argument.

    ``kind`` is tensor, descriptor, int, float, bool, none, str, dtype, function or tuple.
    ``value`` is a ``View`` for a tensor, the dtype's or function's name for those, and a tuple of
    arguments for a tuple; ``fields`` are the names of a named tuple's items.
    """

    kind: str
    value: Any
    fields: tuple[Text, ...] = ()


class Launch(JsonArray, frozen=True, tag="launch"):
    """One ``kernel[grid](...)``: every parameter bound, options such as num_warps apart."""

    kernel: Text
    grid: tuple[Index, Index, Index]
    arguments: Mapping[Text, Argument]
    options: Annotated[Mapping[_Word, _Option], Meta(max_length=MAX_OPTIONS)] = {}
    line: Line = None  # of the learner's file

    @property
    def programs(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


Event = Alloc | Fill | Move | Launch


@dataclass(frozen=True)
class Recording:
    """Inputs, what happened to memory in order, and which view was returned.

    The first storages are the inputs', in the order of ``inputs``; later ones come by events.
    ``results`` holds one view for a function that returns a tensor, several for a tuple. Of one
    that works ``in_place`` they are views of inputs, which kernels may change.
    """

    inputs: tuple[View, ...]
    events: Annotated[tuple[Event, ...], Meta(max_length=MAX_EVENTS)]
    results: tuple[View, ...]
    returned_tuple: bool = False
    in_place: bool = False

    @property
    def changing(self) -> frozenset[int]:
        """Storages of inputs that kernels may change."""
        return frozenset(view.storage for view in self.results if self.in_place)

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(event for event in self.events if isinstance(event, Launch))


def outside_grid(kernel: str, sizes: Sequence[int]) -> Fault | None:
    """The first size of a grid that CUDA does not launch, if any."""
    for axis, (size, most) in enumerate(zip(sizes, MAX_GRID, strict=False)):
        if not 0 <= size <= most:
            return fault("grid size", kernel=kernel, got=f"{size:,}", axis=axis, most=most,
                         largest=MAX_GRID[0])
    return None


def dtype_name(value: Any) -> str:
    """Torch's name of a dtype, or of a tensor's, without the prefix, as in ``View.dtype``."""
    return str(getattr(value, "dtype", value)).removeprefix("torch.")


# ---------------------------------------------------------------------------------------------
# To and from JSON, where each event and each argument is a list that begins with its kind.
# Reading checks everything: the worker is not trusted.


def to_json(value: Recording | View) -> Any:
    return _spelled(msgspec.to_builtins(value))


def _spelled(value: Any) -> Any:
    """Lists for tuples, and texts for infinities and NaN, of which JSON has none."""
    match value:
        case tuple() | list():
            return [*map(_spelled, value)]
        case dict():
            return {name: _spelled(item) for name, item in value.items()}
        case float() if not math.isfinite(value):
            return str(value)
    return value


def view_from_json(data: Any) -> View:
    return _checked(read(data, View))


def read(data: Any, form: Any) -> Any:
    """Reads a value of a type, whose annotations hold the limits.

    Raises:
        MalformedRecording: it has another form.
    """
    try:
        return convert(data, form, "it does not parse")
    except (ValueError, RecursionError) as error:
        raise MalformedRecording(str(error)) from error


def _checked(view: View) -> View:
    dtype_from_json(view.dtype)
    if len(view.shape) != len(view.stride) or len(view.shape) > 8:
        raise MalformedRecording("a view has as many strides as sizes, and at most 8 dimensions")
    last = view.offset + sum((max(n, 1) - 1) * step
                             for n, step in zip(view.shape, view.stride, strict=True))
    if prod(max(n, 1) for n in view.shape) > MAX_ELEMENTS or last >= MAX_ELEMENTS:
        raise MalformedRecording("a view of more elements than there can be")
    return view


def dtype_from_json(data: Any) -> str:
    if not isinstance(data, str) or data not in DTYPES:
        raise MalformedRecording(f"no tensor of the dtype {data!r:.40} can cross")
    return data


def line_from_json(data: Any) -> int | None:
    """Reads a line of the learner's file; Python gives 0 where it has none."""
    return read(data, Line) or None


def _argument(given: Argument, depth: int = 0) -> Argument:
    """Reads the value of an argument by its kind."""
    value, names = given.value, given.fields
    if names and given.kind != "tuple":
        raise MalformedRecording("names of a value that is not a tuple")
    match given.kind:
        case "tensor":
            value = view_from_json(value)
        case "descriptor" if isinstance(value, list) and len(value) == 6:
            value = _checked_descriptor(read(value, Descriptor))
        case "tuple" if depth < 4:
            value = tuple(_argument(item, depth + 1) for item in read(value, list[Argument]))
            if names and (len(names) != len(value) or not are_fields(names)):
                raise MalformedRecording(
                    "a named tuple has one name, fit for an attribute, for each item")
        case "int":
            if not -(1 << 63) <= read(value, int) < 1 << 64:
                raise MalformedRecording("an integer of more than 64 bits")
        case "float":
            value = _number(value)
        case "bool" | "none":
            read(value, bool if given.kind == "bool" else None)
        case "str" | "dtype" | "function":
            read(value, Text)
        case _:
            raise MalformedRecording(f"an argument of an unknown form: {given!r:.40}")
    return structs.replace(given, value=value)


def _number(data: Any) -> float:
    """Reads a number of JSON, or one that it has no number for, as a text."""
    return float(read(data, float | Literal["inf", "-inf", "nan"]))


def are_fields(names: Sequence[str]) -> bool:
    """Whether a named tuple can have fields of these names."""
    return len(set(names)) == len(names) and all(
        name.isidentifier() and not name.startswith("_") and not keyword.iskeyword(name)
        for name in names)


def _checked_descriptor(given: Descriptor) -> Descriptor:
    """Checks all but the sizes of elements and storages, which the replay checks."""
    _checked(given.base)
    if not 1 <= len(given.shape) == len(given.strides) == len(given.block_shape) <= 5:
        raise MalformedRecording("a descriptor has shape, strides and block of one to five sizes")
    if given.strides[-1] != 1:
        raise MalformedRecording("a descriptor's last stride is 1")
    if any(size & (size - 1) for size in given.block_shape) or prod(given.block_shape) > MAX_BLOCK:
        raise MalformedRecording("a descriptor's block has sizes that are powers of two")
    if given.padding not in ("zero", "nan") or (
            given.padding == "nan" and "float" not in given.base.dtype):
        raise MalformedRecording("a descriptor pads with zero, or floats with NaN")
    if given.round_f32_to_tf32 and given.base.dtype != "float32":
        raise MalformedRecording("a descriptor rounds to TF32 what is float32")
    return given


def from_json(data: Any) -> Recording:
    """Reads and checks a recording.

    Raises:
        MalformedRecording: anything is missing, of a wrong type, out of bounds, over the budgets,
            or refers to a storage that does not exist yet.
    """
    recording: Recording = read(data, Recording)
    recording = replace(recording, events=tuple(map(_event, recording.events)))
    for view in (*recording.inputs, *recording.results):
        _checked(view)
    _check_storages(recording)
    return recording


def _event(event: Event) -> Event:
    """Reads what is left of an event; Python gives 0 as a line where it has none."""
    match event:
        case Alloc():
            return event
        case Fill(target, value):
            if (number := _number(value)) not in FILLS:
                raise MalformedRecording(f"a fill with {number}")
            return Fill(_checked(target), number, event.line or None)
        case Launch(kernel, grid, arguments):
            if outside_grid(kernel, grid):
                raise MalformedRecording("a recorded grid has three sizes within CUDA's limits")
            arguments = {name: _argument(value) for name, value in arguments.items()}
            return structs.replace(event, arguments=arguments, line=event.line or None)
    _checked(event.target)
    _checked(event.source)
    return structs.replace(event, line=event.line or None)


def _check_storages(recording: Recording) -> None:
    storages = {view.storage for view in recording.inputs}

    def check(views: Sequence[View]) -> None:
        for view in views:
            if view.storage not in storages:
                raise MalformedRecording(f"storage {view.storage} does not exist at this point")

    for event in recording.events:
        if isinstance(event, Alloc):
            if event.storage in storages:
                raise MalformedRecording(f"storage {event.storage} is allocated twice")
            storages.add(event.storage)
        check(views_in(event))
    check(recording.results)


def views_in(event: Event) -> list[View]:
    """The views that an event accesses."""
    match event:
        case Launch():
            return [view for argument in event.arguments.values() for view in views_of(argument)]
        case Move(target, source):
            return [target, source]
        case Fill(target):
            return [target]
    return []


def views_of(argument: Argument) -> list[View]:
    """The views that a kernel can access by an argument; of a descriptor, all that it describes."""
    if argument.kind == "tensor":
        return [argument.value]
    if argument.kind == "descriptor":
        return [argument.value.reach]
    if argument.kind == "tuple":
        return [view for item in argument.value for view in views_of(item)]
    return []
