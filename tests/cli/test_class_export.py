"""`tritonlab class export`: files, the log, exit codes."""

from __future__ import annotations

import csv
import json

import pytest

from tests.classroom import support

CANVAS = ("Student,ID,SIS Login ID,Section,hw1 (7),Final Score\r\n"
          "    Points Possible,,,,100.00,(read only)\r\n"
          '"Lovelace, Ada",1,ada,A,,\r\n"Byte, Bob",2,bob,B,,\r\n"Charisse, Cyd",3,cyd,B,-,\r\n')


@pytest.fixture
def a_class(run, home, course_root, monkeypatch):
    """A graded class in the current folder; Cyd has handed in nothing."""
    support.two_students(run, home, course_root, monkeypatch)
    assert run("class", "grade", "--plain").code == 0
    (home / "grades.csv").write_bytes(CANVAS.encode())
    return home


def test_the_file_of_canvas_is_filled_in(run, a_class):
    result = run("class", "export", "hw1", "--to", "canvas", "--fill", "grades.csv",
                 "--out", "out.csv", "--plain")

    text = (a_class / "out.csv").read_bytes().decode()
    assert "The points of" in result.out
    assert '"Lovelace, Ada",1,ada,A,100,\r\n' in text
    assert (a_class / "grades.csv").read_bytes() == CANVAS.encode()


