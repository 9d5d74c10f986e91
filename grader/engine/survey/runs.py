"""Which tensors the programs of a launch cut into runs of bytes, one for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from grader.engine.interpreter.handle import Array
from grader.engine.survey.counting import Counted
from grader.engine.survey.dram import distinct
from grader.engine.survey.sampling import Access

# A stencil of three points over blocks of 1,024 floats reads 0.2 % more than there is.
_OVERLAP = 1.0005
_BITS = 36  # below them a sector's number fits, above them the number of a program


@dataclass
class _Place:
    """What some programs reach of one tensor: first and last byte, and sectors."""

    spans: list[tuple[Array, Array, Array, Array]] = field(default_factory=list)
    sectors: list[Array] = field(default_factory=list)
    shared: bool = False


class Runs:
    """Collects the accesses of the programs that ran."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, str], _Place] = {}  # by region and kind

    def add(self, access: Access, group: Array, told: Counted, stands: Array) -> None:
        """``stands``: how many programs each of the group stands for."""
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
        """Regions and kinds where each program has a run of its own; ``nbytes`` of a region."""
        for (region, kind), place in self._places.items():
            if not place.shared and place.spans and _apart(place, nbytes(region)):
                yield region, kind


def _apart(place: _Place, nbytes: int) -> bool:
    """Whether runs have no gaps, and are together no more than there is."""
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
