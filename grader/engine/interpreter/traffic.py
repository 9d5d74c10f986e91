"""Counts memory traffic of a launch: bytes, 32-byte sectors, redundancy.

A sector is what an NVIDIA GPU's L2 cache moves at least. An access of one program touches each of
its sectors once, whatever the order of its lanes; that number is what reaches L2 when L1 catches
nothing (hardware counters agree). The distinct sectors of a launch are what memory has to move.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from grader.engine.interpreter.block_value import Array
from grader.recording.launch_stats import SECTOR, Footprint, Traffic

_SHIFT = 5
_MANY_SPANS = 1 << 20  # then they are merged, before they take more memory than tensors do
_ROW_BITS = 40  # below these bits a sector's number fits, above them the number of a program

Spans = tuple[Array, Array]  # the first and the last sector of each


class Key(NamedTuple):
    """The key by which accesses are summed; ``region`` numbers the tensor."""

    line: int | None
    kind: str
    region: int


@dataclass
class Tally:
    """Sums of one key, and the sectors that were touched, in spans that may overlap."""

    tensor: str
    lanes: int = 0
    bytes: int = 0
    sectors: int = 0
    ideal: int = 0
    spans: list[Spans] = field(default_factory=list)
    _kept: int = 0  # spans
    _limit: int = _MANY_SPANS

    def touch(self, spans: Spans) -> None:
        self.spans.append(spans)
        self._kept += len(spans[0])
        if self._kept > self._limit:
            self._limit = max(_MANY_SPANS, 2 * len(self.merged()[0]))

    def merge(self, other: Self) -> None:
        self.lanes += other.lanes
        self.bytes += other.bytes
        self.sectors += other.sectors
        self.ideal += other.ideal
        for spans in other.spans:
            self.touch(spans)

    def merged(self) -> Spans:
        """The sectors in spans that are ascending and apart."""
        self.spans = [_merged(self.spans)]
        self._kept = len(self.spans[0][0])
        return self.spans[0]


def _merged(spans: Sequence[Spans]) -> Spans:
    first, last = map(np.concatenate, zip(*spans, strict=True))
    if (first[1:] < first[:-1]).any():
        order = np.argsort(first, kind="stable")  # fast where spans are mostly in order
        first, last = first[order], last[order]
    reach = np.maximum.accumulate(last)
    gaps = np.flatnonzero(first[1:] > reach[:-1] + 1)
    return first[np.append(0, gaps + 1)], reach[np.append(gaps, len(reach) - 1)]


def _count(spans: Spans) -> int:
    """Distinct sectors of merged spans."""
    first, last = spans
    return int((last - first).sum()) + len(first)


class Ledger:
    """The traffic of a launch, or of an attempt at a part of it."""

    def __init__(self) -> None:
        self.tallies: dict[Key, Tally] = {}
        self.flops = 0

    def count(self, key: Key, tensor: str, first: Array, nbytes: Any, rows: Array, programs: int,
              itemsize: int) -> None:
        """Add one access.

        Args:
            first: the first byte of every run, counted from the start of the storage.
            nbytes: the length of the runs, one for all or one each.
            rows: whose run it is, ascending.
            programs: how many programs do exactly this; more than 1 only for a single row.
            itemsize: bytes of a lane.
        """
        tally = self.tallies.get(key)
        if tally is None:
            tally = self.tallies[key] = Tally(tensor)
        low = first >> _SHIFT
        # an element never lies across two sectors: its address is a multiple of its size
        single = isinstance(nbytes, int) and nbytes == itemsize
        if single and len(low) > 1:
            keys = np.sort((rows << _ROW_BITS) + low)
            keys = keys[np.append(True, keys[1:] != keys[:-1])]
            low = high = keys & ((1 << _ROW_BITS) - 1)
            sectors = len(keys)
        else:
            high = low if single else (first + (nbytes - 1)) >> _SHIFT
            sectors = _distinct(low, high, rows)
        total = len(first) * nbytes if isinstance(nbytes, int) else int(nbytes.sum())
        tally.lanes += programs * (total // itemsize)
        tally.bytes += programs * total
        tally.sectors += programs * sectors
        tally.ideal += programs * _ideal(rows, nbytes)
        tally.touch((low, high))

    def count_product(self, flops: int) -> None:
        self.flops += flops

    def merge(self, other: Self) -> None:
        self.flops += other.flops
        for key, tally in other.tallies.items():
            if key not in self.tallies:
                self.tallies[key] = Tally(tally.tensor)
            self.tallies[key].merge(tally)

    def traffic(self) -> tuple[Traffic, ...]:
        return tuple(sorted(
            (Traffic(key.line, key.kind, tally.tensor, tally.lanes, tally.bytes, tally.sectors,
                     tally.ideal, _count(tally.merged()))
             for key, tally in self.tallies.items()),
            key=lambda t: (t.line or 0, t.kind, t.tensor)))

    def footprint(self) -> dict[str, Footprint]:
        """By the kernel's parameter name."""
        names = {tally.tensor for tally in self.tallies.values()}
        return {
            name: Footprint(self._union(name, ("load", "atomic")),
                            self._union(name, ("store", "atomic")))
            for name in sorted(names)
        }

    def _union(self, name: str, kinds: Sequence[str]) -> int:
        spans = [tally.merged() for key, tally in self.tallies.items()
                 if tally.tensor == name and key.kind in kinds]
        return _count(_merged(spans)) if spans else 0


def _distinct(low: Array, high: Array, rows: Array) -> int:
    """Counts the distinct sectors of each row, summed over the rows."""
    if len(low) == 1:
        return int(high[0] - low[0]) + 1
    if (rows[1:] != rows[:-1]).all():
        return int((high - low).sum()) + len(low)
    apart = rows << _ROW_BITS
    return _count(_merged([(apart + low, apart + high)]))


def _ideal(rows: Array, nbytes: Any) -> int:
    """As few sectors as would hold the bytes of each row, summed."""
    if len(rows) == 1 or (isinstance(nbytes, int) and len(rows) == int(rows[-1]) + 1):
        return len(rows) * ((int(nbytes) + (SECTOR - 1)) >> _SHIFT)  # a run for each row
    starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    if isinstance(nbytes, int):
        sums = np.diff(np.append(starts, len(rows))) * nbytes
    else:
        sums = np.add.reduceat(nbytes, starts)
    return int(((sums + (SECTOR - 1)) >> _SHIFT).sum())
