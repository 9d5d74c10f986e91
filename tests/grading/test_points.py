"""Points of a grade."""

from typing import Any

import pytest

from tritonlab.grading.points import Weights, apportioned, points


def report(verdict: str, *results: tuple[str, str], steps: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"verdict": verdict, "steps": steps, "results": [
        {"kind": kind, "verdict": outcome, "advisory": kind == "advisory"}
        for kind, outcome in results]}


def test_each_kind_gets_the_share_of_its_cases_that_passed():
    graded = report("FAILED", ("correctness", "PASSED"), ("correctness", "FAILED"),
                    ("edge", "FAILED"), ("property", "PASSED"), ("performance", "SKIPPED"),
                    ("performance", "PASSED"))

    result = points(graded)

    assert [(g.kind, g.passed, g.total, g.points) for g in result.groups] == [
        ("correctness", 1, 2, 25), ("edge", 0, 1, 0), ("property", 1, 1, 10),
        ("performance", 1, 1, 20)]
    assert result.total == 55


def test_kinds_that_a_suite_lacks_give_their_weight_to_the_others():
    graded = report("FAILED", ("call", "PASSED"), ("edge", "FAILED"))

    result = points(graded, out_of=7)

    assert [(g.kind, g.points, g.out_of) for g in result.groups] == [
        ("correctness", 5, 5), ("edge", 0, 2)]


def test_a_pass_gets_exactly_all_points():
    graded = report("PASSED", *[("correctness", "PASSED")] * 3, ("edge", "PASSED"))

    result = points(graded, Weights(correctness=1 / 3, edge=1 / 7), out_of=0.3)

    assert result.total == 0.3


@pytest.mark.parametrize(("verdict", "total"), [("PASSED", 100), ("FAILED", 0)])
def test_all_or_nothing_looks_at_the_verdict_only(verdict, total):
    graded = report(verdict, ("correctness", "PASSED"), ("edge", verdict))

    result = points(graded, Weights(all_or_nothing=True))

    assert (result.total, result.groups) == (total, ())


def test_a_file_with_blanks_left_and_a_refused_file_get_nothing():
    with_blanks = report("FAILED", ("correctness", "PASSED"), steps=({"group": "A"},))
    broken = report("ERROR")

    assert points(with_blanks).total == points(broken).total == 0


def test_weights_of_zero_share_the_points_equally():
    graded = report("FAILED", ("edge", "PASSED"), ("property", "FAILED"))

    result = points(graded, Weights(edge=0, property=0))

    assert result.total == 50


@pytest.mark.parametrize("verdict", ["SKIPPED", "INCONCLUSIVE"])
def test_a_case_that_the_machine_cannot_tell_is_not_counted(verdict):
    graded = report("FAILED", ("correctness", "FAILED"), ("performance", verdict))

    assert [group.kind for group in points(graded).groups] == ["correctness"]


@pytest.mark.parametrize(("shares", "total", "parts"), [
    ([1, 1, 1], 10, [4, 3, 3]), ([50, 20, 10, 20], 7, [4, 1, 1, 1]), ([0, 0], 3, [2, 1]),
    ([1], 0, [0])])
def test_points_are_apportioned_by_the_largest_remainder(shares, total, parts):
    assert apportioned(shares, total) == parts
