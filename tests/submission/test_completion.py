"""Completion of an exercise: code of the solution in the place of blanks, on the same lines."""

from __future__ import annotations

import ast

import pytest

from grader.submission.completion import NotCompletable, blanks_of, complete
from tests.support.steps import BLANKS, MODULES, texts

EXERCISE = '''\
from __future__ import annotations

# TODO 1: which lines make torch, triton and tl known?


# TODO 2: what makes this a kernel?
def scale_kernel(x_ptr, n, wide, BLOCK: tl.constexpr):
    """x *= 2."""
    offs = ...  # TODO 3: which elements?
    for step in ...:  # TODO 4: how many steps?
        x = ...  # TODO 5: what do they contain?
    ...  # TODO 6: where does it go?


def scale(x):
    block = ...  # TODO 7: how large?
    scale_kernel[...](x, block)  # TODO 8: which grid?
    return x
'''
SOLUTION = '''\
from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, n, wide, BLOCK: tl.constexpr):
    """x *= 2."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    for step in range(wide):
        x = tl.load(
            x_ptr + offs,
            mask=offs < n,
        )
    tl.store(x_ptr + offs, 2 * x, mask=offs < n)


def scale(x):
    if x.numel() > 9:
        block = 64
    elif x.numel() > 5:
        block = 32
    else:
        block = 16
    scale_kernel[(1,)](x, block)
    return x
'''
COMPLETED = '''\
from __future__ import annotations

import torch; import triton; import triton.language as tl  # TODO 1: which lines make torch, \
triton and tl known?


@triton.jit  # TODO 2: what makes this a kernel?
def scale_kernel(x_ptr, n, wide, BLOCK: tl.constexpr):
    """x *= 2."""
    pid = tl.program_id(0); offs = pid * BLOCK + tl.arange(0, BLOCK)  # TODO 3: which elements?
    for step in range(wide):  # TODO 4: how many steps?
        x = tl.load(x_ptr + offs, mask=offs < n)  # TODO 5: what do they contain?
    tl.store(x_ptr + offs, 2 * x, mask=offs < n)  # TODO 6: where does it go?


def scale(x):
    block = 64 if x.numel() > 9 else 32 if x.numel() > 5 else 16  # TODO 7: how large?
    scale_kernel[1,](x, block)  # TODO 8: which grid?
    return x
'''


def test_every_blank_becomes_one_line_of_the_solution():
    completed = complete(EXERCISE, EXERCISE, SOLUTION)

    assert completed.text == COMPLETED
    assert {*completed.lines} == {3, 6, 9, 10, 11, 12, 16, 17}
    assert sorted(blank.number for blank in completed.left) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_what_the_learner_filled_in_stays_and_lines_keep_their_numbers():
    mine = EXERCISE.replace("offs = ...", "own = 1\n    offs = tl.arange(\n        0, BLOCK)")

    completed = complete(mine, EXERCISE, SOLUTION)

    assert completed.text.split("\n")[8:11] == mine.split("\n")[8:11]
    assert completed.text.count("\n") == mine.count("\n")
    assert 3 not in {blank.number for blank in completed.left}


def test_of_a_completed_file_only_the_places_that_are_kept_stay_the_learners():
    mine = SOLUTION.replace("2 * x", "3 * x").replace("range(wide)", "range(9)").replace(
        "pid * BLOCK", "pid")

    kept = complete(mine, EXERCISE, SOLUTION, keep=(4,)).text

    assert "range(9)" in kept
    assert "2 * x" in kept
    assert "pid * BLOCK + tl" in kept


@pytest.mark.parametrize(("mine", "why"), [
    (EXERCISE.replace("x = ...  # TODO 5: what do they contain?", "y = ..."), "not a blank of"),
    (EXERCISE.replace("offs = ...", "mine = tl.arange(0, BLOCK)"), "`offs` is a name"),
    (EXERCISE.replace("block = ...", "block = 1, ..."), "not a blank of"),
    (EXERCISE.replace("x = ...", "x = ...; y = ..."), "share a line"),
    (EXERCISE + "def broken(:\n", "cannot be parsed"),
], ids=["another statement", "another name", "another expression", "one line", "no Python"])
def test_a_file_that_is_not_the_exercise_with_blanks_filled_in_is_not_completed(mine, why):
    with pytest.raises(NotCompletable, match=why):
        complete(mine, EXERCISE, SOLUTION)


@pytest.mark.parametrize(("exercise", "solution", "why"), [
    (EXERCISE.replace("return x", "return 1"), SOLUTION, "`scale` of the solution is not that"),
    (EXERCISE, SOLUTION.replace("def scale(", "def other("), "defines no `scale`"),
    (EXERCISE, SOLUTION.replace("block = 16", "block = 16\n        block = 8"), "several lines"),
    (EXERCISE.replace("  # TODO 7: how large?", ""), SOLUTION, "no TODO comment"),
], ids=["a given line differs", "a function is missing", "a block", "no number"])
def test_a_solution_must_be_the_exercise_with_blanks_filled_in(exercise, solution, why):
    with pytest.raises(NotCompletable, match=why):
        blanks_of(exercise, solution)


def test_a_body_that_is_left_raises_and_takes_no_code_of_the_solution():
    exercise = 'def f(x):\n    """Doc."""\n    ...\n\n\nclass A:\n    def g(self):\n        ...\n'

    completed = complete(exercise, exercise, "")

    assert completed.text == exercise.replace("...", "raise NotImplementedError")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.slug)
def test_every_exercise_of_the_course_can_be_completed(module):
    exercise, solution = texts(module)

    completed = complete(exercise, exercise, solution)

    assert ast.parse(completed.text)
    assert len(completed.lines) == len(completed.left) == len(blanks_of(exercise, solution))


@pytest.mark.parametrize("module", BLANKS, ids=lambda module: module.slug)
def test_all_that_a_learner_filled_in_can_be_taken_from_the_solution_again(module):
    exercise, solution = texts(module)

    completed = complete(solution, exercise, solution, keep=())

    assert len(completed.lines) >= len(blanks_of(exercise, solution))
