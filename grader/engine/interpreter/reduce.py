"""``tl.reduce`` and ``tl.associative_scan`` with any combine function, a whole block at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from grader.engine.interpreter.numerics import numpy_dtype

Blocks = tuple[Any, ...]  # of tl.tensor, all of one shape


def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any) -> Any:
    """Triton's ``reduce``: neighbours are combined, then pairs, then pairs of pairs."""
    axis, keep_dims = _plain(axis), _plain(keep_dims)
    blocks = input if isinstance(input, tuple) else (input,)
    rank = len(_shape(blocks[0]))
    if axis is not None:
        _check_axis(axis, _shape(blocks[0]))
        axis = axis % rank
    quick = _quick_reduction(combine_fn, blocks)
    if quick is not None:
        every = tuple(range(rank)) if axis is None else axis
        data = quick(blocks[0].handle.data, every)
        reduced: Blocks = (_tensor(data, blocks[0].dtype),)
        shapes = tuple(np.shape(data))
    else:
        reduced, shapes = _tree(blocks, axis, combine_fn)
    if keep_dims:
        shape = (1,) * rank if axis is None else (*shapes[:axis], 1, *shapes[axis:])
        reduced = tuple(_tensor(block.handle.data.reshape(shape), block.dtype) for block in reduced)
    return reduced if isinstance(input, tuple) else reduced[0]


def _quick_reduction(combine_fn: Any, blocks: Blocks) -> Callable[[Any, Any], Any] | None:
    standard = tl.standard
    if len(blocks) != 1:
        return None
    kind = blocks[0].handle.data.dtype
    if combine_fn is standard._sum_combine and (kind.kind in "iu" or kind.itemsize >= 4):
        return lambda data, axis: np.add.reduce(data, axis=axis, dtype=data.dtype)
    if combine_fn is standard._elementwise_max:
        return lambda data, axis: np.fmax.reduce(data, axis=axis)
    if combine_fn is standard._elementwise_min:
        return lambda data, axis: np.fmin.reduce(data, axis=axis)
    return None  # 16-bit sums too: NumPy would carry them in float32, a GPU rounds every step


def _tree(blocks: Blocks, axis: int | None, combine_fn: Any) -> tuple[Blocks, tuple[int, ...]]:
    arrays = [block.handle.data for block in blocks]
    if axis is None:
        arrays, axis = [array.reshape(-1) for array in arrays], 0
    types = [block.dtype for block in blocks]
    while arrays[0].shape[axis] > 1:
        left = _tensors([_every_second(array, axis, 0) for array in arrays], types)
        right = _tensors([_every_second(array, axis, 1) for array in arrays], types)
        shape = _every_second(arrays[0], axis, 0).shape
        combined = _combine(combine_fn, left, right)
        arrays = [
            np.broadcast_to(block.handle.data, shape).astype(numpy_dtype(t))
            for block, t in zip(combined, types, strict=True)
        ]
    final = [np.squeeze(array, axis=axis) for array in arrays]
    return _tensors(final, types), tuple(final[0].shape)


def scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:
    """Triton's ``associative_scan``, by doubling."""
    axis, reverse = _plain(axis), _plain(reverse)
    blocks = input if isinstance(input, tuple) else (input,)
    _check_axis(axis, _shape(blocks[0]))
    axis = axis % len(_shape(blocks[0]))
    types = [block.dtype for block in blocks]
    arrays = [block.handle.data for block in blocks]
    if reverse:
        arrays = [np.flip(array, axis) for array in arrays]
    length = arrays[0].shape[axis]
    place = np.arange(length).reshape([-1 if d == axis else 1 for d in range(arrays[0].ndim)])
    distance = 1
    while distance < length:
        before = _tensors([np.roll(array, distance, axis) for array in arrays], types)
        combined = _combine(combine_fn, before, _tensors(arrays, types))
        arrays = [
            np.where(place >= distance, block.handle.data, a).astype(a.dtype)
            for block, a in zip(combined, arrays, strict=True)
        ]
        distance *= 2
    if reverse:
        arrays = [np.flip(array, axis) for array in arrays]
    result = _tensors([np.ascontiguousarray(array) for array in arrays], types)
    return result if isinstance(input, tuple) else result[0]


def _combine(combine_fn: Any, left: Blocks, right: Blocks) -> Blocks:
    result = combine_fn(*left, *right)
    made = tuple(result) if isinstance(result, (tuple, tl.tuple)) else (result,)
    return tuple(interpreter.interpreter_semantic.to_tensor(item) for item in made)


def _every_second(array: Any, axis: int, start: int) -> Any:
    index: list[Any] = [slice(None)] * array.ndim
    index[axis] = slice(start, None, 2)
    return array[tuple(index)]


def _tensors(arrays: list[Any], types: list[Any]) -> Blocks:
    return tuple(_tensor(array, kind) for array, kind in zip(arrays, types, strict=True))


def _tensor(data: Any, dtype: Any) -> Any:
    """A tl.tensor; a scalar is held in an array of one element, as in Triton's interpreter."""
    shape = np.shape(data)
    array = np.asarray(data, numpy_dtype(dtype))
    if not shape:
        return tl.tensor(interpreter.TensorHandle(array.reshape(1), dtype.scalar), dtype.scalar)
    kind = tl.block_type(dtype.scalar, list(shape))
    return tl.tensor(interpreter.TensorHandle(array, dtype.scalar), kind)


def _shape(block: Any) -> tuple[int, ...]:
    if not isinstance(block, tl.tensor) or not block.type.is_block():
        raise TypeError("a reduction or scan needs a block, not a scalar")
    return tuple(block.type.shape)


def _check_axis(axis: Any, shape: tuple[int, ...]) -> None:
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"reduction axis must be < inputs rank ({len(shape)}), but it is {axis}")


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value
