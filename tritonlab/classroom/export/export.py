"""An export of an assignment's points: its files, and the event that keeps what was given."""

import functools
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tritonlab.classroom.book import Book
from tritonlab.classroom.export import canvas, moodle, reports, written
from tritonlab.classroom.export.comment import comment
from tritonlab.classroom.export.csv_table import MOST_BYTES
from tritonlab.classroom.export.student_points import (
    Exported,
    StudentPoints,
    changed,
    points_of_all,
    problems_of,
    sentence,
)
from tritonlab.classroom.roster import Roster
from tritonlab.classroom.settings import ClassAssignment, ClassSettings
from tritonlab.classroom.store import Store
from tritonlab.errors import TritonlabError, not_saved, reason_of, shown
from tritonlab.progress import safe_files

FILLED = ("canvas", "moodle")  # targets whose own file is filled in
ENDINGS = {"canvas": ".csv", "moodle": ".csv", "csv": ".csv", "jsonl": ".jsonl",
           "junit": ".xml", "gradescope": "", "classroom50": ""}  # "": a folder
GRADEBOOK = "gradebook"  # a column for each assignment
TARGETS = (*ENDINGS, GRADEBOOK)


def make(settings: ClassSettings, roster: Roster, store: Store, book: Book,
         assignment: ClassAssignment, to: str, *, source: Path | None = None, column: str = "",
         only_changed: bool = False, now: datetime | None = None) -> Exported:
    """Returns the files of an export, of points as of ``now``; writes nothing.

    Args:
        to: one of ``ENDINGS``.
        source: the file that Canvas or Moodle exported.
        column: of Canvas's file; by default the one with the name of the assignment.
        only_changed: only students whose points differ from those of the last export to ``to``.

    Raises:
        TritonlabError: the target is unknown, or the file is missing or not one of the target's.
    """
    if to not in ENDINGS:
        raise TritonlabError(f"'{to}' is not a target.", f"Name one of {', '.join(TARGETS)}.")
    now = now or datetime.now(UTC)
    everyone = points_of_all(book, roster, assignment, now)
    before = book.exported.get((assignment.name, to), {})
    selected = changed(everyone, before) if only_changed else everyone
    if to in FILLED:
        result = _filled(roster, store, everyone, assignment, to, source, column,
                         {one.student.id for one in selected})
    else:
        if source is not None or column:
            raise TritonlabError(f"An export to {to} fills in no file.",
                                 "Leave out --fill and --column.")
        if to in ("csv", "jsonl"):
            result = Exported({"": written.to_jsonl(selected, assignment) if to == "jsonl" else
                               written.to_csv(selected, assignment, settings.zone)})
            reported = selected
        else:
            result, reported = _reports(settings, store, selected, assignment, to, now)
        result.scores = _scores(reported)
    result.problems[:0] = problems_of(everyone, roster, book, assignment)
    return result


def gradebook(roster: Roster, book: Book, assignments: Sequence[ClassAssignment], *,
              now: datetime | None = None) -> list[Exported]:
    """Returns the export of each assignment, of which the first has the file for all of them."""
    now = now or datetime.now(UTC)
    columns = {one.name: points_of_all(book, roster, one, now) for one in assignments}
    results = [Exported(scores=_scores(columns[one.name]), problems=[
        f"{one.name}: {problem}" for problem in problems_of(columns[one.name], roster, book, one)])
        for one in assignments]
    results[0].files[""] = written.to_gradebook(columns)
    return results


def _scores(students: Iterable[StudentPoints]) -> dict[str, float | None]:
    return {one.student.id: one.points for one in students if one.settled}


def _filled(roster: Roster, store: Store, everyone: list[StudentPoints],
            assignment: ClassAssignment, to: str, source: Path | None, column: str,
            selected: set[str]) -> Exported:
    if source is None:
        raise TritonlabError(f"An export to {to} fills in the file that {to.title()} exported.",
                             "Name it: --fill FILE.")
    content, name = _read(source), shown(source)
    if to == "canvas":
        return canvas.fill(content, name, everyone, roster, assignment, changed=selected,
                           column=column)
    if column:
        raise TritonlabError("Moodle's worksheet has one column of grades.", "Leave out --column.")
    return moodle.fill(content, name, everyone, roster, assignment, changed=selected,
                       comment_on=lambda one: comment(one, assignment.reveal, store.result))


def _reports(settings: ClassSettings, store: Store, selected: list[StudentPoints],
             assignment: ClassAssignment, to: str, now: datetime
             ) -> tuple[Exported, list[StudentPoints]]:
    result_of = functools.cache(store.result)
    settled = [one for one in selected if one.settled]
    damaged = [one for one in settled if any(
        module.graded and result_of(module.graded.key) is None for module in one.score.modules)]
    students = [one for one in settled if one not in damaged]
    result = Exported(problems=sentence(
        [one.student for one in damaged], "whose result is missing or damaged", "left out"))
    if to == "junit":
        result.files[""] = reports.to_junit(students, result_of)
        return result, students
    for one in students:
        text = reports.to_gradescope(one, assignment, result_of) if to == "gradescope" else \
            reports.to_classroom50(one, settings, assignment, result_of, now)
        if text is not None:
            result.files[f"{file_name(one.student.id)}.json"] = text.encode()
    return result, students


def default_place(root: Path, assignment: ClassAssignment, to: str) -> Path:
    """Returns where an export is written unless another place is named."""
    return root / "exports" / f"{assignment.name}-{to}{ENDINGS[to]}"


def save(store: Store, book: Book, assignment: ClassAssignment, to: str, result: Exported,
         place: Path) -> list[Path]:
    """Writes the files of an export, then logs the points in them.

    A folder loses the files of students who were exported to it before and are not now. The event
    has the points of all students as they were last exported to this target.

    Args:
        place: the file to write, or the folder where there may be several.

    Returns:
        The files.

    Raises:
        NotSaved: a file or the event cannot be written.
    """
    paths = [place / name if name else place for name in result.files]
    for path, content in zip(paths, result.files.values(), strict=True):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with safe_files.opened(path.parent.resolve()) as folder:
                safe_files.replace(folder, path.name, content, 0o644)
        except OSError as error:
            raise not_saved("The export", error, path) from error
    before = book.exported.get((assignment.name, to), {})
    if to in ENDINGS and not ENDINGS[to]:
        for name in {f"{file_name(student)}.json" for student in before} - result.files.keys():
            try:
                (place / name).unlink(missing_ok=True)
            except OSError as error:
                raise not_saved("The export", error, place / name) from error
    store.append({"event": "exported", "assignment": assignment.name, "to": to,
                  "scores": {**before, **result.scores}})
    return paths


def file_name(student: str) -> str:
    """Returns a file name for a student; different ids have different names."""
    plain = re.sub(r"[^A-Za-z0-9_@+.-]|^[.-]", "_", student)[:60]
    if plain == student:
        return plain
    return f"{plain}-{hashlib.sha256(student.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
                  ) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TritonlabError(f"{shown(path)} cannot be read: {reason_of(error)}.",
                             "Name the file that was exported: --fill FILE.") from error
    if len(content) > MOST_BYTES:
        raise TritonlabError(f"{shown(path)} has more than {MOST_BYTES:,} bytes.",
                             "Name the file that was exported: --fill FILE.")
    return content
