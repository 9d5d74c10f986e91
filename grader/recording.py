"""What the learner's function asked for, as data: all that goes from worker to executor."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

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
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character; no file can be written with one
FILLS = (0, 1, -1, float("inf"), float("-inf"))  # what host code may write into a new tensor


class MalformedRecording(ValueError):
    """The worker's reply is not a recording; nothing in it can be trusted."""


@dataclass(frozen=True)
class View:
    """A strided tensor in a storage. Strides and offset are in elements of ``dtype``."""

    storage: int
    dtype: str  # torch's name without the prefix: "float32", "bfloat16", "int64" …
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Alloc:
    """A new storage whose bytes nobody has written yet."""

    storage: int
    nbytes: int


@dataclass(frozen=True)
class Fill:
    """``target[...] = value`` by host code; the values that may be written are ``FILLS``."""

    target: View
    value: float
    line: int | None = field(default=None, compare=False)  # of the learner's file


@dataclass(frozen=True)
class Move:
    """``target[...] = source`` by host code, cast to the target's dtype.

    With ``conjugate`` the source is read as torch's lazily conjugated views are.
    """

    target: View
    source: View
    line: int | None = field(default=None, compare=False)
    conjugate: bool = False


@dataclass(frozen=True)
class Descriptor:
    """A ``TensorDescriptor`` that host code made. Shape and strides are in elements of ``base``.

    They are its own: of ``base`` only the first element and the dtype count.
    """

    base: View
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    padding: str = "zero"
    round_f32_to_tf32: bool = False  # Triton 3.6 has no such field

    @property
    def reach(self) -> View:
        """All that blocks can be taken from, as a view."""
        base = self.base
        return View(base.storage, base.dtype, self.shape, self.strides, base.offset)


@dataclass(frozen=True)
class Argument:
    """A kernel argument.

    ``kind`` is tensor, descriptor, int, float, bool, none, str, dtype, function or tuple.
    ``value`` is a ``View`` for a tensor, the dtype's or function's name for those, and a tuple of
    arguments for a tuple; ``fields`` are the names of a named tuple's items.
    """

    kind: str
    value: Any
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One ``kernel[grid](...)``: every parameter bound, options such as num_warps apart."""

    kernel: str
    grid: tuple[int, int, int]
    arguments: Mapping[str, Argument]
    options: Mapping[str, int | bool | str | None] = field(default_factory=dict)
    line: int | None = None  # of the learner's file

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
    events: tuple[Event, ...]
    results: tuple[View, ...]
    returned_tuple: bool = False
    in_place: bool = False

    @property
    def changing(self) -> frozenset[int]:
        """The inputs' storages that may be changed."""
        return frozenset(view.storage for view in self.results if self.in_place)

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(event for event in self.events if isinstance(event, Launch))


def outside_grid(kernel: str, sizes: Sequence[int]) -> str:
    """A sentence about the first size of a grid that CUDA does not launch; empty if there is none.
    """
    for axis, (size, most) in enumerate(zip(sizes, MAX_GRID, strict=False)):
        if not 0 <= size <= most:
            return (f"The grid of `{kernel}` has {size:,} programs along axis {axis}; CUDA takes "
                    f"0 to {most:,} there" + ("." if axis == 0 else
                                              f", and up to {MAX_GRID[0]:,} along axis 0."))
    return ""


def dtype_name(value: Any) -> str:
    """Torch's name of a dtype, or of a tensor's, without the prefix: what ``View.dtype`` holds."""
    return str(getattr(value, "dtype", value)).removeprefix("torch.")


# ---------------------------------------------------------------------------------------------
# To and from JSON. Reading checks everything: the worker is not trusted.


def view_to_json(view: View) -> list[Any]:
    return [view.storage, view.dtype, list(view.shape), list(view.stride), view.offset]


def view_from_json(data: Any) -> View:
    storage, dtype, shape, stride, offset = _sequence(data, 5)
    shape, stride = _integers(shape, minimum=0), _integers(stride, minimum=0)
    if len(shape) != len(stride) or len(shape) > 8:
        raise MalformedRecording("a view has as many strides as sizes, and at most 8 dimensions")
    last = _integer(offset) + sum((max(n, 1) - 1) * step
                                  for n, step in zip(shape, stride, strict=True))
    if prod(max(n, 1) for n in shape) > MAX_ELEMENTS or last >= MAX_ELEMENTS:
        raise MalformedRecording("a view of more elements than there can be")
    return View(_integer(storage), dtype_from_json(dtype), shape, stride, offset)


def dtype_from_json(data: Any) -> str:
    if _text(data) not in DTYPES:
        raise MalformedRecording(f"no tensor of the dtype {data!r:.40} can cross")
    return str(data)


