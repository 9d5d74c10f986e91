"""Which tensors the programs of a launch cut into runs of bytes, one for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from grader.engine.dram_model.reuse_distance import distinct
from grader.engine.dram_model.sampling import SampledAccess
from grader.engine.dram_model.sector_counts import Counted
from grader.engine.interpreter.block_value import Array

# A stencil of three points over blocks of 1,024 floats reads 0.2 % more than there is.
_OVERLAP = 1.0005
_BITS = 36  # below them a sector's number fits, above them the number of a program


@dataclass
class _Place:
    """Accesses of some programs to one tensor: first and last byte, and sectors."""

    spans: list[tuple[Array, Array, Array, Array]] = field(default_factory=list)
    sectors: list[Array] = field(default_factory=list)
    shared: bool = False


class PrivateRanges:
    """Collects the accesses of the programs that ran."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, str], _Place] = {}  # by region and kind

    def add(self, access: SampledAccess, group: Array, told: Counted, stands: Array) -> None:
        """``stands``: the number of programs that each of the group represents."""
        if access.key.kind == "atomic":
            return
        place = self._places.setdefault((access.key.region, access.key.kind), _Place())
        if access.alike:
            place.shared |= stands.sum() > 1
        if place.shared or access.alike:
            return
        low = np.full(len(group), np.iinfo(np.int64).max)
        high = np.zeros(len(group), np.int64)
        np.minimum.at(low, access.rows, access.first)
        np.maximum.at(high, access.rows, access.first + access.nbytes)
        some = high > 0
        place.spans.append((group[some], low[some], high[some], stands[some]))
        place.sectors.append((group[told.rows].astype(np.int64) << _BITS) + told.numbers)

    def apart(self, nbytes: Callable[[int], int]) -> Iterator[tuple[int, str]]:
        """Regions and kinds in which each program has a private range; ``nbytes`` of a region."""
        for (region, kind), place in self._places.items():
            if not place.shared and place.spans and _apart(place, nbytes(region)):
                yield region, kind


def _apart(place: _Place, nbytes: int) -> bool:
    """Whether ranges have no gaps, and their sum does not exceed the region."""
    programs, lows, highs, stands = (np.concatenate([span[i] for span in place.spans])
                                     for i in range(4))
    _, first, which = np.unique(programs, return_index=True, return_inverse=True)
    low = np.full(len(first), np.iinfo(np.int64).max)
    high = np.zeros(len(first), np.int64)
    np.minimum.at(low, which, lows)
    np.maximum.at(high, which, highs)
    reached = distinct(np.concatenate(place.sectors))
    between = ((high - 1) >> 5) - (low >> 5) + 1
    return bool(len(reached) == between.sum()
                and ((high - low) * stands[first]).sum() <= _OVERLAP * nbytes)