def test_files_are_in_the_folder_of_exports(run, a_class):
    result = run("class", "export", "hw1", "--json")

    data = json.loads(result.out)
    text = (a_class / "exports" / "hw1-csv.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["student_id"] for row in rows] == ["ada", "bob", "cyd"]
    assert data["files"] == [str(a_class / "exports" / "hw1-csv.csv")]
    assert data["scores"]["ada"] == 100


def test_a_second_export_of_changes_has_none(run, a_class):
    run("class", "export", "hw1", "--json")

    result = run("class", "export", "hw1", "--only-changed", "--json")

    plain = run("class", "export", "hw1", "--only-changed", "--to", "csv", "--plain")

    assert json.loads(result.out)["scores"] == {}
    assert json.loads(result.out)["files"] == []
    assert "No points changed since the last export to csv, so nothing was written." in plain.out
    assert "ada" in (a_class / "exports" / "hw1-csv.csv").read_text()


def test_a_folder_says_how_many_files_it_has(run, a_class):
    for student in ("ada", "bob"):
        run("class", "excuse", student, "hw1", "--reason", "ill")

    result = run("class", "export", "hw1", "--to", "gradescope", "--plain")

    assert "1 student are in exports/hw1-gradescope. 2 students without a file" in result.out
    assert [path.name for path in (a_class / "exports" / "hw1-gradescope").iterdir()] == [
        "cyd.json"]


def test_excused_after_an_override_is_excused_in_canvas(run, a_class):
    run("class", "override", "ada", "hw1", "--points", "55", "--reason", "oral")
    run("class", "excuse", "ada", "hw1", "--reason", "ill")

    run("class", "export", "hw1", "--to", "canvas", "--fill", "grades.csv", "--out", "out.csv")

    assert '"Lovelace, Ada",1,ada,A,EX,\r\n' in (a_class / "out.csv").read_bytes().decode()


def test_students_who_are_left_out_are_named_and_give_one(run, a_class):
    (a_class / "grades.csv").write_bytes(CANVAS.replace("ada", "zed").replace(
        "Lovelace, Ada", "Zed, Z").encode())

    result = run("class", "export", "hw1", "--to", "canvas", "--fill", "grades.csv")

    assert result.code == 1
    assert "not in the roster and left as before: Zed, Z." in result.err
    assert "not in the file: ada (Ada Lovelace)." in result.err


@pytest.mark.parametrize(("arguments", "message"), [
    (("--to", "excel"), "Name one of canvas, moodle"),
    (("--to", "canvas"), "--fill FILE"),
    (("--to", "canvas", "--fill", "none.csv"), "none.csv cannot be read"),
    (("--to", "canvas", "--fill", "roster.csv"), "is not a gradebook of Canvas")])
def test_what_cannot_be_exported_is_refused(run, a_class, arguments, message):
    result = run("class", "export", "hw1", *arguments)

    assert result.code == 2
    assert message in result.err
    assert not (a_class / "exports").exists()


def test_a_column_that_was_added_is_named(run, a_class):
    (a_class / "grades.csv").write_bytes(CANVAS.replace("hw1 (7)", "other (8)").encode())

    result = run("class", "export", "hw1", "--to", "canvas", "--fill", "grades.csv")

    assert result.code == 0
    assert "The column hw1 was added; --column TITLE names an existing one." in result.err


def test_a_gradebook_has_a_column_for_each_assignment(run, a_class):
    settings = (a_class / "class.toml").read_text()
    (a_class / "class.toml").write_text(
        settings + '[assignments.hw2]\nmodules = ["track1/softmax"]\n')
    (a_class / "roster.csv").write_text("student,name,email,sis_id,section\n"
                                        "ada,Ada Lovelace,ada@x.edu,107,A\nbob,Bob Byte,,,B\n"
                                        "cyd,=Cyd,,,B\n")
    run("class", "excuse", "bob", "hw1", "--reason", "ill")

    both = run("class", "export", "--to", "gradebook", "--json")
    one = run("class", "export", "hw1", "--to", "gradebook", "--out", "one.csv")

    lines = (a_class / "exports" / "gradebook.csv").read_text().splitlines()
    assert lines == ["First Name,Last Name,SID,Email,Sections,hw1,hw2",
                     "Ada,Lovelace,107,ada@x.edu,A,100,", "Bob,Byte,bob,,B,,",
                     ",'=Cyd,cyd,,B,0,"]
    assert json.loads(both.out)["scores"] == {"hw1": {"ada": 100, "bob": None, "cyd": 0}, "hw2": {}}
    assert both.code == 1  # nothing was imported for hw2
    assert json.loads(both.out)["problems"] == ["hw2: No submission was imported for hw2."]
    assert one.code == 0
    assert (a_class / "one.csv").read_text().splitlines()[0].endswith("Sections,hw1")


def test_other_exports_are_of_one_assignment(run, a_class):
    none = run("class", "export", "--to", "csv")
    filled = run("class", "export", "--to", "gradebook", "--fill", "grades.csv")

    assert (none.code, filled.code) == (2, 2)
    assert "An export to csv is of one assignment. Name one of hw1; --to gradebook" in none.err
    assert "A gradebook is written anew, with all points." in filled.err


def test_an_alias_names_the_student_to_imports_exports_and_verbs(run, a_class):
    settings = (a_class / "class.toml").read_text()
    (a_class / "class.toml").write_text(settings + '[aliases]\n"Augusta@mail.example" = "ada"\n')
    (a_class / "more" / "augusta@mail.example").mkdir(parents=True)
    (a_class / "more" / "augusta@mail.example" / "kernel.py").write_text("a")
    (a_class / "grades.csv").write_bytes(CANVAS.replace("1,ada,A", "1,augusta@mail.example,A")
                                         .encode())

    imported = run("class", "import", "hw1", "more", "--at", "2026-10-11", "--plain")
    exported = run("class", "export", "hw1", "--to", "canvas", "--fill", "grades.csv",
                   "--out", "out.csv")
    shown = run("class", "show", "AUGUSTA@mail.example", "--plain")

    assert (imported.code, exported.code, shown.code) == (0, 0, 0)
    assert "1 submission of 1 student imported" in imported.out
    assert '"Lovelace, Ada",1,augusta@mail.example,A,100,' in (a_class / "out.csv").read_text()
    assert shown.out.startswith("ada Ada Lovelace, section A")


def test_an_alias_of_nobody_is_refused(run, a_class):
    settings = (a_class / "class.toml").read_text()
    (a_class / "class.toml").write_text(settings + '[aliases]\n"x@y.edu" = "adda"\n')

    result = run("class", "status")

    assert result.code == 2
    assert "The alias 'x@y.edu' of class.toml is of 'adda', who is not a student of the roster. " \
        "The nearest: ada (Ada Lovelace)." in result.err
