"""Suites reduced to public cases: what stays, and that nothing hidden does."""

from __future__ import annotations

from pathlib import Path

import pytest

import grader
from tests.support.shipped import MODULES
from tritonlab.classroom.pack import public_suite

SUITE = '''
"""Hidden tests: the secret plan."""
from grader.suite import EXACT, Cost, Suite, correctness, edge, rand

SIZES = (3, 5, 7)  # hidden sizes


def reference(x):
    """How it is computed."""
    return x.double()


def lengths():
    names = ["a hidden length"]
    return [edge(name, rand(9)) for name in names]


def both(n):
    return [correctness(f"{n} numbers", rand(n), public=n == 3) for n in SIZES]


others = [correctness(f"hidden {n}", rand(n)) for n in SIZES]
mixed = [correctness("shown in a list", rand(2), public=True), correctness("not shown", rand(8))]
suite = Suite(
    entry="f", parameters=("x",), reference=reference, tolerance=EXACT,
    cost=lambda x: Cost(bytes=x.nbytes),
    wrong_formulas={"what a known mistake gives": lambda x: -x},
    cases=[correctness("4 numbers", rand(4), public=True), *lengths(), *both(1), *others, *mixed,
           *(correctness(f"of {n}", rand(n), public=n > 4) for n in SIZES)],
)


def test_a_hidden_law(submission):
    assert "a hidden assertion"
'''


def reduced(folder: Path, text: str = SUITE) -> public_suite.PublicSuite:
    folder.mkdir()
    (folder / "suite.py").write_text(text)
    (folder / "mutants.toml").write_text("")
    return public_suite.reduce(folder / "suite.py")


def test_hidden_cases_and_all_that_only_they_use_are_gone(tmp_path):
    result = reduced(tmp_path / "one")

    text = result.files["suite.py"].decode()
    assert result.cases == ("4 numbers", "shown in a list")
    assert "hidden" not in text.lower()
    assert "SIZES" not in text and "known mistake" not in text and "secret" not in text
    assert "x.double()" in text


def test_public_cases_that_one_expression_makes_with_hidden_ones_are_named(tmp_path):
    result = reduced(tmp_path / "one")

    assert result.left_out == ("3 numbers", "of 5", "of 7")


def test_a_suite_without_hidden_cases_stays_whole(tmp_path):
    text = ("from grader.suite import EXACT, Suite, correctness, rand\n"
            "suite = Suite(entry='f', parameters=('x',), tolerance=EXACT, reference=abs,\n"
            "              cases=[correctness('one', rand(1), public=True)])\n")

    assert reduced(tmp_path / "one", text).cases == ("one",)


@pytest.mark.course
@pytest.mark.parametrize("module_id", MODULES)
def test_suites_of_the_course_keep_public_cases_and_lose_all_others(module_id):
    module = MODULES[module_id]
    suite = grader.load_suite(module.suite)

    result = public_suite.reduce(module.suite)

    public = {case.name for case in suite.all_cases if case.public}
    assert {*result.cases, *result.left_out} == public
    assert result.cases
    hidden = {case.name.removeprefix(f"{case.function}: ") for case in suite.ordered()
              if not case.public}
    shown = {case.name.removeprefix(f"{case.function}: ") for case in suite.all_cases
             if case.public}
    text = "".join(content.decode() for content in result.files.values())
    assert not [name for name in hidden - shown if f"'{name}'" in text or f'"{name}"' in text]
