"""The address space of a launch: where tensors lie, and what an address means.

A tensor argument number k lives at BASE + k * 2**44 + 2**43. So its number is read off any address,
an index that is wrong by up to 2**43 bytes in either direction still names the tensor, and no
address is ever a real one: nothing is dereferenced, whatever a kernel computes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.engine.interpreter.block_value import Array, Handle, run_starts, stretched
from grader.engine.interpreter.index_runs import Runs
from grader.engine.interpreter.shadow_memory import HOST, NOBODY, Shadow

_BASE = 1 << 60
_REGION_BITS = 44
_MIDDLE = 1 << (_REGION_BITS - 1)
_ALIGNMENT_MASK = 0xFFF  # low bits of an address are real, so that alignment looks as on a GPU
_LEAST_REAL, _MOST_REAL = 1 << 16, 1 << 47  # where a process can have memory
_MOST_FINDS = 4096  # tensors and unknown addresses of one access that are looked up
_FEW = 8  # lengths of masked runs that are worth a copy each


@dataclass
class Storage:
    """The bytes of one allocation. ``granule``: bytes of the smallest element it is used with.

    ``is_input``: the host wrote it before the first launch. ``protected``: kernels may not store
    into it (inputs, unless that is asked for).
    """

    data: NDArray[np.uint8]
    granule: int
    is_input: bool
    protected: bool
    address: int | None = None  # the real one, for tables of pointers that host code made
    shadow: Shadow = field(init=False)
    readers: tuple[Shadow, Shadow] = field(init=False)  # of each element, two that differ
    stored_in: int = -1  # the last launch that stored into it

    def __post_init__(self) -> None:
        cells = -(-len(self.data) // self.granule)
        self.shadow = Shadow(cells, HOST if self.is_input else NOBODY)
        self._forget_readers()
        self._typed: dict[np.dtype[Any], Array] = {}

    def typed(self, dtype: np.dtype[Any]) -> Array:
        if dtype not in self._typed:
            whole = len(self.data) // dtype.itemsize * dtype.itemsize
            self._typed[dtype] = self.data[:whole].view(dtype)
        return self._typed[dtype]

    def use_elements_of(self, itemsize: int) -> None:
        """Shadow elements this small from now on."""
        if itemsize < self.granule:
            self.shadow = self.shadow.refined(self.granule // itemsize)
            self.granule = itemsize
            self._forget_readers()

    def _forget_readers(self) -> None:
        cells = self.shadow.cells
        self.readers = (Shadow(cells, NOBODY), Shadow(cells, NOBODY))


@dataclass(frozen=True)
class Region:
    """A tensor argument of the running launch: where it lies, and how far it reaches in bytes."""

    name: str
    storage: Storage
    itemsize: int
    start: int  # bytes from the storage's start to the view's first element
    nbytes: int  # from the view's first element to the end of its last
    base: int  # the address of the first element
    number: int

    @property
    def elements(self) -> int:
        return self.nbytes // self.itemsize

    @property
    def real(self) -> int | None:
        """The address of its first element in this process, where a table may have it."""
        address = self.storage.address
        return None if address is None else address + self.start

    def element(self, index: Any, itemsize: int) -> Any:
        """The region's element at an index into its storage, seen as elements of ``itemsize``."""
        return (index * itemsize - self.start) // self.itemsize


