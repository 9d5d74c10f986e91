"""Formats of `tritonlab grade`: where they go, what is recorded, and the exit code."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from grader.report import Step, Verdict
from tests.formats import schemas
from tests.support import toy
from tritonlab.workspace.workspace import COURSE

WORKSPACE = Path("tritonlab-workspace")
KERNEL = WORKSPACE / "track1/softmax/kernel.py"
JOURNAL = WORKSPACE / ".tritonlab/journal.jsonl"
WEAK = "tier 1: seccomp; without landlock"
RUNNER = {"CLASSROOM": "cs149", "ASSIGNMENT": "hw1", "USERNAME": "alice",
          "SUBMISSION_TAG": "submit/2026-10-12T23-59-00Z-abc1234",
          "GITHUB_REPOSITORY": "cs149-org/cs149-hw1-alice", "GITHUB_SHA": "abc1234"}
VALID = {"lines": str, "github": str, "json": json.loads, "sarif": schemas.valid_sarif,
         "junit": schemas.valid_junit, "gradescope": schemas.valid_gradescope,
         "classroom50": schemas.valid_classroom50}


@pytest.fixture
def runner(monkeypatch) -> None:
    """The environment of Classroom 50's runner."""
    for name in ("COMMIT_URL", "RELEASE_URL", "REVIEW_URL", "ASSIGNMENT_TYPE", "GITHUB_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in RUNNER.items():
        monkeypatch.setenv(name, value)


def n_records() -> int:
    return len(JOURNAL.read_bytes().splitlines())


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("results", [toy.PASSING, toy.FAILING], ids=["passed", "failed"])
def test_a_format_is_all_of_standard_output(run, judge, runner, name, results):
    judge(results, isolation=WEAK)
    run("start", "softmax")

    shown = run("grade", "--format", name)

    VALID[name](shown.out)
    failed = results is toy.FAILING
    assert shown.code == (failed and name not in ("gradescope", "classroom50"))
    assert ("The sandbox of this machine reaches tier 1 of 2" in shown.err) == (name != "json")
    assert (str(KERNEL) + ":24:1: error: " in shown.out) == (failed and name == "lines")


@pytest.mark.parametrize("name", VALID)
def test_with_a_file_the_report_is_shown_too(run, judge, runner, name, home):
    judge(toy.FAILING, isolation=WEAK)
    run("start", "softmax")

    shown = run("grade", "--format", name, "--out", "out.json" if name not in (
        "junit", "lines", "github") else "out.xml" if name == "junit" else "out.txt")

    VALID[name](next(home.glob("out.*")).read_text())
    assert shown.out.startswith("FAILED")
    assert shown.out.count("The sandbox of this machine reaches tier 1 of 2") == 1
    assert "The sandbox" not in shown.err


@pytest.mark.parametrize("isolation", [WEAK, "tier 2: landlock"])
def test_json_has_the_sentence_about_the_isolation(run, judge, isolation):
    judge(toy.PASSING, isolation=isolation)
    run("start", "softmax")

    data = json.loads(run("grade", "--json").out)

    assert data["isolation_warning"].startswith("The sandbox of") == (isolation == WEAK)


def test_gradescope_gets_points_and_only_public_cases_are_always_visible(run, judge):
    judge(toy.FAILING)
    run("start", "softmax")

    data = schemas.valid_gradescope(run("grade", "--format", "gradescope", "--points", "10",
                                        "--visibility", "after_due_date").out)

    assert data["score"] == 4.5
    assert {test["visibility"] for test in data["tests"]} == {"after_due_date"}


def test_classroom50_gets_the_submission_of_the_environment(run, judge, runner):
    judge(toy.PASSING)
    run("start", "softmax")

    data = schemas.valid_classroom50(run("grade", "--format", "classroom50").out)

    assert (data["classroom"], data["assignment"], data["owner"]) == ("cs149", "hw1", "alice")
    assert (data["submission"], data["datetime"]) == (RUNNER["SUBMISSION_TAG"],
                                                      "2026-10-12T23:59:00Z")
    assert data["commit"] == "https://github.com/cs149-org/cs149-hw1-alice/commit/abc1234"
    assert data["release"].endswith("/releases/tag/submit%2F2026-10-12T23-59-00Z-abc1234")
    assert (data["score"], data["max-score"]) == (100, 100)


def test_classroom50_without_its_environment_names_what_is_missing(run, judge, runner, monkeypatch):
    judge(toy.PASSING)
    run("start", "softmax")
    for name in ("USERNAME", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name)

    shown = run("grade", "--format", "classroom50")

    assert (shown.code, shown.out) == (2, "")
    assert "USERNAME, COMMIT_URL not set" in shown.err


@pytest.mark.parametrize("name", ["gradescope", "classroom50"])
@pytest.mark.parametrize("results", [(), toy.PASSING[-1:],
                                     (toy.case("x", Verdict.ERROR, reason="It broke."),)],
                         ids=["broken", "all skipped", "a broken case"])
def test_a_grade_that_decides_nothing_gives_no_points_and_fails(run, judge, runner, name, results,
                                                                home):
    judge(results, reason="" if results else "RuntimeError: no space")
    run("start", "softmax")

    shown = run("grade", "--format", name, "--out", "results.json")

    assert (shown.code, shown.out, (home / "results.json").exists()) == (3, "", False)
    assert "No points are given, because the grade decided nothing: " in shown.err


@pytest.mark.parametrize("name", ["gradescope", "classroom50"])
def test_a_file_that_cannot_be_graded_gets_no_points_and_says_why(run, judge, runner, name):
    judge(toy.PASSING)

    shown = run("grade", "submission/kernel.py", "--module", "softmax", "--format", name)
    data = VALID[name](shown.out)

    assert (shown.code, data["score"]) == (0, 0)
    assert "There is no file at submission/kernel.py." in json.dumps(data)
    assert run("grade", "submission/kernel.py", "--format", name).code == 2  # of no module


def test_a_step_with_blanks_left_is_a_test_of_gradescope(run, judge):
    judge(toy.BLANKS, steps=(Step("A", "Setup", (1,), state="open"),))
    run("start", "softmax")

    data = schemas.valid_gradescope(run("grade", "--format", "gradescope").out)

    assert [(test["name"], test["status"]) for test in data["tests"]] == [
        ("Step A: Setup", "failed"), ("the file", "failed")]


@pytest.mark.parametrize(("words", "says"), [
    (("--format", "xml"), "xml"),
    (("--json", "--format", "sarif"), "--json and --format sarif are two formats."),
    (("--out", "x.txt"), "Name another format with --format."),
    (("--format", "gradescope", "--case", "x"), "a single case has none"),
    (("--format", "sarif", "--out", "no/such.sarif"), "there is no such folder"),
    (("--format", "junit", "--out", "kept.md"), "already exists and is not a junit report"),
    (("--pending", "--format", "sarif"), "--pending takes no"),
    (("--pending", "--no-record"), "--pending takes no"),
    (("--format", "gradescope", "--points", "0"), "--points"),
], ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_options_that_do_not_fit_are_one_sentence_and_exit_code_2(run, judge, home, words, says):
    judge(toy.PASSING)
    run("start", "softmax")
    (home / "kept.md").write_text("mine")

    shown = run("grade", *words)

    assert (shown.code, shown.out) == (2, "")
    assert says in shown.err
    assert (home / "kept.md").read_text() == "mine"


@pytest.mark.parametrize("name", ["text", *VALID])
def test_without_a_record_a_grade_leaves_no_trace(run, judge, runner, name):
    judge(toy.PASSING)
    run("start", "softmax")
    before = {path: path.read_bytes() for path in WORKSPACE.rglob("*") if path.is_file()}

    shown = run("grade", "--no-record", "--format", name)

    assert shown.code == 0
    assert {path: path.read_bytes() for path in WORKSPACE.rglob("*") if path.is_file()} == before
    assert "not recorded" not in shown.err


@pytest.mark.parametrize("name", ["text", "gradescope"])
def test_a_copy_of_a_workspace_is_not_the_learner_s_own(run, judge, name, home):
    judge(toy.PASSING)
    run("start", "softmax")
    shutil.copytree(WORKSPACE, home / "handed-in" / "alice")
    theirs = home / "handed-in/alice"
    before = n_records()

    shown = run("grade", "handed-in/alice/track1/softmax/kernel.py", "--format", name)

    assert shown.code == 0
    assert f"is not the exercise of this workspace. Only {KERNEL} counts" in shown.err
    assert n_records() == before
    assert len((theirs / ".tritonlab/journal.jsonl").read_bytes().splitlines()) == before
    assert not list(WORKSPACE.rglob("passed")) + list(theirs.rglob("passed"))


def test_where_no_workspace_is_in_use_that_of_the_file_records(run, judge, home, monkeypatch):
    judge(toy.PASSING)
    run("start", "softmax")
    before = n_records()
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")

    shown = run("grade", f"../{KERNEL}")

    monkeypatch.chdir(home)
    assert (shown.code, n_records()) == (0, before + 1)


@pytest.mark.parametrize("whose", ["the learner's", "the file's"])
def test_a_workspace_of_another_course_records_nothing(run, judge, home, whose):
    judge(toy.PASSING)
    run("start", "softmax")
    shutil.copytree(WORKSPACE, home / "theirs")
    place = WORKSPACE if whose == "the learner's" else home / "theirs"
    (place / ".tritonlab" / COURSE).write_text('{"schema": 1, "course": "cs149"}')
    before = n_records()

    shown = run("grade", "theirs/track1/softmax/kernel.py", "--module", "softmax")

    assert (shown.code, n_records()) == (2, before)
    assert "belongs to the course cs149" in shown.err


def test_a_file_name_that_is_not_utf_8_is_graded_in_every_format(run, judge, runner, home):
    judge(toy.FAILING)
    name = os.fsdecode(b"caf\xe9.py")
    (home / name).write_text("x")

    for form, valid in VALID.items():
        shown = run("grade", name, "--module", "softmax", "--format", form, "--no-record")
        valid(shown.out)
        assert shown.code in (0, 1)
    uri = schemas.valid_sarif(run("grade", name, "--module", "softmax", "--format", "sarif").out)
    assert "caf%E9.py" in json.dumps(uri)


@pytest.mark.parametrize("name", ["lines", "sarif", "junit", "gradescope"])
def test_a_real_grade_is_valid_in_every_format(run, warm, monkeypatch, name):
    monkeypatch.delenv("TRITONLAB_COURSE")
    run("start", "track1/vector-add")

    shown = run("grade", "--format", name)

    VALID[name](shown.out)
    assert shown.code == (name != "gradescope")
    assert "TODO" in shown.out or "blanks" in shown.out
