"""The points of the students of an assignment, as an export may give them to others."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from grader.text import plural
from tritonlab.classroom.book import Book, Score, State
from tritonlab.classroom.roster import Match, Roster, Student
from tritonlab.classroom.settings import ClassAssignment

_MOST_NAMES = 20  # in one sentence


@dataclass(frozen=True)
class StudentPoints:
    """A student's points of an assignment.

    ``settled``: they are decided, as of ``Score.is_settled``.
    """

    student: Student
    score: Score
    settled: bool

    @property
    def points(self) -> float | None:
        """The points; None for an excused student."""
        return self.score.points

    @property
    def is_excused(self) -> bool:
        return self.points is None


@dataclass
class Exported:
    """Files by name, the points in them, and sentences about what is left out.

    The name is empty where there is only one file. ``notes`` are sentences about nobody left out.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    scores: dict[str, float | None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def points_of_all(book: Book, roster: Roster, assignment: ClassAssignment,
              now: datetime) -> list[StudentPoints]:
    """Returns the points of all students of the roster, then of others who handed in."""
    others = sorted(set(book.students(assignment.name)).difference(one.id for one in roster))
    result = []
    for student in (*roster, *map(Student, others)):
        score = book.score(student.id, assignment)
        result.append(StudentPoints(student, score, score.is_settled(now)))
    return result


def changed(students: Iterable[StudentPoints],
            before: Mapping[str, float | None]) -> list[StudentPoints]:
    """Returns the students whose points differ from those of an earlier export."""
    return [one for one in students
            if one.student.id not in before or before[one.student.id] != one.points]


def problems_of(students: Sequence[StudentPoints], roster: Roster, book: Book,
                assignment: ClassAssignment) -> list[str]:
    """Returns sentences about missing submissions and grades, and about strangers."""
    waiting = [one.student for one in students
               if not one.settled and one.score.state is not State.MISSING]
    newer = [one.student for one in students if one.settled and not one.score.excused and any(
        book.grade_of(handed) is None for handed in book.of(one.student.id, assignment.name))]
    zeros = sum(one.settled and one.score.state is State.MISSING and one.points == 0
                for one in students)
    nothing = [] if book.handed.get(assignment.name) else [
        f"No submission was imported for {assignment.name}" + (
            f", so {zeros} {'student gets' if zeros == 1 else 'students get'} 0 points."
            if zeros else ".")]
    strangers = [one.student for one in students if roster.get(one.student.id) is None]
    return [*nothing, *sentence(waiting, "without a grade yet", "left out"),
            *sentence(newer, "with a further submission that is not graded",
                      "given the points without it"),
            *sentence(strangers if roster.students else (), "who handed in", "not in the roster")]


def sentence(students: Sequence[Student | str], kind: str, outcome: str) -> list[str]:
    """Returns a sentence that names students; none if there are none."""
    if not students:
        return []
    names = "; ".join(map(str, students[:_MOST_NAMES]))
    more = len(students) - _MOST_NAMES
    rest = f"; and {more} more" if more > 0 else ""
    verb = "is" if len(students) == 1 else "are"
    return [f"{plural(len(students), 'student')} {kind} {verb} {outcome}: {names}{rest}."]


def identified(roster: Roster, ids: Mapping[str, str], name: str) -> Match:
    """Returns the student of a row.

    Ids decide before the name, and the name decides nothing if an id contradicts it.

    Args:
        ids: values by kind, such as ``login``, ``sis_id``, ``email`` or ``canvas``.
        name: the name in the row.
    """
    given = {kind: value for kind, value in ids.items() if value}
    pairs = [f"{kind}:{value}" for kind, value in given.items()]
    match = Match()
    for text in (*(given[kind] for kind in ("login", "sis_id", "email") if kind in given), name):
        match = roster.match(text, pairs)
        if match.student or match.how == "ambiguous":
            break
    if match.how in ("name", "lastfirst") and match.student and any(
            _differ(value, getattr(match.student, kind, "")) for kind, value in given.items()):
        return Match(nearest=(str(match.student),))
    return match


def _differ(value: str, own: str) -> bool:
    """Whether two ids cannot be the same student's; a login may be the start of an address."""
    return bool(own) and value.casefold().partition("@")[0] != own.casefold().partition("@")[0]


def rows_by_student(rows: Iterable[tuple[int, str, Mapping[str, str]]], roster: Roster
                    ) -> tuple[dict[str, int], list[str]]:
    """Returns the row of each student, and sentences about rows and students without the other.

    Args:
        rows: of each row its index, the name in it, and ids as of ``identified``.
    """
    places: dict[str, list[int]] = {}
    unknown, ambiguous = [], []
    for row, name, ids in rows:
        match = identified(roster, ids, name)
        label = name or next(filter(None, ids.values()), f"row {row + 1}")
        if match.student:
            places.setdefault(match.student.id, []).append(row)
        elif match.how == "ambiguous":
            ambiguous.append(label)
        else:
            unknown.append(label)
    twice = [one for one in roster if len(places.get(one.id, ())) > 1]
    absent = [one for one in roster if one.id not in places]
    problems = [
        *sentence(unknown, "of the file", "not in the roster and left as before"),
        *sentence(ambiguous, "of the file", "like several of the roster and left as before"),
        *sentence(twice, "of the roster", "in several rows of the file, which are left as before"),
        *sentence(absent, "of the roster", "not in the file")]
    return {student: rows[0] for student, rows in places.items() if len(rows) == 1}, problems


def parse_number(text: str) -> float | None:
    """Returns the number of a cell with a decimal point or comma; None if it has none."""
    if re.fullmatch(r"-?\d+(?:[.,]\d*)?", text):
        return float(text.replace(",", "."))
    return None


def uses_comma(cells: Iterable[str]) -> bool:
    """Whether numbers in a file have a decimal comma."""
    return any(re.fullmatch(r"\d+,(?:\d{1,2}|\d{4,})", cell) for cell in cells)
