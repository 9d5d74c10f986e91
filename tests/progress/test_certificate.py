"""The certificate says what the journal shows, no more, and can be made from it at any time."""

from __future__ import annotations

import hashlib
import json
import os
import random
from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path

import pytest

import tritonlab
from tests.support import toy
from tritonlab.course import course
from tritonlab.grading import grade as grading
from tritonlab.progress import certificate, journal
from tritonlab.progress import merge as merging
from tritonlab.progress.certificate import CertificateEntry, ModuleState
from tritonlab.progress.journal import JournalReading
from tritonlab.workspace import workspace
from tritonlab.workspace.submission import Submission


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
    made = certificate.build(toy_course, JournalReading(()))

    assert [str(total) for total in made.tracks.values()] == ["0/2", "0/0", "0/0", "0/0"]
    assert (str(made.core), str(made.electives)) == ("0/2", "0/0")
    assert {entry.state for entry in made.entries} == {ModuleState.WAITING}


def test_a_pass_counts_and_a_failure_after_it_takes_nothing_away(place, toy_course):
    put_grade(place, toy_course, toy.PASSING)

    made = put_grade(place, toy_course, toy.FAILING)

    entry = made.entry(toy_course.find("softmax"))
    assert (entry.state, entry.evidence, entry.grades) == (ModuleState.PASSED, "correct", 2)
    assert (entry.cases_passed, entry.cases_total) == (6, 7)
    assert str(made.tracks["track1"]) == "1/2"
    assert (str(made.core), str(made.electives)) == ("1/2", "0/0")


def test_a_failure_shows_the_best_so_far(place, toy_course):
    put_grade(place, toy_course, toy.FAILING)

    made = put_grade(place, toy_course, toy.BLANKS)

    entry = made.entry(toy_course.find("softmax"))
    assert (entry.state, entry.evidence, entry.cases_passed) == (ModuleState.TRIED, "", 2)


def test_a_pass_of_other_tests_counts_and_is_told_apart(place, toy_course):
    made = put_grade(place, toy_course, toy.PASSING, suite_sha256="0" * 64)

    entry = made.entry(toy_course.find("softmax"))
    assert (entry.state, entry.evidence, entry.suite_sha256) == (
        ModuleState.OUTDATED, "correct", "0" * 64)
    assert (made.core.passed, made.core.earlier) == (1, 1)


def test_an_elective_is_counted_apart(place, course_root):
    toy.write_module(course_root, "missing-elements", "06-libdevice-math", "Maths", core=False)
    from tritonlab.course import course

    wider = course.load(course.Roots(course_root / "tracks", course_root / "solutions",
                                     course_root / "suites"))

    made = put_grade(place, wider, toy.PASSING, name="libdevice-math")

    assert str(made.tracks["track1"]) == "0/2"
    assert (str(made.core), str(made.electives)) == ("0/2", "1/1")


def test_hints_and_the_solution_are_on_it(place, toy_course):
    module = toy_course.find("softmax")
    place.journal(toy_course).append("hint", module.id, group="B", rung=1)
    place.kernel(module).write_text(toy.SOLUTION)

    entry = put_grade(place, toy_course, toy.PASSING).entry(module)

    assert (entry.hints_used, entry.solution_seen) == (1, True)


def test_hints_that_are_read_after_a_pass_are_free(place, toy_course):
    module = toy_course.find("softmax")
    place.journal(toy_course).append("hint", module.id, group="B", rung=1)
    put_grade(place, toy_course, toy.PASSING)
    place.journal(toy_course).append("hint", module.id, group="B", rung=2)

    entry = put_grade(place, toy_course, toy.PASSING).entry(module)

    assert entry.hints_used == 1


def test_the_json_has_the_documented_fields(place, toy_course):
    made = put_grade(place, toy_course, toy.PASSING)

    data = json.loads(made.to_json())

    assert set(data) == {"schema", "course", "course_version", "name", "tritonlab", "updated",
                         "journal", "totals", "modules"}
    assert data["schema"] == 2
    assert data["totals"]["tracks"]["track1"] == {
        "title": "Missing Elements", "passed": 1, "total": 2, "earlier": 0}
    assert data["totals"]["core"] == {"passed": 1, "total": 2, "earlier": 0}
    assert data["totals"]["electives"] == {"passed": 0, "total": 0, "earlier": 0}
    names = tuple(field.name for field in fields(CertificateEntry))
    assert [tuple(entry) for entry in data["modules"]] == [names, names]
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


