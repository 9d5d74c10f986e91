"""A class on disk: settings, roster, events, and the scores that follow from them."""

import csv
import functools
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tritonlab.classroom import book, settings, snapshot
from tritonlab.classroom.book import Book, Score
from tritonlab.classroom.roster import COLUMNS, Roster, Student
from tritonlab.classroom.settings import SETTINGS, ClassAssignment, ClassSettings
from tritonlab.classroom.store import FOLDER, Store
from tritonlab.course.course import EXERCISE, Course
from tritonlab.errors import TritonlabError, not_saved
from tritonlab.progress import safe_files

ROSTER = "roster.csv"

_TEMPLATE = """\
schema = 1
name = "{name}"
course = "{course}"             # "tritonlab", or a folder with a course of your own
timezone = "UTC"                # of due times, such as "America/New_York"
target = "h100"                 # one GPU for all: verdicts must not depend on who grades where
require_isolation = 2           # refuse to grade where the sandbox is weaker: 0, 1 or 2
seed = "per-assignment"         # all students get the same secret inputs; or "fresh"
limit_cpu_s = 300               # CPU seconds that one submission may use
limit_memory_mb = 4000          # memory that its code may use

[assignments.hw1]
modules = ["track1/vector-add"]
# due = 2026-10-12T23:59:00
points = 100
weights = {{ correctness = 50, edge = 20, property = 10, performance = 20 }}  # or "all-or-nothing"
# late = {{ percent_per_day = 10, days = 3 }}  # without it, late submissions cost nothing
take = "best"                   # the submission that counts: best, last or last-before-due
reveal = "first-failure"        # what feedback shows: verdict, first-failure or all
"""


@dataclass(frozen=True)
class Classroom:
    """A class in its folder.

    ``quick``: events that are in a snapshot are not parsed.
    """

    root: Path
    settings: ClassSettings
    roster: Roster
    store: Store
    quick: bool = False

    @functools.cached_property
    def book(self) -> Book:
        """All events as of the first look."""
        with book.collecting_rarely():
            return snapshot.read(self.settings, self.store) if self.quick else \
                book.read(self.settings, self.store.log())

    def assignments(self, names: Sequence[str]) -> list[ClassAssignment]:
        """Returns these assignments, or all.

        Raises:
            TritonlabError: one of them is unknown, or there is none.
        """
        if not self.settings.assignments:
            raise TritonlabError(f"{SETTINGS} has no assignments.",
                                 "Add a table [assignments.NAME] with its modules.")
        return [self.settings.assignment(name) for name in names] or \
            [*self.settings.assignments.values()]

    def student(self, text: str) -> Student:
        """Returns the student with this id, name, login or address.

        A student with submissions who is not in the roster has only the id.

        Raises:
            TritonlabError: there is none, or more than one.
        """
        match = self.roster.match(text)
        if match.student is None and any(one.student == text for one in self.book.submissions()):
            return Student(text)
        if match.student is None:
            nearest = f" The nearest: {', '.join(match.nearest)}." if match.nearest else ""
            raise TritonlabError(f"No student of {ROSTER} is called '{text}'.{nearest}",
                                 "Type the student's id.")
        return match.student

    def check_students(self) -> None:
        """Raises TritonlabError if the roster has no students and no submission names any."""
        if not self.roster.students and not self.book.handed:
            raise TritonlabError(
                f"{ROSTER} has no students, and nothing was imported.",
                "Add a line for each student, or let `tritonlab class import ASSIGNMENT FOLDER "
                "--add-students` add those that the submissions name.")

    def ids(self, assignment: str) -> list[str]:
        """The students of the roster, then others who handed something in."""
        own = [student.id for student in self.roster.students]
        others = set(self.book.students(assignment)).difference(own)
        return own + sorted(others)

    def scores(self, assignment: ClassAssignment) -> list[Score]:
        """Returns the points of all students."""
        with book.collecting_rarely():
            return self.book.scores(assignment, self.ids(assignment.name))

    def selected(self, students: Sequence[str], section: str = "") -> frozenset[str] | None:
        """The ids of these students and this section; None for all."""
        if not students and not section:
            return None
        ids = {self.student(text).id for text in students}
        if section:
            members = {one.id for one in self.roster.students if one.section == section}
            if not members:
                sections = sorted({one.section for one in self.roster.students if one.section})
                raise TritonlabError(f"No student of {ROSTER} is in section '{section}'.",
                                     f"Its sections: {', '.join(sections) or 'none'}.")
            ids |= members
        return frozenset(ids)


def load(root: Path | None = None, *, quick: bool = False) -> Classroom:
    """Reads the class in a folder, or around the current folder; ``quick`` as of ``Classroom``.

    Raises:
        TritonlabError: there is none, or its settings or roster cannot be used.
    """
    root = root or settings.find()
    loaded = settings.load(root)
    file = root / ROSTER
    roster = Roster.read(file, may_be_empty=True) if file.exists() else Roster(())
    roster = roster.with_aliases(loaded.aliases if roster.students else {})
    store = Store(root)
    if not store.folder.is_dir():
        store.create()
    return Classroom(root, loaded, roster, store, quick)


def create(root: Path, course: str, roster: Path | None) -> list[Path]:
    """Creates a class: class.toml, roster.csv and the folder of its records.

    Args:
        course: the course's id or folder.
        roster: a roster to copy; without it, an empty one is written.

    Returns:
        The files that were written; those that were there are left alone.

    Raises:
        TritonlabError: the roster cannot be used, or a folder cannot be written.
    """
    content = roster_csv(()).encode()
    if roster is not None:
        Roster.read(roster)
        content = roster.read_bytes()
    name = root.resolve().name
    title = "".join(c if c.isprintable() and c not in '"\\' else " " for c in name)
    files = {SETTINGS: _TEMPLATE.format(name=title, course=course).encode(), ROSTER: content,
             ".gitignore": f"{FOLDER}/cache/\n".encode()}
    written = []
    try:
        root.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            if safe_files.create(root / file, text):
                (root / file).chmod(0o644)
                written.append(root / file)
    except OSError as error:
        raise not_saved("The class", error, root) from error
    Store(root).create()
    return written


def roster_csv(students: Iterable[Student]) -> str:
    """The text of a roster.csv with these students."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows((one.id, *(getattr(one, column) for column in COLUMNS[1:]))
                     for one in students)
    return text.getvalue()


def starters(course: Course, assignments: Iterable[ClassAssignment]) -> dict[str, str]:
    """The exercise files of these assignments as handed out, by module."""
    texts = {}
    for module in {module for one in assignments for module in one.modules}:
        file = course.find(module).folder / EXERCISE
        if file.is_file():
            texts[module] = file.read_text(encoding="utf-8")
    return texts


def parse_time(text: str, settings: ClassSettings) -> datetime:
    """Returns a time such as ``2026-10-12 23:59`` in the timezone of the class.

    Raises:
        TritonlabError: it is not one.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise TritonlabError(f"'{text}' is not a time.",
                             "Write it as 2026-10-12T23:59, or add an offset such as -04:00."
                             ) from error
    return time if time.tzinfo else time.replace(tzinfo=settings.zone)
