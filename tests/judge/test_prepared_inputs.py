"""Inputs made before a grade: the same as without, for one grade only, and within bounds."""

from __future__ import annotations

import queue
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import grader
from grader import Verdict
from grader.judge import draws
from grader.judge.draws import Draws, Prepared
from grader.judge.passed_runs import PassedRuns
from grader.processes.decoy_inputs import Drawn
from grader.suite import (
    Amplitude,
    Cost,
    Suite,
    Tolerance,
    correctness,
    edge,
    rand,
    refuses,
)
from tests.support.waiting import HANG_S, wait_until
from tritonlab.course import course
from tritonlab.watch import grade_thread
from tritonlab.watch.grade_thread import GradeThread
from tritonlab.workspace.submission import Submission

KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask, other=0.0) * 2, mask=mask)


def double(x):
    if x.dim() != 1:
        raise ValueError("x has more than one dimension")
    x = x.contiguous()
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""
computed: list[str] = []


def reference(x: torch.Tensor) -> torch.Tensor:
    computed.append("reference")
    return 2 * x.double()


def amplitude(x: torch.Tensor) -> Amplitude:
    computed.append("amplitude")
    return Amplitude(pointwise=2 * x.double().abs())


SUITE = Suite(
    entry="double", parameters=("x",), reference=reference, tolerance=Tolerance(amplitude),
    cost=lambda x: Cost(bytes=2 * x.nbytes), name="toy/double",
    cases=[
        correctness("a hundred", rand(100)),
        edge("a block and one", rand(lambda B: B + 1)),
        edge("far apart", rand(3).apart(1 << 10)),
        refuses("a matrix", rand(2, 3), raises=ValueError),
    ])
SIZED_BY = {"a block and one": 64}


def all_of(made: Prepared) -> Prepared:
    for _ in made.steps():
        pass
    return made


@pytest.fixture
def graded(tmp_path: Path, sandbox: grader.Sandbox) -> Callable[..., grader.Report]:
    def grade(text: str = KERNEL, **options: Any) -> grader.Report:
        path = tmp_path / "kernel.py"
        path.write_text(text)
        return grader.grade(path, SUITE, sandbox=sandbox, effort="uncompiled", **options)

    return grade


def test_what_is_prepared_is_what_the_seed_gives():
    made = all_of(Prepared(SUITE, SIZED_BY))
    usual = Draws(SUITE.name, made.seed)

    for case in SUITE.cases:
        inputs = made.draw(case.name, case.inputs, 64)
        [x], [y] = inputs, usual.draw(case.name, case.inputs, 64)

        assert (x.stride(), x.dtype) == (y.stride(), y.dtype)
        assert torch.equal(x, y)
        if isinstance(inputs, Drawn):
            [decoy] = inputs.decoys
            assert (decoy.shape, decoy.stride()) == (x.shape, x.stride())
            assert not torch.equal(decoy, x)


def test_only_what_the_function_gets_decoys_for_and_has_memory_for_is_prepared():
    made = all_of(Prepared(SUITE, SIZED_BY))

    drawn = [made.draw(case.name, case.inputs, 64) for case in SUITE.cases]

    assert [isinstance(inputs, Drawn) for inputs in drawn] == [True, True, False, False]


def test_a_case_of_another_size_than_expected_is_drawn_anew():
    made = all_of(Prepared(SUITE, {"a block and one": 32}))
    case = SUITE.cases[1]

    [x] = made.draw(case.name, case.inputs, 64)

    assert torch.equal(x, Draws(SUITE.name, made.seed).draw(case.name, case.inputs, 64)[0])
    assert made.sized_by == {"a block and one": 64}  # for the next time


def test_no_more_is_kept_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(draws, "MOST_BYTES", 100)
    made = all_of(Prepared(SUITE))

    drawn = [made.draw(case.name, case.inputs) for case in SUITE.cases[:2]]

    assert [isinstance(inputs, Drawn) for inputs in drawn] == [True, False]


