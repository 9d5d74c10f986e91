"""``tl.reduce`` and ``tl.associative_scan`` with any combine function, a whole block at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from grader.engine.interpreter.block_value import Array, Handle, Shape
from grader.engine.interpreter.numerics import numpy_dtype

Blocks = tuple[Any, ...]  # of tl.tensor, all of one shape


def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any) -> Any:
    """Triton's ``reduce``: neighbours are combined, then pairs, then pairs of pairs."""
    axis, keep_dims = _plain(axis), _plain(keep_dims)
    blocks = input if isinstance(input, tuple) else (input,)
    shape = _shape(blocks[0])
    interpreter.interpreter_semantic.builder.exchange()
    left: Shape = ()
    if axis is None:
        handles = [_flat(block.handle) for block in blocks]
        along = 0
    else:
        _check_axis(axis, shape)
        handles = [block.handle for block in blocks]
        along = axis % len(shape)
        left = (*shape[:along], *shape[along + 1:])
    types = [block.dtype for block in blocks]
    quick = _quick(_REDUCTIONS, combine_fn, handles)
    if quick is not None:
        arrays = [quick(handles[0].along(along), along + 1)]
    else:
        arrays = _tree(handles, along, combine_fn, types)
    if keep_dims:
        kept = (1,) * len(shape) if axis is None else (*shape[:along], 1, *shape[along + 1:])
        arrays = [array.reshape(len(array), *kept) if axis is None
                  else np.expand_dims(array, along + 1) for array in arrays]
        left = kept
    reduced = tuple(_tensor(array, kind, left) for array, kind in zip(arrays, types, strict=True))
    return reduced if isinstance(input, tuple) else reduced[0]


def _tree(handles: list[Handle], axis: int, combine_fn: Any, types: list[Any]) -> list[Array]:
    arrays = [handle.along(axis) for handle in handles]
    shape = list(handles[0].shape)
    while shape[axis] > 1:
        shape[axis] //= 2
        left = _tensors([_every_second(array, axis, 0) for array in arrays], types, shape)
        right = _tensors([_every_second(array, axis, 1) for array in arrays], types, shape)
        combined = _combine(combine_fn, left, right)
        arrays = [
            _with_shape(block, shape).along(axis).astype(numpy_dtype(kind), copy=False)
            for block, kind in zip(combined, types, strict=True)
        ]
    return [np.squeeze(array, axis=axis + 1) for array in arrays]


def scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:
    """Triton's ``associative_scan``, by doubling."""
    axis, reverse = _plain(axis), _plain(reverse)
    blocks = input if isinstance(input, tuple) else (input,)
    shape = _shape(blocks[0])
    interpreter.interpreter_semantic.builder.exchange()
    _check_axis(axis, shape)
    axis = axis % len(shape)
    types = [block.dtype for block in blocks]
    handles = [block.handle for block in blocks]
    arrays = [handle.along(axis) for handle in handles]
    if reverse:
        arrays = [np.flip(array, axis + 1) for array in arrays]
    quick = _quick(_SCANS, combine_fn, handles)
    if quick is not None:
        arrays = [quick(arrays[0], axis + 1)]
    else:
        arrays = _doubling(arrays, axis, combine_fn, types, shape)
    if reverse:
        arrays = [np.flip(array, axis + 1) for array in arrays]
    result = tuple(_tensor(array, kind, shape) for array, kind in zip(arrays, types, strict=True))
    return result if isinstance(input, tuple) else result[0]


def _doubling(arrays: list[Array], axis: int, combine_fn: Any, types: list[Any],
              shape: Shape) -> list[Array]:
    """Combine each element with the one ``distance`` before it, for distances 1, 2, 4 …"""
    length = shape[axis]
    place = np.arange(length).reshape([-1 if d == axis + 1 else 1 for d in range(arrays[0].ndim)])
    distance = 1
    while distance < length:
        before = _tensors([np.roll(array, distance, axis + 1) for array in arrays], types, shape)
        combined = _combine(combine_fn, before, _tensors(arrays, types, shape))
        arrays = [
            np.where(place >= distance, _with_shape(block, shape).data, array).astype(
                array.dtype, copy=False)
            for block, array in zip(combined, arrays, strict=True)
        ]
        distance *= 2
    return arrays


