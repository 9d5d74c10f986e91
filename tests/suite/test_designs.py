"""Designs and predictions that learners write down: what is right, and what is said of the rest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from grader.suite.designs import is_designed, product_of
from grader.suite.predictions import is_given
from grader.worker.suite_drivers import design, prediction

RIGHT = {"flops": "2 * M * N", "bytes": "8 * M * N", "bound": "memory", "grid": "cdiv(M * N, TILE)",
         "tile": "TILE"}
SHAPES = [{"M": 64, "N": 100}, {"M": 1, "N": 1000}]
REASONS = {"flops": "Count them.", "bytes": "Load and store.", "bound": "Divide."}
check = is_designed(product_of(1, "M", "N"), product_of(8, "M", "N"),
                    (product_of(2, "M", "N"), product_of(3, "M", "N")), "memory", REASONS)


def answered(**changes: Any) -> dict[str, Any]:
    entries = {key: value for key, value in (RIGHT | changes).items() if value != "nothing"}
    return design(SimpleNamespace(TILE=128, DESIGN={"copy": entries}), "copy", SHAPES)


def test_a_right_design_passes():
    more = answered(flops="3 * M * N", grid="2 * ceil(M * N / TILE)")

    assert [check(answer, "copy", SHAPES) for answer in (answered(), more)] == [None, None]


@pytest.mark.parametrize(("changes", "says"), [
    ({"flops": "nothing"}, r"DESIGN\['copy'\]\['flops'\] is not written yet\."),
    ({"tile": 128}, r"\['tile'\] is 128, which is not a string\."),
    ({"bytes": "8 * K"}, r"cannot be computed: name 'K' is not defined; what is known are M, N,"),
    ({"bytes": "M / 0"}, r"cannot be computed: ZeroDivisionError"),
    ({"bound": "compute"}, r"\['bound'\] is 'compute'\. Divide\."),
    ({"flops": "M * N"}, r"For M = 64, N = 100, .*\['flops'\] is 6,400\. Count them\."),
    ({"bytes": "9 * M * N"}, r"\['bytes'\] is 57,600\. Load and store\."),
    ({"grid": "M"}, r"For M = 1, N = 1,000, .* has 1 programs with tiles of 128: 128 elements of"),
    ({"grid": "M * N"}, r"more than twice the 6,400 existing elements\."),
], ids=str)
def test_a_wrong_design_is_told_what_is_wrong(changes, says):
    with pytest.raises(AssertionError, match=says):
        check(answered(**changes), "copy", SHAPES)


@pytest.mark.parametrize(("value", "says"), [
    (0.5, ""), (0.56, ""), (0.4, r"PREDICT\['share'\] is 0\.4\. Halve it\."),
    (50, r"is 50\. It must be a share, from 0 to 1\. Halve it\."),
    ("half", r"is 'half', which is not a number\."), (None, "has no number yet"),
], ids=str)
def test_a_prediction_may_be_off_by_a_share(value, says):
    answer = prediction(SimpleNamespace(PREDICT={"share": value}), "share")

    if says:
        with pytest.raises(AssertionError, match=says):
            is_given(0.5, "Halve it.", 0.15)(answer, "share")
    else:
        is_given(0.5, "Halve it.", 0.15)(answer, "share")
        assert answer == value
