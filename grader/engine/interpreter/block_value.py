"""A block or scalar of all programs that run at once."""

from collections.abc import Sequence
from math import prod
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

    @property
    def lengths(self) -> Shape:
        """The length of the data along each axis."""
        return self.data.shape

    def element(self, place: Shape) -> int:
        """One element of whole numbers; a place on an axis of length 1 counts as 0."""
        return int(self.data[_within(place, self.data)])

    @property
    def first(self) -> int:
        """The first element of whole numbers."""
        return self.element((0,) * len(self.lengths))

    def of_programs(self, programs: Sequence[int]) -> Array:
        """The data of some programs."""
        return _of_programs(self.data, programs)

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


class Pointers(Handle):
    """Addresses as a base and steps; ``data``, their sum, is computed on first use.

    Each part has length 1 along the axes where only the other one varies, while the sum takes
    8 bytes for each element that it points to. Most accesses need the parts alone.
    """

    __slots__ = ("_sum", "base", "itemsize", "steps")

    def __init__(self, base: Array, steps: Array, itemsize: int, dtype: Any, shape: Shape) -> None:
        self.base, self.steps, self.itemsize = base, steps, itemsize  # with as many axes each
        self.dtype = dtype
        self.shape = shape
        self._sum: Array | None = None

    @property
    def data(self) -> Array:  # type: ignore[override]
        if self._sum is None:
            self._sum = self.base + self._far(self.steps)
        return self._sum

    @property
    def lengths(self) -> Shape:
        return tuple(map(max, self.base.shape, self.steps.shape))

    def element(self, place: Shape) -> int:
        step = int(self.steps[_within(place, self.steps)])
        return int(self.base[_within(place, self.base)]) + step * self.itemsize

    def of_programs(self, programs: Sequence[int]) -> Array:
        return _of_programs(self.base, programs) + self._far(_of_programs(self.steps, programs))

    def plus(self, further: Array) -> "Pointers | None":
        """Adds steps to the part that they broadcast to; None if there is none, or a sum."""
        if self._sum is not None:
            return None
        base, steps = self.base, self.steps
        if further.ndim < base.ndim:  # a scalar
            further = further.reshape(len(further), *(1,) * (base.ndim - 1))
        if _covers(base, further):
            base = base + self._far(further)
        elif _covers(steps, further):
            steps = steps.astype(np.int64) + further.astype(np.int64)
        else:
            return None
        return Pointers(base, steps, self.itemsize, self.dtype, self.shape)

    def row_starts(self) -> Array:
        """The first address along the last axis."""
        return self.base[..., 0] + self._far(self.steps[..., 0])

    def turned(self, axis: int) -> "Pointers":
        """With one axis of the block last."""
        shape = [*self.shape]
        shape.append(shape.pop(axis))
        return Pointers(np.moveaxis(self.base, axis + 1, -1), np.moveaxis(self.steps, axis + 1, -1),
                        self.itemsize, self.dtype, tuple(shape))

    def _far(self, steps: Array) -> Array:
        far = steps.astype(np.int64, copy=False)
        return far if self.itemsize == 1 else far * self.itemsize


def _within(place: Shape, data: Array) -> Shape:
    return tuple(min(at, length - 1) for at, length in zip(place, data.shape, strict=True))


def _of_programs(data: Array, programs: Sequence[int]) -> Array:
    chosen: Array = data[[program if len(data) > 1 else 0 for program in programs]]
    return chosen


def _covers(data: Array, other: Array) -> bool:
    """Whether ``other`` broadcasts to the shape of ``data``."""
    return all(length in (1, own) for length, own in zip(other.shape, data.shape, strict=True))


def run_starts(pointers: Handle, itemsize: int) -> Array | None:
    """The first addresses along the last axis, if those along it are contiguous; else None."""
    length = pointers.shape[-1] if pointers.shape else 1
    if length == 1 or pointers.lengths[-1] != length:
        return None
    if isinstance(pointers, Pointers) and pointers.steps.dtype != np.bool_:
        if pointers.base.shape[-1] == 1 and pointers.itemsize == itemsize:
            return pointers.row_starts() if _follow(pointers.steps, 1) else None
        if pointers.steps.shape[-1] == 1:
            return pointers.row_starts() if _follow(pointers.base, itemsize) else None
    data = pointers.data
    return data[..., 0] if _follow(data, itemsize) else None


def _follow(data: Array, step: int) -> bool:
    """Whether each number along the last axis is ``step`` more than the one before it."""
    length = data.shape[-1]
    first, last = data[..., 0].astype(np.int64), data[..., -1].astype(np.int64)
    # differences of short integers may wrap around, and then these two do not fit
    return bool((last - first == (length - 1) * step).all()) and (
        length == 2 or bool((data[..., 1:] - data[..., :-1] == step).all()))


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
    rank, lengths = len(pointers.shape), pointers.lengths
    if rank < 2 or prod(lengths) < 4:
        return None
    steps = [pointers.element((0, *(int(a == axis) for a in range(rank)))) - pointers.first
             for axis in range(rank)]
    if steps[-1] == itemsize:
        return None
    return steps.index(itemsize) if itemsize in steps else None


def turned(handle: Any, axis: int) -> Any:
    """With one axis of the block last; scalars and None stay."""
    if handle is None or not handle.shape:
        return handle
    if isinstance(handle, Pointers):
        return handle.turned(axis)
    shape = [*handle.shape]
    shape.append(shape.pop(axis))
    return Handle(np.moveaxis(handle.data, axis + 1, -1), handle.dtype, tuple(shape))
