"""Runs that a grade does not repeat, as the last one that passed had equal ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import grader
from grader import Verdict
from grader.judge.passed_runs import PassedRuns
from grader.processes.session import Session
from grader.suite import Amplitude, Cost, Suite, Tolerance, correctness, edge, performance, rand

KERNEL = """\
import torch
import triton
import triton.language as tl

FACTOR = tl.constexpr(2)


@triton.jit
def scaled(x):
    return x * FACTOR


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, scaled(tl.load(x_ptr + offs, mask=mask)), mask=mask)


def double(x):
    out = torch.empty_like(x)
    n = x.numel()
    double_kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
    return out
"""
HOST = KERNEL.replace("n = x.numel()", "[n] = x.shape")
SUITE = Suite(
    entry="double", parameters=("x",), reference=lambda x: 2 * x.double(),
    tolerance=Tolerance(lambda x: Amplitude(pointwise=2 * x.double().abs())),
    cost=lambda x: Cost(bytes=2 * x.nbytes), name="toy/double", cases=[
        correctness("a hundred", rand(100)),
        correctness("sixty-four", rand(64)),
        edge("three", rand(3)),
        performance("traffic", rand(4096), traffic=1.0),
    ])
ALL = len(SUITE.cases)

Grade = Callable[..., grader.Report]


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The programs of each run in the executor."""
    programs: list[int] = []
    begin = Session.begin_replay

    def counted(session: Session, recording: Any, *args: Any, **settings: Any) -> Any:
        programs.append(sum(launch.programs for launch in recording.launches))
        return begin(session, recording, *args, **settings)

    monkeypatch.setattr(Session, "begin_replay", counted)
    return programs


@pytest.fixture
def graded(tmp_path: Path, sandbox: grader.Sandbox) -> Grade:
    passed = PassedRuns()

    def grade(text: str, **options: Any) -> grader.Report:
        path = tmp_path / "kernel.py"
        path.write_text(text)
        return grader.grade(path, SUITE, sandbox=sandbox, effort="uncompiled",
                            **{"passed": passed, **options})

    return grade


def test_only_cases_with_limits_run_again_when_host_code_changes(graded: Grade,
                                                                 replays: list[int]):
    graded(KERNEL)
    replays.clear()

    report = graded(HOST)

    assert report.verdict is Verdict.PASSED
    assert replays == [64]


def test_without_passed_runs_all_cases_run(graded: Grade, replays: list[int]):
    graded(KERNEL)
    replays.clear()

    graded(HOST, passed=None)

    assert len(replays) == ALL


@pytest.mark.parametrize("change", [
    ("FACTOR = tl.constexpr(2)", "FACTOR = tl.constexpr(3)"),
    ("return x * FACTOR", "return x + FACTOR"),
    ("mask = offs < n", "mask = offs < n - 1"),
    ("x, out, n, BLOCK", "x, out, n - 1, BLOCK"),
    ("triton.cdiv(n, 64),", "n // 64,"),
    ("(x, out, n", "(out, out, n"),
    ("torch.empty_like(x)", "torch.zeros_like(x, dtype=torch.float16)"),
], ids=lambda change: change[1])
def test_what_changes_the_results_is_run_again_and_fails(graded: Grade, change: tuple[str, str]):
    graded(KERNEL)
    text = KERNEL.replace(*change)
    assert text != KERNEL

    report = graded(text)

    assert report.verdict is Verdict.FAILED
    assert [r.verdict for r in report.results] == [
        r.verdict for r in graded(text, passed=None).results]


def test_another_kernel_that_is_right_runs_again(graded: Grade, replays: list[int]):
    graded(KERNEL)
    replays.clear()

    report = graded(KERNEL.replace("return x * FACTOR", "return x + x"))

    assert report.verdict is Verdict.PASSED
    assert len(replays) == ALL


def test_runs_of_a_grade_that_fails_do_not_count(graded: Grade, replays: list[int]):
    wrong_at_three = KERNEL.replace("    n = x.numel()\n", "    n = x.numel()\n    n -= n == 3\n")
    assert graded(wrong_at_three).verdict is Verdict.FAILED
    replays.clear()

    report = graded(KERNEL)

    assert report.verdict is Verdict.PASSED
    assert len(replays) == ALL


def test_a_failure_in_between_leaves_the_runs_that_passed(graded: Grade, replays: list[int]):
    graded(KERNEL)
    assert graded(KERNEL.replace("x * FACTOR", "x")).verdict is Verdict.FAILED
    replays.clear()

    graded(HOST)

    assert len(replays) == 1


def test_a_grade_with_a_seed_repeats_all_runs(graded: Grade, replays: list[int]):
    seed = graded(KERNEL).seed
    replays.clear()

    graded(HOST, seed=seed)

    assert len(replays) == ALL


def test_a_plain_argument_that_host_code_ignores_makes_another_run(
        tmp_path: Path, sandbox: grader.Sandbox):
    """A kernel that always doubles is right for 2 and wrong for 3."""
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("def double(x)", "def double(x, by)"))
    passed = PassedRuns()

    def verdict(by: int) -> Verdict:
        suite = replace(SUITE, parameters=("x", "by"), reference=lambda x, by: by * x.double(),
                        tolerance=Tolerance(lambda x, by: Amplitude(pointwise=by * x.abs())),
                        cases=[correctness("a hundred", rand(100), by)])
        return grader.grade(path, suite, sandbox=sandbox, effort="uncompiled",
                            passed=passed).verdict

    assert [verdict(2), verdict(3)] == [Verdict.PASSED, Verdict.FAILED]
