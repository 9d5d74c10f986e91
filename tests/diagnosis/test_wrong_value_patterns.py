"""Where a difference lies and what it looks like: each pattern is told, each near miss is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from grader.diagnosis import case_details, messages
from grader.diagnosis.wrong_value_patterns import likeness, stand_ins
from grader.diagnosis.wrong_value_regions import (
    MAP_COLUMNS,
    MAP_ROWS,
    Tiling,
    element_map,
    place,
)
from grader.finding import WrongValues, fault
from grader.judge import compare
from grader.suite import EXACT, Suite

FLAT = Tiling((64,), (16, 1, 1))  # 1,000 elements in blocks of 64
EVEN = Tiling((64,), (16, 1, 1))  # 1,024 elements
TILES = Tiling((32, 64), (4, 4, 1))


def mask(shape: tuple[int, ...], *indices: object) -> torch.Tensor:
    wrong = torch.zeros(shape, dtype=torch.bool)
    for index in indices:
        wrong[index] = True
    return wrong


def but(wrong: torch.Tensor, index: object) -> torch.Tensor:
    """The near miss: one element turned over."""
    near = wrong.clone()
    near[index] = ~near[index]
    return near


def triangle(*shape: int, below: bool = False) -> torch.Tensor:
    every = torch.ones(shape, dtype=torch.bool)
    return every.tril(-1) if below else every.triu(1)


S = slice
PLACES = {
    "tail": (mask((1000,), S(997, None)), Tiling(),
             "Only the last 3 of 1,000 elements are wrong.", 500),
    "partial block": (mask((1000,), S(960, None)), FLAT,
                      "Only elements 960 and up, in the partial last block of 64, are wrong.", 500),
    "head": (mask((1000,), S(0, 7)), Tiling(), "Only the first 7 of 1,000 elements are wrong.", 50),
    "middle": (mask((1000,), S(10, 20)), Tiling(), "Only elements 10 to 19 are wrong.", 50),
    "one program": (mask((1024,), S(256, 320)), EVEN,
                    "Exactly program 4's elements, 256 to 319, are wrong.", 500),
    "programs": (mask((1024,), S(256, 384)), EVEN,
                 "Exactly the elements of programs 4 to 5, 256 to 383, are wrong.", 500),
    "all but program 0": (mask((1000,), S(64, None)), FLAT,
                          "All elements except the first 64, which belong to program 0, are wrong.",
                          500),
    "all but program 3": (~mask((1024,), S(192, 256)), EVEN,
                          "All elements except program 3's, 192 to 255, are wrong.", 500),
    "last element": (mask((1000,), 999), Tiling(), "Only the last element is wrong.", 500),
    "all but the first": (mask((1000,), S(1, None)), Tiling(),
                          "All elements except the first are wrong.", 500),
    "every 4th": (mask((1000,), S(2, None, 4)), Tiling(),
                  "Only every 4th element, starting with element 2, is wrong.", 3),
    "every other": (mask((1000,), S(0, None, 2)), Tiling(),
                    "Only every other element, starting with the first, is wrong.", 3),
    "all but every 64th": (~mask((1000,), S(0, None, 64)), Tiling(),
                           "All elements except every 64th one, starting with the first, are "
                           "wrong.", 3),
    "lanes": (torch.arange(1000) % 64 >= 60, FLAT,
              "Only the elements in positions 60 to 63 of every block of 64 are wrong.", 3),
    "column tail": (mask((4, 1000), (S(None), S(997, None))), Tiling(),
                    "Only the last 3 of 1,000 columns are wrong.", (2, 998)),
    "row": (mask((8, 5), 3), Tiling(), "Only row 3 is wrong.", (3, 2)),
    "last row": (mask((8, 5), 7), Tiling(), "Only the last row is wrong.", (7, 2)),
    "rows": (mask((8, 5), 1, 4, 6), Tiling(), "Only rows 1, 4 and 6 are wrong.", (4, 2)),
    "every other row": (mask((8, 5), S(1, None, 2)), Tiling(),
                        "Only every other row, starting with row 1, is wrong.", (3, 2)),
    "every 4th column": (mask((8, 20), (S(None), S(0, None, 4))), Tiling(),
                         "Only every 4th column, starting with the first, is wrong.", (3, 4)),
    "all rows but the first": (mask((8, 5), S(1, None)), Tiling(),
                               "All rows except the first are wrong.", (3, 2)),
    "columns from the partial block": (mask((4, 200), (S(None), S(192, None))),
                                       Tiling((64,), (4, 1, 1)), "Only columns 192 and up, in the "
                                       "partial last block of 64, are wrong.", (2, 195)),
    "tile": (mask((128, 256), (S(32, 64), S(64, 128))), TILES,
             "Exactly one tile of 32 x 64, rows 32 to 63 in columns 64 to 127, is wrong.",
             (40, 70)),
    "block of cells": (mask((9, 9), (S(2, 4), S(5, 7))), Tiling(),
                       "Only rows 2 to 3 in columns 5 to 6 are wrong.", (2, 5)),
    "border": (~mask((8, 9), (S(1, -1), S(1, -1))), Tiling(), "Only the border is wrong.", (0, 4)),
    "last rows and columns": (~mask((8, 9), (S(0, 6), S(0, 8))), Tiling(),
                              "Only the last 2 rows and the last column are wrong.", (2, 2)),
    "diagonal": (torch.eye(6, dtype=torch.bool), Tiling(), "Only the diagonal is wrong.", (2, 2)),
    "all but the diagonal": (~torch.eye(6, dtype=torch.bool), Tiling(),
                             "Everything except the diagonal is wrong.", (2, 3)),
    "upper triangle": (triangle(6, 8), Tiling(),
                       "Only the triangle above the diagonal is wrong.", (2, 5)),
    "lower triangle": (triangle(6, 6, below=True), Tiling(),
                       "Only the triangle below the diagonal is wrong.", (5, 2)),
    "flat block of a matrix": ((torch.arange(1000) >= 960).view(20, 50), FLAT,
                               "Only elements 960 and up, in the partial last block of 64, counted "
                               "in row-major order, are wrong.", (5, 5)),
    "matrix": (mask((4, 3, 5), 2), Tiling(), "Only matrix 2 is wrong.", (2, 1, 1)),
    "triangle of every matrix": (triangle(5, 5).expand(3, 5, 5).clone(), Tiling(),
                                 "Only the triangle above the diagonal of every matrix is wrong.",
                                 (1, 0, 3)),
    "slices": (mask((3, 4, 2, 5), (S(None), 3)), Tiling(),
               "Only the last slice along dimension 1 is wrong.", (0, 3, 0, 0)),
}


def where(wrong: torch.Tensor, tiling: Tiling) -> str:
    region = place(wrong, tiling)
    return messages.region(region) if region else ""


def told(*args: Any) -> str:
    pattern = likeness(*args)
    return messages.pattern(pattern) if pattern else ""


@pytest.mark.parametrize("name", PLACES)
def test_a_place_is_told_and_its_near_miss_is_not(name):
    wrong, tiling, says, flipped = PLACES[name]

    assert where(wrong, tiling) == says
    assert where(but(wrong, flipped), tiling) != says


@pytest.mark.parametrize("wrong", [
    torch.ones(10, dtype=torch.bool), torch.zeros(10, dtype=torch.bool),
    torch.tensor(True), mask((100,), 3, 17, 56, 80, 81), mask((7, 7), (1, 2), (4, 4), (6, 1)),
    mask((100,), 50),
], ids=["all", "none", "a number", "scattered", "scattered in a matrix", "one in the middle"])
def test_no_pattern_says_nothing(wrong):
    assert place(wrong, FLAT) is None


def test_blocks_of_columns_explain_no_rows():
    rows = mask((200, 100), S(128, None))

    assert where(rows, Tiling((128,), (200, 1, 1))) == "Only the last 72 of 200 rows are wrong."
    assert "last block of 128" in where(rows, Tiling((128,), (2, 1, 1)))


def test_programs_are_named_only_where_each_owns_a_block():
    assert "program" not in where(mask((1024,), S(256, 320)), Tiling((64,), (7, 1, 1)))


# ---------------------------------------------------------------------------------------------
# What the wrong values look like


GENERATOR = torch.Generator().manual_seed(7)
VECTOR = torch.randn(1000, generator=GENERATOR, dtype=torch.float64)
MATRIX = torch.randn(40, 25, generator=GENERATOR, dtype=torch.float64)
POSITIVE = VECTOR.abs() + 0.1
SQUARE = torch.randn(30, 30, generator=GENERATOR, dtype=torch.float64)
WHOLE = torch.randint(-1000, 1000, (500,), generator=GENERATOR)
SCALE = torch.linspace(0.5, 0.9, 40, dtype=torch.float64)[:, None]
ROWS = torch.randperm(40, generator=GENERATOR)
Change = Callable[[torch.Tensor], torch.Tensor]

LIKENESSES: dict[str, tuple[torch.Tensor, Change, str]] = {
    "NaN": (VECTOR, lambda r: r * torch.nan, "is NaN."),
    "zero": (VECTOR, torch.zeros_like, "Every element is 0."),
    "factor": (VECTOR, lambda r: 2 * r, "Every element is 2 times the expected value."),
    "half": (VECTOR, lambda r: r / 2, "Every element is half the expected value."),
    "a part": (VECTOR, lambda r: r / 128, "Every element is 1/128 of the expected value."),
    "sign": (VECTOR, lambda r: -r, "Every element has the wrong sign."),
    "offset": (VECTOR, lambda r: r + 0.5, "Every element is 0.5 too large."),
    "whole offset": (WHOLE, lambda r: r - 3, "Every element is 3 too small."),
    "whole factor": (WHOLE, lambda r: 3 * r, "Every element is 3 times the expected value."),
    "shift": (VECTOR, lambda r: r.roll(-3), "Every element holds the value expected 3 places "
                                            "later."),
    "shift back": (VECTOR, lambda r: r.roll(64), "Every element holds the value expected 64 places "
                                                 "earlier."),
    "shift by rows": (MATRIX, lambda r: r.roll(-1, 0),
                      "Every element holds the value expected 1 row later."),
    "shift of whole numbers": (WHOLE, lambda r: r.roll(1),
                               "holds the value expected 1 place earlier."),
    "reverse": (VECTOR, lambda r: r.flip(0), "The elements are in reverse order."),
    "reverse rows": (MATRIX, lambda r: r.flip(1),
                     "The elements of each row are in reverse order."),
    "rows reversed": (MATRIX, lambda r: r.flip(0), "The rows are in reverse order."),
    "transposed": (SQUARE, lambda r: r.mT,
                   "The values are in the order of the transposed result."),
    "transposed memory": (MATRIX, lambda r: r.mT.reshape(40, 25),
                          "The values are in the order of the transposed result."),
    "rows permuted": (MATRIX, lambda r: r[ROWS], "The rows hold the values of other rows: "),
    "factor by row": (MATRIX, lambda r: r * SCALE, "All elements of a row are wrong by the same "
                                                   "factor, between 0.5 and 0.9."),
    "offset by row": (MATRIX, lambda r: r + SCALE, "All elements of a row are wrong by the same "
                                                   "amount, between 0.5 and 0.9."),
    "logarithm": (POSITIVE, torch.log, "Every element is the logarithm of the expected value."),
    "exponential": (VECTOR, torch.exp, "Every element is the exponential of the expected value."),
    "root": (POSITIVE, torch.sqrt, "Every element is the square root of the expected value."),
    "square": (VECTOR, torch.square, "Every element is the square of the expected value."),
    "reciprocal": (POSITIVE, torch.reciprocal,
                   "Every element is the reciprocal of the expected value."),
    "reciprocal square": (POSITIVE, lambda r: r**-2,
                          "Every element is the reciprocal of the square of the expected value."),
    "barely": (VECTOR, lambda r: r.half(),
               "No element is off by more than one part in "),
    "elsewhere": (VECTOR, lambda r: r[torch.randperm(1000, generator=GENERATOR)],
                  "All expected values are present, but in other positions."),
    "nothing": (VECTOR, lambda r: torch.randn(r.shape, generator=GENERATOR), ""),
    "nothing of a matrix": (MATRIX, lambda r: torch.randn(r.shape, generator=GENERATOR), ""),
}


def compared(reference: torch.Tensor, change: Change) -> tuple[torch.Tensor, torch.Tensor]:
    result = change(reference)
    result = result.float() if result.dtype == torch.float64 else result
    close = torch.isclose(result.double(), reference.double(), rtol=1e-6, atol=0.0)
    return ~close, result


@pytest.mark.parametrize("name", LIKENESSES)
def test_a_likeness_is_told_and_its_near_miss_is_not(name):
    reference, change, says = LIKENESSES[name]
    wrong, result = compared(reference, change)

    words = told(wrong, result, reference)
    near = result.clone(memory_format=torch.contiguous_format)
    near.flatten()[334] = 7
    missed = told(wrong, near, reference)

    assert says in words if says else words == "", words
    assert not says or says not in missed, missed


def test_elements_that_are_right_are_not_spoken_of():
    wrong = mask((1000,), S(500, None))

    said = told(wrong, torch.where(wrong, 3 * VECTOR, VECTOR).float(), VECTOR)

    assert said == "Each of these elements is 3 times the expected value."


@pytest.mark.parametrize(("change", "says"), [
    (lambda r: r.clamp(min=0), "Every negative value became 0."),
    (lambda r: r.clamp(min=-0.5), "Every value below -0.5 became -0.5."),
    (lambda r: r.clamp(max=0.25), "Every value above 0.25 became 0.25."),
    (torch.abs, "Every negative value lost its sign."),
    (lambda r: torch.where(r < -0.5, 0.0, r), "Each of these elements is 0."),
    (lambda r: torch.where(r < -0.5, -r, r), "Each of these elements has the wrong sign."),
], ids=["relu", "below", "above", "magnitude", "some set to zero", "some signs"])
def test_a_clamp_is_told_from_elements_set_to_one_number(change, says):
    result = change(VECTOR).float()

    assert told((result - VECTOR).abs() > 1e-3, result, VECTOR) == says


@pytest.mark.parametrize(("change", "says"), [
    (lambda x, y: x, "Every element equals `x`."),
    (lambda x, y: y - x, "Every element equals `y - x`."),
    (lambda x, y: x * y, "Every element equals `x * y`."),
    (lambda x, y: 1.5 * (2 * x + 2 * y), "Every element is 1.5 times the expected value."),
    (lambda x, y: x.atan() + y, "Every element is what a sum of angles gives."),
    (lambda x, y: x + 3 * y, ""),
], ids=["an input", "a difference", "a product", "a factor", "the suite's own", "neither"])
def test_what_the_inputs_or_a_known_wrong_formula_give_is_told(change, says):
    x, y = torch.randn(100), torch.randn(100)
    suite = Suite(entry="both", parameters=("x", "y"), tolerance=EXACT,
                  reference=lambda x, y: 2 * x + 2 * y,
                  wrong_formulas={"what a sum of angles gives": lambda x, y: x.atan() + y})

    (found,) = compare.judge([change(x, y)], [x, y], suite.reference, suite.tolerance)

    region, like = case_details.pattern(found, suite, [x, y], None)
    words = [region and messages.region(region), like and messages.pattern(like)]
    assert " ".join(filter(None, words)) == says


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_rounding_hides_no_likeness(dtype):
    result = (2 * VECTOR).to(dtype)

    assert told(torch.ones_like(VECTOR, dtype=torch.bool), result, VECTOR) == \
        "Every element is 2 times the expected value."


def test_two_inputs_taken_for_one_another_are_told():
    x, y = torch.randn(100), torch.randn(100)
    wrong = torch.ones(100, dtype=torch.bool)
    others = [(name, a.double() - b.double())
              for name, (a, b) in stand_ins("sub", ("x", "y"), [x, y])]

    assert [name for name, _ in others] == [
        "what sub(x, x) gives", "what sub(y, x) gives", "what sub(y, y) gives"]
    assert told(wrong, y - x, x.double() - y.double(), others[1:2]) == \
        "Every element is what sub(y, x) gives."
    assert list(stand_ins("f", ("x", "y"), [x, torch.randn(99)])) == []


def test_of_several_results_the_wrong_one_is_compared_with_its_own_likenesses():
    x, y = torch.randn(100), torch.randn(100)
    suite = Suite(entry="both", parameters=("x", "y"), tolerance=EXACT,
                  reference=lambda x, y: (x + y, x - 2 * y))
    results = [x + y, y - 2 * x]

    (found,) = compare.judge(results, [x, y], suite.reference, suite.tolerance)

    assert found.position == 1
    assert "both(y, x)" in case_details.pattern(found, suite, [x, y], None)[1].value("name")


# -- where no pattern fits -------------------------------------------------------------------------


def test_a_map_draws_right_and_wrong_elements_in_blocks():
    wrong = mask((12, 48), (slice(2, 4), slice(0, 4)), (5, 11))

    rows, scale = element_map(wrong)

    assert scale == (2, 2)
    assert rows == ("." * 24, "xx" + "." * 22, "....." + "+" + "." * 18, *["." * 24] * 3)
    words = messages.text(WrongValues("values", 9, 576, (2, 0), 1.0, 2.0, map=rows, scale=scale))
    assert words.endswith("Each character is 2 x 2 elements: `.` right, `x` wrong, `+` both.")


@pytest.mark.parametrize("shape", [(1000,), (100, 1000), (3, 70, 9)])
def test_a_map_is_small(shape):
    rows, _ = element_map(mask(shape, tuple(0 for _ in shape)))

    assert len(rows) <= MAP_ROWS
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows[0]) <= MAP_COLUMNS


@pytest.mark.parametrize("wrong", [torch.ones(64, dtype=torch.bool), mask((64,)), mask((4,), 0)],
                         ids=["all wrong", "none wrong", "too small"])
def test_a_map_that_tells_nothing_is_not_drawn(wrong):
    assert element_map(wrong) == ((), ())


@pytest.mark.parametrize(("data", "words"), [
    (WrongValues("values", 9, 9, (0,), 1.0, 2.0, likeness=fault("factor", factor=2.0)), "factor"),
    (WrongValues("values", 9, 9, (0,), 1.0, 2.0, likeness=fault("transpose")), "wrong places"),
    (WrongValues("values", 3, 9, (0,), 1.0, 2.0, region=fault("end", unit="element", side="last")),
     "bound"),
    (WrongValues("values", 3, 9, (0,), 1.0, 2.0, map=("x..",), scale=(3,)), "map"),
    (WrongValues("values", 3, 9, (0,), 1.0, 2.0, map=("+++",), scale=(3,)), "condition on values"),
    (WrongValues("values", 9, 9, (0,), 1.0, 2.0), "No element is right"),
    (WrongValues("values", 99, 100, (0,), 1.0, 2.0, map=("x" * 9 + "+",)), "Hardly any element"),
    (WrongValues("values", 90, 100, (0,), 1.0, 2.0, map=("x" * 9 + ".",)), "The map shows"),
])
def test_wrong_values_have_a_meaning_by_what_they_look_like(data, words):
    assert words in messages.of_pattern(data)


def test_a_map_of_mixed_blocks_only_is_not_shown():
    mixed, useful = (messages.text(WrongValues(
        "values", 3, 9, (0,), 1.0, 2.0, map=(rows,), scale=(3,))) for rows in ("+++", "x+."))

    assert "+++" not in mixed
    assert "x+." in useful


def test_a_single_number_has_none():
    assert messages.of_pattern(WrongValues("values", 1, 1, (), 1.0, 2.0)) == ""
