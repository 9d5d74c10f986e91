"""Sectors of each instruction of a warp, from the layout of threads and the elements' addresses."""

from functools import lru_cache
from typing import Any

import numpy as np

from grader.engine.compiler.layouts import positions
from grader.engine.interpreter.block_value import Array, Handle
from grader.recording.compiled_kernel import AccessLayout

_SECTOR_SHIFT, _LINE_SHIFT = 5, 7
_MOST_ELEMENTS = 1 << 18  # of a block
_OFF = -1  # sector of a lane that is masked off


def requests_of(layout: AccessLayout, pointers: Handle, mask: Handle | None,
                rows: list[int]) -> Array | None:
    """Requests, their sectors, lines of 128 bytes and useful bytes, on average of some programs.

    A thread that holds a copy of another one's element loads it too, but does not store it.

    Args:
        rows: the programs to look at.
    """
    elements = int(np.prod(layout.shape))
    if elements > _MOST_ELEMENTS:
        return None
    at = _instructions(layout)
    count = len(rows)
    addresses = _picked(pointers, rows, layout.shape)[:, at]
    sectors = addresses >> _SECTOR_SHIFT
    if mask is not None:
        sectors = np.where(_picked(mask, rows, layout.shape)[:, at], sectors, _OFF)
    sectors = np.sort(sectors.reshape(-1, at.shape[1]), axis=1)
    lines = sectors >> (_LINE_SHIFT - _SECTOR_SHIFT)
    n_bytes = (sectors != _OFF).sum() * layout.vector * layout.bits // 8
    return np.array([(sectors[:, -1] != _OFF).sum(), _distinct(sectors), _distinct(lines),
                     n_bytes]) / count


def _picked(block: Handle, rows: list[int], shape: tuple[int, ...]) -> Array:
    whole: Array = np.broadcast_to(block.of_programs(rows), (len(rows), *shape))
    return whole.reshape(len(rows), -1)


def _distinct(ordered: Array) -> int:
    """Distinct numbers of each row that are not negative, summed."""
    first = (ordered[:, :1] >= 0).sum()
    return int(first + ((ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] >= 0)).sum())


@lru_cache(maxsize=256)
def _instructions(layout: AccessLayout) -> Any:
    """[instructions, lanes]: the first element of each lane."""
    registers = positions(layout.registers[layout.vector.bit_length() - 1:])
    lanes, warps = list(dict.fromkeys(positions(layout.lanes))), positions(layout.warps)
    if layout.kind != "load":
        warps = list(dict.fromkeys(warps))
    return np.array([[warp ^ register ^ lane for lane in lanes]
                     for warp in warps for register in registers])
