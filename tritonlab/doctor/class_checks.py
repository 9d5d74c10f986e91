"""Checks of a class: roster, records, isolation, and room on the disk."""

import shutil

from grader.text import plural
from tritonlab.classroom import grading
from tritonlab.classroom.classroom import ROSTER, Classroom
from tritonlab.classroom.settings import SETTINGS
from tritonlab.doctor.environment_checks import Check, Status, installed, machine
from tritonlab.errors import TritonlabError
from tritonlab.grading.grade import start_sandbox

_BYTES_PER_RESULT = 8_000
_MOST_NAMED = 5


def examine(the_class: Classroom) -> list[Check]:
    """Checks whether this machine can grade the class, and whether its records are whole."""
    return [*installed(), *machine(), *_settings(the_class), _isolation(the_class),
            _disk(the_class), *_roster(the_class), _events(the_class), _submissions(the_class),
            _results(the_class)]


def _settings(the_class: Classroom) -> list[Check]:
    errors = grading.errors_of(the_class.settings, the_class.root, overrides=True)
    return [Check(SETTINGS, Status.BAD, error.message, error.next_step) for error in errors] or [
        Check(SETTINGS, Status.GOOD, "the course, the modules, the target and "
              "ignored cases exist")]


def _isolation(the_class: Classroom) -> Check:
    wanted = the_class.settings.require_isolation
    try:
        with start_sandbox() as box:
            isolation = box.isolation
    except TritonlabError as error:
        return Check("isolation", Status.BAD, error.message, error.next_step)
    text = f"{isolation.describe()}; class.toml requires tier {wanted}"
    if isolation.tier >= wanted:
        return Check("isolation", Status.GOOD, text)
    remedies = " ".join(remedy for _, remedy in isolation.missing)
    return Check("isolation", Status.BAD, text, remedies or "Grade on another machine.")


def _disk(the_class: Classroom) -> Check:
    left = shutil.disk_usage(the_class.store.folder).free
    count = sum(len(submissions) for submissions in the_class.book.handed.values())
    needed = _BYTES_PER_RESULT * max(count, 1000)
    text = f"{left / 1e9:.1f} GB are free; {count:,} submissions need about {needed / 1e6:.0f} MB"
    return Check("disk", Status.GOOD, text) if left > needed else Check(
        "disk", Status.BAD, text, "Free some space.")


def _roster(the_class: Classroom) -> list[Check]:
    roster = the_class.roster
    if not roster.students:
        return [Check("roster", Status.NOTE, f"{ROSTER} lists no students",
                      "Add a line for each, or let `tritonlab class import ASSIGNMENT FOLDER "
                      "--add-students` add those that the submissions name.")]
    checks = [Check("roster", Status.GOOD, plural(len(roster.students), "student"))]
    if roster.problems:
        checks = [Check("roster", Status.NOTE, _some(roster.problems), f"Edit {ROSTER}.")]
    own = {student.id for student in roster.students}
    others = sorted({one.student for one in the_class.book.submissions()} - own)
    if others:
        checks.append(Check("left the roster", Status.NOTE, f"{len(others)} with submissions are "
                            f"not in {ROSTER}: {_some(others)}"))
    return checks


def _events(the_class: Classroom) -> Check:
    log = the_class.store.log()
    if log.problems:
        return Check("events", Status.BAD, _some(log.problems),
                     "Restore events.jsonl from a backup; importing and grading again adds what "
                     "is missing.")
    return Check("events", Status.GOOD, f"{len(log.lines):,} events, each chained to the one "
                 "before")


def _submissions(the_class: Classroom) -> Check:
    blobs = {one.blob for one in the_class.book.submissions()}
    damaged = 0
    for blob in blobs:
        try:
            the_class.store.files(blob)
        except TritonlabError:
            damaged += 1
    if damaged:
        return Check("submissions", Status.BAD, f"{damaged} of {len(blobs)} are missing or damaged",
                     "Import them again.")
    return Check("submissions", Status.GOOD, f"{len(blobs):,} different ones are stored")


def _results(the_class: Classroom) -> Check:
    keys = {one.key for grades in the_class.book.grades.values() for one in grades[-1:]}
    damaged = sum(the_class.store.result(key) is None for key in keys)
    if damaged:
        return Check("results", Status.NOTE, f"{damaged} of {len(keys)} are missing or damaged",
                     "`tritonlab class grade` grades them again.")
    return Check("results", Status.GOOD, f"{len(keys):,} are stored")


def _some(sentences: "list[str] | tuple[str, ...]") -> str:
    more = len(sentences) - _MOST_NAMED
    return " ".join(sentences[:_MOST_NAMED]) + (f" And {more} more." if more > 0 else "")
