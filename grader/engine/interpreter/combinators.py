"""``tl.reduce``, ``tl.associative_scan`` and ``tl.map_elementwise``: operations with a function."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.core import _unwrap_if_constexpr as plain
from triton.runtime import interpreter

from grader.engine.interpreter.block_value import Array, Handle, Shape
from grader.engine.interpreter.errors import NotInterpreted
from grader.engine.interpreter.numerics import numpy_dtype
from grader.engine.interpreter.transaction import Diverged

Blocks = tuple[Any, ...]  # of tl.tensor, all of one shape


def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any) -> Any:
    """Triton's ``reduce``: neighbors are combined, then pairs, then pairs of pairs."""
    axis = plain(axis)
    handles, types, along = _operands(input, 0 if axis is None else axis)
    rank = len(handles[0].shape)
    if axis is None:
        handles = [Handle(handle.full().reshape(len(handle.data), -1), handle.dtype,
                          (int(np.prod(handle.shape)),)) for handle in handles]
    quick = _quick(_REDUCTIONS, combine_fn, handles)
    if quick is not None:
        arrays = [quick(handles[0].along(along), axis=along + 1)]
    else:
        arrays = _tree(handles, along, combine_fn, types)
    left = (*handles[0].shape[:along], *handles[0].shape[along + 1:])
    if plain(keep_dims):
        axes = tuple(range(rank)) if axis is None else (along,)
        arrays = [np.expand_dims(array, tuple(n + 1 for n in axes)) for array in arrays]
        left = (1,) * rank if axis is None else (*left[:along], 1, *left[along:])
    return _like(input, _tensors(arrays, types, left))


def _tree(handles: list[Handle], axis: int, combine_fn: Any, types: list[Any]) -> list[Array]:
    arrays = [handle.along(axis) for handle in handles]
    shape = list(handles[0].shape)
    while shape[axis] > 1:
        shape[axis] //= 2
        left, right = (
            _tensors([array[(slice(None),) * (axis + 1) + (slice(start, None, 2),)]
                      for array in arrays], types, shape) for start in (0, 1))
        arrays = [
            _with_shape(block, shape).along(axis).astype(numpy_dtype(kind), copy=False)
            for block, kind in zip(_items(combine_fn(*left, *right)), types, strict=True)
        ]
    return [np.squeeze(array, axis=axis + 1) for array in arrays]


def scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:
    """Triton's ``associative_scan``, by doubling."""
    handles, types, axis = _operands(input, plain(axis))
    shape = handles[0].shape
    arrays = [handle.along(axis) for handle in handles]
    if plain(reverse):
        arrays = [np.flip(array, axis + 1) for array in arrays]
    quick = _quick(_SCANS, combine_fn, handles)
    if quick is not None:
        arrays = [quick(arrays[0], axis=axis + 1)]
    else:
        arrays = _doubling(arrays, axis, combine_fn, types, shape)
    if plain(reverse):
        arrays = [np.flip(array, axis + 1) for array in arrays]
    return _like(input, _tensors(arrays, types, shape))


def _doubling(arrays: list[Array], axis: int, combine_fn: Any, types: list[Any],
              shape: Shape) -> list[Array]:
    """Combine each element with the one ``distance`` before it, for distances 1, 2, 4 …"""
    length = shape[axis]
    place = np.arange(length).reshape([-1 if d == axis + 1 else 1 for d in range(arrays[0].ndim)])
    distance = 1
    while distance < length:
        before = _tensors([np.roll(array, distance, axis + 1) for array in arrays], types, shape)
        combined = _items(combine_fn(*before, *_tensors(arrays, types, shape)))
        arrays = [
            np.where(place >= distance, _with_shape(block, shape).data, array).astype(
                array.dtype, copy=False)
            for block, array in zip(combined, arrays, strict=True)
        ]
        distance *= 2
    return arrays


