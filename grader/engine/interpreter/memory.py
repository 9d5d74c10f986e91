"""Storages, fake addresses, and every load and store of a kernel checked before it happens."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.engine.interpreter import atomics, words
from grader.engine.interpreter.observed import Observations
from grader.engine.interpreter.poison import masked_lane
from grader.engine.interpreter.shadow import HOST, KERNEL, NOBODY, Shadow

# A tensor argument k lives at BASE + (k + 1) * 2**44 + 2**43: its region is read off any address,
# and an index that is wrong by up to 2**43 bytes in either direction still names the tensor.
_BASE = 1 << 60
_REGION_BITS = 44
_MIDDLE = 1 << (_REGION_BITS - 1)
_ALIGNMENT_MASK = 0xFFF  # low bits of an address are real, so that alignment looks as on a GPU

Array = NDArray[Any]
Lanes = slice | Array


@dataclass
class Storage:
    """The bytes of one allocation. ``granule``: bytes of the smallest element it is used with."""

    data: NDArray[np.uint8]
    granule: int
    is_input: bool
    shadow: Shadow = field(init=False)
    stored_into: bool = False

    def __post_init__(self) -> None:
        cells = -(-len(self.data) // self.granule)
        self.shadow = Shadow(cells, HOST if self.is_input else NOBODY)

    def typed(self, dtype: np.dtype[Any]) -> Array:
        whole = len(self.data) // dtype.itemsize * dtype.itemsize
        return self.data[:whole].view(dtype)


@dataclass(frozen=True)
class Region:
    """A tensor argument of the running launch: where it lies, and how far it reaches in bytes."""

    name: str
    storage: Storage
    itemsize: int
    start: int  # bytes from the storage's start to the view's first element
    nbytes: int  # from the view's first element to the end of its last
    base: int  # the address of the first element

    @property
    def elements(self) -> int:
        return self.nbytes // self.itemsize


@dataclass
class Running:
    """The launch that is running, and the program whose turn it is."""

    grid: tuple[int, int, int]
    file: str  # the kernel's source; findings give lines of this file
    first: int  # number of the launch's first program, counted over the whole recording, less one
    program: int = 0
    regions: dict[int, Region] = field(default_factory=dict)
    stored: bool = False  # by the program whose turn it is
    bytes_loaded: int = 0
    bytes_stored: int = 0
    axes: set[int] = field(default_factory=set)  # along which the kernel asked for its place
    atomics: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def me(self) -> int:
        return self.first + self.program + 1

    @property
    def programs(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def place(self, program: int | None = None) -> str:
        return words.program(self.program if program is None else program, self.grid)


class Memory:
    """All storages of a recording, and what was observed on them."""

    def __init__(self, pattern: int = 0, *, duplicate_writes: bool = False) -> None:
        self.pattern = pattern
        self.duplicate_writes = duplicate_writes
        self.observed = Observations()
        self.running = Running((0, 0, 0), "", 0)
        self._launched = 0

    def begin(self, grid: tuple[int, int, int], file: str) -> Running:
        self.running = Running(grid, file, self._launched)
        self._launched += self.running.programs
        self.running.atomics = np.zeros(self.running.programs + 1, np.bool_)
        return self.running

    def region(self, name: str, storage: Storage, itemsize: int, start: int, nbytes: int) -> int:
        """Give a tensor argument its place in the address space of the launch; the address."""
        number = len(self.running.regions) + 1
        base = _BASE + (number << _REGION_BITS) + _MIDDLE + (start & _ALIGNMENT_MASK)
        self.running.regions[number] = Region(name, storage, itemsize, start, nbytes, base)
        return base

    # -- what a program does -------------------------------------------------------------------

    def load(self, pointers: Array, mask: Array, other: Array | None,
             dtype: np.dtype[Any]) -> Array:
        result = np.empty(pointers.shape, dtype)
        if other is None:
            result[...] = masked_lane(dtype, self.pattern)
        else:
            result[...] = other
        selected: Any = _selection(mask, pointers.shape)
        addresses = pointers[selected].reshape(-1)
        self.running.bytes_loaded += addresses.size * dtype.itemsize
        values = np.full(addresses.shape, masked_lane(dtype, self.pattern), dtype)
        for region, index, lanes in self._resolve(addresses, dtype.itemsize, "loaded"):
            self._check_load(region, index, dtype.itemsize)
            values[lanes] = region.storage.typed(dtype)[index]
        result[selected] = values.reshape(pointers.shape) if selected is ... else values
        return result

    def store(self, pointers: Array, value: Array, mask: Array) -> None:
        selected: Any = _selection(mask, pointers.shape)
        addresses = pointers[selected].reshape(-1)
        values = np.broadcast_to(value, pointers.shape)[selected].reshape(-1)
        self.running.bytes_stored += addresses.size * value.itemsize
        self.running.stored |= addresses.size > 0
        for region, index, lanes in self._resolve(addresses, value.itemsize, "stored"):
            self._check_store(region, index, value.itemsize)
            region.storage.typed(value.dtype)[index] = values[lanes]

    def atomic_rmw(self, operation: str, pointers: Array, value: Array, mask: Array) -> Array:
        selected: Any = _selection(mask, pointers.shape)
        values = np.broadcast_to(value, pointers.shape)[selected].reshape(-1)

        def change(target: Array, index: Array, lanes: Lanes) -> Array:
            return atomics.rmw(operation, target, index, values[lanes])

        return self._atomic(pointers, selected, value.dtype, change)

    def atomic_cas(self, pointers: Array, compare: Array, value: Array) -> Array:
        compares = np.broadcast_to(compare, pointers.shape).reshape(-1)
        values = np.broadcast_to(value, pointers.shape).reshape(-1)

        def change(target: Array, index: Array, lanes: Lanes) -> Array:
            return atomics.cas(target, index, compares[lanes], values[lanes])

        return self._atomic(pointers, ..., value.dtype, change)

    def _atomic(self, pointers: Array, selected: Any, dtype: np.dtype[Any], change: Any) -> Array:
        running = self.running
        addresses = pointers[selected].reshape(-1)
        running.bytes_loaded += addresses.size * dtype.itemsize
        running.bytes_stored += addresses.size * dtype.itemsize
        if addresses.size:
            running.stored = True
            running.atomics[running.program] = True
        old = np.full(addresses.shape, masked_lane(dtype, self.pattern), dtype)
        for region, index, lanes in self._resolve(addresses, dtype.itemsize, "changed"):
            cells = _cells(region, index, dtype.itemsize)
            shadow = region.storage.shadow
            if not region.storage.is_input:
                self._note_unwritten(region, index, shadow.get(cells), dtype.itemsize)
            self._note_input(region, index, dtype.itemsize)
            old[lanes] = change(region.storage.typed(dtype), index, lanes)
            shadow.set(cells, KERNEL)
        result = np.full(pointers.shape, masked_lane(dtype, self.pattern), dtype)
        result[selected] = old.reshape(pointers.shape) if selected is ... else old
        return result

    # -- checks --------------------------------------------------------------------------------

    def _resolve(self, addresses: Array, itemsize: int,
                 action: str) -> Iterator[tuple[Region, Array, Lanes]]:
        """The lanes that may go ahead, tensor by tensor, as indices into the typed storage."""
        if not addresses.size:
            return
        number = (int(addresses[0]) - _BASE) >> _REGION_BITS
        region = self.running.regions.get(number)
        signed = addresses.view(np.int64)
        if region is not None:  # nearly always all lanes are in bounds of one tensor
            offset = signed - region.base
            if offset.min() >= 0 and offset.max() + itemsize <= region.nbytes:
                place = offset + region.start
                if itemsize == region.itemsize or not (place % itemsize).any():
                    yield region, place // itemsize, slice(None)
                    return
        numbers = (signed - _BASE) >> _REGION_BITS
        for number in np.unique(numbers).tolist():
            lanes = np.flatnonzero(numbers == number)
            region = self.running.regions.get(number)
            if region is None:
                self._note(words.wild, "M02" if action != "loaded" else "M01", None, lanes.size,
                           int(signed[lanes[0]]), action)
                continue
            offset = signed[lanes] - region.base
            outside = (offset < 0) | (offset + itemsize > region.nbytes)
            crooked = ~outside & ((offset + region.start) % itemsize != 0)
            self._note_outside(region, offset[outside], action)
            if crooked.any():
                self._note(words.crooked, "M02" if action != "loaded" else "M01", region,
                           int(crooked.sum()), int(offset[crooked][0]), action)
            good = ~(outside | crooked)
            if good.any():
                yield region, (offset[good] + region.start) // itemsize, lanes[good]

    def _note_outside(self, region: Region, offsets: Array, action: str) -> None:
        index = offsets // region.itemsize
        for side, lanes in ((words.before, index < 0), (words.past, index >= 0)):
            if not lanes.any():
                continue
            first = int(index[lanes][0])
            code = "M01" if action == "loaded" else "M02"
            if words.wrapped(first, region.elements):
                code, side = "M05", words.overflowed
            self._note(side, code, region, int(lanes.sum()), first, action)

    def _check_load(self, region: Region, index: Array, itemsize: int) -> None:
        storage = region.storage
        if storage.is_input and not storage.shadow.touched:
            return
        cells = storage.shadow.get(_cells(region, index, itemsize))
        if not storage.is_input:
            self._note_unwritten(region, index, cells, itemsize)
        foreign = self._foreign(cells)
        if foreign is not None:
            lanes = foreign.reshape(len(index), -1).any(axis=1)
            other = int(cells[foreign][0]) - self.running.first - 1
            self._note(words.race, "M09", region, int(lanes.sum()),
                       _element(region, index[lanes][0], itemsize), "loaded",
                       other=self.running.place(other))

    def _check_store(self, region: Region, index: Array, itemsize: int) -> None:
        shadow = region.storage.shadow
        at = _cells(region, index, itemsize)
        self._note_input(region, index, itemsize)
        if not self.duplicate_writes and itemsize >= region.storage.granule and shadow.touched:
            cells = shadow.get(at)
            foreign = self._foreign(cells)
            if foreign is not None:
                self._note_twice(region, index, cells, foreign, itemsize)
        shadow.set(at, self.running.me)

    def _foreign(self, cells: Array) -> Array | None:
        """Which cells another program of this launch stored; None when there are none.

        Programs that both used an atomic may have taken turns, by a lock or a counter: the order
        of their accesses is theirs to arrange, so nothing is said about them.
        """
        running = self.running
        if not cells.size or cells.max() <= running.first:
            return None
        foreign = (cells > running.first) & (cells != running.me)
        if running.atomics[running.program]:
            writers = np.where(foreign, cells - running.first - 1, running.programs)
            foreign &= ~running.atomics[writers]
        return foreign if foreign.any() else None

    def _note_unwritten(self, region: Region, index: Array, cells: Array, itemsize: int) -> None:
        unwritten = cells == NOBODY
        if unwritten.any():
            lanes = unwritten.reshape(len(index), -1).any(axis=1)
            first = _element(region, index[lanes][0], itemsize)
            self._note(words.unwritten, "M06", region, int(lanes.sum()), first, "loaded")

    def _note_input(self, region: Region, index: Array, itemsize: int) -> None:
        region.storage.stored_into = True
        if region.storage.is_input and index.size:
            first = _element(region, index[0], itemsize)
            self._note(words.modified, "M07", region, index.size, first, "stored")

    def _note_twice(self, region: Region, index: Array, cells: Array, foreign: Array,
                    itemsize: int) -> None:
        running = self.running
        lanes = foreign.reshape(len(index), -1).any(axis=1)
        other = int(cells[foreign][0]) - running.first - 1
        first, second = sorted((other, running.program))
        self._note(words.twice, "M04", region, int(lanes.sum()),
                   _element(region, index[lanes][0], itemsize), "stored",
                   other=f"{words.number(first, running.grid)} and "
                         f"{words.number(second, running.grid)}",
                   axis=words.axes(running.axes, running.grid))

    def _note(self, text: Any, code: str, region: Region | None, lanes: int, index: int,
              action: str, **extra: str) -> None:
        running = self.running
        facts = {"action": action, "tensor": region.name if region else "",
                 "elements": str(region.elements if region else 0), **extra}
        self.observed.note(
            code, line_in(running.file), facts["tensor"], text.__name__, program=running.program,
            place=running.place(), lanes=lanes, index=index, text=text, extra=facts,
        )


def line_in(file: str) -> int | None:
    """The line of the learner's file that is being executed: the innermost frame in it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return frame.f_lineno
        frame = frame.f_back
    return None


def _selection(mask: Array, shape: tuple[int, ...]) -> Any:
    """How to pick the active lanes: everything, or a boolean block."""
    return ... if mask.all() else np.broadcast_to(mask, shape)


def _cells(region: Region, index: Array, itemsize: int) -> Array:
    """Shadow cells of typed elements; one row each where an element spans several."""
    granule = region.storage.granule
    if itemsize == granule:
        return index
    if itemsize < granule:
        return index * itemsize // granule
    ratio: int = itemsize // granule
    return index[:, None] * ratio + np.arange(ratio)


def _element(region: Region, index: Any, itemsize: int) -> int:
    return (int(index) * itemsize - region.start) // region.itemsize
