"""The certificate says what the journal shows, no more, and can be made from it at any time."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest
import toy

import tritonlab
from tritonlab import certificate, grading, workspace
from tritonlab.certificate import FIELDS, State
from tritonlab.grading import Submission
from tritonlab.journal import Reading


@pytest.fixture
def place(tmp_path, toy_course):
    return workspace.start(toy_course.find("softmax"), tmp_path / "ws")[0]


def put_grade(place, toy_course, results, suite_sha256=None, name="softmax"):
    module = toy_course.find(name)
    kernel = place.kernel(module)
    report = toy.report(results, kernel if kernel.exists() else None,
                        suite_sha256 or module.suite_sha256)
    journal = place.journal(toy_course)
    details = grading.record(Submission(module, kernel, place), report, journal.read())
    journal.append("graded", module.id, **details)
    return certificate.build(toy_course, journal.read())


def test_an_empty_journal_shows_nothing_passed(toy_course):
    made = certificate.build(toy_course, Reading(()))

    assert [str(total) for total in made.tracks.values()] == ["0/5", "0/5", "0/4", "0/5"]
    assert (str(made.core), str(made.electives)) == ("0/19", "0/7")
    assert {entry.state for entry in made.entries} == {State.WAITING}


def test_a_pass_counts_and_a_failure_after_it_takes_nothing_away(place, toy_course):
    put_grade(place, toy_course, toy.PASSING)

    made = put_grade(place, toy_course, toy.FAILING)

    entry = made.entry(toy_course.find("softmax"))
    assert (entry.state, entry.evidence, entry.grades) == (State.PASSED, "correct", 2)
    assert (entry.cases_passed, entry.cases_total) == (6, 7)
    assert str(made.tracks["track1"]) == "1/5"
    assert (str(made.core), str(made.electives)) == ("1/19", "0/7")


def test_a_failure_shows_the_best_so_far(place, toy_course):
    put_grade(place, toy_course, toy.FAILING)

    made = put_grade(place, toy_course, toy.BLANKS)

    entry = made.entry(toy_course.find("softmax"))
    assert (entry.state, entry.evidence, entry.cases_passed) == (State.TRIED, "", 2)


def test_a_pass_of_other_tests_counts_and_is_told_apart(place, toy_course):
    made = put_grade(place, toy_course, toy.PASSING, suite_sha256="0" * 64)

    entry = made.entry(toy_course.find("softmax"))
    assert (entry.state, entry.evidence, entry.suite_sha256) == (
        State.OUTDATED, "correct", "0" * 64)
    assert (made.core.passed, made.core.earlier) == (1, 1)


def test_an_elective_is_counted_apart(place, course_root):
    toy.write_module(course_root, "missing-elements", "06-libdevice-math", "Maths", core=False)
    from tritonlab import course

    wider = course.load(course.Roots(course_root / "tracks", course_root / "solutions",
                                     course_root / "suites"))

    made = put_grade(place, wider, toy.PASSING, name="libdevice-math")

    assert str(made.tracks["track1"]) == "0/5"
    assert (str(made.core), str(made.electives)) == ("0/19", "1/7")


def test_hints_and_the_solution_are_on_it(place, toy_course):
    module = toy_course.find("softmax")
    place.journal(toy_course).append("hint", module.id, group="B", rung=1)
    place.kernel(module).write_text(toy.SOLUTION)

    entry = put_grade(place, toy_course, toy.PASSING).entry(module)

    assert (entry.hints_used, entry.solution_seen) == (1, True)


def test_the_json_has_the_documented_fields(place, toy_course):
    made = put_grade(place, toy_course, toy.PASSING)

    data = json.loads(made.to_json())

    assert set(data) == {"schema", "name", "tritonlab", "updated", "journal", "totals", "modules"}
    assert data["schema"] == 2
    assert data["totals"]["tracks"]["track1"] == {
        "title": "Missing Elements", "passed": 1, "total": 5, "earlier": 0}
    assert data["totals"]["core"] == {"passed": 1, "total": 19, "earlier": 0}
    assert data["totals"]["electives"] == {"passed": 0, "total": 7, "earlier": 0}
    assert [tuple(entry) for entry in data["modules"]] == [FIELDS, FIELDS]
    assert (data["modules"][1]["target"], data["modules"][1]["device"]) == (None, None)


def test_it_holds_no_path_and_no_machine(place, toy_course):
    put_grade(place, toy_course, toy.PASSING)

    for path in place.mark.iterdir():
        text = path.read_text()
        assert str(place.root) not in text
        assert str(Path.home()) not in text or str(Path.home()) == "/"


def test_the_file_is_the_view_that_the_journal_gives(place, toy_course):
    made = put_grade(place, toy_course, toy.PASSING)

    assert (place.mark / "certificate.json").read_text() == made.to_json()


def test_the_last_name_counts_and_an_empty_one_takes_it_off(place, toy_course):
    journal = place.journal(toy_course)

    journal.append("named", name="Ada")
    named = certificate.build(toy_course, journal.read())
    journal.append("named", name="")
    unnamed = certificate.build(toy_course, journal.read())

    assert (named.name, unnamed.name) == ("Ada", None)


def test_the_next_module_is_the_first_open_one_after_this(place, toy_course):
    copy, softmax = toy_course.modules
    reading = Reading(())

    assert certificate.next_module(toy_course, reading) == copy
    assert certificate.next_module(toy_course, reading, copy) == softmax
    assert certificate.next_module(toy_course, reading, softmax) == copy
    put_grade(place, toy_course, toy.PASSING)
    put_grade(place, toy_course, toy.PASSING, name="copy")
    assert certificate.next_module(toy_course, place.journal(toy_course).read(), copy) is None


def test_a_record_with_odd_fields_still_loads(place, toy_course):
    place.journal(toy_course).append("graded", "track1/softmax", verdict="PASSED", cases=7)
    place.journal(toy_course).append("graded", "no/such-module")
    place.journal(toy_course).append("graded", "track1/softmax")

    made = certificate.build(toy_course, place.journal(toy_course).read())

    assert json.loads(made.to_json())["totals"]["core"]["passed"] == 0


def test_the_version_is_the_package_s():
    assert tritonlab.__version__ == version("tritonlab")