def map_elementwise(scalar_fn: Any, *args: Any, pack: Any = 1, **_: Any) -> Any:
    """Triton's ``map_elementwise``: each element is to the function what a program is elsewhere."""
    if int(plain(pack)) != 1:
        raise NotInterpreted("tl.map_elementwise with a pack of several elements")
    blocks = args[:1]
    for block in args[1:]:
        pairs = [interpreter.interpreter_semantic.broadcast_impl_value(earlier, block)
                 for earlier in blocks]
        blocks = (*(earlier for earlier, _ in pairs), pairs[0][1])
    shape, kinds = blocks[0].handle.shape, [block.dtype for block in blocks]
    programs = max(len(block.handle.data) for block in blocks)
    elements = [block.handle.full(programs).reshape(-1) for block in blocks]
    groups, outputs = [np.arange(len(elements[0]))], []
    while groups:
        group = groups.pop()
        try:
            output = scalar_fn(*_tensors([data[group] for data in elements], kinds, ()))
        except Diverged as apart:
            groups += [group[apart.labels == label] for label in np.unique(apart.labels)[::-1]]
        else:
            outputs.append((group, output, _items(output)))
    tensors = []
    for parts in zip(*(output[2] for output in outputs), strict=True):
        data = np.empty(len(elements[0]), parts[0].handle.data.dtype)
        for output, part in zip(outputs, parts, strict=True):
            data[output[0]] = part.handle.data
        tensors.append(_tensor(data.reshape(programs, *shape), parts[0].dtype, shape))
    return _like(outputs[0][1], tuple(tensors))


# -- what NumPy does by itself ------------------------------------------------------------------


def _in_its_type(function: Callable[..., Array]) -> Callable[..., Array]:
    """Sums and products of small integers wrap round; NumPy would widen them."""
    return lambda data, axis: function(data, axis=axis, dtype=data.dtype)


_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "_sum_combine": _in_its_type(np.add.reduce),
    "_elementwise_max": np.fmax.reduce,
    "_elementwise_min": np.fmin.reduce,
}
_SCANS: dict[str, Callable[..., Array]] = {
    "_sum_combine": _in_its_type(np.add.accumulate),
    "_prod_combine": _in_its_type(np.multiply.accumulate),
}


def _quick(functions: dict[str, Callable[..., Array]], combine_fn: Any,
           handles: list[Handle]) -> Callable[..., Array] | None:
    """Sums of 16 bits are not among them: NumPy would carry them in float32, and a GPU rounds
    every step."""
    dtype = handles[0].data.dtype
    if len(handles) != 1 or not (dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize >= 4)):
        return None
    name = getattr(combine_fn, "__name__", "")
    return functions.get(name) if combine_fn is getattr(tl.standard, name, None) else None


def _operands(input: Any, axis: Any) -> tuple[list[Handle], list[Any], int]:
    """Values and types of the blocks, and the axis counted from 0.

    Raises:
        TypeError: there is no block.
        ValueError: the blocks have no such axis.
    """
    blocks = input if isinstance(input, tuple) else (input,)
    if not isinstance(blocks[0], tl.tensor) or not blocks[0].type.is_block():
        raise TypeError("a reduction or scan needs a block, not a scalar")
    interpreter.interpreter_semantic.builder.exchange()
    rank = len(blocks[0].handle.shape)
    if not -rank <= axis < rank:
        raise ValueError(f"reduction axis must be < inputs rank ({rank}), but it is {axis}")
    return [block.handle for block in blocks], [block.dtype for block in blocks], axis % rank


def _items(result: Any) -> Blocks:
    """Returns the results of a function as tensors."""
    items = result if isinstance(result, tuple | tl.tuple) else (result,)
    return tuple(map(interpreter.interpreter_semantic.to_tensor, items))


def _like(given: Any, tensors: Blocks) -> Any:
    return tensors if isinstance(given, tuple | tl.tuple) else tensors[0]


def _with_shape(block: Any, shape: Any) -> Handle:
    """A combined block; a scalar constant stands for a block of it."""
    handle: Handle = block.handle
    if handle.shape == tuple(shape):
        return handle
    data = handle.data.reshape(len(handle.data), *(1,) * len(shape))
    return Handle(data, handle.dtype, tuple(shape))


def _tensors(arrays: Iterable[Array], types: list[Any], shape: Any) -> Blocks:
    return tuple(map(partial(_tensor, shape=tuple(shape)), arrays, types))


def _tensor(data: Array, dtype: Any, shape: Shape) -> Any:
    scalar = dtype.scalar
    handle = Handle(data, scalar, shape)
    return tl.tensor(handle, tl.block_type(scalar, list(shape)) if shape else scalar)