def _argument_to_json(argument: Argument) -> list[Any]:
    value = argument.value
    if argument.kind == "tensor":
        value = view_to_json(value)
    elif argument.kind == "descriptor":
        value = _descriptor_to_json(value)
    elif argument.kind == "tuple":
        items = [_argument_to_json(item) for item in value]
        return ["tuple", items, list(argument.fields)] if argument.fields else ["tuple", items]
    elif argument.kind == "float":
        value = float(value).hex()  # exact, and inf and nan survive
    elif argument.kind == "int":
        value = str(value)
    return [argument.kind, value]


def _argument_from_json(data: Any, depth: int = 0) -> Argument:
    if isinstance(data, list) and data[:1] == ["tuple"] and depth < 4:
        return _tuple_from_json(data, depth)
    kind, value = _sequence(data, 2)
    if kind == "tensor":
        return Argument(kind, view_from_json(value))
    if kind == "descriptor":
        return Argument(kind, _descriptor_from_json(value))
    try:
        match kind:
            case "int":
                number = int(_text(value))
                if not -(1 << 63) <= number < 1 << 64:
                    raise MalformedRecording("an integer of more than 64 bits")
                return Argument(kind, number)
            case "float":
                return Argument(kind, float.fromhex(_text(value)))
            case "bool" if isinstance(value, bool):
                return Argument(kind, value)
            case "none":
                return Argument(kind, None)
            case "str" | "dtype" | "function":
                return Argument(kind, _text(value))
    except (ValueError, OverflowError) as error:
        raise MalformedRecording(f"an argument does not parse: {error}") from error
    raise MalformedRecording(f"an argument of an unknown kind: {kind!r:.40}")


def _tuple_from_json(data: list[Any], depth: int) -> Argument:
    named = len(data) == 3
    values = _sequence(_sequence(data, 3 if named else 2)[1])
    items = tuple(_argument_from_json(item, depth + 1) for item in values)
    if not named:
        return Argument("tuple", items)
    fields = tuple(_text(name) for name in _sequence(data[2]))
    if len(fields) != len(items) or not are_fields(fields):
        raise MalformedRecording("a named tuple has one name, fit for an attribute, for each item")
    return Argument("tuple", items, fields)


def are_fields(names: Sequence[str]) -> bool:
    """Whether a named tuple can have fields of these names."""
    return len(set(names)) == len(names) and all(
        name.isidentifier() and not name.startswith("_") and not keyword.iskeyword(name)
        for name in names)


def _descriptor_to_json(descriptor: Descriptor) -> list[Any]:
    return [view_to_json(descriptor.base), list(descriptor.shape), list(descriptor.strides),
            list(descriptor.block_shape), descriptor.padding, descriptor.round_f32_to_tf32]


def _descriptor_from_json(data: Any) -> Descriptor:
    """What can be checked without the sizes of elements and storages; the replay checks the rest.
    """
    base, sizes, steps, block, padding, rounds = _sequence(data, 6)
    view = view_from_json(base)
    shape, strides = _integers(sizes, minimum=1), _integers(steps, minimum=0)
    block_shape = _integers(block, minimum=1)
    if not 1 <= len(shape) == len(strides) == len(block_shape) <= 5:
        raise MalformedRecording("a descriptor has shape, strides and block of one to five sizes")
    if max(shape) >= 1 << 31:
        raise MalformedRecording("a descriptor's sizes are numbers of 32 bits")
    if strides[-1] != 1:
        raise MalformedRecording("a descriptor's last stride is 1")
    if any(size & (size - 1) for size in block_shape) or prod(block_shape) > MAX_BLOCK:
        raise MalformedRecording("a descriptor's block has sizes that are powers of two")
    if padding not in ("zero", "nan") or (padding == "nan" and "float" not in view.dtype):
        raise MalformedRecording("a descriptor pads with zero, or floats with NaN")
    if not isinstance(rounds, bool) or (rounds and view.dtype != "float32"):
        raise MalformedRecording("a descriptor rounds to TF32 what is float32")
    return Descriptor(view, shape, strides, block_shape, padding, rounds)


def to_json(recording: Recording) -> dict[str, Any]:
    events: list[list[Any]] = []
    for event in recording.events:
        match event:
            case Alloc(storage, nbytes):
                events.append(["alloc", storage, nbytes])
            case Fill(target, value, line):
                events.append(["fill", view_to_json(target), float(value).hex(), line])
            case Move(target, source, line, conjugate):
                events.append(["move", view_to_json(target), view_to_json(source), line, conjugate])
            case Launch(kernel, grid, arguments, options, line):
                bound = {name: _argument_to_json(value) for name, value in arguments.items()}
                events.append(["launch", kernel, list(grid), bound, dict(options), line])
    return {
        "inputs": [view_to_json(view) for view in recording.inputs],
        "events": events,
        "results": [view_to_json(view) for view in recording.results],
        "returned_tuple": recording.returned_tuple,
        "in_place": recording.in_place,
    }


