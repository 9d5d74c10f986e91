"""Counts what the programs that ran asked for: lanes, bytes, sectors, and who shares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grader.engine.interpreter.handle import Array
from grader.engine.interpreter.regions import Region
from grader.engine.survey.dram import distinct
from grader.engine.survey.sampling import Access
from grader.facts import SECTOR

_SHIFT = 5  # a sector is 32 bytes
_ROW_BITS = 40  # below them a sector's number fits, above them the number of a program


@dataclass(frozen=True)
class Counted:
    """Of one access: for each program of the group, one turn of its loops."""

    lanes: Array
    sectors: Array
    ideal: Array
    rows: Array  # of each distinct (program, sector)
    numbers: Array


def counted(access: Access, programs: int) -> Counted:
    """Count one access of a group of so many programs."""
    rows, alone = access.rows, 1 if access.alike else programs
    low = access.first >> _SHIFT
    high = (access.first + (access.nbytes - 1)) >> _SHIFT
    sectors = high - low + 1
    which = np.repeat(np.arange(len(low)), sectors)
    within = np.arange(len(which)) - np.repeat(np.cumsum(sectors) - sectors, sectors)
    keys = (rows[which].astype(np.int64) << _ROW_BITS) + low[which] + within
    if (keys[1:] <= keys[:-1]).any():
        keys = distinct(keys)
    owners, numbers = keys >> _ROW_BITS, keys & ((1 << _ROW_BITS) - 1)
    nbytes = np.broadcast_to(np.asarray(access.nbytes), rows.shape)
    total = np.bincount(rows, nbytes, alone)
    return Counted(total / access.itemsize, np.bincount(owners, minlength=alone).astype(float),
                   np.ceil(total / SECTOR), owners, numbers)


def extent(regions: Sequence[Region]) -> int:
    """Sectors from the first to the last of some views of one storage."""
    first = min(region.start for region in regions) >> _SHIFT
    last = max(region.start + region.nbytes - 1 for region in regions) >> _SHIFT
    return last - first + 1


def coverage(each: float, seen: float, count: int, total: float) -> float:
    """Distinct things of all programs, if ``count`` of them have ``each`` and ``seen`` together.

    ``total``: of all programs, each counted for itself. Who meets is taken to be a matter of
    chance: then the number of things to choose from follows from how many were met twice.
    """
    if count == 1 or seen >= 0.999 * each * count:
        return total
    if seen <= 1.001 * each:
        return seen
    low, high = seen, 1e6 * total
    for _ in range(100):
        middle = (low * high) ** 0.5
        expected = middle * -np.expm1(count * np.log1p(-min(each / middle, 1 - 1e-12)))
        low, high = (middle, high) if expected < seen else (low, middle)
    return float(low * -np.expm1(total / each * np.log1p(-min(each / low, 1 - 1e-12))))
