"""The gradebook of Canvas: one column changes, every other byte stays."""

from __future__ import annotations

import re

import pytest

from tests.classroom.export.support import BEFORE, Class
from tritonlab.errors import TritonlabError

HEADER = "Student,ID,SIS User ID,SIS Login ID,Section,Notes,hw0 (11),hw1 (12),Current Score\r\n"
HIDDEN = ",,,,,,,Manual Posting,\r\n"
POSSIBLE = "    Points Possible,,,,,,10.00,100.00,(read only)\r\n"
ROWS = (
    '"Smith, Alice",501,9001,asmith,"CS 149, A","=1+1",9.5,{alice},88.1\r\n'
    '"O\'Brien, José",502,9002,bobrien,CS 149,,"7",{bob},\r\n'
    '"Jones, ""CJ"" Carol", 503 ,9003,cjones,CS 149,"two\r\nlines",,{carol},\r\n'
    "\"Miller, Dave\",504,9004,dmiller,CS 149,,-,{dave},0\r\n"
    '"Doe, Erin",505,9005,edoe,CS 149,@x,EX,{erin},\r\n'
    '"Zed, Zoë",506,9006,zzed,CS 149,,,{zed},\r\n'
    "\"Student, Test\",507,,abcdef0123,CS 149,,,{test},\r\n")
OLD = {"alice": "", "bob": "12", "carol": '"3"', "dave": "", "erin": "50", "zed": "77",
       "test": "1"}
NEW = {**OLD, "alice": "100", "bob": "57.14", "carol": '"0"', "dave": "EX"}


def gradebook(cells: dict[str, str]) -> str:
    return "\ufeff" + HEADER + HIDDEN + POSSIBLE + ROWS.format(**cells)


@pytest.fixture
def the_class(tmp_path):
    return Class(tmp_path)


def test_one_column_changes_and_every_other_byte_stays(the_class):
    points = the_class.book.score("bob", the_class.hw1).points

    result = the_class.make("canvas", gradebook(OLD).encode())

    assert result.files[""].decode() == gradebook({**NEW, "bob": f"{points:g}"})
    assert result.scores == {"alice": 100, "bob": points, "carol": 0, "dave": None}


@pytest.mark.parametrize("change", [
    lambda text: text.removeprefix("\ufeff"), lambda text: text.replace("\r\n", "\n"),
    lambda text: text.rstrip("\r\n"), lambda text: text + "\r\n\r\n",
    lambda text: text.replace(HIDDEN, "")],
    ids=["no mark", "line feeds", "no final line end", "blank lines", "nothing hidden"])
def test_other_forms_of_the_file_stay_too(the_class, change):
    points = the_class.book.score("bob", the_class.hw1).points

    result = the_class.make("canvas", change(gradebook(OLD)).encode())

    assert result.files[""].decode() == change(gradebook({**NEW, "bob": f"{points:g}"}))


def test_a_second_export_changes_nothing(the_class):
    content = the_class.make("canvas", gradebook(OLD).encode()).files[""]

    assert the_class.make("canvas", content).files[""] == content


def test_the_same_number_is_left_as_written(the_class):
    content = gradebook({**OLD, "alice": "100.00", "dave": "ex"}).encode()

    result = the_class.make("canvas", content).files[""].decode()

    assert "9.5,100.00,88.1" in result
    assert "-,ex,0" in result


def test_students_of_only_one_side_are_named(the_class):
    content = re.sub(r'"Smith, Alice".*\r\n', "", gradebook(OLD)).encode()

    result = the_class.make("canvas", content)

    text = "\n".join(result.problems)
    assert "not in the roster and left as before: Zed, Zoë." in text
    assert "not in the file: alice (Alice Smith)." in text
    assert "without a grade yet is left out: erin (Erin Doe)." in text
    assert "Test" not in text
    assert "alice" not in result.scores


def test_a_student_in_two_rows_is_left_alone(the_class):
    row = ROWS.split("\r\n")[0].format(alice="4") + "\r\n"
    content = (gradebook(OLD) + row).encode()

    result = the_class.make("canvas", content)

    assert row.encode() in result.files[""]
    assert "alice" not in result.scores
    assert any("several rows" in problem for problem in result.problems)


def test_a_namesake_with_another_login_is_nobody_of_the_roster(the_class):
    content = gradebook(OLD).replace("501,9001,asmith", "599,,other").encode()

    result = the_class.make("canvas", content)

    assert "alice" not in result.scores


def test_before_the_due_time_a_missing_submission_is_no_zero(the_class):
    result = the_class.make("canvas", gradebook(OLD).encode(), now=BEFORE)

    assert "carol" not in result.scores
    assert b',,"3",' in result.files[""]


def test_a_missing_column_is_added_before_the_totals(the_class):
    content = gradebook(OLD).replace("hw1 (12)", "other (12)").encode()

    lines = the_class.make("canvas", content).files[""].decode().split("\r\n")

    assert lines[0].endswith("other (12),hw1,Current Score")
    assert lines[1] == HIDDEN.replace(",\r\n", ",,")
    assert lines[2].endswith("100.00,100,(read only)")
    assert lines[3].endswith("9.5,,100,88.1")
    assert lines[-3].endswith("77,,")  # Zoë is not in the roster


def test_only_changed_points_are_filled_in(the_class):
    result = the_class.make("canvas", gradebook(OLD).encode())
    the_class.save("canvas", result, "out.csv")
    the_class.store.append({"event": "overridden", "student": "alice", "assignment": "hw1",
                            "points": 90, "reason": "x"})

    again = the_class.make("canvas", gradebook(OLD).encode(), only_changed=True)
    the_class.save("canvas", again, "out.csv")

    assert again.scores == {"alice": 90}
    assert again.files[""].decode() == gradebook({**OLD, "alice": "90"})
    assert the_class.book.exported["hw1", "canvas"] == {**result.scores, "alice": 90}


def test_a_decimal_comma_is_kept(the_class):
    points = the_class.book.score("bob", the_class.hw1).points
    content = gradebook(OLD).replace(",", ";").replace(".", ",").encode()

    text = the_class.make("canvas", content).files[""].decode()

    assert f"{points:g}".replace(".", ",") in text
    assert "9,5;100;88,1" in text


@pytest.mark.parametrize(("content", "column", "message"), [
    (b"Name,Points\nx,1\n", "", "lacks the columns Student and ID"),
    (gradebook(OLD).encode(), "hw9", "has no column 'hw9'. Its assignments: hw0"),
    (gradebook(OLD).replace("hw0", "hw1").encode(), "", "has 2 columns 'hw1'"),
    (gradebook(OLD).encode(), "Current Score", "is read-only"),
    (None, "", "--fill FILE")],
    ids=["not canvas", "unknown column", "two columns", "read-only", "no file"])
def test_what_cannot_be_filled_is_refused(the_class, content, column, message):
    with pytest.raises(TritonlabError) as error:
        the_class.make("canvas", content, column=column)

    assert message in str(error.value)


def test_other_points_possible_are_named(the_class):
    content = gradebook(OLD).replace("100.00", "50.00").encode()

    assert any("out of 50 points" in problem
               for problem in the_class.make("canvas", content).problems)