def test_what_is_left_open_is_gone_on_from_and_the_last_leads_to_the_first(toy_course):
    copy, softmax = toy_course.modules
    reading = JournalReading(())

    assert certificate.next_module(toy_course, reading) == copy
    assert certificate.next_module(toy_course, reading, copy) == softmax
    assert certificate.next_module(toy_course, reading, softmax) == copy


def test_after_a_pass_the_first_left_behind_it_is_next_and_after_all_none(place, course_root):
    for folder in ("02-sum", "04-norm"):
        toy.write_module(course_root, "missing-elements", folder, folder, core=folder != "02-sum")
    the_course = course.load(course.roots_in(course_root))
    copy, elective, softmax, norm = the_course.modules

    put_grade(place, the_course, toy.PASSING, name="softmax")
    after_softmax = place.journal(the_course).read()
    for name in ("copy", "norm"):
        put_grade(place, the_course, toy.PASSING, name=name)
    after_core = place.journal(the_course).read()
    put_grade(place, the_course, toy.PASSING, name="sum")
    after_all = place.journal(the_course).read()

    assert certificate.next_module(the_course, after_softmax, softmax) == norm
    assert certificate.next_module(the_course, after_softmax, copy) == norm  # left for later
    assert certificate.next_module(the_course, after_softmax, norm) == copy
    assert certificate.next_module(the_course, after_core, norm) == elective
    assert certificate.next_module(the_course, after_all, norm) is None


def test_warm_ups_are_next_until_their_module_is_passed(place, course_root):
    for folder in ("02-sum", "04-norm"):
        toy.write_module(course_root, "missing-elements", folder, folder, core=False,
                         before="track1/softmax" if folder == "04-norm" else "")
    the_course = course.load(course.roots_in(course_root))
    copy, elective, warm_up, softmax = the_course.modules
    empty = JournalReading(())

    put_grade(place, the_course, toy.PASSING, name="softmax")
    passed = place.journal(the_course).read()

    assert certificate.next_module(the_course, empty, copy) == warm_up
    assert certificate.next_module(the_course, empty, warm_up) == softmax
    assert certificate.next_module(the_course, passed, copy) == elective
    assert certificate.warm_ups(the_course, empty, softmax) == [warm_up]
    assert certificate.warm_ups(the_course, passed, softmax) == []


def test_a_record_with_odd_fields_still_loads(place, toy_course):
    place.journal(toy_course).append("graded", "track1/softmax", verdict="PASSED", cases=7)
    place.journal(toy_course).append("graded", "no/such-module")
    place.journal(toy_course).append("graded", "track1/softmax")

    made = certificate.build(toy_course, place.journal(toy_course).read())

    assert json.loads(made.to_json())["totals"]["core"]["passed"] == 0


def test_the_version_is_the_package_s():
    assert tritonlab.__version__ == version("tritonlab")


# ------------------------------------------------------------ tests that change, and the solution

TODAY, OLD, OLDER = "today", "old", "older"


def history(module, *events):
    """A reading of events in one chain, as ``(event, details)``; "suite" stands for its hash."""
    made = []
    suites = {TODAY: module.suite_sha256, OLD: "a" * 64, OLDER: "b" * 64}
    for seq, (event, details) in enumerate(events, start=1):
        data = {"seq": seq, "event": event, "module": module.id, "date": "2026-01-01",
                "prev": made[-1].sha256 if made else journal.GENESIS, **details}
        if "suite" in data:
            data["suite_sha256"] = suites[data.pop("suite")]
        data["sha256"] = hashlib.sha256(journal.canonical(data)).hexdigest()
        made.append(journal.from_data(data))
    return JournalReading(tuple(made))


def passes(suite, source="s", evidence="correct"):
    return "graded", {"suite": suite, "verdict": "PASSED", "source_sha256": source,
                      "evidence": evidence, "cases": {"passed": 7, "total": 7}}


