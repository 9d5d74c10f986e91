"""What the suite of tiling says about sweeps, tiles and predictions."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest

import grader
from grader.diagnosis import codes
from grader.judge.contract import wrong_answer
from grader.recording.host_values import Fields
from grader.report import Finding
from grader.worker.suite_drivers import design, prediction

pytestmark = pytest.mark.course

SUITE = Path(__file__).parents[2] / "grader" / "suites" / "optimization" / "01-tiling"


@pytest.fixture(scope="module")
def suite() -> grader.Suite:
    return grader.load_suite(SUITE / "suite.py")


def said(suite: grader.Suite, name: str, answer: object) -> Finding | None:
    """What a case finds in an answer, put in words."""
    case = next(case for case in suite.cases if case.name == name)
    assert case.call is not None
    found = wrong_answer(case.call, answer, case.inputs)
    return codes.explain(found[0], suite.mutants, {}, frozenset({name})) if found else None


def sweep(*calls: tuple[int, list[float]], counted: int) -> dict[str, object]:
    """The answer of a sweep that made these calls and told the last of each."""
    table = tuple((one, median(ms[-counted:]), 0.4) for one, ms in calls)
    return {"result": Fields("SweepResult", {"best": 64, "table": table}),
            "called": [one for one, ms in calls for _ in ms]}


def test_a_sweep_that_calls_too_often_is_not_told_of_calls_that_it_did_not_make(suite) -> None:
    turns = [(32, [1.0, 1.5] * 3), (64, [1.1, 1.3] * 3)]

    often = said(suite, "calls that alternate", sweep(*turns, counted=5))
    once = said(suite, "calls that alternate",
                sweep(*((one, ms[:5]) for one, ms in turns), counted=5))

    assert often is not None and "it was called 6 times; of 5 calls" in often.seen
    assert once is not None
    assert "without the first call, its times have the median 1.25" in once.seen
    assert (often.todos, once.todos) == ((8,), (8,))


def test_a_tile_that_does_not_ask_for_the_matrix_is_no_matter_of_the_sweep(suite) -> None:
    name = "tiles are powers of two, less than twice the matrix"
    sides = next(case for case in suite.cases if case.name == name).inputs[0]

    found = said(suite, name, [(32, 32)] * len(sides))

    assert found is not None and found.todos == (7,)
    assert "a matrix with 1 row does not need a tile with 32" in found.seen


@pytest.mark.parametrize(("name", "answer", "words"), [
    ("programs", 675, "is 675. 1,000 rows are 16 tiles"),
    ("programs", 768, None),
    ("sweep_calls", 31, "is 31."),
    ("sector_bytes", 4_194_304, "is 4,194,304. Each"),
    ("sector_bytes", 2_400_000.0, None),
    ("column_share", 12.5, "is 12.5. It must be a share, from 0 to 1. Each element"),
    ("column_share", 0.5, "is 0.5. Each element"),
    ("programs", None, "has no number yet"),
    ("programs", "'768'", "is '768', which is not a number."),
])
def test_a_prediction_is_told_in_full_and_counts_are_exact(suite, name, answer, words) -> None:
    found = said(suite, f"your prediction of {name}", answer)

    assert (found is None) == (words is None)
    assert found is None or words in found.seen


@pytest.mark.parametrize(("held", "answer"), [
    ({"n": 768}, 768), ({"n": 0.5}, 0.5), ({"n": None}, None), ({}, None), ({"n": "768"}, "'768'"),
    ({"n": (7, 68)}, "(7, 68)"),
], ids=str)
def test_what_was_written_down_is_read_whatever_it_is(held, answer) -> None:
    assert prediction(SimpleNamespace(PREDICT=held), "n") == answer


@pytest.mark.parametrize(("entries", "answer"), [
    ({"flops": "2 * n", "bytes": "n * e + BLOCK", "grid": "cdiv(n, BLOCK)", "tile": "BLOCK",
      "bound": "memory"}, {"flops": [200.0], "bytes": [464.0], "grid": [2.0], "tile": [64.0],
                           "bound": "memory"}),
    ({"flops": "n / 0", "bytes": "", "grid": 3}, {
        "flops": "cannot be computed: ZeroDivisionError: division by zero",
        "bytes": "is not written yet", "grid": "is 3, which is not a string",
        "tile": "is not written yet", "bound": None}),
    ({"flops": "2 * m", "bytes": "e * lower", "grid": "n", "tile": " "}, {
        "flops": "cannot be computed: name 'm' is not defined; what is known are n, e, constants "
                 "in capitals and a few functions",
        "bytes": "cannot be computed: name 'lower' is not defined; what is known are n, e, "
                 "constants in capitals and a few functions",
        "grid": [100.0], "tile": "is not written yet", "bound": None}),
], ids=["computed", "not yet", "unknown names"])
def test_a_design_is_computed_with_the_constants_of_the_file(entries, answer) -> None:
    module = SimpleNamespace(DESIGN={"f": entries}, BLOCK=64, lower=3)

    assert design(module, "f", [{"n": 100, "e": 4}]) == answer
