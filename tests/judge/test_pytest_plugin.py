"""A suite under pytest gives the verdicts that a grade gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import grader
from tests.fidelity.chaos.module import SUITE as SMALL
from tests.fidelity.chaos.module import WRONG

pytestmark = pytest.mark.course

ROOT = Path(__file__).parents[2]
MODULE = Path("missing-elements/01-vector-add")
SUITE = ROOT / "grader" / "suites" / MODULE / "suite.py"
SOLUTION = ROOT / "solutions" / MODULE / "kernel.py"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-q",
               *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_the_solution_passes_with_the_same_cases_as_a_grade(sandbox):
    suite = grader.load_suite(SUITE)
    report = grader.grade(SOLUTION, suite, sandbox=sandbox)

    result = run("--tritonlab-kernel", SOLUTION, SUITE)

    assert result.returncode == 0, result.stdout[-3000:]
    passed, skipped = (int(re.search(rf"(\d+) {word}", result.stdout)[1])
                       for word in ("passed", "skipped"))
    verdicts = [result.verdict for result in report.results]  # with those that only advise
    assert passed == verdicts.count(grader.Verdict.PASSED)
    assert skipped == verdicts.count(grader.Verdict.SKIPPED)


def test_a_wrong_kernel_fails_in_the_same_cases_and_pytest_shows_the_diagnosis(sandbox, tmp_path):
    path, kernel = tmp_path / "suite.py", tmp_path / "kernel.py"
    path.write_text(SMALL)
    kernel.write_text(WRONG)
    suite = grader.load_suite(path)
    report = grader.grade(kernel, suite, sandbox=sandbox, seed="77")

    result = run("--tritonlab-kernel", kernel, "--tritonlab-seed", "77", path)

    assert result.returncode == 1
    failed = {r.name for r in report.deciding if r.verdict is grader.Verdict.FAILED}
    shown = set(re.findall(r"^FAILED \S+?::(.+?)(?: - .*)?$", result.stdout, re.MULTILINE))
    assert shown == failed
    assert "wrong-values  " in result.stdout


@pytest.mark.parametrize(("arguments", "says"), [
    ([SUITE], "pass --tritonlab-kernel PATH"),
    (["--tritonlab-kernel", "nowhere.py", SUITE], "cannot be read"),
    (["--kernel", "nowhere.py", SUITE], "unrecognized arguments: --kernel"),
])
def test_a_suite_without_a_kernel_says_what_is_missing(arguments, says):
    result = run(*arguments)

    assert result.returncode != 0
    assert says in result.stdout + result.stderr
