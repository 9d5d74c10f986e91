"""``tl.multiple_of``, ``tl.max_contiguous`` and ``tl.max_constancy``, checked on the values.

Triton's axis analysis takes such a promise over its own result. It then loads and stores a group of
``max_contiguous`` elements from the address of the first one, in pieces as wide as ``multiple_of``
lets them be, under the mask of the first one. A false promise gives other elements or a misaligned
access.

One kind of false promise passes: a tile that sticks out of a tensor and was brought back into it,
by ``offs % M``, ``tl.where(offs < M, offs, 0)`` or ``tl.minimum(offs, M - 1)``. Triton's tutorials
promise ``max_contiguous(multiple_of(offs % M, BLOCK), BLOCK)`` there. The elements before the end
of the tensor are as promised, and those behind it are computed for nothing and never stored.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.core import _unwrap_if_constexpr as plain
from triton.runtime import interpreter

from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.errors import KernelError


def multiple_of(input: Any, values: Any) -> Any:
    """``tl.multiple_of``: the first element of every contiguous group is a multiple.

    Raises:
        KernelError: it is not, in some program.
        ValueError: there is not one value for each axis.
    """
    return _checked(input, values, "tl.multiple_of", max(1, len(_shape(input))), _not_divisible,
                    lambda lines, step, width: _rises(lines, step) & (lines[:, 0] % width == 0))


def max_contiguous(input: Any, values: Any) -> Any:
    """``tl.max_contiguous``: groups along an axis count up by one. Raises as ``multiple_of``."""
    return _checked(input, values, "tl.max_contiguous", len(_shape(input)), _uneven,
                    lambda lines, step, _: _rises(lines, step))


def max_constancy(input: Any, values: Any) -> Any:
    """``tl.max_constancy``: groups along an axis are equal. Raises as ``multiple_of``."""
    return _checked(input, values, "tl.max_constancy", len(_shape(input)),
                    lambda block, axis, _, width: _uneven(block, axis, 0, width),
                    lambda lines, *_: _rises(lines, 0))


def _shape(block: Any) -> Sequence[int]:
    return block.handle.shape if isinstance(block, tl.tensor) else ()


def _checked(block: Any, values: Any, name: str, axes: int,
             broken: Callable[[Array, int, int, int], str],
             kept: Callable[[Array, int, int], Array]) -> Any:
    """The block, once each program keeps its promise.

    Args:
        broken: of one program, the first violation along an axis.
        kept: of blocks with one axis, [programs, length], which are plainly as promised.
    """
    if not isinstance(block, tl.tensor):
        return block  # a constexpr, which the compiler sees
    listed = values if isinstance(values, list | tuple | tl.tuple) else [values]
    numbers = [plain(value) for value in listed]
    if len(numbers) != axes:
        raise ValueError(f"{name} takes one value for each of {axes} axes, and got {len(numbers)}")
    memory = interpreter.interpreter_semantic.builder.memory
    handle = block.handle
    kind = handle.dtype
    if not memory.computes or not (kind.is_int() or kind.is_ptr()):
        return block
    step = max(1, handle.get_element_ty().primitive_bitwidth // 8) if kind.is_ptr() else 1
    data = handle.full()
    if data.dtype.kind != "u":
        data = data.astype(np.int64, copy=False)
    programs = memory.attempt.programs
    doubtful = np.ones(len(data), np.bool_)
    if len(numbers) == 1 and numbers[0] > 1:
        doubtful = ~kept(data.reshape(len(data), -1), step, numbers[0])
    for row in np.flatnonzero(doubtful):
        line = data[row] if handle.shape else data[row].reshape(1)
        for axis, number in enumerate(numbers):
            if number > 1 and (violation := broken(line, axis, step, number)):
                program = int(programs.min() if len(data) == 1 else programs[row])
                raise KernelError(f"the hint {name} is wrong in "
                                  f"{memory.running.place(program)}: {violation}")
    return block


def _rises(lines: Array, step: int) -> Array:
    """Which lines rise by ``step`` from each element to the next."""
    rising: Array = (lines[:, 1:] - lines[:, :-1] == step).all(axis=1)
    return rising


def _not_divisible(values: Array, axis: int, step: int, width: int) -> str:
    """Names the first start of a contiguous run that is not a multiple of ``width``."""
    starts = np.ones(values.shape, np.bool_)
    for along in range(values.ndim):
        lines = np.moveaxis(values, along, -1)
        rises = lines[..., 1:] - lines[..., :-1]
        first = np.ones(lines.shape, np.bool_)
        first[..., 1:] = rises != step
        # Equal elements up to the end of an axis are those that were brought back.
        tail = np.logical_and.accumulate((rises == 0)[..., ::-1], axis=-1)[..., ::-1]
        first[..., 1:] &= ~tail
        starts &= np.moveaxis(first, -1, along)
    wrong = values[starts & (values % width != 0)]
    return f"{wrong[0]} is not a multiple of {width}" if wrong.size else ""


def _uneven(values: Array, axis: int, step: int, width: int) -> str:
    """Names the first element of a group that does not follow by ``step`` on the one before it."""
    lines = np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])
    rises, grouped = lines[:, 1:] - lines[:, :-1], np.arange(1, lines.shape[1]) % width != 0
    wrong = (rises != step) & grouped
    for row in np.flatnonzero(wrong.any(axis=1)):
        line = lines[row]
        if not (step and _brought_back(line, rises[row], step)):
            at = int(wrong[row].argmax())
            return f"element {at + 1} along axis {axis} is {line[at + 1]} after {line[at]}"
    return ""


def _brought_back(line: Array, rises: Array, step: int) -> bool:
    """Whether elements count up to the end of a tensor and go on, as often as it takes, from one
    place before it, or stay there."""
    at = np.flatnonzero(rises != step)
    back = line[at + 1]
    if (rises[at[0] + 1:] == 0).all() and back[0] <= line[at[0]]:
        return True
    return bool((rises[at] < 0).all() and (back == back[0]).all())