def fails(suite, source="s", passed=3):
    return "graded", {"suite": suite, "verdict": "FAILED", "source_sha256": source,
                      "evidence": "", "cases": {"passed": passed, "total": 7}}


LOOK = ("solution", {"gave_up": True})


@pytest.mark.parametrize(("events", "state", "evidence", "tests", "regraded"), [
    ([fails(OLD)], ModuleState.TRIED, "", None, None),
    ([fails(TODAY)], ModuleState.TRIED, "", TODAY, None),
    ([passes(TODAY)], ModuleState.PASSED, "correct", TODAY, None),
    ([passes(OLD)], ModuleState.OUTDATED, "correct", OLD, None),
    ([passes(OLD, evidence="fast")], ModuleState.OUTDATED, "fast", OLD, None),
    ([passes(OLD), fails(TODAY)], ModuleState.OUTDATED, "correct", OLD, "FAILED"),
    ([passes(OLD), fails(TODAY, "changed")], ModuleState.OUTDATED, "correct", OLD, "FAILED"),
    ([passes(OLD), fails(OLD)], ModuleState.OUTDATED, "correct", OLD, None),
    ([passes(OLD, evidence="fast"), passes(TODAY)], ModuleState.PASSED, "correct", TODAY, None),
    ([passes(OLD), passes(TODAY), fails(TODAY)], ModuleState.PASSED, "correct", TODAY, None),
    ([passes(OLDER, evidence="efficient"), passes(OLD)], ModuleState.OUTDATED, "efficient", OLDER,
     None),
    ([passes(TODAY), passes(OLD, evidence="fast")], ModuleState.PASSED, "correct", TODAY, None),
], ids=["failed earlier tests", "failed", "passed", "passed earlier tests",
        "fast under earlier tests", "the same file fails today's", "a changed file fails today's",
        "failed the earlier ones later", "passed both, faster then", "passed both, failed since",
        "two earlier suites", "tests that came back"])
def test_what_is_passed_stays_passed_and_claims_what_was_shown(
        toy_course, events, state, evidence, tests, regraded):
    module = toy_course.find("softmax")

    made = certificate.build(toy_course, history(module, *events))

    entry = made.entry(module)
    assert (entry.state, entry.evidence, entry.regraded) == (state, evidence, regraded)
    assert entry.suite_sha256 == {TODAY: module.suite_sha256, OLD: "a" * 64, OLDER: "b" * 64,
                                  None: None}[tests]
    assert made.core.passed == (state in (ModuleState.PASSED, ModuleState.OUTDATED))
    assert made.core.earlier == (state is ModuleState.OUTDATED)


def test_what_was_passed_without_a_gpu_can_be_timed_whichever_tests_it_passed(toy_course):
    module = toy_course.find("softmax")

    slow, fast, tried = (
        certificate.below_fast(toy_course, certificate.build(toy_course, history(module, event)))
        for event in (passes(OLD, evidence="efficient"), passes(OLD, evidence="fast"), fails(OLD)))

    assert (slow, fast, tried) == ([module], [], [])


def test_no_history_loses_a_pass_or_claims_more_than_it_shows(toy_course):
    module = toy_course.find("softmax")
    chance = random.Random(8)

    for _ in range(200):
        events = [chance.choice((passes, fails))(chance.choice((TODAY, OLD, OLDER)),
                                                 chance.choice("rst"))
                  for _ in range(chance.randint(1, 7))]
        done = False
        for length in range(1, len(events) + 1):
            reading = history(module, *events[:length])
            entry = certificate.build(toy_course, reading).entry(module)
            shown = [r for r in reading.records if r.passed]

            assert entry.done >= done, "a later grade took a pass away"
            assert entry.done is bool(shown)
            assert (entry.state is ModuleState.PASSED) is any(
                r["suite_sha256"] == module.suite_sha256 for r in shown)
            if entry.done:
                assert any((r["suite_sha256"], r["source_sha256"], r["evidence"]) == (
                    entry.suite_sha256, entry.source_sha256, entry.evidence) for r in shown)
            done = entry.done


