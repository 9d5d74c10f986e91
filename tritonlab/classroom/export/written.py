"""Tables that an export writes anew: nbgrader's CSV columns, and JSON lines."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

import msgspec

from tritonlab.classroom.export.student_points import StudentPoints
from tritonlab.classroom.roster import Student
from tritonlab.classroom.settings import ClassAssignment
from tritonlab.grading.points import number

GRADEBOOK = ("First Name", "Last Name", "SID", "Email", "Sections")
COLUMNS = ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
           "raw_score", "late_submission_penalty", "score", "max_score")


def to_csv(students: Iterable[StudentPoints], assignment: ClassAssignment, zone: tzinfo) -> bytes:
    """Returns the points with the columns of nbgrader's gradebook, times of ``zone`` in ISO 8601.

    A student without a submission has no timestamp, and 0 points once the due time has passed.
    Scores of excused students, and of those without settled points, are empty. Texts of students
    that a spreadsheet would take for a formula get an apostrophe in front.

    https://nbgrader.readthedocs.io/en/stable/user_guide/managing_assignment_files.html
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in students:
        score, student = one.score, one.student
        first, last = _names(student)
        times = [module.handed.at for module in score.modules
                 if module.handed and module.handed.at]
        row = [assignment.name, *(_iso(at.astimezone(zone) if at else None) or "" for at in (
            score.due, max(times, default=None))),
               *map(harmless_cell, (student.id, last, first, student.email))]
        if one.settled and one.points is not None:
            raw = sum(module.raw for module in score.modules)
            if score.ruling is not None:
                raw = one.points
            row += [number(raw), number(max(0.0, raw - one.points)), number(one.points)]
        else:
            row += ["", "", ""]
        writer.writerow([*row, number(score.out_of)])
    return stream.getvalue().encode()


def to_gradebook(columns: Mapping[str, Sequence[StudentPoints]]) -> bytes:
    """Returns one row for each student, with the points of each assignment in a column.

    The other columns are those of the grades that Gradescope exports. The SID is the id of the
    class where the roster has none. Cells of excused students, and of those without settled
    points, are empty.

    Args:
        columns: the students' points by assignment.
    """
    students = {one.student.id: one.student for everyone in columns.values() for one in everyone}
    cells = {(name, one.student.id): number(one.points)
             for name, everyone in columns.items() for one in everyone
             if one.settled and one.points is not None}
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*GRADEBOOK, *columns])
    for student in students.values():
        texts = *_names(student), student.sis_id or student.id, student.email, student.section
        writer.writerow([*map(harmless_cell, texts),
                         *(cells.get((name, student.id), "") for name in columns)])
    return stream.getvalue().encode()


def to_jsonl(students: Iterable[StudentPoints], assignment: ClassAssignment) -> bytes:
    """Returns one JSON object a line for each student and module, with all of the grade.

    ``settled`` is false while points may be missing: those count as 0, and ``assignment_points``
    is null then, as for excused students.
    """
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for one in students
                   for line in _lines(one, assignment)).encode("utf-8", "replace")


def _lines(one: StudentPoints, assignment: ClassAssignment) -> Iterator[dict[str, Any]]:
    student, score = one.student, one.score
    for module in score.modules:
        handed = module.handed
        yield {
            "schema": 1, "assignment": assignment.name, "module": module.module,
            "student": student.id, "name": student.name, "email": student.email,
            "section": student.section, "group": student.group, "state": str(module.state),
            "settled": one.settled, "excused": one.is_excused, "due": _iso(score.due),
            "at": _iso(handed.at if handed else None), "days_late": module.days,
            "attempts": module.attempts, "raw": round(module.raw, 2),
            "points": round(module.points, 2), "out_of": module.out_of,
            "assignment_points": one.points if one.settled else None,
            "assignment_out_of": score.out_of,
            "handed": msgspec.to_builtins(handed) if handed else None,
            "graded": msgspec.to_builtins(module.graded) if module.graded else None}


def harmless_cell(text: str) -> str:
    """Returns a text that no spreadsheet takes for a formula."""
    return f"'{text}" if re.match(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]", text) else text


def _names(student: Student) -> tuple[str, str]:
    """Returns first and last names; the last word is the last name unless a comma divides them."""
    if student.last:
        return student.first, student.last
    last, comma, first = student.name.partition(",")
    if comma:
        return first.strip(), last.strip()
    first, _, last = student.name.strip().rpartition(" ")
    return first, last


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
