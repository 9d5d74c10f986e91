"""Atomic operations on a NumPy array, lane after lane."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.index_runs import in_order

_OPERATIONS: dict[str, Callable[..., Array]] = {
    "ADD": np.add, "FADD": np.add, "MIN": np.minimum, "UMIN": np.minimum, "MAX": np.maximum,
    "UMAX": np.maximum, "AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor,
}
_FEW = 8  # lanes on one element that are taken in turns; more are accumulated in one go


def rmw(operation: str, target: Array, index: Array, values: Array) -> Array:
    """Changes ``target[index]`` lane after lane. Returns what was there before each change."""
    if (operation in ("UMIN", "UMAX") and target.dtype.kind == "i") or (
            operation in ("AND", "OR", "XOR") and target.dtype.kind not in "iub"):
        bits = np.dtype(f"u{target.dtype.itemsize}")
        return rmw(operation, target.view(bits), index, values.view(bits)).view(target.dtype)
    apply = _OPERATIONS.get(operation)
    if apply is None and operation != "XCHG":
        raise NotImplementedError(f"an atomic {operation}")
    old = np.empty(index.shape, target.dtype)
    for lanes in _rounds(index, _heavy(apply, target, index, values, old)):
        at = index[lanes]
        old[lanes] = target[at]
        target[at] = values[lanes] if apply is None else apply(old[lanes], values[lanes])
    return old


def _heavy(apply: Any, target: Array, index: Array, values: Array, old: Array) -> Any:
    """Changes the places that many lanes change. Returns the lanes that are left."""
    if len(index) <= _FEW or target.dtype.kind not in "biuf":
        return None
    order, starts, counts = _by_place(index)
    many = counts > _FEW
    for start, count in zip(starts[many].tolist(), counts[many].tolist(), strict=True):
        lanes = order[start:start + count]
        at = index[lanes[0]]
        chain = np.concatenate((target[at:at + 1], values[lanes]))
        if apply is not None:
            chain = apply.accumulate(chain, dtype=target.dtype)
        old[lanes], target[at] = chain[:-1], chain[-1]
    return order[np.repeat(~many, counts)] if many.any() else None


def cas(target: Array, index: Array, compares: Array, values: Array) -> Array:
    """Stores values where the elements equal ``compares``. Returns the elements before."""
    old = np.empty(index.shape, target.dtype)
    for lanes in _rounds(index):
        at = index[lanes]
        old[lanes] = target[at]
        target[at] = np.where(old[lanes] == compares[lanes], values[lanes], old[lanes])
    return old


def _by_place(index: Array) -> tuple[Array, Array, Array]:
    """The lanes ordered by their place; for each place, its first lane and how many it has."""
    order = in_order(index)
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    return order, starts, np.diff(np.r_[starts, len(index)])


def _rounds(index: Array, chosen: Array | None = None) -> Iterator[Any]:
    """Lanes in groups that touch each place once; the k-th lane on a place is in group k.

    ``chosen``: these lanes only.
    """
    if chosen is not None:
        yield from (chosen[lanes] for lanes in _rounds(index[chosen]))
    elif index.size == 1:
        yield slice(None)
    elif index.size:
        order, starts, counts = _by_place(index)
        if starts.size == index.size:
            yield slice(None)
            return
        rank = np.arange(index.size) - np.repeat(starts, counts)
        by_rank = order[np.argsort(rank, kind="stable")]
        yield from np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])
