"""Indices of an access in a flat array: contiguous runs, or single elements.

Most accesses are runs: a row of a tile is contiguous. A run is copied whole, and its bounds and
sectors follow from its two ends, so an access costs per run and not per element.
"""

from typing import Any, Self

import numpy as np
from numpy.lib.stride_tricks import as_strided

from grader.engine.interpreter.block_value import Array


class Runs:
    """``len(starts)`` runs of ``length`` contiguous elements; ``starts`` counts elements."""

    __slots__ = ("length", "starts", "step")

    def __init__(self, starts: Array, length: int = 1) -> None:
        self.starts, self.length = starts, length
        # elements from each run to the next where that is always the same; 0 where it is not
        self.step = 0
        if length == 1:
            return
        if len(starts) > 1:
            step = int(starts[1]) - int(starts[0])
            if step >= length and (len(starts) == 2 or (np.diff(starts) == step).all()):
                self.step = step
        else:
            self.step = length

    def view(self, flat: Array) -> Array | None:
        """[runs, length] of ``flat`` itself, where its strides can tell it."""
        count, length = len(self.starts), self.length
        if not self.step or not count:
            return None
        first = int(self.starts[0])
        if self.step == length:
            return flat[first:first + count * length].reshape(count, length)
        return _strided(flat[first:], count, length, self.step)

    def read(self, flat: Array) -> Array:
        """A copy, [runs, length]."""
        if self.length == 1:
            return flat.take(self.starts)[:, None]
        view = self.view(flat)
        return self._windows(flat)[self.starts] if view is None else view.copy()

    def write(self, flat: Array, values: Any) -> None:
        if self.length == 1:
            flat[self.starts] = np.broadcast_to(values, (len(self.starts), 1))[:, 0]
        elif (view := self.view(flat)) is not None:
            view[...] = values
        else:
            self._windows(flat)[self.starts] = values

    def _windows(self, flat: Array) -> Array:
        return _strided(flat, max(0, len(flat) - self.length + 1), self.length, 1)

    def distinct(self) -> bool:
        """Whether no element is in two runs."""
        if self.step or (np.diff(self.starts) >= self.length).all():
            return True
        return bool((np.diff(np.sort(self.starts)) >= self.length).all())

    def of_parts(self, ratio: int) -> Self:
        """The same in an array with ``ratio`` entries for each element."""
        return self if ratio == 1 else type(self)(self.starts * ratio, self.length * ratio)

    def indices(self) -> Array:
        """[runs, length]: the index of every element."""
        first: Array = self.starts[:, None]
        return first if self.length == 1 else first + np.arange(self.length)


def _strided(flat: Array, count: int, length: int, step: int) -> Array:
    """[count, length] of ``flat`` itself, the rows ``step`` elements apart."""
    bits = flat.view(f"u{flat.itemsize}")  # NumPy cannot describe every type of ml_dtypes
    rows = as_strided(bits, (count, length), (step * flat.itemsize, flat.itemsize))
    return np.asarray(rows.view(flat.dtype))


def in_order(numbers: Array) -> Array:
    """The indices that sort non-negative integers, equal ones in the order in which they stand.

    Sorting the numbers themselves is much faster than sorting indices to them.
    """
    count = len(numbers)
    if not count or int(numbers.max()) > (1 << 62) // count:
        return np.argsort(numbers, kind="stable")
    keys: Array = numbers * count + np.arange(count)
    keys.sort()
    return keys % count
