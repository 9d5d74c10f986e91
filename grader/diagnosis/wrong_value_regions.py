"""Describes the region of wrong elements in the simplest exact way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import torch

from grader.finding import Fault, fault
from grader.recording.model import Recording

FEW = 4  # rows or columns that are listed one by one
ENOUGH_FOR_STEPS = 3  # of a progression
LEAST_SIDE = 3  # of a matrix in which a triangle or a border is one
LEAST_MAP = 8  # elements of a result that is drawn
MAP_ROWS, MAP_COLUMNS = 6, 24

Unit = Literal["element", "row", "column", "matrix", "slice"]
_OF_PROGRAMS = frozenset(("program", "programs"))
_OF_BLOCKS = _OF_PROGRAMS | {"last block", "after program 0", "but program", "but programs",
                             "block elements"}


@dataclass(frozen=True)
class Tiling:
    """The tiling of a launch: its BLOCK sizes and its grid."""

    blocks: tuple[int, ...] = ()
    grid: tuple[int, ...] = ()

    def programs_of(self, size: int, block: int) -> bool:
        """Whether program k owns the k-th block, as far as grid and sizes tell."""
        return prod(self.grid) == max(self.grid, default=0) == -(-size // block)


def tiling_of(recording: Recording | None) -> Tiling:
    """The tiling of the last launch, which is the one that makes the result in most kernels."""
    if recording is None or not recording.launches:
        return Tiling()
    launch = recording.launches[-1]
    blocks = (int(argument.value) for name, argument in launch.arguments.items()
              if name.upper().startswith("BLOCK") and argument.kind == "int")
    return Tiling(tuple(dict.fromkeys(blocks)), launch.grid)


def place(wrong: torch.Tensor, tiling: Tiling = Tiling()) -> Fault | None:
    """Returns which elements are meant, such as the last 3 of 1,000 columns.

    ``messages.region`` has the sentences. None where all elements are meant, or none, or where no
    pattern fits exactly.

    Args:
        wrong: bool, any rank.
        tiling: of the launch, where blocks and programs may explain the place.
    """
    count = int(wrong.sum())
    if count in (0, wrong.numel()):
        return None
    if wrong.dim() <= 1:
        return _line(wrong, "element", tiling)
    sides = [_side(wrong, axis) for axis in range(wrong.dim())]
    if count == prod(int(side.sum()) for side in sides):
        flat = _flat(wrong, tiling)
        if flat and flat.kind in _OF_BLOCKS:
            return flat  # it explains more than a part of one row
        return _box(sides, tiling) or flat
    if wrong.dim() == 2:
        return _matrix(wrong) or _flat(wrong, tiling)
    first = wrong.flatten(0, -3)[0]
    if first.any() and bool((wrong == first).all()):
        inner = place(first, tiling)
        return inner and inner.with_figures(every_matrix=True)
    return _flat(wrong, tiling)


def element_map(wrong: torch.Tensor) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Draws which elements are wrong, in blocks; nothing for small results and where all are.

    Args:
        wrong: bool, any rank; leading dimensions are drawn one below the other.

    Returns:
        At most ``MAP_ROWS`` rows of ``MAP_COLUMNS`` characters, and the rows and columns of a
        block; for a vector, its elements.
    """
    if wrong.numel() < LEAST_MAP or bool(wrong.all()) or not bool(wrong.any()):
        return (), ()
    matrix = wrong.reshape(-1, wrong.shape[-1] if wrong.dim() > 1 else wrong.numel())
    height, width = (-(-size // most) for size, most in zip(
        matrix.shape, (MAP_ROWS, MAP_COLUMNS), strict=True))
    rows = tuple("".join(_drawn(block) for block in torch.split(band, width, dim=1))
                 for band in torch.split(matrix, height))
    return rows, ((height, width) if wrong.dim() > 1 else (width,))


def _drawn(block: torch.Tensor) -> str:
    return "x" if bool(block.all()) else "+" if bool(block.any()) else "."


def _side(wrong: torch.Tensor, axis: int) -> torch.Tensor:
    """Returns the indices along one axis that have a marked element."""
    return wrong.any(dim=[other for other in range(wrong.dim()) if other != axis])


def _flat(wrong: torch.Tensor, tiling: Tiling) -> Fault | None:
    region = _line(wrong.flatten(), "element", tiling)
    return region and region.with_figures(flat=True)


def _box(sides: Sequence[torch.Tensor], tiling: Tiling) -> Fault | None:
    """Elements that are some indices along each axis, all combinations of them."""
    partial = [axis for axis, side in enumerate(sides) if not bool(side.all())]
    units = [_unit(axis, len(sides)) for axis in partial]
    if len(partial) == 1:
        region = _line(sides[partial[0]], units[0], tiling)
        return region.with_figures(axis=partial[0]) if region and units[0] == "slice" else region
    spans = [span for axis in partial if (span := _span(sides[axis]))]
    if len(partial) != 2 or len(spans) != 2:
        return None
    (top, bottom), (left, right) = spans
    sizes = (bottom - top + 1, right - left + 1)
    if sizes == (1, 1):
        return None  # one element, whose index is said anyway
    is_tile = set(sizes) <= set(tiling.blocks) and not (top % sizes[0] or left % sizes[1])
    return fault("tile" if is_tile else "box", unit=units[0], first=top, last=bottom,
                 other_unit=units[1], other_first=left, other_last=right)


