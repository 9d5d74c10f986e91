"""Where a difference lies: the simplest true description of a set of elements, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch

from grader.recording.model import Recording

FEW = 4  # rows or columns that are listed one by one
ENOUGH_FOR_STEPS = 3  # of a progression
LEAST_SIDE = 3  # of a matrix in which a triangle or a border is one

Verb = tuple[str, str]  # of one, of many
FIRST_PROGRAM = "which are program 0's"
WRONG: Verb = ("is wrong", "are wrong")


@dataclass(frozen=True)
class Tiling:
    """How a launch cut its work: the sizes that it calls BLOCK…, and its grid."""

    blocks: tuple[int, ...] = ()
    grid: tuple[int, ...] = ()

    def programs_of(self, size: int, block: int) -> bool:
        """Whether program k owns the k-th block, as far as grid and sizes tell."""
        return prod(self.grid) == max(self.grid, default=0) == -(-size // block)

    def runs_along(self, size: int, block: int) -> bool:
        """Whether some axis of the grid counts such blocks."""
        return -(-size // block) in self.grid


@dataclass(frozen=True)
class _Unit:
    one: str
    many: str


@dataclass(frozen=True)
class _Place:
    """Elements in words; ``many`` tells which verb goes with them."""

    words: str
    many: bool = True


_ELEMENT = _Unit("element", "elements")
_ROW, _COLUMN = _Unit("row", "rows"), _Unit("column", "columns")
_MATRIX, _SLICE = _Unit("matrix", "matrices"), _Unit("slice", "slices")


def tiling_of(recording: Recording) -> Tiling:
    """The tiling of the last launch, which is the one that makes the result in most kernels."""
    if not recording.launches:
        return Tiling()
    launch = recording.launches[-1]
    blocks = (int(argument.value) for name, argument in launch.arguments.items()
              if name.upper().startswith("BLOCK") and argument.kind == "int")
    return Tiling(tuple(dict.fromkeys(blocks)), launch.grid)


def place(wrong: torch.Tensor, tiling: Tiling | None = None, verb: Verb = WRONG) -> str:
    """Say which elements are meant: "Only the last 3 of 1,000 columns are wrong."

    Args:
        wrong: bool, any rank.
        tiling: of the launch, where blocks and programs may explain the place.
        verb: what the elements are or do, in the singular and in the plural.

    Returns:
        One sentence; nothing where all elements are meant, or none, or no pattern fits exactly.
    """
    count = int(wrong.sum())
    if count in (0, wrong.numel()):
        return ""
    found = _tensor(wrong, count, tiling or Tiling())
    if found is None:
        return ""
    return f"{found.words[0].upper()}{found.words[1:]} {verb[found.many]}."


def _tensor(wrong: torch.Tensor, count: int, tiling: Tiling) -> _Place | None:
    if wrong.dim() <= 1:
        return _line(wrong, _ELEMENT, tiling)
    sides = [_side(wrong, axis) for axis in range(wrong.dim())]
    if count == prod(int(side.sum()) for side in sides):
        flat = _flat(wrong, tiling)
        if flat and ("block" in flat.words or "program" in flat.words):
            return flat  # it explains more than a part of one row
        return _box(sides, tiling) or flat
    if wrong.dim() == 2:
        return _matrix(wrong) or _flat(wrong, tiling)
    first = wrong.flatten(0, -3)[0]
    if first.any() and bool((wrong == first).all()):
        inner = _tensor(first, int(first.sum()), tiling)
        return _Place(f"{inner.words} of every matrix", inner.many) if inner else None
    return _flat(wrong, tiling)


def _side(wrong: torch.Tensor, axis: int) -> torch.Tensor:
    """Which indices along one axis have any element that is meant."""
    others = [other for other in range(wrong.dim()) if other != axis]
    return wrong.any(dim=others)


def _flat(wrong: torch.Tensor, tiling: Tiling) -> _Place | None:
    found = _line(wrong.flatten(), _ELEMENT, tiling)
    if found is None:
        return None
    return _Place(f"{found.words.rstrip(',')}, counted row by row,", found.many)


def _box(sides: Sequence[torch.Tensor], tiling: Tiling) -> _Place | None:
    """Elements that are some indices along each axis, all combinations of them."""
    partial = [axis for axis, side in enumerate(sides) if not bool(side.all())]
    units = [_unit(axis, len(sides)) for axis in partial]
    if len(partial) == 1:
        return _along(sides, partial[0], tiling)
    spans = [_span(sides[axis]) for axis in partial]
    if len(partial) == 2 and all(spans):
        (top, bottom), (left, right) = (span or (0, 0) for span in spans)
        sizes = (bottom - top + 1, right - left + 1)
        if sizes == (1, 1):
            return None  # one element, whose index is said anyway
        inside = (f"{_span_words(units[0], top, bottom)} in "
                  f"{_span_words(units[1], left, right)}")
        if set(sizes) <= set(tiling.blocks) and not (top % sizes[0] or left % sizes[1]):
            return _Place(f"exactly one tile of {sizes[0]} x {sizes[1]}, {inside},", many=False)
        return _Place(f"only {inside}", sizes[0] > 1)
    return None


def _along(sides: Sequence[torch.Tensor], axis: int, tiling: Tiling) -> _Place | None:
    """Whole slices along one axis: rows, columns, matrices."""
    unit = _unit(axis, len(sides))
    found = _line(sides[axis], unit, tiling)
    if found and unit is _SLICE:
        return _Place(f"{found.words} along dimension {axis}", found.many)
    return found


def _unit(axis: int, rank: int) -> _Unit:
    from_the_end = {1: _COLUMN, 2: _ROW}
    if rank == 3 and axis == 0:
        return _MATRIX
    return from_the_end.get(rank - axis, _SLICE)


def _matrix(wrong: torch.Tensor) -> _Place | None:
    """Elements of a matrix that are no combination of rows and columns."""
    rows, columns = wrong.shape
    if min(rows, columns) < LEAST_SIDE:
        return None
    every = torch.ones_like(wrong)
    below, above = every.tril(-1), every.triu(1)
    diagonal = ~(below | above)
    for words, elements in (
        ("only the diagonal", diagonal),
        ("everything but the diagonal", ~diagonal),
        ("only the triangle above the diagonal", above),
        ("only the diagonal and the triangle above it", ~below),
        ("only the triangle below the diagonal", below),
        ("only the diagonal and the triangle below it", ~above),
    ):
        if torch.equal(wrong, elements):
            return _Place(words, many=False)
    return _around(~wrong)


def _around(right: torch.Tensor) -> _Place | None:
    """All but a block of whole rows and columns: a border, or the last rows and columns."""
    sides = [_side(right, 0), _side(right, 1)]
    spans = [_span(side) for side in sides]
    if not all(spans) or int(right.sum()) != prod(int(side.sum()) for side in sides):
        return None
    (top, bottom), (left, right_end) = (span or (0, 0) for span in spans)
    rows, columns = right.shape[0] - 1 - bottom, right.shape[1] - 1 - right_end
    if top == left == rows == columns:
        wide = "" if top == 1 else f", {top} elements wide,"
        return _Place(f"only the border{wide}", many=False)
    if top == left == 0:
        return _Place(f"only {_end('last', rows, _ROW)} and {_end('last', columns, _COLUMN)}")
    return None


def _line(hit: torch.Tensor, unit: _Unit, tiling: Tiling) -> _Place | None:
    """Indices along one axis, or of a vector."""
    size, count = hit.numel(), int(hit.sum())
    if count == size:
        return None
    span, gap = _span(hit), _span(~hit)
    if count == 1 and span:
        return _single(span[0], size, unit)
    if span and (found := _blocks(*span, size, unit, tiling)):
        return found
    if span and 2 * count <= size:
        return _run(*span, size, unit)
    if gap:
        return _all_but(*gap, size, unit, tiling)
    if span:
        return _run(*span, size, unit)
    if found := _steps(hit, unit) or _lanes(hit, unit, tiling):
        return found
    if count <= FEW and unit is not _ELEMENT:
        at = [f"{int(i):,}" for i in hit.nonzero()]
        return _Place(f"only {unit.many} {', '.join(at[:-1])} and {at[-1]}")
    return None


def _span(hit: torch.Tensor) -> tuple[int, int] | None:
    """First and last index of a run without gaps."""
    at = hit.nonzero()
    if not len(at):
        return None
    first, last = int(at[0]), int(at[-1])
    return (first, last) if last - first + 1 == len(at) else None


def _single(index: int, size: int, unit: _Unit) -> _Place | None:
    if index in (0, size - 1):
        return _Place(f"only the {'last' if index else 'first'} {unit.one}", many=False)
    return None if unit is _ELEMENT else _Place(f"only {unit.one} {index:,}", many=False)


def _blocks(first: int, last: int, size: int, unit: _Unit, tiling: Tiling) -> _Place | None:
    """A run that begins and ends with blocks of the launch."""
    for block in tiling.blocks:
        if not 1 < block < size or first % block or not (
                last == size - 1 or (last + 1) % block == 0):
            continue
        known = unit is not _ROW or tiling.runs_along(size, block)  # columns may be looped over
        if known and last == size - 1 and first == size - size % block:
            return _Place(f"only {unit.many} from {first:,} on, where the last block of {block:,} "
                          "is not full,")
        if not tiling.programs_of(size, block):
            continue
        low, high = first // block, last // block
        if low == high:
            return _Place(f"exactly program {low}'s {unit.many} {first:,} to {last:,}")
        if low == 1 and last == size - 1:
            return _Place(f"all {unit.many} but the first {block:,}, {FIRST_PROGRAM},")
        return _Place(f"exactly the {unit.many} of programs {low} to {high}, {first:,} to "
                      f"{last:,},")
    return None


def _run(first: int, last: int, size: int, unit: _Unit) -> _Place:
    count = last - first + 1
    if last == size - 1 or first == 0:
        end = "last" if first else "first"
        return _Place(f"only the {end} {count:,} of {size:,} {unit.many}")
    return _Place(f"only {_span_words(unit, first, last)}")


def _all_but(first: int, last: int, size: int, unit: _Unit, tiling: Tiling) -> _Place | None:
    """All without a run; ``first`` and ``last`` are those that are not meant."""
    count = last - first + 1
    if count == 1 and unit is _ELEMENT and 0 < first < size - 1:
        return None  # which one is right by chance says nothing, and how many are is said
    if first == 0 or last == size - 1:
        return _Place(f"all {unit.many} but {_end('last' if first else 'first', count)}")
    found = _blocks(first, last, size, unit, tiling)
    if found and found.words.startswith("exactly "):
        return _Place(f"all {unit.many} but {found.words.removeprefix('exactly ').rstrip(',')}")
    return _Place(f"all {unit.many} but {_span_words(unit, first, last)}")


def _steps(hit: torch.Tensor, unit: _Unit) -> _Place | None:
    """Every k-th index, or all but every k-th."""
    size = hit.numel()
    for before, meant in (("only ", hit), (f"all {unit.many} but ", ~hit)):
        at = meant.nonzero().flatten()
        if len(at) < ENOUGH_FOR_STEPS:
            continue
        start, step = int(at[0]), int(at[1] - at[0])
        if start < step and torch.equal(at, torch.arange(start, size, step)):
            often = "every other" if step == 2 else f"every {_ordinal(step)}"
            begin = "the first" if start == 0 else f"{unit.one} {start:,}"
            return _Place(f"{before}{often} {unit.one}, beginning with {begin},",
                          many=meant is not hit)
    return None


def _lanes(hit: torch.Tensor, unit: _Unit, tiling: Tiling) -> _Place | None:
    """The same lanes of every block of the launch."""
    for block in () if unit is _ROW else tiling.blocks:
        if block < 2 or hit.numel() < 2 * block:
            continue
        lanes = hit[:block]
        repeated = lanes.repeat(-(-hit.numel() // block))[: hit.numel()]
        span = _span(lanes)
        if span and torch.equal(hit, repeated):
            which = f"lane {span[0]:,}" if span[0] == span[1] else \
                f"lanes {span[0]:,} to {span[1]:,}"
            return _Place(f"only the {unit.many} in {which} of every block of {block:,}")
    return None


def _span_words(unit: _Unit, first: int, last: int) -> str:
    return f"{unit.one} {first:,}" if first == last else f"{unit.many} {first:,} to {last:,}"


def _end(end: str, count: int, unit: _Unit | None = None) -> str:
    many = "" if count == 1 else f" {count:,}"
    name = "" if unit is None else f" {unit.one if count == 1 else unit.many}"
    return f"the {end}{many}{name}"


def _ordinal(number: int) -> str:
    teens = 10 <= number % 100 <= 20
    return f"{number:,}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