# ---------------------------------------------------------------------------------------------
# What NumPy does by itself


def _sum(data: Array, axis: int) -> Array:
    result: Array = np.add.reduce(data, axis=axis, dtype=data.dtype)
    return result


def _running_sum(data: Array, axis: int) -> Array:
    result: Array = np.add.accumulate(data, axis=axis, dtype=data.dtype)
    return result


def _running_product(data: Array, axis: int) -> Array:
    result: Array = np.multiply.accumulate(data, axis=axis, dtype=data.dtype)
    return result


_REDUCTIONS: dict[str, Callable[[Array, int], Array]] = {
    "_sum_combine": _sum,
    "_elementwise_max": lambda data, axis: np.fmax.reduce(data, axis=axis),
    "_elementwise_min": lambda data, axis: np.fmin.reduce(data, axis=axis),
}
_SCANS: dict[str, Callable[[Array, int], Array]] = {
    "_sum_combine": _running_sum,
    "_prod_combine": _running_product,
}


def _quick(known: dict[str, Callable[[Array, int], Array]], combine_fn: Any,
           handles: list[Handle]) -> Callable[[Array, int], Array] | None:
    """Sums of 16 bits are not among them: NumPy would carry them in float32, and a GPU rounds
    every step."""
    dtype = handles[0].data.dtype
    if len(handles) != 1 or not (dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize >= 4)):
        return None
    name = getattr(combine_fn, "__name__", "")
    return known.get(name) if combine_fn is getattr(tl.standard, name, None) else None


# ---------------------------------------------------------------------------------------------


def _combine(combine_fn: Any, left: Blocks, right: Blocks) -> Blocks:
    result = combine_fn(*left, *right)
    made = tuple(result) if isinstance(result, (tuple, tl.tuple)) else (result,)
    return tuple(interpreter.interpreter_semantic.to_tensor(item) for item in made)


def _with_shape(block: Any, shape: Any) -> Handle:
    """A combined block; a scalar constant stands for a block of it."""
    handle: Handle = block.handle
    if handle.shape == tuple(shape):
        return handle
    data = handle.data.reshape(len(handle.data), *(1,) * len(shape))
    return Handle(data, handle.dtype, tuple(shape))


def _every_second(array: Array, axis: int, start: int) -> Array:
    return _cut(array, axis, start, None, 2)


def _cut(array: Array, axis: int, start: int | None, stop: int | None, step: int = 1) -> Array:
    index: list[Any] = [slice(None)] * array.ndim
    index[axis + 1] = slice(start, stop, step)
    return np.asarray(array[tuple(index)])


def _flat(handle: Handle) -> Handle:
    data = handle.full().reshape(len(handle.data), -1)
    return Handle(data, handle.dtype, data.shape[1:])


def _tensors(arrays: list[Array], types: list[Any], shape: Any) -> Blocks:
    return tuple(_tensor(array, kind, tuple(shape))
                 for array, kind in zip(arrays, types, strict=True))


def _tensor(data: Array, dtype: Any, shape: Shape) -> Any:
    scalar = dtype.scalar
    handle = Handle(data, scalar, shape)
    return tl.tensor(handle, tl.block_type(scalar, list(shape)) if shape else scalar)


def _shape(block: Any) -> Shape:
    if not isinstance(block, tl.tensor) or not block.type.is_block():
        raise TypeError("a reduction or scan needs a block, not a scalar")
    return tuple(int(n) for n in block.type.shape)


def _check_axis(axis: Any, shape: Shape) -> None:
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"reduction axis must be < inputs rank ({len(shape)}), but it is {axis}")


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value