def test_a_grade_with_prepared_inputs_ends_as_any_other_and_can_be_repeated(graded):
    wrong = KERNEL.replace("mask=mask)\n\n\n", "mask=offs < n - 1)\n\n\n")
    for text, verdict in ((KERNEL, Verdict.PASSED), (wrong, Verdict.FAILED)):
        made = all_of(Prepared(SUITE, SIZED_BY))
        computed.clear()
        first = graded(text, prepared=made)
        asked = len(computed)
        again = graded(text, seed=first.seed)

        assert first.seed == made.seed
        assert (first.verdict, again.verdict) == (verdict, verdict)
        assert [r.findings for r in first.results] == [r.findings for r in again.results]
        assert asked < len(computed) - asked


def test_what_is_prepared_serves_one_grade_only_and_none_of_another_suite(graded):
    made, other = Prepared(SUITE), Prepared(replace(SUITE, sha256="another"))

    seeds = [graded(prepared=one).seed for one in (made, made, other)]

    assert seeds[0] == made.seed
    assert len({*seeds, other.seed}) == 4
    assert graded(prepared=Prepared(SUITE), seed="12").seed == "12"


def test_watch_prepares_each_grade_after_the_first_and_none_twice(monkeypatch):
    module = course.load().find("track1/vector-add")
    given: queue.Queue[Prepared | None] = queue.Queue()
    monkeypatch.setattr(grade_thread.grading, "start_sandbox",
                        lambda: SimpleNamespace(pid=1, close=lambda: None))
    monkeypatch.setattr(grade_thread.grading, "save", lambda *_: None)
    monkeypatch.setattr(grade_thread.grading, "grade", lambda _, **options: (
        given.put(options["prepared"]), SimpleNamespace(reason=""))[1])

    made = []
    with GradeThread(course.load(), lambda event: None) as regrader:
        for _ in range(3):
            regrader.begin(Submission(module, module.solution, None))
            made.append(given.get(timeout=HANG_S))
            wait_until(lambda: regrader._prepared and regrader._prepared[1] is not made[-1])

    assert made[0] is None  # what would be graded was not known
    assert made[1] is not None
    assert made[2] is not None
    assert made[1].seed != made[2].seed
    assert all(isinstance(one.draw(case.name, case.inputs), Drawn) for one in made[1:]
               for case in grader.load_suite(module.suite).ordered()[:1])


def test_watch_gives_all_grades_the_runs_that_passed_before(monkeypatch):
    module = course.load().find("track1/vector-add")
    given: queue.Queue[Any] = queue.Queue()
    monkeypatch.setattr(grade_thread.grading, "start_sandbox",
                        lambda: SimpleNamespace(pid=1, close=lambda: None))
    monkeypatch.setattr(grade_thread.grading, "save", lambda *_: None)
    monkeypatch.setattr(grade_thread.grading, "grade", lambda _, **options: (
        given.put(options["passed"]), SimpleNamespace(reason=""))[1])

    with GradeThread(course.load(), lambda event: None) as regrader:
        both = []
        for _ in range(2):
            regrader.begin(Submission(module, module.solution, None))
            both.append(given.get(timeout=HANG_S))

    assert isinstance(both[0], PassedRuns) and both[0] is both[1]


def test_a_suite_is_loaded_once_until_one_of_its_files_changes(tmp_path):
    original = course.load().find("track1/vector-add").suite
    folder = tmp_path / "suites" / "track" / "01-vector-add"
    shutil.copytree(original.parent, folder)
    path = folder / "suite.py"

    first, second = grader.load_suite(path), grader.load_suite(path)
    path.write_text(path.read_text().replace("entry=\"", "entry=\"other_"))
    third = grader.load_suite(path)

    assert first is second
    assert third.entry == f"other_{first.entry}"
    assert third.sha256 != first.sha256
