"""Tensor descriptors and block pointers: a base, a shape and strides that give a block's place."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import triton.language as tl

from grader.engine.interpreter.block_value import Array, Handle, Pointers, constant
from grader.engine.interpreter.errors import KernelError
from grader.engine.interpreter.numerics import numpy_dtype

_ALIGNMENT = 16  # bytes, of a descriptor's base and strides: what the TMA unit takes


@dataclass
class _Tensor:
    base: Handle
    shape: list[Handle]
    strides: list[Handle]
    block_shape: list[int]

    @property
    def _itemsize(self) -> int:
        return numpy_dtype(self.base.get_element_ty()).itemsize

    def _steps(self, offsets: Sequence[Handle]) -> list[Array]:
        """The indices of a block that starts at ``offsets``, along each axis of the tensor."""
        rank = len(self.block_shape)
        return [_along(offset.data[:, None] + np.arange(length), axis, rank)
                for axis, (offset, length) in enumerate(
                    zip(offsets, self.block_shape, strict=True))]

    def _pointers(self, steps: Sequence[Array],
                  checked: Sequence[int]) -> tuple[Handle, Handle | None]:
        """Pointers to a block, and which of them lie inside the shape along the checked axes.

        The latter is None if all of them do.
        """
        rank, itemsize = len(steps), self._itemsize
        start, inside = _along(self.base.data[:, None], 0, rank), None
        for axis, (step, size, stride) in enumerate(
                zip(steps, self.shape, self.strides, strict=True)):
            far = step.astype(np.int64) * _along(stride.data[:, None].astype(np.int64), 0, rank)
            if axis < rank - 1:
                start = start + far * itemsize
            if axis in checked:
                within = (step >= 0) & (step < _along(size.data[:, None], 0, rank))
                if not within.all():
                    inside = within if inside is None else inside & within
        block = tuple(step.shape[axis + 1] for axis, step in enumerate(steps))
        return (Pointers(start, far, itemsize, self.base.dtype, block),
                None if inside is None else Handle(inside, tl.int1, block))


@dataclass
class BlockDescriptor(_Tensor):
    """The result of ``tl.make_tensor_descriptor``; loads outside the shape return zero or NaN.

    Raises:
        KernelError: base or strides are not aligned as the hardware asks.
    """

    pad_nan: bool = False
    rounds_to_tf32: bool = False

    def __post_init__(self) -> None:
        if (self.base.data % _ALIGNMENT).any():
            raise KernelError("a tensor descriptor's base must be a multiple of 16 bytes")
        for axis, stride in enumerate(self.strides[:-1]):
            if (stride.data * self._itemsize % _ALIGNMENT).any():
                raise KernelError(
                    f"a tensor descriptor's stride along axis {axis} is "
                    f"{int(stride.data[0])} elements of {self._itemsize} bytes; it must be a "
                    "multiple of 16 bytes")
        if (self.strides[-1].data != 1).any():
            raise KernelError("a tensor descriptor's last stride must be 1")

    def padding(self) -> Handle:
        return constant(np.nan if self.pad_nan else 0, self.base.get_element_ty())

    def place(self, offsets: Sequence[Handle]) -> tuple[Handle, Handle | None]:
        """Pointers to a block that starts at ``offsets``, and which of them are inside."""
        return self._pointers(self._steps(offsets), range(len(self.block_shape)))

    def rows(self, x_offsets: Handle, y_offset: Handle) -> tuple[Handle, Handle | None]:
        """Pointers to whole rows, each with a number of its own."""
        columns = y_offset.data[:, None] + np.arange(self.block_shape[-1])
        return self._pointers([_along(x_offsets.full(), 0, 2), _along(columns, 1, 2)], (0, 1))


@dataclass
class BlockPointer(_Tensor):
    """The result of ``tl.make_block_ptr``, up to Triton 3.7."""

    offsets: list[Handle]

    def advanced(self, offsets: Sequence[Handle]) -> Self:
        return replace(self, offsets=[Handle(old.data + new.data, old.dtype)
                                      for old, new in zip(self.offsets, offsets, strict=True)])

    def place(self, checked: Sequence[int]) -> tuple[Handle, Handle | None]:
        """Pointers to the block; the axes that are checked limit it to the shape."""
        return self._pointers(self._steps(self.offsets), checked)


def _along(data: Array, axis: int, rank: int) -> Array:
    """[programs, n] with its n along one axis of a block of ``rank`` axes."""
    shape = [len(data), *(1,) * rank]
    shape[axis + 1] = data.shape[1]
    return data.reshape(shape)