def _unit(axis: int, rank: int) -> Unit:
    if rank == 3 and axis == 0:
        return "matrix"
    return "column" if rank - axis == 1 else "row" if rank - axis == 2 else "slice"


def _matrix(wrong: torch.Tensor) -> Fault | None:
    """Elements of a matrix that are no combination of rows and columns."""
    if min(wrong.shape) < LEAST_SIDE:
        return None
    every = torch.ones_like(wrong)
    below, above = every.tril(-1), every.triu(1)
    for kind, elements in (
        ("diagonal", ~(below | above)), ("off diagonal", below | above),
        ("above diagonal", above), ("diagonal and above", ~below),
        ("below diagonal", below), ("diagonal and below", ~above),
    ):
        if torch.equal(wrong, elements):
            return fault(kind)
    return _around(~wrong)


def _around(right: torch.Tensor) -> Fault | None:
    """All but a block of whole rows and columns: a border, or the last rows and columns."""
    sides = [_side(right, 0), _side(right, 1)]
    spans = [span for side in sides if (span := _span(side))]
    if len(spans) != 2 or int(right.sum()) != prod(int(side.sum()) for side in sides):
        return None
    (top, bottom), (left, right_end) = spans
    rows, columns = right.shape[0] - 1 - bottom, right.shape[1] - 1 - right_end
    if top == left == rows == columns:
        return fault("border", width=top)
    if top == left == 0:
        return fault("last rows and columns", rows=rows, columns=columns)
    return None


def _line(hit: torch.Tensor, unit: Unit, tiling: Tiling) -> Fault | None:
    """Indices along one axis, or of a vector."""
    size, count = hit.numel(), int(hit.sum())
    if count == size:
        return None
    span, gap = _span(hit), _span(~hit)
    if count == 1 and span:
        index, _ = span
        if index in (0, size - 1):
            return fault("end", unit=unit, side="last" if index else "first")
        return None if unit == "element" else fault("run", unit=unit, first=index, last=index)
    if span and (region := _blocks(*span, size, unit, tiling)):
        return region
    if span and 2 * count <= size:
        return _run(*span, size, unit)
    if gap:
        return _all_but(*gap, size, unit, tiling)
    if span:
        return _run(*span, size, unit)
    if region := _steps(hit, unit) or _block_elements(hit, unit, tiling):
        return region
    if count <= FEW and unit != "element":
        return fault("listed", unit=unit, indices=tuple(map(int, hit.nonzero())))
    return None


def _span(hit: torch.Tensor) -> tuple[int, int] | None:
    """First and last index of a run without gaps."""
    at = hit.nonzero()
    if not len(at):
        return None
    first, last = int(at[0]), int(at[-1])
    return (first, last) if last - first + 1 == len(at) else None


def _blocks(first: int, last: int, size: int, unit: Unit, tiling: Tiling) -> Fault | None:
    """A run that begins and ends with blocks of the launch."""
    for block in tiling.blocks:
        if not 1 < block < size or first % block or not (
                last == size - 1 or (last + 1) % block == 0):
            continue
        counted = unit != "row" or -(-size // block) in tiling.grid  # columns may be looped over
        if counted and last == size - 1 and first == size - size % block:
            return fault("last block", unit=unit, first=first, block=block)
        if not tiling.programs_of(size, block):
            continue
        low, high = first // block, last // block
        if low != high and low == 1 and last == size - 1:
            return fault("after program 0", unit=unit, block=block)
        return fault("program" if low == high else "programs", unit=unit, low=low, high=high,
                     first=first, last=last)
    return None


def _run(first: int, last: int, size: int, unit: Unit) -> Fault:
    if last == size - 1 or first == 0:
        return fault("run at end", unit=unit, side="last" if first else "first",
                     count=last - first + 1, size=size)
    return fault("run", unit=unit, first=first, last=last)


def _all_but(first: int, last: int, size: int, unit: Unit, tiling: Tiling) -> Fault | None:
    """All without a run; ``first`` and ``last`` are those that are not meant."""
    count = last - first + 1
    if count == 1 and unit == "element" and 0 < first < size - 1:
        return None  # which one is right by chance says nothing, and how many are is said
    if first == 0 or last == size - 1:
        return fault("but end", unit=unit, side="last" if first else "first", count=count)
    region = _blocks(first, last, size, unit, tiling)
    if region and region.kind in _OF_PROGRAMS:
        return fault(f"but {region.kind}", **region.figures)
    return fault("but run", unit=unit, first=first, last=last)


def _steps(hit: torch.Tensor, unit: Unit) -> Fault | None:
    """Every k-th index, or all but every k-th."""
    size = hit.numel()
    for kind, meant in (("steps", hit), ("but steps", ~hit)):
        at = meant.nonzero().flatten()
        if len(at) < ENOUGH_FOR_STEPS:
            continue
        start, step = int(at[0]), int(at[1] - at[0])
        if start < step and torch.equal(at, torch.arange(start, size, step)):
            return fault(kind, unit=unit, start=start, step=step)
    return None


def _block_elements(hit: torch.Tensor, unit: Unit, tiling: Tiling) -> Fault | None:
    """The same elements of every block of the launch."""
    for block in () if unit == "row" else tiling.blocks:
        if block < 2 or hit.numel() < 2 * block:
            continue
        repeated = hit[:block].repeat(-(-hit.numel() // block))[: hit.numel()]
        span = _span(hit[:block])
        if span and torch.equal(hit, repeated):
            return fault("block elements", unit=unit, first=span[0], last=span[1], block=block)
    return None
