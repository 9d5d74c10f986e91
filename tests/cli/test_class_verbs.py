"""The verbs of `tritonlab class`, from a roster to decisions of the instructor."""

from __future__ import annotations

import json

import pytest

from tests.classroom import support
from tests.support.tiers import by_default


@pytest.fixture
def a_class(run, home, course_root, monkeypatch):
    """A class in the current folder with two submissions; graders obey."""
    support.two_students(run, home, course_root, monkeypatch)
    return home


def test_a_new_class_has_settings_and_a_roster(run, home):
    result = run("class", "init", "cs149")

    assert result.code == 0
    assert "cd cs149 && tritonlab class doctor" in result.out
    assert (home / "cs149" / "class.toml").read_text().startswith("schema = 1\n")
    assert (home / "cs149" / "roster.csv").read_text().startswith("student,name,email")


def test_init_leaves_files_alone_that_are_there(run, home):
    (home / "class.toml").write_text("mine")

    result = run("class", "init")

    assert result.code == 0
    assert (home / "class.toml").read_text() == "mine"


def test_outside_a_class_the_way_to_one_is_named(run, home):
    result = run("class", "status")

    assert result.code == 2
    assert "There is no class.toml in this folder or above it. `tritonlab class init DIR`" \
        in result.err


def test_a_student_who_fails_is_no_error(run, a_class):
    result = run("class", "grade", "--plain")

    assert result.code == 0
    assert "2 submissions graded" in result.out
    assert "Next: tritonlab class status" in result.out


def test_drafts_leave_submissions_without_a_grade(run, a_class):
    drafts = run("class", "grade", "--effort", "values", "--plain")
    status = run("class", "status", "--plain")
    shown = run("class", "show", "bob", "--plain")
    whole = run("class", "grade", "--plain")

    assert (drafts.code, whole.code) == (0, 0)
    assert "2 submissions graded" in whole.out
    assert "bob: not graded, -" in status.out
    assert "track1/softmax wrong-values draft" in shown.out


def test_a_submission_that_cannot_be_graded_is_named_and_gives_one(run, a_class):
    for blob in a_class.glob(".tritonlab-class/blobs/*/*"):
        blob.write_bytes(b"damaged")

    result = run("class", "grade", "--plain")

    assert result.code == 1
    assert "ada, track1/softmax: A stored submission is missing or damaged" in result.out


def test_events_of_a_grading_are_json_lines(run, a_class):
    result = run("class", "grade", "--json")

    kinds = [json.loads(line)["event"] for line in result.out.splitlines()]
    assert kinds == ["begin", "graded", "graded", "end"]


def test_a_dry_run_counts_what_would_be_graded(run, a_class):
    result = run("class", "grade", "--dry-run", "--json")

    assert json.loads(result.out)["grades"] == 2
    assert list(a_class.glob(".tritonlab-class/results/*")) == []


@pytest.mark.parametrize("shard", ["0/2", "3/2", "x", "1/0"])
def test_an_impossible_shard_is_refused(run, a_class, shard):
    result = run("class", "grade", "--shard", shard)

    assert (result.code, "from 1/N to N/N" in result.err) == (2, True)


def test_status_shows_everyone_and_sorts(run, a_class):
    run("class", "grade")

    result = run("class", "status", "hw1", "--sort", "score", "--json")

    scores = json.loads(result.out)["assignments"]["hw1"]
    assert [(one["student"], one["state"], one["points"]) for one in scores] == [
        ("ada", "passed", 100), ("bob", "open", 71.43), ("cyd", "not handed in", 0)]


def test_missing_lists_who_handed_nothing_in(run, a_class):
    result = run("class", "status", "--missing", "--plain")

    assert "cyd: not handed in" in result.out
    assert "ada" not in result.out


def test_show_tells_the_first_failure_and_the_source(run, a_class):
    run("class", "grade")

    result = run("class", "show", "Bob Byte", "--plain")

    assert "wrong-values" in result.out
    assert "Failed: case 1: 2 of 4 are wrong" in result.out
    assert "correctness 71.43 of 71.43 (1 of 1 cases), edge 0 of 28.57 (0 of 1 cases)" in result.out


def test_show_names_the_nearest_student(run, a_class):
    result = run("class", "show", "bobby")

    assert result.code == 2
    assert "No student of roster.csv is called 'bobby'. The nearest: bob" in result.err