def from_json(data: Any) -> Recording:
    """Read and check a recording.

    Raises:
        MalformedRecording: anything is missing, of a wrong type, out of bounds, over the budgets,
            or refers to a storage that does not exist yet.
    """
    if not isinstance(data, dict):
        raise MalformedRecording("a recording is a JSON object")
    inputs = tuple(view_from_json(item) for item in _sequence(data.get("inputs")))
    raw_events = _sequence(data.get("events"))
    if len(raw_events) > MAX_EVENTS:
        raise MalformedRecording(f"more than {MAX_EVENTS} events")
    events = tuple(_event_from_json(item) for item in raw_events)
    results = tuple(view_from_json(item) for item in _sequence(data.get("results")))
    recording = Recording(inputs, events, results, bool(data.get("returned_tuple")),
                          bool(data.get("in_place")))
    _check_storages(recording)
    return recording


def _event_from_json(data: Any) -> Event:
    items = _sequence(data)
    match items:
        case ["alloc", storage, nbytes]:
            return Alloc(_integer(storage), _integer(nbytes))
        case ["fill", target, value, line]:
            number = _argument_from_json(["float", value]).value
            if number not in FILLS:
                raise MalformedRecording(f"a fill with {number}")
            return Fill(view_from_json(target), number, line_from_json(line))
        case ["move", target, source, line, bool(conjugate)]:
            return Move(view_from_json(target), view_from_json(source), line_from_json(line),
                        conjugate)
        case ["launch", kernel, grid, dict(arguments), dict(options), line]:
            sizes = _integers(grid, minimum=0)
            if len(sizes) != 3 or outside_grid(str(kernel), sizes):
                raise MalformedRecording("a recorded grid has three sizes within CUDA's limits")
            bound = {_text(k): _argument_from_json(v) for k, v in arguments.items()}
            _check_options(options)
            return Launch(_text(kernel), (sizes[0], sizes[1], sizes[2]), bound, options,
                          line_from_json(line))
    raise MalformedRecording("an event of an unknown form")


def _check_options(options: Mapping[str, Any]) -> None:
    if len(options) > MAX_OPTIONS:
        raise MalformedRecording(f"more than {MAX_OPTIONS} options of a launch")
    for name, value in options.items():
        for word in (name, value):
            if isinstance(word, str) and len(_text(word)) > MAX_WORD:
                raise MalformedRecording(f"a launch option of more than {MAX_WORD} characters")
        if isinstance(value, int) and abs(value) >= 1 << 31:
            raise MalformedRecording("a launch option of more than 31 bits")
        if not (value is None or isinstance(value, int | bool | str)):
            raise MalformedRecording("a launch option is a number, a word or nothing")


def _check_storages(recording: Recording) -> None:
    known = {view.storage for view in recording.inputs}

    def check(view: View) -> None:
        if view.storage not in known:
            raise MalformedRecording(f"storage {view.storage} does not exist at this point")

    for event in recording.events:
        match event:
            case Alloc(storage, _):
                if storage in known:
                    raise MalformedRecording(f"storage {storage} is allocated twice")
                known.add(storage)
            case Fill(target, _):
                check(target)
            case Move(target, source):
                check(target)
                check(source)
            case Launch():
                for argument in event.arguments.values():
                    for view in views_of(argument):
                        check(view)
    for view in recording.results:
        check(view)


def views_of(argument: Argument) -> list[View]:
    """All that a kernel can reach by an argument: of a descriptor, all that it describes."""
    if argument.kind == "tensor":
        return [argument.value]
    if argument.kind == "descriptor":
        return [argument.value.reach]
    if argument.kind == "tuple":
        return [view for item in argument.value for view in views_of(item)]
    return []


def _sequence(value: Any, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise MalformedRecording("a list is missing or has a wrong length")
    return value


def _integer(value: Any, minimum: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value < 1 << 62:
        raise MalformedRecording(f"not a number that fits here: {value!r:.40}")
    return value


def line_from_json(value: Any) -> int | None:
    """A line of the learner's file; Python gives 0 where it knows none."""
    if value is None or _integer(value) == 0:
        return None
    if value > MAX_LINE:
        raise MalformedRecording(f"no file has a line {value!r:.40}")
    return int(value)


def _integers(value: Any, minimum: int) -> tuple[int, ...]:
    return tuple(_integer(item, minimum) for item in _sequence(value))


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise MalformedRecording("a name is missing or too long")
    if _SURROGATE.search(value):
        raise MalformedRecording("a name that is no text")
    return value
