"""Takes submissions into a class: matches students and modules, stores files, logs events."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.text import plural
from tritonlab.classroom import grading, importers
from tritonlab.classroom.book import Handed
from tritonlab.classroom.classroom import ROSTER, Classroom, roster_csv
from tritonlab.classroom.importers import Incoming
from tritonlab.classroom.roster import Roster, Student, unusable_id
from tritonlab.classroom.settings import ClassAssignment
from tritonlab.classroom.store import digest_of
from tritonlab.course.course import EXERCISE, Course, Module
from tritonlab.errors import TritonlabError, UnknownModule
from tritonlab.workspace import output_files

SCHEMA = 1


@dataclass(frozen=True)
class Refused:
    """A submission that was not imported, and why."""

    name: str
    student: str
    reason: str


@dataclass
class Intake:
    """The result of an import.

    ``unmatched``: names that are not in the roster; ``missing``: students of the roster without a
    submission, then; ``n_read`` counts what has the layout, imported or not.
    """

    assignment: str
    imported: list[Handed] = field(default_factory=list)
    unchanged: int = 0
    unmatched: list[Refused] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    n_read: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "assignment": self.assignment, "unchanged": self.unchanged,
                "imported": [{"student": one.student, "module": one.module, "name": one.name,
                              "at": one.at.isoformat() if one.at else None, "late": one.late}
                             for one in self.imported],
                "missing": self.missing,
                "unmatched": [asdict(one) for one in self.unmatched],
                "refused": [asdict(one) for one in self.refused], "problems": self.problems}


def take(the_class: Classroom, assignment: ClassAssignment, paths: Sequence[Path], *,
         layout: str = "auto", student_from: str = "", at: datetime | None = None,
         dry_run: bool = False, strict: bool = False, add_students: bool = False) -> Intake:
    """Imports submissions; what was imported before changes nothing.

    Args:
        add_students: write the students that the submissions name to a roster without students.
        layout: a layout of ``importers``, or auto to recognize it.
        student_from: a regular expression for the student's name in the path.
        at: the time of submission where the layout shows none.
        strict: import nothing if a name is not in the roster.

    Raises:
        TritonlabError: a path cannot be read, its layout is unclear, or a name is not in the
            roster and ``strict``; or there are students, and more should be added.
    """
    if add_students:
        the_class = _with_students(the_class, (
            one for path in paths for one in importers.read(path, layout, _pattern(student_from))))
    course, _ = grading.course_of(the_class.settings, the_class.root)
    pattern = _pattern(student_from)
    result = Intake(assignment.name)
    before = {_identity(one) for one in the_class.book.handed.get(assignment.name, ())}
    events = []
    for path in paths:
        for incoming in importers.read(path, layout, pattern):
            result.n_read += 1
            result.problems += incoming.problems if incoming.files else ()
            handed, files = _handed(the_class, course, assignment, incoming, at, result)
            if handed is None:
                continue
            blob = digest_of(files) if dry_run else the_class.store.add(files)
            one = Handed(handed.student, assignment.name, handed.module, blob, handed.at,
                         handed.late, handed.name, handed.attempt, layout)
            if _identity(one) in before:
                result.unchanged += 1
                continue
            before.add(_identity(one))
            result.imported.append(one)
            events.append(_event(the_class, one, incoming.journal if not dry_run else None))
    own = {one.student for one in result.imported} | set(the_class.book.students(assignment.name))
    result.missing = [one.id for one in the_class.roster if one.id not in own]
    if strict and result.unmatched:
        first = result.unmatched[0]
        raise TritonlabError(
            f"{plural(len(result.unmatched), 'submission')} cannot be matched with a student of "
            f"{ROSTER}, so nothing was imported; the first is '{first.student}' ({first.name}).",
            f"Add them to {ROSTER}, or leave --strict out.")
    if add_students and not dry_run:
        output_files.write(roster_csv(the_class.roster), the_class.root / ROSTER)
    if events and not dry_run:
        the_class.store.flush()
        the_class.store.append(*events)
    return result


def _with_students(the_class: Classroom, submissions: Iterable[Incoming]) -> Classroom:
    """Returns the class with the students that these submissions name.

    The id is an identifier that the platform gave, or else the name.
    """
    if the_class.roster.students:
        raise TritonlabError(f"{ROSTER} has students, so none is added.",
                             f"Add a line to {ROSTER} for each new one.")
    students: dict[str, Student] = {}
    for one in submissions:
        ids = {kind: value for kind, _, value in (each.partition(":") for each in one.ids)}
        login, sis_id, github, email = (
            ids.get(kind, "") for kind in ("login", "sis_id", "github", "email"))
        name = one.student_text.strip()
        own = login or sis_id or github or email or name
        if not unusable_id(own):
            students.setdefault(own.casefold(), Student(
                own, name if name != own else "", email, sis_id, login, github=github))
    return replace(the_class, roster=Roster(tuple(students.values())))


def _pattern(text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise TritonlabError(f"--student-from is not a regular expression: {error}.",
                             r"Write one such as '(?P<student>[^/]+)/kernel\.py$'.") from error


def _handed(the_class: Classroom, course: Course, assignment: ClassAssignment, incoming: Incoming,
            at: datetime | None, result: Intake) -> tuple[Handed | None, dict[str, bytes]]:
    """Returns what a student handed in, without its blob; notes why there is nothing."""
    def refuse(reason: str) -> tuple[None, dict[str, bytes]]:
        result.refused.append(Refused(incoming.name, incoming.student_text, reason))
        return None, {}

    match = the_class.roster.match(incoming.student_text, incoming.ids)
    if match.student is None:
        nearest = f"the nearest: {', '.join(match.nearest)}" if match.nearest else ""
        result.unmatched.append(Refused(incoming.name, incoming.student_text, nearest))
        return None, {}
    try:
        module = module_of(course, assignment, incoming)
        if module is None:
            return None, {}
        files = files_of(module, incoming)
    except TritonlabError as error:
        return refuse(error.message)
    time = incoming.at or at
    if time is not None and time.tzinfo is None:
        time = time.replace(tzinfo=the_class.settings.zone)
    return Handed(match.student.id, assignment.name, module.id, "", time, incoming.late,
                  incoming.name, incoming.attempt), files


def module_of(course: Course, assignment: ClassAssignment, incoming: Incoming) -> Module | None:
    """Returns the module of a submission; None for one that the assignment does not ask for.

    Raises:
        TritonlabError: it cannot be told.
    """
    asked = [course.find(name) for name in assignment.modules]
    if incoming.module:
        try:
            module = course.find(incoming.module)
        except UnknownModule as error:
            raise TritonlabError(f"the course has no module '{incoming.module}'") from error
        return module if module in asked else None
    if len(asked) == 1:
        return asked[0]
    raise TritonlabError("its module is unclear: the assignment has "
                         f"{len(asked)}, and no folder or name says which")


def files_of(module: Module, incoming: Incoming) -> dict[str, bytes]:
    """Returns the files of a submission by their names in the exercise.

    Raises:
        TritonlabError: there is no file, or it is unclear which one is meant.
    """
    if not incoming.files:
        raise TritonlabError(" ".join(incoming.problems) or f"there is no {EXERCISE}")
    files = {name: incoming.files[name] for name in module.files if name in incoming.files}
    if EXERCISE in incoming.files:
        return {EXERCISE: incoming.files[EXERCISE], **files}
    sources = [name for name in incoming.files if name.endswith(".py") and name not in files]
    if len(sources) == 1:
        return {EXERCISE: incoming.files[sources[0]], **files}
    if not sources:
        raise TritonlabError(f"there is no {EXERCISE}")
    names = ", ".join(sorted(sources)[:4])
    raise TritonlabError(f"there is no {EXERCISE}, and several files may be meant: {names}")


def _identity(handed: Handed) -> tuple[object, ...]:
    time = handed.at.isoformat() if handed.at else ""
    return handed.student, handed.module, handed.blob, time, handed.attempt


def _event(the_class: Classroom, handed: Handed, journal: bytes | None) -> dict[str, Any]:
    event = {name: getattr(handed, name) for name in Handed.__struct_fields__}
    event["at"] = handed.at.isoformat() if handed.at else None
    event["name"] = handed.name.encode("utf-8", "replace").decode()
    if journal:
        event["journal"] = the_class.store.add({"journal.jsonl": journal})
    return {"event": "imported", **event}
