"""The grading worksheet of Moodle: grades and feedback comments are filled in.

https://docs.moodle.org/en/Assignment_settings (offline grading worksheet)
"""

import html
from collections.abc import Callable, Collection, Sequence

from tritonlab.classroom.export.comment import SIGNATURE
from tritonlab.classroom.export.csv_table import CsvTable
from tritonlab.classroom.export.student_points import (
    Exported,
    StudentPoints,
    parse_number,
    rows_by_student,
    sentence,
    uses_comma,
)
from tritonlab.classroom.roster import Roster
from tritonlab.classroom.settings import ClassAssignment
from tritonlab.errors import TritonlabError
from tritonlab.grading.points import number

_IDS = {"email": "Email address", "sis_id": "ID number", "login": "Username"}


def fill(content: bytes, name: str, students: Sequence[StudentPoints], roster: Roster,
         assignment: ClassAssignment, *, changed: Collection[str],
         comment_on: Callable[[StudentPoints], str]) -> Exported:
    """Fills grades and feedback comments in the worksheet that Moodle exported.

    Every other byte stays. Excused students get an empty grade, which Moodle passes over. Students
    without a submission get 0 once the due time has passed. Students
    without settled points, and rows that Moodle has locked, stay as they are. A comment that
    somebody wrote stays; one of an earlier export is renewed.

    Args:
        name: of the file, for messages.
        changed: the students to fill in.
        comment_on: returns the comment as plain text, which starts with ``SIGNATURE``.

    Raises:
        TritonlabError: the file is not a grading worksheet.
    """
    table = CsvTable(content, name)
    header = next((row for row in range(len(table))
                   if {"Identifier", "Grade"} <= set(table.row(row))), None)
    if header is None:
        raise TritonlabError(
            f"{name} is not a grading worksheet of Moodle: it lacks the columns Identifier and "
            "Grade.", "In Moodle, set the language to English, open the assignment and choose "
            "View all submissions, Download grading worksheet.")
    columns = {title: place for place, title in reversed([*enumerate(table.row(header))])}

    def value(row: int, title: str) -> str:
        return table.value(row, columns[title]) if title in columns else ""

    rows = []
    for row in range(header + 1, len(table)):
        if value(row, "Identifier"):
            ids = {kind: value(row, title) for kind, title in _IDS.items()}
            full_name = value(row, "Full name")
            if not full_name and not any(ids.values()):  # its numbers differ by assignment
                ids["moodle"] = value(row, "Identifier").rpartition(" ")[2]
            rows.append((row, full_name, ids))
    places, problems = rows_by_student(rows, roster)
    result = Exported(problems=problems)
    grade = columns["Grade"]
    comma = uses_comma(value(row, title) for row, _, _ in rows
                       for title in ("Grade", "Maximum Grade"))
    result.problems += _maximum([value(row, "Maximum Grade") for row, _, _ in rows], assignment,
                                name)
    locked, commented = [], []
    for one in students:
        student = one.student.id
        if student not in places or not one.settled or student not in changed:
            continue
        row = places[student]
        if value(row, "Grade can be changed").casefold() == "no":
            locked.append(one.student)
            continue
        before = table.value(row, grade)
        if one.points is None:
            if before:
                table.set(row, grade, "")
        elif parse_number(before) != one.points:
            table.set(row, grade, number(one.points, comma=comma))
        result.scores[student] = one.points
        old = value(row, "Feedback comments")
        new = html.escape(comment_on(one), quote=False).replace("\n", "<br />")
        if old and not old.startswith(SIGNATURE):
            commented.append(one.student)
        elif "Feedback comments" in columns and old != new:
            table.set(row, columns["Feedback comments"], new)
    result.problems += [
        *sentence(locked, "whose grade Moodle does not let change", "left as before"),
        *sentence(commented, "with a comment in the file", "given no other")]
    result.files[""] = bytes(table)
    return result


def _maximum(cells: Sequence[str], assignment: ClassAssignment, name: str) -> list[str]:
    maxima = {points for cell in cells if (points := parse_number(cell)) is not None}
    others = sorted(maxima - {assignment.points})
    if not others:
        return []
    return [f"The maximum grade is {', '.join(map(number, others))} in {name} and "
            f"{number(assignment.points)} in class.toml; the points are not converted, and "
            "Moodle passes over grades above its maximum."]
