"""Addresses in two parts: the same as their sum, whatever is asked of them."""

from __future__ import annotations

import numpy as np
import pytest
import triton.language as tl

from grader.engine.interpreter.block_value import (
    Handle,
    Pointers,
    contiguous_axis,
    run_starts,
    turned,
)

POINTER = tl.pointer_type(tl.float32)
BASES = [np.arange(6).reshape(3, 1, 2)[..., :1] * 4096, np.full((1, 1, 1), 64),
         np.arange(8)[None, None] * 4 + 1000, np.arange(4)[None, :, None] * 32,
         np.arange(96).reshape(3, 4, 8) * 4, np.zeros((3, 4, 8), np.int64)]
STEPS = [np.arange(8, dtype=np.int32)[None, None], np.full((1, 1, 1), 5, np.int32),
         np.arange(8, dtype=np.int32)[None, None] * 2, np.arange(7, -1, -1)[None, None],
         (np.arange(8) + 250).astype(np.uint8)[None, None],
         (np.arange(8) + 124).astype(np.int8)[None, None], np.ones((1, 1, 8), np.bool_),
         np.arange(96, dtype=np.int32).reshape(3, 4, 8), np.arange(4)[None, :, None] * 8]


def parts(base: np.ndarray, steps: np.ndarray, itemsize: int = 4) -> Pointers:
    return Pointers(base.astype(np.int64), steps, itemsize, POINTER, (4, 8))


def whole(pointers: Pointers) -> Handle:
    return Handle(pointers.base + pointers.steps.astype(np.int64) * pointers.itemsize, POINTER,
                  pointers.shape)


@pytest.mark.parametrize("itemsize", [1, 2, 4])
@pytest.mark.parametrize("steps", STEPS, ids=range(len(STEPS)))
@pytest.mark.parametrize("base", BASES, ids=range(len(BASES)))
def test_two_parts_are_their_sum(base, steps, itemsize):
    pointers = parts(base, steps, itemsize)
    same = whole(pointers)

    for accessed in (1, 4):  # an access may be to elements of another size
        starts, expected = run_starts(pointers, accessed), run_starts(same, accessed)
        assert (starts is None) == (expected is None)
        assert starts is None or np.array_equal(
            *np.broadcast_arrays(starts, expected))
        assert contiguous_axis(pointers, accessed) == contiguous_axis(same, accessed)
    assert pointers.lengths == same.lengths
    assert pointers.element((2, 3, 7)) == same.element((2, 3, 7))
    assert np.array_equal(pointers.of_programs([2, 0]), same.of_programs([2, 0]))
    assert np.array_equal(turned(pointers, 0).data, turned(same, 0).data)
    assert np.array_equal(pointers.data, same.data)
    assert np.array_equal(run_starts(same, 4), same.data[..., 0]) or run_starts(same, 4) is None


@pytest.mark.parametrize("more", [
    np.array([3], np.int32), np.array([1, 2, 3]), np.arange(8, dtype=np.uint64)[None, None],
    np.arange(4, dtype=np.int32)[None, :, None], np.arange(96).reshape(3, 4, 8)],
    ids=["scalar", "programs", "columns", "rows", "all"])
@pytest.mark.parametrize("steps", STEPS, ids=range(len(STEPS)))
@pytest.mark.parametrize("base", BASES, ids=range(len(BASES)))
def test_further_steps_join_the_part_that_has_room(base, steps, more):
    pointers = parts(base, steps)
    wide = more if more.ndim == 3 else more.reshape(-1, 1, 1)

    further = pointers.plus(more)

    if further is not None:
        assert further.lengths == pointers.lengths
        assert np.array_equal(further.data, whole(pointers).data + wide.astype(np.int64) * 4)
    else:
        assert any(length > max(1, own) for part in (base, steps)
                   for length, own in zip(wide.shape, part.shape, strict=True))


def test_once_added_parts_are_not_used_again():
    pointers = parts(BASES[0], STEPS[0])
    assert pointers.plus(np.array([1])) is not None

    assert pointers.data is pointers.data
    assert pointers.plus(np.array([1])) is None


def test_runs_are_told_from_wrapped_numbers():
    """In 8 bits, -128 follows 127: differences alone would show a run."""
    assert run_starts(parts(BASES[1], (np.arange(8) + 124).astype(np.int8)[None, None]), 4) is None
    assert run_starts(parts(BASES[1], np.arange(8, dtype=np.int8)[None, None]), 4) is not None
