"""A grade of an unchanged exercise shows the report of its pass again; any other grade is run."""

from __future__ import annotations

import json

import pytest

import grader
from grader.report import CaseResult, Finding, Kind, Verdict
from tests.support import toy
from tritonlab.course import course
from tritonlab.grading import kept_reports
from tritonlab.grading.kept_reports import Subject
from tritonlab.workspace import workspace

SOURCE = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x_ptr, x + 1)
"""
NOTED = CaseResult("a large case", Kind.EDGE, Verdict.FAILED, advisory=True,
                   findings=(Finding("T01", "much traffic", line=4),))


@pytest.fixture
def passed(run, judge, home, tmp_path, monkeypatch):
    """The exercise of a workspace that has passed; the next grade of it would fail."""
    def make(results=toy.PASSING, **more):
        run("start", "track1/softmax")
        judge(results, **more)
        monkeypatch.setenv("TRITONLAB_CACHE", str(tmp_path / "cache"))
        assert run("grade").code == 0
        judge(toy.FAILING)
        monkeypatch.setenv("TRITONLAB_CACHE", str(tmp_path / "cache"))
        return kernel()

    return make


def kernel():
    return workspace.require("").kernel(course.load().find("track1/softmax"))


def graded():
    the_course = course.load()
    return [record for record in workspace.require("").journal(the_course).read().records
            if record.event == "graded"]


def test_an_unchanged_exercise_is_not_graded_again(passed, run):
    passed()

    again = run("grade")

    assert again.code == 0
    assert "No code has changed since the grade of" in again.out
    assert "`tritonlab grade --again`" in again.out
    assert len(graded()) == 1


def test_json_names_the_time_of_the_grade(passed, run):
    passed()

    data = json.loads(run("grade", "--json").out)

    assert data["verdict"] == "PASSED"
    assert data["shown_again"]
    assert data["saved"]


@pytest.mark.parametrize("options", [
    ("--again",), ("--all",), ("--seed", "12"), ("--no-record",), ("--target", "a100")], ids=str)
def test_a_grade_that_asks_for_more_is_run(passed, run, options):
    passed()

    assert run("grade", *options).code == 1


@pytest.mark.parametrize("more", ["# a thought\n", "\n\n", "# TODO 9: what comes next?\n"])
def test_comments_and_lines_are_no_change_of_code(passed, run, more):
    exercise = passed()
    exercise.write_text(more + exercise.read_text())

    assert run("grade").code == 0


@pytest.mark.parametrize("more", ["x = 1\n", '"""A docstring."""\n', "def\n"])
def test_changed_code_is_graded(passed, run, more):
    exercise = passed()
    exercise.write_text(more + exercise.read_text())

    assert run("grade").code == 1


def test_findings_are_shown_again_only_on_their_lines(passed, run):
    exercise = passed((*toy.PASSING, NOTED))
    text = exercise.read_text()

    exercise.write_text(f"{text}# at the end\n")
    assert run("grade").code == 0

    exercise.write_text(f"# at the beginning\n{text}")
    assert run("grade").code == 1


@pytest.mark.parametrize("kind", ["tracks", "solutions", "suites"])
def test_a_changed_module_is_graded(passed, run, course_root, kind):
    passed()
    file = next((course_root / kind).rglob("*softmax/*.py"))
    file.write_text(f"{file.read_text()}\n# of the author\n")

    assert run("grade").code == 1


def test_a_pass_that_the_journal_lacks_is_graded(passed, run):
    exercise = passed()
    (exercise.parents[2] / ".tritonlab" / "journal.jsonl").write_text("")

    assert run("grade", "track1/softmax").code == 1


def test_a_pass_of_a_version_that_was_saved_meanwhile_is_none_of_this_one(
        run, judge, tmp_path, monkeypatch):
    run("start", "track1/softmax")
    first, later = "x = 1\n", "x = 2\n"
    kernel().write_text(first)
    judge(toy.PASSING)
    answers = grader.grade
    monkeypatch.setitem(vars(grader), "grade", lambda path, *arguments, **named: [
        path.write_text(later), answers(path, *arguments, **named)][1])
    monkeypatch.setenv("TRITONLAB_CACHE", str(tmp_path / "cache"))
    assert run("grade").code == 0
    judge(toy.FAILING)
    monkeypatch.setenv("TRITONLAB_CACHE", str(tmp_path / "cache"))

    kernel().write_text(first)

    assert run("grade").code == 1


def test_an_exercise_in_another_encoding_is_graded(run, passed):
    exercise = passed()
    exercise.write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")

    assert run("grade").code == 1


def test_a_damaged_entry_is_graded(passed, run, tmp_path):
    passed()
    entry, = (tmp_path / "cache" / "reports").iterdir()
    entry.write_bytes(entry.read_bytes()[:-20])

    assert run("grade").code == 1


@pytest.mark.parametrize(("results", "more"), [
    (toy.FAILING, {}),
    (toy.PASSING, {"isolation": "tier 1: seccomp; without landlock"}),  # code could write there
    (toy.PASSING, {"public_only": True}),
], ids=["a failure", "a weak sandbox", "public cases"])
def test_only_a_pass_that_the_code_cannot_have_written_is_kept(tmp_path, monkeypatch, results,
                                                               more):
    monkeypatch.setenv("TRITONLAB_CACHE", str(tmp_path))

    report = toy.report(results, **more)
    kept_reports.keep(Subject("key", "lines", report.source_sha256), report, "today")

    assert not list(tmp_path.rglob("*"))


def test_quick_leaves_out_the_gpu_for_kernels_that_it_passed(run, judge, tmp_path, monkeypatch):
    gpus, asked = ["NVIDIA H200"], []
    monkeypatch.setattr(kept_reports.detect, "names", lambda: tuple(gpus))
    monkeypatch.setattr(kept_reports.detect, "present", lambda: bool(gpus))
    run("start", "track1/softmax")
    kernel().write_text(SOURCE)

    def grade(*options, **more):
        judge(toy.PASSING if more.get("alone") else toy.FAST,
              **({} if more.get("alone") else toy.ON_GPU))
        answers = grader.grade
        monkeypatch.setitem(vars(grader), "grade", lambda *arguments, **named: asked.append(
            named["gpu"]) or answers(*arguments, **named))
        monkeypatch.setenv("TRITONLAB_CACHE", str(tmp_path / "cache"))
        return run("grade", *options)

    assert grade("--quick").code == 0
    kernel().write_text(f"{SOURCE}\n\ndef helper():\n    return 1\n")
    quick = grade("--quick", alone=True)
    after = grade()
    kernel().write_text(SOURCE.replace("x + 1", "x + 2"))
    changed = grade("--quick")
    gpus[:] = ["NVIDIA A100"]
    kernel().write_text(SOURCE)
    other = grade("--quick")

    assert asked == ["found", "never", "found", "found", "found"]
    assert "The GPU was left out: it passed these kernels on" in quick.out
    assert not any("left out" in one.out for one in (after, changed, other))
