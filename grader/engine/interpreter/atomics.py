"""Atomic operations on a NumPy array, lane after lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "ADD": np.add,
    "FADD": np.add,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "AND": np.bitwise_and,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
    "XCHG": lambda old, new: new,
}


def rmw(operation: str, target: Array, index: Array, values: Array) -> Array:
    """Change ``target[index]`` lane after lane and give back what was there before each change."""
    if operation in ("UMIN", "UMAX"):
        unsigned = np.dtype(f"u{target.dtype.itemsize}")
        old = rmw(operation[1:], target.view(unsigned), index, values.view(unsigned))
        return old.view(target.dtype)
    apply = _OPERATIONS[operation]
    old = np.empty(index.shape, target.dtype)
    for lanes in _rounds(index):
        at = index[lanes]
        old[lanes] = target[at]
        target[at] = apply(old[lanes], values[lanes])
    return old


def cas(target: Array, index: Array, compares: Array, values: Array) -> Array:
    """Store the value where the element equals what it is compared with; the elements before."""
    old = np.empty(index.shape, target.dtype)
    for lanes in _rounds(index):
        at = index[lanes]
        old[lanes] = target[at]
        target[at] = np.where(old[lanes] == compares[lanes], values[lanes], old[lanes])
    return old


def _rounds(index: Array) -> Iterator[Any]:
    """Lanes in groups that touch each element once; the k-th lane on an element is in group k."""
    if index.size <= 1:
        yield slice(None)
        return
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    if starts.size == index.size:
        yield slice(None)
        return
    rank = np.arange(index.size) - np.repeat(starts, np.diff(np.r_[starts, index.size]))
    by_rank = order[np.argsort(rank, kind="stable")]
    yield from np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])
