"""One submission graded as a pack asks: results of the system that runs it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.classroom import support
from tests.classroom.export.support import AFTER, Class
from tests.formats.schemas import valid_classroom50, valid_gradescope
from tritonlab.classroom.export.student_points import points_of_all
from tritonlab.classroom.pack import single
from tritonlab.errors import TritonlabError
from tritonlab.formats.classroom50 import GradedCommit

COMMIT = GradedCommit("cs149", "hw1", "ada", "submit/2026-10-01T14-32-05Z-a1b2c3d",
                      datetime(2026, 10, 1, 14, 32, 5, tzinfo=UTC), "https://commit",
                      "https://release")


def graded(root, isolation: str, student: str = "alice") -> single.SingleGrade:
    the_class = Class(root)
    the_class.grade("alice", {**support.PASSED, "isolation": isolation}, at="2026-10-11T20:00:00Z")
    points = {one.student.id: one for one in points_of_all(
        the_class.book, the_class.roster, the_class.hw1, AFTER)}
    return single.SingleGrade(the_class.hw1, points[student], ("kernel.txt: no code.",),
                              the_class.store, the_class.settings)


@pytest.mark.parametrize(("isolation", "tier"), [
    ("tier 2: landlock ABI 7, seccomp", None), ("tier 1: seccomp; without landlock", 1),
    ("tier 0: separate processes with limits only, as root", 0)])
def test_gradescope_gets_the_tier_of_a_weaker_sandbox(tmp_path, isolation, tier):
    data = valid_gradescope(single._gradescope(graded(tmp_path, isolation)))

    assert data["extra_data"].get("isolation_tier") == tier
    assert "kernel.txt: no code." in data["output"]


def test_classroom_50_gets_no_points_for_nothing(tmp_path):
    data = valid_classroom50(single._classroom50(graded(tmp_path, "tier 2", "carol"), COMMIT))

    assert (data["score"], data["max-score"], data["owner"]) == (0, 100, "ada")
    assert data["tests"][0]["message"] == "kernel.txt: no code."


@pytest.mark.parametrize(("text", "sentence"), [
    (None, "metadata.json cannot be read: no such file or directory."),
    ("{", "metadata.json has no time of submission."),
    ("[]", "metadata.json has no time of submission."),
    ('{"created_at": "soon"}', "metadata.json has no time of submission.")])
def test_metadata_without_a_time_are_told(tmp_path, text, sentence):
    file = tmp_path / "metadata.json"
    if text is not None:
        file.write_text(text)

    with pytest.raises(TritonlabError) as error:
        single._submitted_at(file)

    assert sentence in str(error.value)


def test_grade_one_says_what_is_missing(run, home):
    absent = run("class", "grade-one", "class", "submission", "--out", "results.json")
    unknown = run("class", "grade-one", "class", "submission", "--for", "canvas")
    bare = run("class", "grade-one", "class", "submission", "--for", "classroom50")

    assert "There is no folder of a submission at submission." in absent.err
    assert "'canvas' is not an autograder." in unknown.err
    assert "CLASSROOM" in bare.err
    assert {absent.code, unknown.code, bare.code} == {2}
    assert not (home / "results.json").exists()


def test_the_verb_that_autograders_run_is_not_in_the_help(run, home):
    assert "grade-one" not in run("class", "--help").out


def test_a_result_is_plain_json(tmp_path):
    text = single._gradescope(graded(tmp_path, "tier 2"))

    assert text == json.dumps(json.loads(text), indent=2) + "\n"
