"""Counts elements, bytes and 32-byte sectors of sampled accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grader.engine.dram_model.reuse_distance import distinct
from grader.engine.dram_model.sampling import SampledAccess
from grader.engine.interpreter.address_space import Region
from grader.engine.interpreter.block_value import Array
from grader.recording.launch_stats import SECTOR

_SHIFT = 5  # a sector is 32 bytes
_ROW_BITS = 40  # below them a sector's number fits, above them the number of a program


@dataclass(frozen=True)
class Counted:
    """Counts of one access, for each program of the group and one iteration of its loops."""

    lanes: Array
    sectors: Array
    ideal: Array
    rows: Array  # of each distinct (program, sector)
    numbers: Array


def counted(access: SampledAccess, programs: int) -> Counted:
    """Counts one access of a group of ``programs``."""
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
    """Sectors between the first and the last byte of some views of one storage."""
    first = min(region.start for region in regions) >> _SHIFT
    last = max(region.start + region.nbytes - 1 for region in regions) >> _SHIFT
    return last - first + 1


def coverage(each: float, seen: float, count: int, total: float) -> float:
    """Estimates the distinct sectors of all programs from those of a sample.

    Programs are assumed to choose sectors at random: then the number of sectors to choose from
    follows from the overlap within the sample, as in capture-recapture estimates.

    Args:
        each: sectors of one sampled program, on average.
        seen: distinct sectors of the sample.
        count: programs of the sample.
        total: sum of the sectors of all programs, shared ones counted once per program.
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
