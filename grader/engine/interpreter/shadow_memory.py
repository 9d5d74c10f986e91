"""A note for each element of a storage: who wrote it last, or who read it last."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from grader.engine.interpreter.index_runs import Runs

# What a cell holds. A positive number is the segment of a program that stored, a negative one below
# KERNEL that of a program whose atomic was the last. They are counted over all launches of a
# recording, so that a new launch needs no reset: segments of earlier launches have smaller numbers.
NOBODY, HOST, KERNEL = 0, -1, -2  # KERNEL: a host copy of what a kernel stored
LEAST_SEGMENT = 16

_FLAT_LIMIT = 1 << 26  # cells; beyond that, only the pages that are used get memory
_PAGE_BITS = 16

Cells = NDArray[np.int32]
Index = NDArray[Any]


class Shadow:
    """One cell for each granule (the smallest element used) of a storage; made when needed."""

    def __init__(self, cells: int, default: int) -> None:
        self.cells = cells
        self.default = default
        self.touched = False
        self.paged = cells > _FLAT_LIMIT
        self._flat: Cells | None = None
        self._pages: dict[int, Cells] = {}

    def get(self, place: Runs) -> Cells:
        """A copy of the cells, [runs, length]."""
        if not self.touched:
            return np.full((len(place.starts), place.length), self.default, np.int32)
        if not self.paged:
            return place.read(self._all())
        index = place.indices()
        values = np.empty(index.shape, np.int32)
        for page, lanes in self._by_page(index):
            cells = self._pages.get(page)
            within = index[lanes] & ((1 << _PAGE_BITS) - 1)
            values[lanes] = self.default if cells is None else cells[within]
        return values

    def set(self, place: Runs, value: Any) -> None:
        """Write one value, one a run, or one a cell."""
        self.touched = True
        if not self.paged:
            place.write(self._all(), value)
            return
        index = place.indices()
        values = np.broadcast_to(value, index.shape)
        for page, lanes in self._by_page(index):
            if page not in self._pages:
                self._pages[page] = np.full(1 << _PAGE_BITS, self.default, np.int32)
            self._pages[page][index[lanes] & ((1 << _PAGE_BITS) - 1)] = values[lanes]

    def fill(self, value: int) -> None:
        """Mark every cell; costs nothing, whatever the size."""
        self.default, self.touched, self._flat, self._pages = value, False, None, {}

    def refined(self, parts: int) -> Self:
        """The same with every cell cut into ``parts``."""
        finer = type(self)(self.cells * parts, self.default)
        if self.touched and not self.paged and not finer.paged:
            finer.touched, finer._flat = True, np.repeat(self._all(), parts)
        elif self.touched:
            raise MemoryError("a tensor this large used with elements of two sizes")
        return finer

    def strided(self, start: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> Cells:
        """The cells of a view, writable; only for storages that are not paged."""
        self.touched = True
        cells = self._all()[start:]
        if 0 in shape:
            return np.empty(shape, np.int32)
        return np.lib.stride_tricks.as_strided(cells, shape, tuple(4 * step for step in stride))

    def _all(self) -> Cells:
        if self._flat is None:
            fresh = np.zeros(self.cells, np.int32)  # untouched pages cost nothing
            if self.default:
                fresh[:] = self.default
            self._flat = fresh
        return self._flat

    @staticmethod
    def _by_page(index: Index) -> list[tuple[int, Any]]:
        pages = index >> _PAGE_BITS
        first = int(pages.flat[0]) if pages.size else 0
        if (pages == first).all():
            return [(first, ...)] if pages.size else []
        return [(int(page), pages == page) for page in np.unique(pages)]
