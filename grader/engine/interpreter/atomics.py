"""Atomic operations on a NumPy array, lane after lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.index_runs import in_order

_OPERATIONS: dict[str, Callable[..., Array]] = {
    "ADD": np.add,
    "FADD": np.add,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "UMIN": np.minimum,
    "UMAX": np.maximum,
    "AND": np.bitwise_and,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}
_FEW = 8  # lanes on one element that are taken in turns; more are accumulated in one go


def rmw(operation: str, target: Array, index: Array, values: Array) -> Array:
    """Change ``target[index]`` lane after lane and give back what was there before each change."""
    if operation in ("UMIN", "UMAX") and target.dtype.kind == "i":
        unsigned = np.dtype(f"u{target.dtype.itemsize}")
        old = rmw(operation, target.view(unsigned), index, values.view(unsigned))
        return old.view(target.dtype)
    if operation in ("AND", "OR", "XOR") and target.dtype.kind not in "iub":
        bits = np.dtype(f"u{target.dtype.itemsize}")
        old = rmw(operation, target.view(bits), index, values.view(bits))
        return old.view(target.dtype)
    old = np.empty(index.shape, target.dtype)
    apply = _OPERATIONS.get(operation)
    if apply is None and operation not in ("XCHG", "INC", "DEC"):
        raise NotImplementedError(f"an atomic {operation}")
    rest: Any = slice(None)
    if len(index) > _FEW:
        rest = _heavy(operation, apply, target, index, values, old)
    for lanes in _rounds(index[rest]):
        these = lanes if isinstance(rest, slice) else rest[lanes]
        at = index[these]
        old[these] = target[at]
        target[at] = values[these] if apply is None else apply(old[these], values[these])
    return old


def _heavy(operation: str, apply: Any, target: Array, index: Array, values: Array,
           old: Array) -> Any:
    """Do the elements that many lanes change; the lanes that are left."""
    order = in_order(index)
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    counts = np.diff(np.r_[starts, len(index)])
    many = counts > _FEW
    if not many.any() or target.dtype.kind not in "biuf":
        return slice(None)
    for start, count in zip(starts[many].tolist(), counts[many].tolist(), strict=True):
        lanes = order[start:start + count]
        at = ordered[start]
        chain = np.concatenate((target[at:at + 1], values[lanes]))
        if apply is not None:
            chain = apply.accumulate(chain, dtype=target.dtype)
        old[lanes], target[at] = chain[:-1], chain[-1]
    return order[np.repeat(~many, counts)]


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
        if index.size:
            yield slice(None)
        return
    order = in_order(index)
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    if starts.size == index.size:
        yield slice(None)
        return
    rank = np.arange(index.size) - np.repeat(starts, np.diff(np.r_[starts, index.size]))
    by_rank = order[np.argsort(rank, kind="stable")]
    yield from np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])
