"""Every code has a name and an example, and the wrong code of an example earns its code."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from textwrap import indent

import pytest

import grader
from grader.diagnosis import examples
from grader.diagnosis.codes import MEANINGS
from grader.finding import NAMES
from tests.support import authored
from tests.support.tiers import by_default

TEXTS = tomllib.loads(Path(examples.__file__).with_suffix(".toml").read_text())
SLOW = {"R02"}  # its grade lasts until the limit of time
GRADED = ["P01", "P02", "P03", "P04", "L01", "L03", "L05", "X01", "R01", "R03", "M01", "M02", "M03",
          "M04", "M07", "S01", "E01", "E02", "E03", "N01", "T01", "T03"]


@pytest.fixture(scope="module")
def doubling(tmp_path_factory):
    return authored.make(tmp_path_factory.mktemp("course")).edit(
        "suites/suite.py", "sectors=1.00, launches=1)", "sectors=1.00, launches=1, programs=256)")


def test_every_code_has_a_name_of_its_own_a_meaning_and_an_example():
    assert NAMES.keys() == MEANINGS.keys() == TEXTS.keys()
    assert len(set(NAMES.values())) == len(NAMES)
    for one in examples.examples().values():
        assert one.means and one.wrong and one.right and one.wrong != one.right


@pytest.mark.parametrize("code", sorted(TEXTS.keys() - GRADED))
def test_examples_that_are_not_graded_are_python(code):
    one = examples.examples()[code]

    for text in (one.wrong, one.right):
        assert ast.parse(f"def function():\n{indent(text, '    ')}")


def test_all_examples_that_fit_the_new_module_are_graded(doubling):
    solution = doubling.file("solutions/kernel.py").read_text()

    fitting = {code for code, one in TEXTS.items() if one["right"].rstrip("\n") in solution}

    assert fitting - SLOW == {*GRADED}


@pytest.mark.parametrize("code", by_default(12, GRADED))
def test_wrong_code_earns_its_code_in_the_place_of_the_repaired(code, doubling, sandbox, tmp_path):
    wrong, right = (TEXTS[code][side].rstrip("\n") for side in ("wrong", "right"))
    solution = doubling.file("solutions/kernel.py").read_text()
    kernel = tmp_path / "kernel.py"
    kernel.write_text(solution.replace(right, wrong, 1))

    report = grader.grade(kernel, grader.load_suite(doubling.module.suite, doubling.module.folder),
                          sandbox=sandbox, effort="early")

    assert code in {finding.code for finding in report.findings()}
