"""The reports of memory debugging are what their maker makes, and say what the suite asks for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import grader
from grader.sandbox import Sandbox
from tests.evidence import memory_debugging as evidence

pytestmark = pytest.mark.course

ROOT = Path(__file__).parents[2]
MODULE = Path("debugging") / "04-memory-debugging"
SUITE = ROOT / "grader" / "suites" / MODULE / "suite.py"


@pytest.mark.parametrize("place", evidence.PLACES, ids=("tracks", "solutions"))
def test_the_kept_reports_are_those_that_the_command_makes(place: Path) -> None:
    kept = {path.stem: path.read_text(encoding="utf-8") for path in place.iterdir()}

    assert kept == evidence.reports()


def test_the_first_program_of_r3_that_goes_astray_is_the_one_that_is_asked_for() -> None:
    notes = evidence.row_sums()[1]

    first = min(notes, key=lambda note: note.access.program)

    assert {note.code for note in notes} == {"M05"}
    assert (first.access.program, first.access.index * 4) == (1_652, -8_589_469_184)


def test_the_readme_lists_every_cause_and_remedy_that_the_suite_takes() -> None:
    text = (ROOT / "tracks" / MODULE / "README.md").read_text(encoding="utf-8")
    tree = ast.parse(SUITE.read_text(encoding="utf-8"))
    lists = {node.targets[0].id: ast.literal_eval(node.value) for node in tree.body
             if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
             and node.targets[0].id in ("CAUSES", "REMEDIES")}

    for word in (*lists["CAUSES"], *lists["REMEDIES"]):
        assert f"| `{word}` |" in text


def test_the_exercise_fails_in_every_function_and_tool(sandbox: Sandbox) -> None:
    suite = grader.load_suite(SUITE)

    report = grader.grade(ROOT / "tracks" / MODULE / "kernel.py", suite, sandbox=sandbox,
                          effort="values")

    failed = {finding.function for finding in report.findings()}
    assert failed >= {*(function.entry for function in suite.functions), "report", "guarded_empty",
                      "access_stats", "alignment_of"}
