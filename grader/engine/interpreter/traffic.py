"""What moves between a kernel and memory: bytes, 32-byte sectors, and how much of it twice.

A sector is what an NVIDIA GPU's L2 cache moves at least. An access of one program touches each of
its sectors once, whatever the order of its lanes; that number is what reaches L2 when L1 catches
nothing (hardware counters agree). The distinct sectors of a launch are what memory has to move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from grader.engine.interpreter.block_value import Array
from grader.recording.launch_stats import SECTOR, Footprint, Traffic

_SHIFT = 5
_MANY_SPANS = 1 << 20  # then they are merged, before they take more memory than tensors do
_ROW_BITS = 40  # below these bits a sector's number fits, above them the number of a program
_WHOLE = 1 << 22  # sectors; larger bitmaps are looked through only where something was set
_STRETCH = 1 << 16  # sectors
_MAX_BITMAP = 1 << 31  # sectors; of larger storages the distinct ones are kept as a sorted array


class Key(NamedTuple):
    """What accesses are summed by; ``region`` numbers the tensor."""

    line: int | None
    kind: str
    region: int


@dataclass
class Tally:
    """Sums of one key. ``touched`` holds spans of sectors (first, last) that are not merged yet."""

    tensor: str
    storage_bytes: int
    lanes: int = 0
    bytes: int = 0
    sectors: int = 0
    ideal: int = 0
    touched: list[tuple[Array, Array]] = field(default_factory=list)
    _kept: int = 0  # spans in ``touched``
    _limit: int = _MANY_SPANS
    _bits: Any = None
    _stretches: Any = None  # of the bitmap, in which something is set

    def touch(self, first: Array, last: Array) -> None:
        self.touched.append((first, last))
        self._kept += len(first)
        if self._kept > self._limit:
            ids = np.unique(np.concatenate([_spread(*span) for span in self.touched]))
            gaps = np.flatnonzero(np.diff(ids) > 1)
            self.touched = [(ids[np.append(0, gaps + 1)], ids[np.append(gaps, len(ids) - 1)])]
            self._kept = len(self.touched[0][0])
            self._limit = max(_MANY_SPANS, 2 * self._kept)

    def merge(self, other: Tally) -> None:
        self.lanes += other.lanes
        self.bytes += other.bytes
        self.sectors += other.sectors
        self.ideal += other.ideal
        for first, last in other.touched:
            self._mark(first, last)

    def _mark(self, first: Array, last: Array) -> None:
        if len(first) == 1 and self._bits is not None and self._bits.dtype == np.bool_:
            self._set(int(first[0]), int(last[0]))
            return
        size = self.storage_bytes // SECTOR + 2
        if size > _MAX_BITMAP:
            ids = np.unique(_spread(first, last))
            self._bits = ids if self._bits is None else np.union1d(self._bits, ids)
            return
        if self._bits is None:
            self._bits = np.zeros(size, np.bool_)  # untouched pages take no memory
            self._stretches = np.zeros(size // _STRETCH + 1, np.bool_)
        low, high = int(first.min()), int(last.max())
        if high - low < int((last - first).sum()) + len(first) and (
                len(first) == 1 or (first[1:] <= last[:-1] + 1).all()):
            self._set(low, high)  # one stretch without a gap
        else:
            numbers = _spread(first, last)
            self._bits[numbers] = True
            self._stretches[numbers // _STRETCH] = True

    def _set(self, low: int, high: int) -> None:
        assert self._bits is not None
        self._bits[low:high + 1] = True
        self._stretches[low // _STRETCH:high // _STRETCH + 1] = True

    def unique(self) -> Array:
        """The distinct sectors, ascending."""
        if self._bits is None:
            return np.zeros(0, np.int64)
        bits: Array = self._bits
        if bits.dtype != np.bool_:
            return bits
        if len(bits) <= _WHOLE:
            return np.flatnonzero(bits)
        parts = [np.flatnonzero(bits[start:start + _STRETCH]) + start
                 for start in (np.flatnonzero(self._stretches) * _STRETCH).tolist()]
        return np.concatenate(parts)


def _spread(first: Array, last: Array) -> Array:
    """Every number of every span."""
    length = int((last - first).max()) + 1
    numbers: Array = first[:, None] + np.arange(length)
    return numbers.ravel() if length == 1 else numbers[numbers <= last[:, None]]


class Ledger:
    """The traffic of a launch, or of an attempt at a part of it."""

    def __init__(self) -> None:
        self.tallies: dict[Key, Tally] = {}
        self.flops = 0

    def count(self, key: Key, tensor: str, storage_bytes: int, first: Array, nbytes: Any,
              rows: Array, programs: int, itemsize: int) -> None:
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
            tally = self.tallies[key] = Tally(tensor, storage_bytes)
        low = first >> _SHIFT
        # a lane never lies across two sectors: its address is a multiple of its size
        single = isinstance(nbytes, int) and nbytes == itemsize
        high = low if single else (first + (nbytes - 1)) >> _SHIFT
        total = len(first) * nbytes if isinstance(nbytes, int) else int(nbytes.sum())
        tally.lanes += programs * (total // itemsize)
        tally.bytes += programs * total
        tally.sectors += programs * _distinct(low, high, rows)
        tally.ideal += programs * _ideal(rows, nbytes)
        tally.touch(low, high)

    def count_product(self, flops: int) -> None:
        self.flops += flops

    def merge(self, other: Ledger) -> None:
        self.flops += other.flops
        for key, tally in other.tallies.items():
            if key not in self.tallies:
                self.tallies[key] = Tally(tally.tensor, tally.storage_bytes)
            self.tallies[key].merge(tally)

    def traffic(self) -> tuple[Traffic, ...]:
        made = [
            Traffic(key.line, key.kind, tally.tensor, tally.lanes, tally.bytes, tally.sectors,
                    tally.ideal, len(tally.unique()))
            for key, tally in self.tallies.items()
        ]
        return tuple(sorted(made, key=lambda t: (t.line or 0, t.kind, t.tensor)))

    def footprint(self) -> dict[str, Footprint]:
        """By the kernel's parameter name."""
        names = {tally.tensor for tally in self.tallies.values()}
        return {
            name: Footprint(self._union(name, ("load", "atomic")),
                            self._union(name, ("store", "atomic")))
            for name in sorted(names)
        }

    def _union(self, name: str, kinds: Sequence[str]) -> int:
        sets = [tally.unique() for key, tally in self.tallies.items()
                if tally.tensor == name and key.kind in kinds]
        if len(sets) <= 1:
            return len(sets[0]) if sets else 0
        return len(np.unique(np.concatenate(sets)))


def _distinct(low: Array, high: Array, rows: Array) -> int:
    """How many different sectors each row touches, summed over the rows."""
    if len(low) == 1:
        return int(high[0] - low[0]) + 1
    same_row = rows[1:] == rows[:-1]
    if not same_row.any():
        return int((high - low).sum()) + len(low)
    if low is high:  # lanes: each is in one sector
        keys = np.sort((rows << _ROW_BITS) + low)
        return 1 + int(np.count_nonzero(keys[1:] != keys[:-1]))
    if (same_row & (low[1:] < low[:-1])).any():
        order = np.lexsort((low, rows))
        low, high, rows = low[order], high[order], rows[order]
        same_row = rows[1:] == rows[:-1]
    if (same_row & (high[1:] < high[:-1])).any():  # a run inside an earlier one
        spread = 1 << _ROW_BITS
        high = np.maximum.accumulate(high + rows * spread) - rows * spread
    begin = low.copy()
    overlap = same_row & (low[1:] <= high[:-1])
    begin[1:][overlap] = high[:-1][overlap] + 1
    return int(np.maximum(high - begin + 1, 0).sum())


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
