"""What the suite of basic debugging says about the file as learners get it."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import grader
from grader.sandbox import Sandbox

ROOT = Path(__file__).parent.parent
MODULE = Path("debugging") / "01-basic-debugging"
EXERCISE = ROOT / "tracks" / MODULE / "kernel.py"
SUITE = ROOT / "grader" / "suites" / MODULE


def test_the_suite_knows_the_exercise_as_learners_get_it() -> None:
    original = (SUITE / "original.txt").read_text(encoding="utf-8")

    assert original == EXERCISE.read_text(encoding="utf-8")


def test_the_readme_lists_every_phase_and_cause_that_the_suite_takes() -> None:
    text = (ROOT / "tracks" / MODULE / "README.md").read_text(encoding="utf-8")
    tree = ast.parse((SUITE / "suite.py").read_text(encoding="utf-8"))
    lists = {node.targets[0].id: ast.literal_eval(node.value) for node in tree.body
             if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
             and node.targets[0].id in ("PHASES", "CAUSES")}

    assert len(lists["PHASES"]) == 6
    assert len(lists["CAUSES"]) >= 12
    for word in (*lists["PHASES"], *lists["CAUSES"]):
        assert f"| `{word}` |" in text


def test_the_values_give_away_all_but_one_of_the_nine(sandbox: Sandbox) -> None:
    suite = grader.load_suite(SUITE / "suite.py")

    report = grader.grade(EXERCISE, suite, sandbox=sandbox, effort="values")

    failed = {finding.function for finding in report.findings()}
    right = {function.entry for function in suite.functions} - failed
    assert right == {"col_sum"}
    assert failed >= {"compare", "compare_shapes", "trace_program", "diagnosis"}


def test_the_compiler_gives_away_the_last_one(sandbox: Sandbox) -> None:
    suite = grader.load_suite(SUITE / "suite.py")
    only = [function for function in suite.functions if function.entry == "col_sum"]

    report = grader.grade(EXERCISE, replace(suite, functions=only, cases=()), sandbox=sandbox)

    (finding,) = report.findings()
    assert finding.code == "L05"
    assert "Loop-carried variable acc" in finding.seen
