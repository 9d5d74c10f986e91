"""Binary: what the compiler made of one launch for a target, in numbers and by source line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_args

AccessKind = Literal["load", "store", "atomic", "async copy", "bulk copy"]
TensorCores = Literal["", "mma", "wgmma", "tcgen05"]
Factor = Literal["fp64", "tf32", "fp16", "fp8", "fp4", "int8"]
Limit = Literal["registers", "shared memory", "warps", "programs", "tensor memory"]

MOST_ENTRIES = 512
"""As many accesses and products does a Binary name: those with the most instructions."""
LONGEST = 1000
"""Characters of a name, or of the value of an option."""
ALL_SUMS = 2**30
"""So many products and more are summed imprecisely where no sum ever leaves the tensor cores."""

_PRODUCTS = (*get_args(TensorCores)[1:], "fma")
_MOST_OPTIONS = 64
_SHA256 = re.compile(r"[0-9a-f]{64}|")


@dataclass(frozen=True)
class Access:
    """Instructions of one form at one line that reach global memory.

    ``bits``: how wide one thread accesses memory in one instruction, 8 to 256; 0 of a bulk copy,
    which moves a whole tile to or from global memory. ``count``: instructions in the code, however
    often they run.
    """

    line: int | None
    kind: AccessKind
    bits: int
    count: int


@dataclass(frozen=True)
class Occupancy:
    """How many programs one multiprocessor holds at the same time.

    ``limited_by``: the scarcest of them. ``warps`` counts those of all programs.
    """

    programs: int
    warps: int
    most_warps: int
    limited_by: Limit

    @property
    def share(self) -> float:
        return self.warps / self.most_warps


@dataclass(frozen=True)
class Binary:
    """One compiled kernel. Bytes are per thread for ``spill_bytes``, per program for ``shared``.

    ``spill_bytes``: registers that did not fit and were put into local memory. ``warps``: of a
    program, those that warp specialization adds included. ``tf32``: tensor cores take float32
    for TF32, with nothing done against the loss. ``factors``: the formats of numbers that tensor
    cores multiply, fp16 standing for bfloat16 too and fp8 for both kinds of float8.
    ``imprecise_sums``: how many products of float8 tensor cores of Hopper, which keep fewer bits of
    a sum than float32 has, add up before the sum goes on in float32; 0 where they add up none, and
    ``ALL_SUMS`` where it never does. ``stages``: tiles that the deepest pipeline of the
    compiler holds at once, 0 where it built none; one less than num_stages where it needs a buffer
    less. ``barriers``: instructions at which warps of a program wait for each other.
    ``conversions``: changes of layout through shared memory. ``products``: instructions by which
    tl.dot is computed at each line, as (line, instruction, count), where the instruction is
    ``mma``, ``wgmma`` or ``tcgen05`` on tensor cores, else ``fma``. ``loop_shuffles``: instructions
    in loops by which threads of a warp pass each other values, as a reduction does, at each line,
    as (line, count). ``ptx_sha256``: of the PTX without paths, lines and comments. Lines are those
    of the kernel's own file, None where the compiler names none.
    """

    kernel: str
    target: str  # name of the target
    capability: int  # such as 90
    registers: int
    spill_bytes: int
    shared: int
    warps: int
    occupancy: Occupancy
    accesses: tuple[Access, ...] = ()
    dot: bool = False  # the kernel multiplies matrices
    tensor_cores: TensorCores = ""
    tf32: bool = False
    factors: tuple[Factor, ...] = ()
    imprecise_sums: int = 0
    stages: int = 0
    barriers: int = 0
    products: tuple[tuple[int | None, str, int], ...] = ()
    conversions: int = 0
    loop_shuffles: tuple[tuple[int | None, int], ...] = ()
    ptx_sha256: str = ""
    options: dict[str, int | bool | str | None] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: entries are lists."""
        known: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        return known | {
            "occupancy": _values(self.occupancy),
            "accesses": [_values(access) for access in self.accesses],
            "factors": list(self.factors),
            "products": [list(product) for product in self.products],
            "loop_shuffles": [list(shuffles) for shuffles in self.loop_shuffles],
            "options": dict(self.options)}

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what ``to_dict`` wrote, from a process that is not trusted.

        Raises:
            ValueError: it has another form, or a number that none can be.
        """
        if not isinstance(data, dict) or data.keys() != {part.name for part in fields(cls)}:
            raise ValueError("a binary is an object with certain names")
        known = {name: _FORMS[name](value) for name, value in data.items()}
        return cls(**known)


def _values(entry: Access | Occupancy) -> list[Any]:
    return [getattr(entry, part.name) for part in fields(entry)]


def _count(least: int, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"no count from {least} to {most}: {value!r:.40}")
        return value
    return read


def _one_of(*known: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"none of {', '.join(known)}: {value!r:.40}")
        return value
    return read


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"neither true nor false: {value!r:.40}")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST or not value.isprintable():
        raise ValueError(f"no name: {value!r:.40}")
    return value


def _line(value: Any) -> int | None:
    return None if value is None else _count(1, 10_000_000)(value)


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError(f"no SHA-256: {value!r:.40}")
    return value


def _row(*forms: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    def read(value: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) != len(forms):
            raise ValueError(f"not {len(forms)} values: {value!r:.40}")
        return [form(part) for form, part in zip(forms, value, strict=True)]
    return read


def _occupancy(value: Any) -> Occupancy:
    occupancy = Occupancy(*_row(_count(0, 64), _count(0, 128), _count(1, 128),
                                _one_of(*get_args(Limit)))(value))
    if occupancy.warps > occupancy.most_warps:
        raise ValueError("more warps than a multiprocessor holds")
    return occupancy


def _entries(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > MOST_ENTRIES:
        raise ValueError(f"no list of at most {MOST_ENTRIES} entries: {value!r:.40}")
    return value


def _accesses(value: Any) -> tuple[Access, ...]:
    read = _row(_line, _one_of(*get_args(AccessKind)), _count(0, 256), _instructions)
    return tuple(Access(*read(entry)) for entry in _entries(value))


def _products(value: Any) -> tuple[tuple[int | None, str, int], ...]:
    read = _row(_line, _one_of(*_PRODUCTS), _instructions)
    return tuple((line, name, count) for line, name, count in map(read, _entries(value)))


def _factors(value: Any) -> tuple[Any, ...]:
    return tuple(map(_one_of(*get_args(Factor)), _entries(value)))


def _shuffles(value: Any) -> tuple[tuple[int | None, int], ...]:
    read = _row(_line, _instructions)
    return tuple((line, count) for line, count in map(read, _entries(value)))


def _options(value: Any) -> dict[str, int | bool | str | None]:
    if not isinstance(value, dict) or len(value) > _MOST_OPTIONS:
        raise ValueError(f"no object of at most {_MOST_OPTIONS} options: {value!r:.40}")
    return {_name(name): _option(option) for name, option in value.items()}


def _option(value: Any) -> int | bool | str | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _name(value) if value else value
    return _count(-2**63, 2**63)(value)


_instructions = _count(0, 10_000_000)
_FORMS: dict[str, Callable[[Any], Any]] = {
    "kernel": _name, "target": _name, "capability": _count(10, 999),
    "registers": _count(0, 256), "spill_bytes": _count(0, 2**20), "shared": _count(0, 2**20),
    "warps": _count(1, 64), "occupancy": _occupancy, "accesses": _accesses, "dot": _flag,
    "tensor_cores": _one_of(*get_args(TensorCores)), "tf32": _flag, "factors": _factors,
    "imprecise_sums": _count(0, ALL_SUMS), "stages": _count(0, 1000),
    "barriers": _instructions, "products": _products, "conversions": _instructions,
    "loop_shuffles": _shuffles,
    "ptx_sha256": _digest, "options": _options,
}
