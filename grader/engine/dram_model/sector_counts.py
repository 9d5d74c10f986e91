"""Counts elements, bytes and 32-byte sectors of sampled accesses; finds private ranges."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grader.engine.dram_model.sampling import SampledAccess
from grader.engine.interpreter.address_space import Region
from grader.engine.interpreter.block_value import Array
from grader.recording.launch_stats import SECTOR

_SHIFT = 5  # a sector is 32 bytes
_ROW_BITS = 40  # below them a sector's number fits, above them the number of a program
# A stencil of three points over blocks of 1,024 floats reads 0.2 % more than there is.
_OVERLAP = 1.0005
_PROGRAM_BITS = 36  # as ``_ROW_BITS``, with numbers of programs of the whole launch


def differs(*columns: Array) -> Array:
    """Whether each row of some columns differs from the row before it."""
    changes = np.ones(len(columns[0]), np.bool_)
    changes[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return changes


def distinct(numbers: Array) -> Array:
    """``np.unique``, whose hash table is slow for multiples of a power of two."""
    ordered = np.sort(numbers, kind="stable")  # fast where most are in order
    return ordered[differs(ordered)]


def expanded(counts: Array) -> tuple[Array, Array]:
    """``counts[i]`` rows for each i: the i of each row, and the row's number among them."""
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)


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
    which, within = expanded(high - low + 1)
    keys = (rows[which].astype(np.int64) << _ROW_BITS) + low[which] + within
    if (keys[1:] <= keys[:-1]).any():
        keys = distinct(keys)
    owners, numbers = keys >> _ROW_BITS, keys & ((1 << _ROW_BITS) - 1)
    total = np.bincount(rows, access.nbytes, alone)
    return Counted(total / access.itemsize, np.bincount(owners, minlength=alone).astype(float),
                   np.ceil(total / SECTOR), owners, numbers)


def extent(regions: Sequence[Region]) -> int:
    """Sectors between the first and the last byte of some views of one storage."""
    first = min(region.start for region in regions) >> _SHIFT
    last = max(region.start + region.nbytes - 1 for region in regions) >> _SHIFT
    return last - first + 1


def coverage(each: float, sampled: float, count: int, total: float) -> float:
    """Estimates the distinct sectors of all programs from those of a sample.

    Programs are assumed to choose sectors at random: then the number of sectors to choose from
    follows from the overlap within the sample, as in capture-recapture estimates.

    Args:
        each: sectors of one sampled program, on average.
        sampled: distinct sectors of the sample.
        count: programs of the sample.
        total: sum of the sectors of all programs, shared ones counted once per program.
    """
    if count == 1 or sampled >= 0.999 * each * count:
        return total
    if sampled <= 1.001 * each:
        return sampled
    low, high = sampled, 1e6 * total
    for _ in range(100):
        middle = (low * high) ** 0.5
        expected = middle * -np.expm1(count * np.log1p(-min(each / middle, 1 - 1e-12)))
        low, high = (middle, high) if expected < sampled else (low, middle)
    return float(low * -np.expm1(total / each * np.log1p(-min(each / low, 1 - 1e-12))))


def joined(parts: Sequence[tuple[Array, ...]]) -> list[Array]:
    """The columns of all parts, one after the other."""
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def spans_of(access: SampledAccess, group: Array, stands: Array) -> tuple[Array, ...]:
    """The programs of a group that access something, their first and last bytes, and ``stands``."""
    low, high = _spans(access.rows, access.first, access.first + access.nbytes, len(group))
    some = high > 0
    return group[some], low[some], high[some], stands[some]


def are_private(spans: Sequence[tuple[Array, ...]], touched: Sequence[tuple[Array, ...]],
                nbytes: int) -> bool:
    """Whether ranges have no gaps, and their sum does not exceed a region of ``nbytes``.

    ``spans`` are results of ``spans_of``, and ``touched`` has the same programs with their sectors.
    """
    programs, lows, highs, stands = joined(spans)
    owners, sectors, *_ = joined(touched)
    _, first, which = np.unique(programs, return_index=True, return_inverse=True)
    low, high = _spans(which, lows, highs, len(first))
    reached = distinct((owners.astype(np.int64) << _PROGRAM_BITS) + sectors)
    between = ((high - 1) >> _SHIFT) - (low >> _SHIFT) + 1
    return bool(len(reached) == between.sum()
                and ((high - low) * stands[first]).sum() <= _OVERLAP * nbytes)


def _spans(rows: Array, lows: Array, highs: Array, count: int) -> tuple[Array, Array]:
    """The least ``lows`` and the greatest ``highs`` of each of ``count`` rows; 0 without any."""
    low = np.full(count, np.iinfo(np.int64).max)
    high = np.zeros(count, np.int64)
    np.minimum.at(low, rows, lows)
    np.maximum.at(high, rows, highs)
    return low, high