def test_a_new_suite_takes_no_pass_away(place, toy_course, course_root):
    before = put_grade(place, toy_course, toy.PASSING)
    module = toy_course.find("softmax")
    module.suite.write_text(module.suite.read_text() + "# one more case\n")

    after = certificate.build(toy_course, place.journal(toy_course).read())

    was, entry = before.entry(module), after.entry(module)
    assert (was.state, entry.state) == (ModuleState.PASSED, ModuleState.OUTDATED)
    assert replace(entry, state=was.state) == was
    assert (after.core.passed, after.core.earlier) == (1, 1)
    assert certificate.next_module(toy_course, place.journal(toy_course).read()).id == "track1/copy"
    assert certificate.missing(toy_course, place.journal(toy_course).read(), module) == [
        "track1/copy"]


def test_list_status_and_certificate_say_which_tests_and_status_how_to_grade_again(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")
    run("grade")
    suite = toy_suite()
    suite.write_text(suite.read_text() + "# one more case\n")

    listed, status, shown = (run(verb) for verb in ("list", "status", "certificate"))
    judge(toy.FAILING)
    run("grade")
    regraded = run("status", "--plain")

    assert "PASS  track1/softmax  Stable softmax  passed under earlier tests" in listed.out
    assert "passed under earlier tests, 6 of 7 checks passed" in shown.out
    assert "1/2 passed" in status.out
    assert "passed under earlier tests, which counts. They have changed since." in status.out
    assert "        Grade it again: tritonlab grade track1/softmax\n" in status.out
    assert ("PASS track1/softmax passed under earlier tests, which counts. Under today's it is "
            "not passed yet.\nGrade it again: tritonlab grade track1/softmax\n") in regraded.out


def toy_suite() -> Path:
    return Path(os.environ["TRITONLAB_COURSE"], "suites/missing-elements/03-softmax/suite.py")


@pytest.mark.parametrize(("events", "seen"), [
    ([passes(TODAY)], False),
    ([LOOK, passes(TODAY)], True),
    ([passes(TODAY), LOOK], False),
    ([passes(OLD), LOOK, passes(TODAY)], False),
    ([passes(OLD), LOOK, passes(TODAY, "changed")], True),
    ([fails(TODAY), LOOK, passes(TODAY)], True),
    ([passes(TODAY, "own"), LOOK, passes(TODAY, "changed", "fast")], True),
    ([passes(TODAY, "own"), LOOK, passes(TODAY, "own", "fast")], False),
], ids=["never", "before", "after", "after a pass, same file graded again", "after a pass, changed",
        "after a failure", "a better pass of another file", "a better pass of the same file"])
def test_a_pass_says_whether_the_solution_was_shown_before(toy_course, events, seen):
    module = toy_course.find("softmax")

    entry = certificate.build(toy_course, history(module, *events)).entry(module)

    assert entry.solution_seen is seen


@pytest.mark.parametrize(("looked", "passed", "seen"), [
    ("2026-01-01", "2026-01-02", True), ("2026-01-02", "2026-01-01", False),
    ("2026-01-01", "2026-01-01", True),  # on one day, nobody can tell
])
def test_a_look_on_another_machine_counts(toy_course, looked, passed, seen):
    module = toy_course.find("softmax")
    [look] = history(module, ("solution", {"gave_up": True, "date": looked})).records
    event, details = passes(TODAY)
    [grade] = history(module, (event, details | {"date": passed})).records

    for order in ((look, grade), (grade, look)):
        reading = JournalReading(order, merged=frozenset({order[0].sha256}))
        assert certificate.build(toy_course, reading).entry(module).solution_seen is seen


def test_merged_either_way_two_machines_have_the_same_certificate(tmp_path, toy_course):
    module = toy_course.find("softmax")
    places = [workspace.start(module, tmp_path / name)[0] for name in ("one", "two")]
    put_grade(places[0], toy_course, toy.FAILING)
    put_grade(places[1], toy_course, toy.PASSING)
    places[1].journal(toy_course).append("named", name="Ada")

    merging.merge(toy_course, places[0].journal(toy_course), places[1].root)
    merging.merge(toy_course, places[1].journal(toy_course), places[0].root)

    one, two = ((place.mark / "certificate.json").read_text() for place in places)
    assert one == two
    assert json.loads(one)["totals"]["core"]["passed"] == 1
    assert json.loads(one)["name"] == "Ada"
