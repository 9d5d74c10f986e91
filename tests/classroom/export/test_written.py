"""Files that an export writes anew: columns, escapes, and the log."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.classroom.export.support import BEFORE, HEADER, Class
from tritonlab.classroom.book import Graded
from tritonlab.classroom.export import export
from tritonlab.classroom.export.written import COLUMNS, harmless_cell
from tritonlab.errors import TritonlabError


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def test_csv_has_the_columns_of_nbgrader(tmp_path):
    the_class = Class(tmp_path)
    score = the_class.book.score("bob", the_class.hw1)

    rows = table(the_class.make("csv").files[""])

    assert tuple(rows[0]) == COLUMNS
    alice, bob, carol, dave, erin = rows
    assert alice == {
        "assignment": "hw1", "duedate": "2026-10-12T23:59:00-04:00",
        "timestamp": "2026-10-12T20:00:00-04:00",
        "student_id": "alice", "last_name": "Smith", "first_name": "Alice",
        "email": "alice@uni.edu", "raw_score": "100", "late_submission_penalty": "0",
        "score": "100", "max_score": "100"}
    assert float(bob["score"]) == score.points
    assert float(bob["late_submission_penalty"]) == pytest.approx(
        score.modules[0].raw - score.points, abs=0.006)
    assert (carol["timestamp"], carol["score"]) == ("", "0")
    assert (dave["score"], erin["score"]) == ("", "")


def test_names_are_divided_as_in_the_roster(tmp_path):
    roster = "student,First Name,Last Name\nalice,Fatima,Al Farsi\nbob,Ann,\n"

    rows = table(Class(tmp_path, roster=roster).make("csv").files[""])

    assert [(row["first_name"], row["last_name"]) for row in rows[:2]] == [
        ("Fatima", "Al Farsi"), ("", "Ann")]


def test_before_the_due_time_a_missing_submission_has_no_score(tmp_path):
    assert table(Class(tmp_path).make("csv", now=BEFORE).files[""])[2]["score"] == ""


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "＝1"])
def test_formulas_of_students_are_neutralized(tmp_path, text):
    roster = f'{HEADER}"{text}","{text}, {text}","{text}",,,,,\n'
    the_class = Class(tmp_path, roster=roster)

    row = table(the_class.make("csv").files[""])[0]

    assert all(row[key][0] == "'" for key in ("student_id", "last_name", "first_name", "email"))


@pytest.mark.parametrize("text", ["", "Anne-Marie", "O'Brien", "a@b.edu", "1"])
def test_other_texts_are_left_alone(text):
    assert harmless_cell(text) == text


def test_jsonl_has_a_line_for_each_student_and_module_with_all_of_the_grade(tmp_path):
    lines = [json.loads(line)
             for line in Class(tmp_path).make("jsonl").files[""].decode().splitlines()]

    assert [line["student"] for line in lines] == ["alice", "bob", "carol", "dave", "erin"]
    assert [line["state"] for line in lines] == ["passed", "open", "not handed in",
                                                 "not handed in", "not graded"]
    assert set(Graded.__struct_fields__) == set(lines[0]["graded"])
    assert lines[1]["graded"]["failing"] == ["case 1"]
    assert lines[3]["excused"]
    assert lines[4]["assignment_points"] is None
    assert len({tuple(line) for line in lines}) == 1


def test_who_is_not_in_the_roster_is_exported_and_named(tmp_path):
    the_class = Class(tmp_path, roster=HEADER + "alice,Alice Smith,,,,,,\n")

    result = the_class.make("csv")

    assert [row["student_id"] for row in table(result.files[""])] == ["alice", "bob", "erin"]
    assert any("not in the roster: bob; erin" in problem for problem in result.problems)


def test_saving_writes_the_file_and_logs_the_points(tmp_path):
    the_class = Class(tmp_path)
    result = the_class.make("csv")

    paths = the_class.save("csv", result, "exports/hw1.csv")

    assert [path.read_bytes() for path in paths] == [result.files[""]]
    event = the_class.store.log().events[-1]
    assert {key: event[key] for key in ("event", "assignment", "to", "scores")} == {
        "event": "exported", "assignment": "hw1", "to": "csv", "scores": result.scores}
    assert the_class.make("csv", only_changed=True).scores == {}
    assert the_class.make("jsonl", only_changed=True).scores == result.scores


def test_unknown_targets_and_files_that_nothing_fills_are_refused(tmp_path):
    the_class = Class(tmp_path)

    with pytest.raises(TritonlabError, match="Name one of canvas, moodle"):
        the_class.make("excel")
    with pytest.raises(TritonlabError, match="fills in no file"):
        the_class.make("csv", b"x")


def test_names_of_files_are_plain_and_differ():
    students = ["alice", "a/b", "a_b", "../x", ".x", "-rf", "é", "ê", "a" * 128, "a" * 127,
                "bob@uni.edu", "$(x)", "a b"]

    names = [export.file_name(student) for student in students]

    assert len(set(names)) == len(students)
    assert names[0] == "alice"
    assert "bob@uni.edu" in names
    assert all(name.isascii() and len(name) < 80 and not set("/ $()") & set(name)
               and name[0] not in ".-" for name in names)
