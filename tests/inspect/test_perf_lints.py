"""Planted performance defects are found by name, and good kernels are let be."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.engine.compiler.targets import find
from tests.fidelity.performance.analysing import Analysis, analyse
from tests.fidelity.performance.case import Case
from tests.fidelity.performance.every import CASES

pytestmark = pytest.mark.course

H200 = find("h200")
# All bad ones and every second good one; `python -m tests.fidelity.performance` has them all.
QUICK = tuple(case for number, case in enumerate(CASES) if not case.good or number % 2)
_known: dict[str, Analysis] = {}


def analysed(case: Case) -> Analysis:
    if case.name not in _known:
        _known[case.name] = analyse(case, H200)
    return _known[case.name]


@pytest.mark.parametrize("case", QUICK, ids=lambda case: f"{case.family}: {case.name}")
def test_a_case_has_the_defects_that_were_planted_and_no_other(case: Case):
    made = analysed(case)

    assert made.why == ""
    assert made.names == case.finds, [defect.seen for defect in made.defects]


def test_the_set_is_large_and_has_both_kinds():
    names = [case.name for case in CASES]

    assert len(set(names)) == len(names)
    assert sum(case.good for case in CASES) >= 30
    assert sum(not case.good for case in CASES) >= 30


def test_every_defect_says_what_was_seen_in_numbers_and_what_to_try():
    made = [defect for case in QUICK if not case.good
            for defect in analysed(case).defects]

    assert len({defect.name for defect in made}) >= 15
    for defect in made:
        assert defect.seen and defect.advice.endswith("."), defect
        assert any(digit.isdigit() for digit in defect.seen) or defect.code == "T06", defect


@pytest.mark.parametrize(("name", "texts"), [
    ("vector add of every second element", ["x_ptr + 2 * offs", "y_ptr + 2 * offs"]),
    ("softmax across rows", ["x_ptr + offs * stride", "out_ptr + offs * stride"]),
    ("gather of random elements", ["x_ptr + at"]),
    ("sum, one atomic for each element", ["tl.atomic_add(out_ptr + 0 * offs"]),
])
def test_a_defect_names_the_line_on_which_it_stands(name: str, texts: list[str]):
    case = next(case for case in CASES if case.name == name)
    lines = Path(case.body.__code__.co_filename).read_text(encoding="utf-8").splitlines()

    found = sorted({defect.line for defect in analysed(case).defects if defect.line is not None})

    assert len(found) == len(texts)
    for line, text in zip(found, texts, strict=True):
        assert text in lines[line - 1]
