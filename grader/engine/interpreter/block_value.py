"""A block or scalar of all programs that run at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.engine.interpreter.numerics import numpy_dtype

Array = NDArray[Any]
Shape = tuple[int, ...]


class Handle:
    """The value of a ``tl.tensor``: data of all programs, and the element type.

    ``shape`` is what the kernel sees: () for a scalar. ``data`` has one axis more, the programs,
    and along every axis either the full length or 1, where all values are the same: a constant is
    one number, whatever the block and however many programs.
    """

    __slots__ = ("data", "dtype", "shape")

    def __init__(self, data: Array, dtype: Any, shape: Shape = ()) -> None:
        self.data = data
        self.dtype = dtype  # a scalar or pointer type of Triton's
        self.shape = shape

    def get_element_ty(self) -> Any:
        """The element type of a pointer; the type itself otherwise."""
        dtype = self.dtype
        while hasattr(dtype, "element_ty"):
            dtype = dtype.element_ty
        return dtype

    def full(self, programs: int | None = None) -> Array:
        """The data along all axes of the block; along the programs too if their number is given."""
        count = len(self.data) if programs is None else programs
        return stretched(self.data, (count, *self.shape))

    def along(self, axis: int) -> Array:
        """The data with full length along one axis of the block."""
        data, length = self.data, self.shape[axis]
        if data.shape[axis + 1] == length:
            return data
        return np.broadcast_to(data, (*data.shape[:axis + 1], length, *data.shape[axis + 2:]))


def constant(value: Any, dtype: Any) -> Handle:
    """A scalar that all programs have, of a type or of the elements of a block's type."""
    scalar = dtype.scalar
    return Handle(np.array([value]).astype(numpy_dtype(scalar)), scalar)


def stretched(data: Array, shape: Shape) -> Array:
    """The same values along all axes of a shape."""
    return data if data.shape == shape else np.broadcast_to(data, shape)


def aligned(*handles: Handle) -> list[Array]:
    """The data of scalars and blocks with as many axes each, so that NumPy can combine them."""
    rank = max(handle.data.ndim for handle in handles)
    return [
        handle.data if handle.data.ndim == rank
        else handle.data.reshape(len(handle.data), *(1,) * (rank - 1))
        for handle in handles
    ]


def spread(handle: Handle, programs: int, shape: Shape) -> Array:
    """The values of a scalar or block for every program and every lane of a shape."""
    data = handle.data
    if data.ndim != len(shape) + 1:
        data = data.reshape(len(data), *(1,) * len(shape))
    return stretched(data, (programs, *shape))


def contiguous_axis(pointers: Handle, itemsize: int) -> int | None:
    """The axis of a block along which addresses follow each other, if it is not the last one."""
    rank, data = len(pointers.shape), pointers.data
    if rank < 2 or data.size < 4:
        return None
    first = data.item(0)
    steps = [int(data[(0, *(int(a == axis) for a in range(rank)))]) - first
             if data.shape[axis + 1] > 1 else 0 for axis in range(rank)]
    if steps[-1] == itemsize:
        return None
    return steps.index(itemsize) if itemsize in steps else None


def turned(handle: Any, axis: int) -> Any:
    """With one axis of the block last; scalars and None stay."""
    if handle is None or not handle.shape:
        return handle
    shape = [*handle.shape]
    shape.append(shape.pop(axis))
    return Handle(np.moveaxis(handle.data, axis + 1, -1), handle.dtype, tuple(shape))
