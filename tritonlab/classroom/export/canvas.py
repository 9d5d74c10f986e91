"""The gradebook of Canvas: one column of the exported file is filled in or added.

https://community.instructure.com/en/kb/articles/660896 (Gradebook: import grades)
"""

import re
from collections.abc import Collection, Sequence

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

_IDS = {"canvas": "ID", "sis_id": "SIS User ID", "login": "SIS Login ID"}
_EXPORT = "In Canvas, open Grades and choose Export, Export entire gradebook."
_SUMMARY = re.compile(r"(?:Unposted )?(?:Current|Final) (?:Score|Points|Grade)\b|"
                      r".*\b(?:Current|Final|Unposted Current|Unposted Final) "
                      r"(?:Score|Points)\Z|Override (?:Score|Grade|Status)\b")


def fill(content: bytes, name: str, students: Sequence[StudentPoints], roster: Roster,
         assignment: ClassAssignment, *, changed: Collection[str], column: str = "") -> Exported:
    """Fills the column of an assignment in the file that Canvas exported.

    Every other byte stays. Excused students get ``EX``. Students without a submission get 0 once
    the due time has passed: Canvas would leave an empty cell out of the total. Cells of all others
    without settled points stay as they are, and so do ``N/A`` (not assigned in Canvas) and those
    that hold the same number already.

    Args:
        name: of the file, for messages.
        changed: the students to fill in.
        column: the title of the column, with or without Canvas's number; by default the name of
            the assignment. It is added if the file lacks it and no title is given.

    Raises:
        TritonlabError: the file is not a gradebook of Canvas, or the column cannot be filled.
    """
    table = CsvTable(content, name)
    header = next((row for row in range(len(table)) if _is_header(table.row(row))), None)
    if header is None:
        raise TritonlabError(f"{name} is not a gradebook of Canvas: it lacks the columns Student "
                             "and ID.", _EXPORT)
    titles = table.row(header)
    possible = next((row for row in range(header + 1, len(table)) if re.fullmatch(
        r"points possible", table.value(row, 0), re.IGNORECASE)), None)
    student_rows = [row for row in range(header + 1, len(table))
                    if table.value(row, titles.index("ID")) and row != possible]
    columns = {kind: titles.index(title) for kind, title in _IDS.items() if title in titles}
    name_columns = [titles.index(title) for title in ("Student", "FirstName", "LastName")
                    if title in titles]
    rows = [(row, " ".join(table.value(row, one) for one in name_columns),
             {kind: table.value(row, one) for kind, one in columns.items()})
            for row in student_rows]
    places, problems = rows_by_student(
        [row for row in rows if not _is_test_student(row[1])], roster)
    place = _column(titles, column or assignment.name, name)
    notes = []
    if place is None:
        if column:
            raise TritonlabError(f"{name} has no column '{column}'.", _choices(titles))
        notes = [f"The column {assignment.name} was added; --column TITLE names an existing one."]
        place = _end_of_assignments(table, titles, possible)
        for row in range(len(table)):
            value = assignment.name if row == header else \
                number(assignment.points) if row == possible else ""
            if row >= header and any(table.row(row)):
                table.insert(row, place, value)
    elif possible is not None:
        problems += _points_possible(table.value(possible, place), titles[place], assignment, name)
    result = Exported(problems=problems, notes=notes)
    numbered = student_rows if possible is None else [possible, *student_rows]
    comma = uses_comma(value for row in numbered for value in table.row(row)[3:])
    unassigned = []
    for one in students:
        student = one.student.id
        if student not in places or not one.settled or student not in changed:
            continue
        row = places[student]
        before = table.value(row, place)
        if before == "N/A":
            unassigned.append(one.student)
            continue
        if one.points is None:
            if before.upper() != "EX":
                table.set(row, place, "EX")
        elif parse_number(before) != one.points:
            table.set(row, place, number(one.points, comma=comma))
        result.scores[student] = one.points
    result.problems += sentence(unassigned, "of the file", "not assigned this in Canvas")
    result.files[""] = bytes(table)
    return result


def _is_header(titles: Sequence[str]) -> bool:
    return "ID" in titles and bool({"Student", "LastName"} & set(titles))


def _is_test_student(name: str) -> bool:
    return sorted(re.findall(r"\w+", name.casefold())) == ["student", "test"]


def _column(titles: Sequence[str], wanted: str, name: str) -> int | None:
    """Returns the column with a title; Canvas puts the number of the assignment behind it."""
    places = [place for place, title in enumerate(titles) if place and wanted.casefold() in (
        title.casefold(), re.sub(r"\s*\(\d+\)\Z", "", title).casefold())]
    if len(places) > 1:
        raise TritonlabError(f"{name} has {len(places)} columns '{wanted}': "
                             f"{', '.join(titles[place] for place in places)}.",
                             "Name one of them with its number: --column TITLE.")
    return places[0] if places else None


def _choices(titles: Sequence[str]) -> str:
    choices = [title for title in titles if re.search(r"\(\d+\)\Z", title)]
    return f"Its assignments: {', '.join(choices) or 'none'}."


def _end_of_assignments(table: CsvTable, titles: Sequence[str], possible: int | None) -> int:
    """Returns the place for a new column: before the totals, which Canvas drops from the end."""
    place = len(titles)
    while place > 1 and (_SUMMARY.match(titles[place - 1]) or (
            possible is not None and "read only" in table.value(possible, place - 1).lower())):
        place -= 1
    return place


def _points_possible(cell: str, title: str, assignment: ClassAssignment, name: str) -> list[str]:
    if "read only" in cell.lower():
        raise TritonlabError(f"The column '{title}' of {name} is read-only.",
                             "Name the column of the assignment: --column TITLE.")
    points = parse_number(cell)
    if points is None or points == assignment.points:
        return []
    return [f"'{title}' is out of {number(points)} points in {name} and {assignment.name} out of "
            f"{number(assignment.points)} in class.toml; the points are not converted."]