@dataclass
class Part:
    """The elements of one access that lie in one tensor.

    ``place``: where, in the storage as an array of elements of ``itemsize`` bytes. ``lanes`` picks
    them from an array [runs, length] of the whole access, or from all its elements in a row; None
    means all of them. ``rows``: which of the programs each run belongs to, ascending.
    """

    region: Region
    place: Runs
    lanes: Any
    rows: Array
    itemsize: int

    @property
    def size(self) -> int:
        return len(self.place.starts) * self.place.length

    @property
    def cells(self) -> Runs:
        """Returns the shadow cells of these elements."""
        itemsize, granule = self.itemsize, self.region.storage.granule
        if itemsize >= granule:
            return self.place.of_parts(itemsize // granule)
        return Runs((self.place.indices() * itemsize // granule).reshape(-1))

    def each(self, values: Array) -> Array:
        """For every element, the value of the program that it belongs to."""
        return np.repeat(values[self.rows], self.place.length)

    def put(self, values: Array, result: Array) -> None:
        """Writes [runs, length] values of this part into the result of the whole access."""
        if self.lanes is None:
            result.reshape(values.shape)[...] = values
        elif isinstance(self.lanes, tuple):
            runs, length = self.lanes
            result.reshape(-1, length)[runs, :self.place.length] = values
        else:
            result.reshape(-1)[self.lanes] = values[:, 0]

    def pick(self, values: Array) -> Array:
        """The values of this part, [runs, length], from an array of the whole access."""
        if self.lanes is None:
            return values.reshape(-1, self.place.length)
        if isinstance(self.lanes, tuple):
            runs, length = self.lanes
            return values.reshape(-1, length)[runs, :self.place.length]
        picked: Array = values.reshape(-1)[self.lanes]
        return picked[:, None]


# Gives the storage at a real address, and the size of its elements
Finder = Callable[[int], tuple[Storage, int] | None]
# Reports elements that cannot be accessed: why, the tensor, their indices or addresses, rows
Refused = Callable[[Any, Region | None, Array, Array], None]


class Regions:
    """The tensors of one launch."""

    def __init__(self, find: Finder | None = None) -> None:
        self._find = find
        self._by_number: dict[int, Region] = {}

    def add(self, name: str, storage: Storage, itemsize: int, start: int, nbytes: int) -> int:
        """Gives a tensor its place. Returns the address of its first element."""
        number = len(self._by_number) + 1
        base = _BASE + (number << _REGION_BITS) + _MIDDLE + (start & _ALIGNMENT_MASK)
        self._by_number[number] = Region(name, storage, itemsize, start, nbytes, base, number)
        return base

    def __iter__(self) -> Iterator[Region]:
        return iter(self._by_number.values())

    def numbered(self, number: int) -> Region:
        return self._by_number[number]

    def of(self, address: int) -> Region | None:
        return self._by_number.get((address - _BASE) >> _REGION_BITS)

    def parts(self, pointers: Handle, mask: Handle | None, rows: int, itemsize: int,
              refused: Refused) -> list[Part]:
        """Locates active elements in storages; the others go to ``refused``.

        Args:
            rows: along the programs; 1 where all programs do the same.
            itemsize: bytes of a lane.
        """
        if mask is not None:
            if mask.data.all():
                mask = None
            elif not mask.data.any():
                return []
        parts = self._runs(pointers, mask, rows, itemsize)
        return parts if parts is not None else self._elements(
            pointers, mask, rows, itemsize, refused)

    def _runs(self, pointers: Handle, mask: Handle | None, rows: int,
              itemsize: int) -> list[Part] | None:
        """Contiguous runs inside one tensor; None where that is not what is asked for."""
        starts = run_starts(pointers, itemsize)
        if starts is None:
            return None
        *lines, length = (rows, *pointers.shape)
        first = stretched(starts, tuple(lines)).reshape(-1)
        per_row = len(first) // rows
        owners = np.arange(len(first)) // per_row if per_row > 1 else np.arange(rows)
        if mask is None:
            return self._run_parts(first, length, None, owners, itemsize)
        lengths = _prefix_lengths(mask, tuple(lines), length)
        if lengths is None:
            return None
        counts = np.unique(lengths[lengths > 0])
        if len(counts) > _FEW:
            return None
        parts: list[Part] = []
        for count in counts.tolist():
            which = np.flatnonzero(lengths == count)
            group = self._run_parts(first[which], count, (which, length), owners[which], itemsize)
            if group is None:
                return None
            parts += group
        return parts

    def _run_parts(self, starts: Array, length: int, lanes: Any, rows: Array,
                   itemsize: int) -> list[Part] | None:
        region = self.of(int(starts[0]))
        if region is None:
            return None
        low = high = int(starts[0]) - region.base
        if len(starts) > 1:
            low, high = int(starts.min()) - region.base, int(starts.max()) - region.base
        if low < 0 or high + length * itemsize > region.nbytes:
            return None
        place = starts - (region.base - region.start)
        if itemsize > 1:
            if np.bitwise_or.reduce(place) & (itemsize - 1):
                return None
            place = place // itemsize
        return [Part(region, Runs(place, length), lanes, rows, itemsize)]

    def _elements(self, pointers: Handle, mask: Handle | None, rows: int, itemsize: int,
                  refused: Refused) -> list[Part]:
        addresses = pointers.full(rows).reshape(-1)
        per_row = len(addresses) // rows
        if mask is None:
            lanes, owners = None, np.arange(len(addresses)) // per_row
        else:
            lanes = np.flatnonzero(mask.full(rows).reshape(-1))
            addresses, owners = addresses[lanes], lanes // per_row
        region = self.of(int(addresses[0]))
        if region is not None:  # nearly always all lanes are in bounds of one tensor
            offset = addresses - region.base
            if offset.min() >= 0 and offset.max() <= region.nbytes - itemsize:
                place = offset + region.start
                if not np.bitwise_or.reduce(place) & (itemsize - 1):
                    return [Part(region, Runs(place // itemsize), lanes, owners, itemsize)]
        if lanes is None:
            lanes = np.arange(len(addresses))
        return list(self._sorted_out(addresses, lanes, owners, itemsize, refused))

    def _sorted_out(self, addresses: Array, lanes: Array, rows: Array, itemsize: int,
                    refused: Refused) -> Iterator[Part]:
        """Tensor by tensor, without the lanes that lie outside one or askew."""
        addresses = self._translated(addresses)
        numbers = (addresses - _BASE) >> _REGION_BITS
        for number in np.unique(numbers).tolist():
            mine = np.flatnonzero(numbers == number)
            region = self._by_number.get(number)
            if region is None:
                refused("wild", None, addresses[mine], rows[mine])
                continue
            offset = addresses[mine] - region.base
            outside = (offset < 0) | (offset > region.nbytes - itemsize)
            crooked = ~outside & ((offset + region.start) % itemsize != 0)
            index = offset // region.itemsize
            for why, wrong in (("before", outside & (index < 0)), ("past", outside & (index >= 0)),
                               ("misaligned", crooked)):
                if wrong.any():
                    refused(why, region, (offset if why == "misaligned" else index)[wrong],
                            rows[mine][wrong])
            good = ~(outside | crooked)
            if good.any():
                place = (offset[good] + region.start) // itemsize
                yield Part(region, Runs(place), lanes[mine][good], rows[mine][good], itemsize)

    def _translated(self, addresses: Array) -> Array:
        """With real addresses of tensors, which host code put in a table, as addresses here."""
        moved = addresses.copy()
        real = (addresses >= _LEAST_REAL) & (addresses < _MOST_REAL)
        for _ in range(_MOST_FINDS):
            if not real.any():
                break
            address = int(addresses[real][0])
            region = self._at(address)
            if region is None:
                real &= addresses != address
                continue
            offset = addresses - (region.real or 0)
            inside = real & (offset >= 0) & (offset < region.nbytes)
            moved[inside] = region.base + offset[inside]
            real &= ~inside
        return moved

    def _at(self, address: int) -> Region | None:
        """The tensor at a real address."""
        regions = [region for region in self if region.real is not None]
        for region in regions:
            if 0 <= address - (region.real or 0) < region.nbytes:
                return region
        storage, itemsize = (self._find and self._find(address)) or (None, 0)
        if storage is None or any(region.storage is storage for region in regions):
            return None
        return self.of(self.add("a tensor of the table", storage, itemsize, 0, len(storage.data)))


def _prefix_lengths(mask: Handle, lines: tuple[int, ...], length: int) -> Array | None:
    """Counts the active elements of each run if they are its first ones."""
    data = mask.data
    if data.shape[-1] == 1:
        counts = data[..., 0] * length
    else:
        if (data[..., 1:] & ~data[..., :-1]).any():
            return None
        counts = np.count_nonzero(data, axis=-1)
    return stretched(counts, lines).reshape(-1)