def test_decisions_change_the_score_and_keep_their_reason(run, a_class):
    run("class", "override", "bob", "hw1", "--points", "80", "--reason", "oral exam")
    run("class", "excuse", "cyd", "hw1", "--reason", "ill")

    result = run("class", "extend", "ada", "hw1", "--until", "2026-12-24T12:00", "--reason", "x")
    scores = json.loads(run("class", "status", "--json").out)["assignments"]["hw1"]

    assert "due 2026-12-24 12:00" in result.out
    assert [(one["points"], one["state"]) for one in scores] == [
        (0, "not graded"), (80, "not graded"), (None, "excused")]
    log = (a_class / ".tritonlab-class" / "events.jsonl").read_text()
    assert "oral exam" in log


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("extend", "ada", "hw1", "--reason", "x"), "The new due time is missing."),
    (("extend", "ada", "hw1", "--until", "soon", "--reason", "x"), "'soon' is not a time."),
    (("override", "ada", "hw1", "--reason", "x"), "The points are missing."),
    (("excuse", "ada", "hw1"), "The reason is missing; it is kept in the log."),
    (("override", "ada", "hw1", "--points", "800", "--reason", "x"), "Name at most 100."),
    (("extend", "ada", "hw1", "--until", "2026-10-01", "--reason", "x"),
     "The new due time is before that of hw1, 2026-10-12 23:59."),
    (("excuse", "ada", "hw1", "--undo", "--reason", "x"), "hw1 of ada is not excused."),
    (("import", "hw1", "in", "--from", "canvas"), "Nothing in in has the layout canvas."),
    (("show", "Lovelase"), "The nearest: ada (Ada Lovelace)"),
    (("excuse", "ada", "hw2", "--reason", "x"), "no assignment 'hw2'. Did you mean hw1?"),
    (("status", "--sort", "age"), "'age' is not an order."),
    (("grade", "--section", "C"), "No student of roster.csv is in section 'C'."),
    (("grade", "--effort", "some"), "'some' is not an effort."),
    (("grade", "--executor", "dask"), "No executor is called 'dask'.")])
def test_wrong_input_gets_one_sentence(run, a_class, arguments, sentence):
    result = run("class", *arguments)

    assert result.code == 2
    assert sentence in result.err


def test_feedback_before_an_extended_due_time_gives_no_points(run, a_class):
    run("class", "extend", "cyd", "hw1", "--until", "2100-01-01T12:00", "--reason", "ill")
    run("class", "override", "bob", "hw1", "--points", "80", "--reason", "oral exam")

    run("class", "feedback", "hw1", "--out", "feedback", "--format", "md")

    texts = {name: (a_class / "feedback" / f"{name}.md").read_text() for name in ("bob", "cyd")}
    assert "No points yet: not handed in, due 2100-01-01 12:00." in texts["cyd"]
    assert "80 of 100 points, set by the instructor." in texts["bob"]


def test_times_are_those_of_the_class(run, a_class):
    run("class", "import", "hw1", "in", "--at", "2026-10-11T12:00:00+00:00")

    result = run("class", "show", "ada", "--plain")

    assert "2026-10-11 08:00" in result.out


def test_a_line_of_the_source_that_is_cut_is_marked(run, a_class):
    (a_class / "in" / "bob" / "kernel.py").write_text(f"x = {'1' * 200}\n")
    run("class", "import", "hw1", "in", "--at", "2026-10-11")

    result = run("class", "show", "bob")

    [line] = [line for line in result.out.splitlines() if "x = 1" in line]
    assert line.endswith("1…")


def test_a_decision_is_taken_back(run, a_class):
    run("class", "override", "bob", "hw1", "--points", "80", "--reason", "oral exam")

    result = run("class", "override", "bob", "hw1", "--undo", "--reason", "a mistake", "--plain")

    assert (result.code, "bob, hw1" in result.out, "80" in result.out) == (0, True, False)


def test_a_dry_run_of_an_import_lists_what_would_change(run, a_class):
    (a_class / "in" / "bob" / "kernel.py").write_text("newer")

    result = run("class", "import", "hw1", "in", "--at", "2026-10-14", "--dry-run", "--plain")
    again = run("class", "import", "hw1", "in", "--at", "2026-10-10", "--dry-run", "--plain")

    assert "bob (Bob Byte): bob/kernel.py, track1/softmax, 2026-10-14 00:00, 2 days late" \
        in result.out
    assert "Students without a submission: 1\ncyd (Cyd Charisse)" in result.out
    assert "Next: tritonlab class import hw1 in --at 2026-10-14" in result.out
    assert "1 submission of 1 student would be imported for hw1; 1 unchanged." in again.out


def test_a_name_that_is_not_in_the_roster_has_a_cure(run, a_class):
    (a_class / "in" / "dan").mkdir()
    (a_class / "in" / "dan" / "kernel.py").write_text("d")

    result = run("class", "import", "hw1", "in/dan", "--from", "folder", "--plain")

    assert "Add them to roster.csv or rename the files" in result.out
    assert "Next: tritonlab class status hw1" in result.out


def test_init_in_the_folder_of_a_class_names_it_and_what_was_not_copied(run, a_class):
    (a_class / "other.csv").write_text("student\nzed\n")

    result = run("class", "init", f"../{a_class.name}", "--roster", "other.csv", "--plain")

    assert f"The class is in {a_class}." in result.out
    assert "roster.csv was there and is unchanged; other.csv was not copied." in result.err


@pytest.mark.parametrize(("old", "new", "sentence"), by_default(1, [
    ('require_isolation', 'target = "h1000"\nrequire_isolation', "Name one of them as `target`"),
    ('"track1/softmax"', '"track1/sofmax"', "No module is called 'track1/sofmax'")]))
