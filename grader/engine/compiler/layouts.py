"""Distributed layouts of TTGIR: which element each register of each thread holds.

All sizes are powers of two, so an element's number in its block (row-major) is the exclusive or of
one number for each bit of register, lane and warp. Source: Triton's ``LinearLayoutConversions``.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

_ALIAS = re.compile(r"^(#\w+) = (#ttg\.(?:blocked|slice|linear|nvidia_mma)<.*>)\s*$", re.MULTILINE)
_NUMBERS = re.compile(r"(\w+) = \[([\d, ]*)\]")
_NUMBER = re.compile(r"(\w+) = (\d+)")
_VECTORS = re.compile(r"(register|lane|warp|block) = (\[(?:\[[\d, ]*\](?:, )?)*\])")
_VECTOR = re.compile(r"\[([\d, ]*)\]")
_SLICE = re.compile(r"#ttg\.slice<\{dim = (\d+), parent = (.*)\}>$")

Basis = tuple[tuple[int, ...], ...]
"""For each bit, the coordinates that it adds."""


class Bases(NamedTuple):
    """Numbers of elements, for each bit of the register, of the lane and of the warp."""

    registers: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]


@dataclass(frozen=True)
class _Layout:
    registers: Basis
    lanes: Basis
    warps: Basis
    grows: tuple[int, ...]  # dimensions in the order in which registers repeat the tile


class UnknownLayout(ValueError):
    """A layout that is not read, such as that of an operand of a product."""


def bases(layout: str, shape: Sequence[int], aliases: Mapping[str, str]) -> Bases:
    """The bases of a block of ``shape`` in a layout.

    Args:
        layout: the attribute's text, or its alias.
        aliases: of the module, by name.

    Raises:
        UnknownLayout: it is not blocked, linear, of a product's result, or a slice of these.
    """
    spread = _read(layout, len(shape), aliases)
    sizes = _cut(spread, shape)
    strides = [math.prod(shape[at + 1:]) for at in range(len(shape))]

    def number(vector: Sequence[int]) -> int:
        return sum(place * stride for place, stride in zip(vector, strides, strict=True))

    registers, lanes, warps = (tuple(map(number, basis)) for basis in sizes)
    return Bases(tuple(filter(None, registers)), lanes, warps)


def aliases_of(ttgir: str) -> dict[str, str]:
    """The layouts of a module by their names, such as ``#blocked1``."""
    return dict(_ALIAS.findall(ttgir))


def _read(text: str, rank: int, aliases: Mapping[str, str]) -> _Layout:
    text = aliases.get(text, text)
    if cut := _SLICE.match(text):
        axis = int(cut[1])
        parent = _read(cut[2], rank + 1, aliases)

        def without(basis: Basis) -> Basis:
            return tuple(vector[:axis] + vector[axis + 1:] for vector in basis)

        grows = tuple(at - (at > axis) for at in parent.grows if at != axis)
        return _Layout(without(parent.registers), without(parent.lanes), without(parent.warps),
                       grows)
    for kind, read in _KINDS.items():
        if text.startswith(f"#ttg.{kind}<"):
            layout = read(text)
            if any(len(vector) != rank for vector in layout.lanes):
                break
            return layout
    raise UnknownLayout(text[:100])


def _blocked(text: str) -> _Layout:
    numbers = _lists(text)
    if any(number > 1 for number in numbers.get("CTAsPerCGA", ())):
        raise UnknownLayout(text[:100])
    order = numbers["order"]
    tile = [1] * len(order)
    parts: dict[str, Basis] = {}
    for name in ("sizePerThread", "threadsPerWarp", "warpsPerCTA"):
        parts[name] = tuple(_bits(numbers[name], order, tile))
        tile = [one * more for one, more in zip(tile, numbers[name], strict=True)]
    return _Layout(parts["sizePerThread"], parts["threadsPerWarp"], parts["warpsPerCTA"],
                   tuple(order))


def _bits(sizes: Sequence[int], order: Sequence[int], tile: Sequence[int]
          ) -> Iterator[tuple[int, ...]]:
    for axis in order:
        for bit in range(sizes[axis].bit_length() - 1):
            yield tuple(tile[axis] << bit if at == axis else 0 for at in range(len(order)))


def _linear(text: str) -> _Layout:
    parts = {name: tuple(tuple(_ints(vector)) for vector in _VECTOR.findall(vectors[1:-1]))
             for name, vectors in _VECTORS.findall(text)}
    if parts.get("block"):
        raise UnknownLayout(text[:100])
    return _Layout(parts["register"], parts["lane"], parts["warp"], ())


def _mma(text: str) -> _Layout:
    """The result of mma.sync (version 2) or wgmma (3): tiles of 16 x 8, side by side."""
    numbers, version = _lists(text), dict(_NUMBER.findall(text))
    warps, shape = numbers["warpsPerCTA"], numbers["instrShape"]
    if version.get("versionMajor") not in ("2", "3") or len(warps) != 2:
        raise UnknownLayout(text[:100])
    columns = shape[1]
    registers = [(0, 1), (8, 0), *((0, at) for at in _powers(8, columns))]
    lanes = [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]
    down = [(at, 0) for at in _powers(16, 16 * warps[0])]
    across = [(0, at) for at in _powers(columns, columns * warps[1])]
    # of version 2 the last dimension of the warps varies the fastest
    between = (*down, *across) if version["versionMajor"] == "3" else (*across, *down)
    return _Layout(tuple(registers), tuple(lanes), between, (1, 0))


def _powers(start: int, end: int) -> Iterator[int]:
    while start < end:
        yield start
        start *= 2


_KINDS: dict[str, Callable[[str], _Layout]] = {
    "blocked": _blocked, "linear": _linear, "nvidia_mma": _mma}


def _lists(text: str) -> dict[str, list[int]]:
    return {name: _ints(numbers) for name, numbers in _NUMBERS.findall(text)}


def _ints(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]


def _cut(layout: _Layout, shape: Sequence[int]) -> tuple[Basis, Basis, Basis]:
    """The layout of a block of ``shape``: what lies beyond is another copy, or a repetition."""
    def inside(basis: Basis) -> Basis:
        return tuple(tuple(place if place < size else 0
                           for place, size in zip(vector, shape, strict=True))
                     for vector in basis)

    whole = (*layout.registers, *layout.lanes, *layout.warps)
    registers = list(inside(layout.registers))
    for axis in layout.grows:
        reach = max((vector[axis] for vector in whole), default=0) * 2 or 1
        registers += [tuple(place if at == axis else 0 for at in range(len(shape)))
                      for place in _powers(reach, shape[axis])]
    return tuple(registers), inside(layout.lanes), inside(layout.warps)


def positions(basis: Sequence[int]) -> list[int]:
    """The element of each number that some bits form."""
    return [_xor(bits) for bits in product(*((0, one) for one in reversed(basis)))]


def _xor(numbers: Sequence[int]) -> int:
    result = 0
    for number in numbers:
        result ^= number
    return result
