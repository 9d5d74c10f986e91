"""What the suite of basic debugging says about the file as learners get it."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import grader
from grader.contract import wrong_answer
from grader.report import Finding
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
    assert "comes in with one shape" in finding.means
    assert finding.function == "col_sum"  # whose hints are offered


def alone(sandbox: Sandbox, text: str, case: str, tmp_path: Path) -> Finding:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(text, encoding="utf-8")
    report = grader.grade(kernel, grader.load_suite(SUITE / "suite.py"), only=case, sandbox=sandbox)
    return next(iter(report.findings()))


FIRST = """\
    v = tl.load(x_ptr + row * N + cols, mask=cols < N)

    tl.store(out_ptr + row, v[0])
"""


@pytest.mark.parametrize(("old", "new", "case", "means", "not_means"), [
    ("", "", "row_max: all equal to -7.25", "lanes without a column took part", "window"),
    ("", "", "avg_pool1d: 100 floats, k 3, stride 2, pad 1", "the window after", "lifted"),
    (FIRST, FIRST.replace(" * N + cols, mask=cols < N", "").replace("v[0]", "v"),
     "first_elem: 20 x 50 floats", "With one column all is right", ""),
    ("tl.relu(x)", "tl.where(x > 0, x, 0.0)", "relu: NaN, infinities, 0, a denormal number",
     "comparison with NaN is false", ""),
    ("(BLOCK,), dtype=tl.float32", "(BLOCK, BLOCK), dtype=tl.float16", "col_sum: 50 x 70 floats",
     "The Triton compiler refuses", "one shape"),
    ("tl.dot(p, v,", "tl.dot(p.to(v.dtype), v,", "weighted_sum: 16 x 70 times 70 x 40",
     "Float16 keeps as many", ""),
], ids=["padding", "window", "no stride", "comparison", "other type", "narrowed"])
def test_a_mistake_is_told_for_what_it_is(sandbox: Sandbox, tmp_path: Path, old: str, new: str,
                                          case: str, means: str, not_means: str) -> None:
    text = EXERCISE.read_text(encoding="utf-8")
    assert not old or text.count(old) == 1

    finding = alone(sandbox, text.replace(old, new) if old else text, case, tmp_path)

    assert means in finding.means
    assert not not_means or not_means not in finding.means


OWN = f"(3, 0, 0)  x =:  {[125.5 + n for n in range(8)]}\n"


@pytest.mark.parametrize(("name", "printed", "words"), [
    ("the last of four programs", OWN, ""),
    ("the last of four programs", "(0, 0, 0)  x =:  [0. 0.]\n" + OWN, "program 0 printed too"),
    ("no such program", "(0, 0, 0)  x =:  [0.]\n(1, 0, 0)  x =:  [0.]\n",
     "programs 0, 1 printed too; program 3 was asked for, and there is none"),
    ("no such program", "nothing\nhere\n", "there is none, and 'nothing' and 1 more line came"),
    ("no such program", "", ""),
])
def test_only_the_program_that_was_asked_for_may_print(name: str, printed: str,
                                                       words: str) -> None:
    suite = grader.load_suite(SUITE / "suite.py")
    call = next(case.call for case in suite.cases if case.name == f"trace_program: {name}")
    assert call is not None
    x = torch.arange(32 if name.startswith("the last") else 20) + 101.5

    found = wrong_answer(call, printed, [x])

    assert bool(found) == bool(words)
    assert not found or words.lower() in found[0].seen.lower()