def test_status_and_doctor_name_what_class_toml_lacks(run, a_class, old, new, sentence):
    text = (a_class / "class.toml").read_text()
    (a_class / "class.toml").write_text(text.replace(old, new))

    status, doctor = run("class", "status"), run("class", "doctor", "--json")

    assert sentence in status.err
    failed = [one for one in json.loads(doctor.out)["checks"] if one["name"] == "class.toml"]
    assert sentence in f"{failed[0]['seen']} {failed[0]['remedy']}"
    assert run("class", "grade").code == 2


def test_report_and_feedback(run, a_class):
    run("class", "grade")

    pages = run("class", "report", "--html", "reports", "--anonymous", "--json")
    files = run("class", "feedback", "hw1", "--out", "feedback", "--format", "md", "--plain")

    assert (pages.code, json.loads(pages.out)["pages"]) == (0, 4)
    assert "Ada" not in (a_class / "reports" / "index.html").read_text()
    assert files.code == 0
    assert "The feedback of 3 students is in feedback" in files.out
    assert "2 of 4 are wrong" in (a_class / "feedback" / "bob.md").read_text()


@pytest.mark.parametrize(("arguments", "message"), [
    (("report",), "Add --html DIR."), (("feedback", "hw1"), "Add --out DIR."),
    (("feedback", "hw1", "--out", "x", "--format", "pdf"), "Name html or md.")])
def test_what_report_and_feedback_need(run, a_class, arguments, message):
    result = run("class", *arguments)

    assert result.code == 2
    assert message in result.err


@pytest.fixture
def no_roster(run, home, course_root, monkeypatch):
    """A class in the current folder whose roster has no students."""
    support.two_students(run, home, course_root, monkeypatch)
    (home / ".tritonlab-class" / "events.jsonl").unlink()
    (home / "roster.csv").write_text("student,name,email,sis_id,login,section,github,group\n")
    return home


VERBS = {
    "grade": [], "status": [], "show": ["ada"], "export": ["hw1"], "report": ["--html", "pages"],
    "feedback": ["hw1", "--out", "feedback"], "similar": ["hw1"], "mistakes": ["hw1"],
    "extend": ["ada", "hw1", "--until", "2027-01-01", "--reason", "ill"],
    "excuse": ["ada", "hw1", "--reason", "ill"],
    "override": ["ada", "hw1", "--points", "5", "--reason", "oral"]}


@pytest.mark.parametrize("verb", VERBS)
def test_without_a_roster_a_verb_says_how_students_are_added(run, no_roster, verb):
    result = run("class", verb, *VERBS[verb])

    assert result.code == 2
    assert result.err.startswith("roster.csv has no students, and nothing was imported. Add a line "
                                 "for each student, or let `tritonlab class import ASSIGNMENT "
                                 "FOLDER --add-students` add those")


def test_without_a_roster_an_import_adds_students_if_asked(run, no_roster):
    refused = run("class", "import", "hw1", "in", "--plain")
    dry = run("class", "import", "hw1", "in", "--add-students", "--dry-run", "--plain")
    before = (no_roster / "roster.csv").read_text()
    done = run("class", "import", "hw1", "in", "--add-students", "--plain")
    again = run("class", "import", "hw1", "in", "--add-students", "--plain")

    assert (refused.code, dry.code, done.code, again.code) == (1, 0, 0, 2)
    assert "roster.csv has no students. Add a line for each, then import again, or add " \
        "`--add-students`" in refused.out
    assert "ada: ada/kernel.py, track1/softmax" in dry.out
    assert dry.out.endswith("Next: tritonlab class import hw1 in --add-students\n")
    assert len(before.splitlines()) == 1
    assert "2 submissions of 2 students imported" in done.out
    assert (no_roster / "roster.csv").read_text().splitlines()[1:] == ["ada,,,,,,,", "bob,,,,,,,"]
    assert "roster.csv has students, so none is added." in again.err


@pytest.mark.parametrize("verb", VERBS)
def test_with_submissions_alone_a_verb_works_with_their_students(run, no_roster, verb):
    run("class", "import", "hw1", "in", "--add-students", "--at", "2026-10-10")
    (no_roster / "roster.csv").unlink()
    run("class", "grade")

    result = run("class", verb, *VERBS[verb])

    assert (result.code, result.err) == (0, "")


def test_ids_that_a_platform_gives_become_columns_of_the_roster(run, no_roster):
    export = no_roster / "export" / "submission_1"
    export.mkdir(parents=True)
    (export / "kernel.py").write_text("a")
    (export.parent / "submission_metadata.yml").write_text(
        "---\nsubmission_1:\n  :submitters:\n  - :name: Ada Lovelace\n    :sid: '107'\n"
        "    :email: ada@x.edu\n  :created_at: 2026-10-10 17:34:00.861687000 Z\n")

    result = run("class", "import", "hw1", "export", "--add-students")

    assert result.code == 0
    assert (no_roster / "roster.csv").read_text().splitlines()[1:] == [
        "107,Ada Lovelace,ada@x.edu,107,,,,"]
