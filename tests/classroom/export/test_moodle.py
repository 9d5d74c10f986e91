"""The grading worksheet of Moodle: grades and comments change, every other byte stays."""

from __future__ import annotations

import csv
import io

import pytest

from tests.classroom import support
from tests.classroom.export.support import Class
from tritonlab.errors import TritonlabError

HEADER = ("Identifier,\"Full name\",\"Email address\",Status,Grade,\"Maximum Grade\","
          "\"Grade can be changed\",\"Last modified (grade)\",\"Feedback comments\"\n")
ROWS = (
    'Participant 71,"Alice Smith",alice@uni.edu,"Submitted for grading",{alice},100.00,Yes,-,{a}\n'
    'Participant 72,"José O\'Brien",bob@uni.edu,"Submitted, late",{bob},100.00,Yes,"Mon, 1",{b}\n'
    'Participant 73,"=cmd|\' /C calc\'!A0",carol@uni.edu,,"{carol}",100.00,Yes,-,"{c}"\n'
    'Participant 74,"Dave Miller",dave@uni.edu,"",{dave},100.00,Yes,-,"two\nlines"\n'
    'Participant 75,"Erin Doe",erin@uni.edu,"",,100.00,Yes,-,\n'
    'Participant 76,"Zed Zoë",zoe@uni.edu,"",5,100.00,Yes,-,"<p>x</p>"\n')
OLD = {"alice": "", "bob": "", "carol": "", "dave": "8.00", "a": "", "b": "", "c": ""}


def cells(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["no mark", "mark"])
def test_grades_and_comments_change_and_every_other_byte_stays(tmp_path, mark, end):
    the_class = Class(tmp_path)
    points = the_class.book.score("bob", the_class.hw1).points
    text = (mark + HEADER + ROWS).replace("\n", end)

    result = the_class.make("moodle", text.format(**OLD).encode())

    comments = [row["Feedback comments"] for row in cells(result.files[""])]
    quoted = f'"{comments[1]}"' if "," in comments[1] else comments[1]
    assert result.files[""].decode() == text.format(
        alice="100", bob=f"{points:g}", carol="0", dave="",
        a=f'"{comments[0]}"' if "," in comments[0] else comments[0], b=quoted, c=comments[2])
    assert result.scores == {"alice": 100, "bob": points, "carol": 0, "dave": None}
    assert the_class.make("moodle", result.files[""]).files == result.files


@pytest.mark.parametrize(("reveal", "shown", "hidden"), [
    ("verdict", ["FAILED"], ["case 1", "2 of 4"]),
    ("first-failure", ["case 1", "Line 3: 2 of 4 are wrong"], ["case 2"]),
    ("all", ["case 1", "case 2"], [])])
def test_comments_show_what_reveal_allows(tmp_path, reveal, shown, hidden):
    the_class = Class(tmp_path, text=f'{support.CLASS}reveal = "{reveal}"\n')
    report = support.report("FAILED", ("correctness", "PASSED"), ("edge", "FAILED"),
                            ("edge", "FAILED"))
    the_class.grade("carol", report, at="2026-10-12T20:00:00-04:00")

    comment = cells(the_class.make("moodle", (HEADER + ROWS).format(**OLD).encode())
                    .files[""])[2]["Feedback comments"]

    assert all(text in comment for text in shown)
    assert not any(text in comment for text in hidden)


def test_comments_are_escaped_for_html(tmp_path):
    the_class = Class(tmp_path)
    report = support.report("FAILED", ("edge", "FAILED"))
    report["results"][0]["findings"][0]["seen"] = "<script>alert(1)</script> & x"
    the_class.grade("carol", report, at="2026-10-12T20:00:00-04:00")

    text = the_class.make("moodle", (HEADER + ROWS).format(**OLD).encode()).files[""].decode()

    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_comments_of_people_stay_and_ours_are_renewed(tmp_path):
    the_class = Class(tmp_path)
    text = (HEADER + ROWS).format(**{**OLD, "a": "Well done", "c": "tritonlab: 7 points"})

    result = the_class.make("moodle", text.encode())

    rows = cells(result.files[""])
    assert rows[0]["Feedback comments"] == "Well done"
    assert rows[2]["Feedback comments"].startswith("tritonlab: 0 of 100 points.")
    assert any("with a comment" in problem and "alice" in problem for problem in result.problems)


def test_locked_grades_and_strangers_are_left_alone(tmp_path):
    the_class = Class(tmp_path)
    text = (HEADER + ROWS).format(**OLD).replace("Yes,-,\n", "No,-,\n", 1)

    result = the_class.make("moodle", text.encode())

    assert "alice" not in result.scores
    assert cells(result.files[""])[0]["Grade"] == ""
    assert cells(result.files[""])[5]["Grade"] == "5"
    text = "\n".join(result.problems)
    assert "whose grade Moodle does not let change is left as before: alice" in text
    assert "not in the roster and left as before: Zed Zoë." in text


def test_other_maximum_grades_are_named(tmp_path):
    text = (HEADER + ROWS).format(**OLD).replace("100.00", "10,00".join('""'))

    result = Class(tmp_path).make("moodle", text.encode())

    assert any("maximum grade is 10 " in problem for problem in result.problems)


def test_a_worksheet_without_names_needs_the_identifiers_of_the_roster(tmp_path):
    content = b"Identifier,Status,Grade,Feedback comments\nParticipant 71,x,,\n"

    result = Class(tmp_path).make("moodle", content)

    assert result.scores == {}
    assert any("Participant 71" in p or "71" in p for p in result.problems)


def test_another_file_is_refused(tmp_path):
    with pytest.raises(TritonlabError, match="not a grading worksheet"):
        Class(tmp_path).make("moodle", b"Student,ID\n")
