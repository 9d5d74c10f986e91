"""Reports of a class in the formats of one grade, checked against their schemas."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.classroom import support
from tests.classroom.export.support import Class
from tests.formats import schemas

TWO = support.CLASS.replace('["track1/softmax"]', '["track1/softmax", "track1/vector-add"]')


@pytest.mark.parametrize("text", [support.CLASS, TWO], ids=["one module", "two modules"])
def test_gradescope_has_a_valid_file_for_each_student_who_is_not_excused(tmp_path, text):
    the_class = Class(tmp_path, text=text)
    scores = the_class.book.scores(the_class.hw1, ["alice", "bob", "carol"])

    files = the_class.make("gradescope").files

    data = {name: schemas.valid_gradescope(content.decode()) for name, content in files.items()}
    assert {name: one["score"] for name, one in data.items()} == {
        f"{score.student}.json": score.points for score in scores}
    assert "2 days late" in data["bob.json"]["output"]
    assert data["carol.json"]["tests"][0]["output"] == "Nothing was handed in."


@pytest.mark.parametrize("text", [support.CLASS, TWO], ids=["one module", "two modules"])
def test_classroom50_has_a_valid_file_for_each_submission(tmp_path, text):
    the_class = Class(tmp_path, text=text)

    files = the_class.make("classroom50").files

    data = {name: schemas.valid_json(schemas.CLASSROOM50, content.decode())
            for name, content in files.items()}
    assert list(data) == ["alice.json", "bob.json"]
    assert {one["max-score"] for one in data.values()} == {100}
    assert data["bob.json"]["score"] == round(
        the_class.book.score("bob", the_class.hw1).points)
    assert data["alice.json"]["owner"] == "gh-alice"
    assert data["alice.json"]["datetime"] == "2026-10-13T00:00:00Z"


@pytest.mark.parametrize("to", ["gradescope", "classroom50"])
def test_a_folder_has_the_files_of_one_export(tmp_path, to):
    the_class = Class(tmp_path)
    the_class.save(to, the_class.make(to), "out")
    (tmp_path / "out" / "notes.json").write_text("mine")

    the_class.store.append({"event": "excused", "student": "alice", "assignment": "hw1"})
    result = the_class.make(to)
    the_class.save(to, result, "out")

    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"notes.json", *result.files}
    assert "alice.json" not in names


def test_an_export_before_any_import_is_named(tmp_path):
    the_class = Class(tmp_path)
    log = tmp_path / ".tritonlab-class" / "events.jsonl"
    log.unlink()

    problems = the_class.make("gradescope").problems

    assert problems == ["No submission was imported for hw1, so 5 students get 0 points."]


def test_a_newer_submission_without_a_grade_is_named(tmp_path):
    the_class = Class(tmp_path)
    support.hand_in(the_class.store, "alice", "newer", at="2026-10-12T21:00:00-04:00")

    problems = the_class.make("csv").problems

    assert ("1 student with a further submission that is not graded is given the points without "
            "it: alice (Alice Smith).") in problems


def test_junit_has_a_suite_for_each_student(tmp_path):
    the_class = Class(tmp_path)

    content = the_class.make("junit").files[""]

    suites = {suite.get("name"): suite for suite in ET.fromstring(content)}
    assert list(suites) == ["alice", "bob", "carol", "dave"]  # Erin's has no grade yet
    assert [suite.get("failures") for suite in suites.values()] == ["0", "1", "1", "0"]
    assert suites["dave"].find("testcase/skipped") is not None
    assert "N01" in suites["bob"].find("testcase/failure").get("message")


@pytest.mark.parametrize("to", ["gradescope", "classroom50"])
def test_reports_show_what_reveal_allows(tmp_path, to):
    the_class = Class(tmp_path, text=f'{support.CLASS}reveal = "verdict"\n')

    text = json.dumps([content.decode() for content in the_class.make(to).files.values()])

    assert "2 of 4" not in text


def test_a_damaged_result_leaves_its_student_out(tmp_path):
    the_class = Class(tmp_path)
    for path in (tmp_path / ".tritonlab-class" / "results").iterdir():
        path.write_bytes(b"x")

    result = the_class.make("gradescope")

    assert list(result.files) == ["carol.json"]
    assert any("result is missing or damaged" in problem for problem in result.problems)
    assert result.scores == {"carol": 0, "dave": None}
