"""Packs as they run: each installed in an environment of its own, by its own scripts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.classroom.pack import support
from tests.formats.schemas import valid_classroom50, valid_gradescope, valid_junit
from tests.support.shipped import MODULES
from tritonlab.classroom.pack import build

pytestmark = pytest.mark.course

COPY = MODULES["track1/tile-copy"]


@pytest.fixture(scope="module")
def autograder(tmp_path_factory) -> Path:
    """The tree that Gradescope makes, ``/autograder``, with the archive of hw1 installed."""
    root = tmp_path_factory.mktemp("autograder")
    pack = support.packed(root / "class", "gradescope")
    (archive,) = build.write(pack, root / "hw1.zip")
    with zipfile.ZipFile(archive) as content:
        for entry in content.infolist():
            content.extract(entry, root / "source")
            (root / "source" / entry.filename).chmod(entry.external_attr >> 16)
    support.install(support.only_wheel(pack), root / "venv")
    (root / "submission_metadata.json").write_text(json.dumps({
        "id": 1, "created_at": "2026-10-20T14:22:32.365935-07:00",
        "users": [{"email": "ada@uni.edu", "id": 7, "name": "Ada"}], "previous_submissions": []}))
    return root


def results(root: Path, *files: Path) -> dict:
    """Runs run_autograder on a submission of these files."""
    shutil.rmtree(root / "submission", ignore_errors=True)
    (root / "submission").mkdir()
    for file in files:
        shutil.copy(file, root / "submission" / "kernel.py")
    (root / "results" / "results.json").unlink(missing_ok=True)
    done = support.run([root / "source" / "run_autograder"], root, AUTOGRADER_ROOT=str(root))
    assert done.returncode == 0, done.stdout + done.stderr
    return valid_gradescope((root / "results" / "results.json").read_text())


def test_gradescope_gets_the_points_of_a_right_a_wrong_and_an_empty_submission(
        autograder, tmp_path):
    text = COPY.solution.read_text()
    wrong = tmp_path / "kernel.py"
    wrong.write_text(text.replace("mask=", "mask=None and "))
    assert wrong.read_text() != text

    right, failed, empty = (results(autograder, *files) for files in (
        [COPY.solution], [wrong], []))

    assert (right["score"], empty["score"]) == (20, 0)
    assert 0 <= failed["score"] < 20
    assert right["extra_data"]["track1/tile-copy"]["isolation"].startswith("tier ")
    assert "Nothing was handed in." in empty["output"]
    assert any(test.get("output") for test in failed["tests"])


def test_the_inputs_are_those_of_the_class(autograder):
    first, second = (results(autograder, COPY.solution)["extra_data"]["track1/tile-copy"]["seed"]
                     for _ in range(2))

    assert first == second


def test_setup_is_a_script_that_bash_can_read(autograder):
    for name in ("setup.sh", "run_autograder"):
        subprocess.run(["bash", "-n", autograder / "source" / name], check=True)


def test_classroom_50_gets_a_result_of_its_schema(tmp_path):
    pack = support.packed(tmp_path / "class", "classroom50")
    build.write(pack, tmp_path / "bundle")
    support.install(support.only_wheel(pack), tmp_path / "venv")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    shutil.copy(COPY.solution, checkout / "kernel.py")

    done = support.run(
        [sys.executable, tmp_path / "bundle" / "autograder.py"], checkout,
        TRITONLAB_VENV=str(tmp_path / "venv"), CLASSROOM="cs149", ASSIGNMENT="hw1",
        USERNAME="ada", SUBMISSION_TAG="submit/2026-10-01T14-32-05Z-a1b2c3d",
        COMMIT_URL="https://github.com/o/r/commit/a1b2c3d",
        RELEASE_URL="https://github.com/o/r/releases/tag/x")

    assert done.returncode == 0, done.stdout + done.stderr
    data = valid_classroom50((checkout / "result.json").read_text())
    assert (data["owner"], data["score"], data["max-score"]) == ("ada", 20, 20)
    assert data["datetime"] == "2026-10-01T14:32:05Z"


def test_the_steps_of_a_students_workflow(tmp_path):
    pack = support.packed(tmp_path / "class", "github-actions")
    programs = support.install(support.only_wheel(pack, "student/"), tmp_path / "venv")
    repository = tmp_path / "repository"
    repository.mkdir()
    shutil.copy(COPY.folder / "kernel.py", repository / "kernel.py")
    workflow = pack.files["student/.github/workflows/hw1.yml"].decode()
    scripts = dict(re.findall(r"- name: (\w+)\n(?: +if: .*\n)? +run: \|\n((?: {10}.*\n)+)",
                              workflow))

    graded, reported = (support.run(
        ["bash", "-e", "-c", f"PATH={programs}:$PATH\n{scripts[name]}"], repository)
        for name in ("Grade", "Report"))

    assert (graded.returncode, reported.returncode) == (1, 0), graded.stderr + reported.stderr
    assert "::error file=kernel.py,line=" in graded.stdout
    valid_junit((repository / "reports" / "track1-tile-copy.xml").read_text())


def test_students_list_start_read_and_grade_public_cases(tmp_path):
    pack = support.packed(tmp_path / "class", "student", "hw2")
    programs = support.install(support.only_wheel(pack), tmp_path / "venv")
    home = tmp_path / "home"
    home.mkdir()

    def tritonlab(*words: str) -> subprocess.CompletedProcess[str]:
        return support.run([programs / "tritonlab", *words], home)

    listed, started, read = (tritonlab(*words) for words in (
        ("list", "--json"), ("start", "tile-copy", "--plain"), ("read", "softmax", "--plain")))
    kernel = home / "tritonlab-workspace" / "track1" / "tile-copy" / "kernel.py"
    untouched = tritonlab("grade")
    shutil.copy(COPY.solution, kernel)
    passed = tritonlab("grade", "--json")
    in_words = tritonlab("grade", "--plain")
    status = tritonlab("status", "--json")
    solution, answers = tritonlab("solution"), tritonlab("read", "--answers")
    tour = tritonlab("tour")

    assert [done.returncode for done in (listed, started, read, untouched, passed)] == \
        [0, 0, 0, 1, 0], passed.stderr
    assert re.findall(r'"id": "(track1/.*)"', listed.stdout) == ["track1/tile-copy",
                                                                 "track1/softmax"]
    report = json.loads(passed.stdout)
    assert (report["verdict"], report["public_only"], report["evidence"]) == ("PASSED", True, "")
    assert len(report["results"]) == 5  # with the compile check
    assert not report["saved"]
    assert "only public cases were judged, as this build for students has no others" in \
        in_words.stdout
    assert "hidden tests" not in in_words.stdout
    assert json.loads(status.stdout)
    assert "graded" not in {line["event"] for line in map(json.loads, (
        home / "tritonlab-workspace" / ".tritonlab" / "journal.jsonl").read_text().splitlines())}
    assert solution.returncode == answers.returncode == tour.returncode == 2
    assert "this build for students has none" in tour.stderr
    assert "This build for students has no solution of track1/tile-copy." in solution.stderr
    assert "This build for students has no answers of track1/tile-copy." in answers.stderr


def test_a_course_of_ones_own_is_the_course_of_its_build(run, home, tmp_path):
    run("course", "new", "own", "--title", "Ours")
    assert run("course", "pack", "own", "--student", "--out", "built").code == 0
    (wheel,) = (home / "built" / "dist").iterdir()
    programs = support.install(wheel.read_bytes(), tmp_path / "venv")

    started = support.run([programs / "tritonlab", "start", "first-module"], tmp_path)
    listed = support.run([programs / "tritonlab", "list", "--json"], tmp_path)
    graded = support.run([programs / "tritonlab", "grade", "--json"], tmp_path)

    assert started.returncode == 0, started.stderr
    assert json.loads((tmp_path / "tritonlab-workspace" / ".tritonlab" / "course.json"
                       ).read_text()) == {"schema": 1, "course": "own", "version": "1"}
    assert re.findall(r'"id": "(track1/.*)"', listed.stdout) == ["track1/first-module"]
    assert json.loads(graded.stdout)["public_only"]
