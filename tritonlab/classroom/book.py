"""The book of a class: what its events say of students, submissions, grades and points."""

import contextlib
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec

from grader.report import Verdict
from tritonlab.classroom.events import Log
from tritonlab.classroom.settings import ClassAssignment, ClassSettings, days_late
from tritonlab.grading.points import Count, GroupPoints, points_of


class Handed(msgspec.Struct, frozen=True, gc=False):
    """One submission of a student for a module.

    ``at`` is the time of submission, None where the layout names none; ``late`` is what the layout
    says about it. ``name`` is where it came from, and is only ever shown.
    """

    student: str
    assignment: str
    module: str
    blob: str
    at: datetime | None = None
    late: bool | None = None
    name: str = ""
    attempt: str = ""
    layout: str = ""


class Graded(msgspec.Struct, frozen=True, gc=False):
    """The summary of one grade; ``key`` names its result.

    ``code``, ``todos`` and ``line`` are of the first finding; ``failing`` names the cases that
    failed. ``lowered``: it would have lowered published points and does not count.
    """

    assignment: str
    module: str
    blob: str
    key: str
    verdict: str
    evidence: str = ""
    counts: tuple[Count, ...] = ()
    code: str = ""
    todos: tuple[int, ...] = ()
    line: int | None = None
    failing: tuple[str, ...] = ()
    reason: str = ""
    isolation: str = ""
    suite_sha256: str = ""
    cpu_s: float = 0.0
    lowered: bool = False
    effort: str = "whole"

    @property
    def is_final(self) -> bool:
        """Whether it may give points: a draft gives none, whatever its verdict."""
        return self.effort == "whole"


def final(grades: Sequence[Graded]) -> Graded | None:
    """The last of these grades that counts."""
    for one in reversed(grades):
        if one.is_final and not one.lowered:
            return one
    return None


class Ruling(msgspec.Struct, frozen=True, gc=False):
    """An instructor's decision about one student's assignment.

    An excuse and an override replace each other; an extension stands beside them.
    """

    student: str
    assignment: str
    reason: str = ""
    until: datetime | None = None
    points: float | None = None


DECISIONS = ("extended", "excused", "overridden")  # events of an instructor


class State(StrEnum):
    """The state of one student's assignment."""

    MISSING = "not handed in"
    WAITING = "not graded"
    UNDECIDED = "not decided"
    OPEN = "open"
    PASSED = "passed"
    EXCUSED = "excused"


_ORDER = {state: place for place, state in enumerate(State)}


class ModuleScore(msgspec.Struct, frozen=True, gc=False):
    """The submission of a module that counts, its grade, and its points before rounding.

    ``raw`` are the points before the deduction for ``days`` of lateness. ``draft`` is that of the
    last submission, where none has a grade.
    """

    module: str
    out_of: float
    handed: Handed | None = None
    graded: Graded | None = None
    raw: float = 0.0
    points: float = 0.0
    days: int = 0
    attempts: int = 0
    draft: Graded | None = None
    groups: tuple[GroupPoints, ...] = ()  # the points before the deduction, by kind of case

    @property
    def state(self) -> State:
        if self.handed is None:
            return State.MISSING
        if self.graded is None:
            return State.WAITING
        if self.graded.verdict in (Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.SKIPPED):
            return State.UNDECIDED
        return State.PASSED if self.graded.verdict == Verdict.PASSED else State.OPEN


class Score(msgspec.Struct, frozen=True, gc=False):
    """The points of one student's assignment.

    ``state`` is the one that asks for most attention among its modules. ``ruling`` is the override
    or the excuse, whichever is the last; ``extension`` gave more time.
    """

    student: str
    assignment: str
    modules: tuple[ModuleScore, ...]
    out_of: float
    state: State
    due: datetime | None = None
    ruling: Ruling | None = None
    excused: bool = False
    extension: Ruling | None = None

    @property
    def points(self) -> float | None:
        """The points, rounded to hundredths; None while excused."""
        if self.excused:
            return None
        if self.ruling is not None and self.ruling.points is not None:
            return self.ruling.points
        return round(sum(m.points for m in self.modules), 2)

    @property
    def by_hand(self) -> bool:
        """Whether the instructor set the points."""
        return self.ruling is not None and not self.excused

    def is_settled(self, now: datetime | None = None) -> bool:
        """Whether the points are decided.

        They are not while a submission waits for its grade, while the grade decides nothing, and
        while nothing is handed in and the due time has not passed.
        """
        if self.by_hand or self.excused:
            return True
        if self.state is State.MISSING:
            return self.due is not None and (now or datetime.now(UTC)) >= self.due
        return self.state not in (State.WAITING, State.UNDECIDED)

    @property
    def is_late(self) -> bool:
        return any(module.days for module in self.modules)

    @property
    def days(self) -> int:
        return max((module.days for module in self.modules), default=0)

    @property
    def evidence(self) -> str:
        """The lowest level of evidence of its modules, where all passed."""
        levels = ("", "correct", "efficient", "fast")
        return min((m.graded.evidence if m.graded else "" for m in self.modules),
                   key=levels.index, default="")


@dataclass
class Book:
    """All submissions, grades and rulings of a class, by assignment.

    ``sent`` has the event of the last feedback, by assignment and student. ``journals`` has the
    assignment, the student and the blob of each journal, in the order of their import.
    """

    settings: ClassSettings
    handed: dict[str, list[Handed]] = field(default_factory=dict)
    grades: dict[tuple[str, str, str], list[Graded]] = field(default_factory=dict)
    extended: dict[tuple[str, str], Ruling] = field(default_factory=dict)
    excused: dict[tuple[str, str], Ruling] = field(default_factory=dict)
    overridden: dict[tuple[str, str], Ruling] = field(default_factory=dict)
    exported: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    sent: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    journals: list[tuple[str, str, str]] = field(default_factory=list)
    published: set[str] = field(default_factory=set)
    problems: tuple[str, ...] = ()

    def due(self, student: str, assignment: ClassAssignment) -> datetime | None:
        """The due time of a student, with any extension."""
        extension = self.extended.get((student, assignment.name))
        return extension.until if extension else assignment.due

    def grade_of(self, handed: Handed) -> Graded | None:
        """The grade of a submission that counts; None before it is graded."""
        return final(self.grades.get((handed.assignment, handed.module, handed.blob), ()))

    def draft_of(self, handed: Handed) -> Graded | None:
        """The last draft of a submission that has no grade."""
        grades = self.grades.get((handed.assignment, handed.module, handed.blob), ())
        return None if final(grades) else next(
            (one for one in reversed(grades) if not one.is_final), None)

    def of(self, student: str, assignment: str, module: str = "") -> list[Handed]:
        """A student's submissions, the oldest first."""
        return [one for one in self._by_student(assignment).get(student, ())
                if module in ("", one.module)]

    def counting(self, score: Score, module: str) -> Handed | None:
        """The submission of a module that counts, or the last one; None without any."""
        handed = next(one.handed for one in score.modules if one.module == module)
        return handed or next(reversed(self.of(score.student, score.assignment, module)), None)

    def students(self, assignment: str) -> list[str]:
        """The students who handed something in, in the order of their first submission."""
        return list(self._by_student(assignment))

    def _by_student(self, assignment: str) -> dict[str, list[Handed]]:
        if assignment not in self._index:
            index: dict[str, list[Handed]] = {}
            for one in self.handed.get(assignment, ()):
                index.setdefault(one.student, []).append(one)
            for submissions in index.values():
                if len(submissions) > 1:
                    submissions.sort(key=_time)
            self._index[assignment] = index
        return self._index[assignment]

    def __post_init__(self) -> None:
        self._index: dict[str, dict[str, list[Handed]]] = {}

    def score(self, student: str, assignment: ClassAssignment) -> Score:
        """Returns the points of a student's assignment."""
        key = (student, assignment.name)
        due = self.due(student, assignment)
        share = assignment.points / len(assignment.modules)
        modules = tuple(self._module(student, assignment, module, due, share)
                        for module in assignment.modules)
        excused = key in self.excused
        return Score(student, assignment.name, modules, assignment.points,
                     State.EXCUSED if excused else _state([one.state for one in modules]), due,
                     self.overridden.get(key) or self.excused.get(key), excused,
                     self.extended.get(key))

    def scores(self, assignment: ClassAssignment, students: Sequence[str]) -> list[Score]:
        """Returns the points of these students."""
        return [self.score(student, assignment) for student in students]

    def _module(self, student: str, assignment: ClassAssignment, module: str, due: datetime | None,
                out_of: float) -> ModuleScore:
        scored = [self._scored(one, assignment, due, out_of)
                  for one in self.of(student, assignment.name, module)]
        every = scored
        if assignment.take == "last-before-due":
            scored = [one for one in scored if not one.days][-1:]
        elif assignment.take == "last":
            scored = scored[-1:]
        best = max(scored, key=lambda one: (one.points, one.state is State.PASSED, -one.days),
                   default=ModuleScore(module, out_of))
        drafts = [] if best.graded else [
            draft for one in every if one.handed and (draft := self.draft_of(one.handed))]
        return ModuleScore(module, out_of, best.handed, best.graded, best.raw, best.points,
                           best.days, len(every), drafts[-1] if drafts else None, best.groups)

    def _scored(self, handed: Handed, assignment: ClassAssignment, due: datetime | None,
                out_of: float) -> ModuleScore:
        graded = self.grade_of(handed)
        days = days_late(due, handed.at) if handed.at else int(
            bool(handed.late) and due == assignment.due)
        raw = 0.0
        groups: tuple[GroupPoints, ...] = ()
        if graded is not None:
            points = points_of(graded.counts, graded.verdict == Verdict.PASSED, assignment.weights,
                               out_of)
            raw, groups = points.total, points.groups
        late = assignment.late
        kept = 1.0
        if days and late:
            kept = max(0.0, 1 - days * late.percent_per_day / 100) if days <= late.days else 0.0
        return ModuleScore(handed.module, out_of, handed, graded, raw, raw * kept, days,
                           groups=groups)

    def submissions(self) -> Iterator[Handed]:
        for submissions in self.handed.values():
            yield from submissions


def _state(modules: Sequence[State]) -> State:
    """The state of an assignment with modules in these states."""
    if len(set(modules)) == 1:
        return modules[0]
    return min((State.OPEN if state is State.MISSING else state for state in modules),
               key=_ORDER.__getitem__)


@contextlib.contextmanager
def collecting_rarely() -> Iterator[None]:
    """Runs the garbage collector rarely: the many records of a class have no cycles."""
    before = gc.get_threshold()
    gc.set_threshold(1_000_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Journal(msgspec.Struct, gc=False):
    journal: str | None = None  # the blob of the journal that came with a submission


_HANDED = msgspec.json.Decoder(Handed)
_JOURNAL = msgspec.json.Decoder(_Journal)
_GRADED = msgspec.json.Decoder(Graded)
_RULING = msgspec.json.Decoder(Ruling)


class Records(msgspec.Struct, gc=False):
    """What the events of a class say, by kind; ``others`` are kinds and lines, as of ``Log``."""

    handed: list[Handed] = []
    journals: list[tuple[str, str, str]] = []
    graded: list[Graded] = []
    others: list[tuple[str, bytes]] = []


def read(settings: ClassSettings, log: Log) -> Book:
    """Builds the book from the events; events of later versions are passed over."""
    return build(settings, collect(log.lines), log.problems)


def collect(lines: Iterable[tuple[str, bytes]], before: Records | None = None) -> Records:
    """Returns the records of ``before`` and those of further lines of the log."""
    records = before or Records()
    identities: set[Handed] = set()
    for kind, line in lines:
        if kind == "imported":
            identities = identities or set(records.handed)
            handed = _HANDED.decode(line)
            if handed not in identities:
                identities.add(handed)
                records.handed.append(handed)
            if journal := _JOURNAL.decode(line).journal:
                records.journals.append((handed.assignment, handed.student, journal))
        elif kind == "graded":
            records.graded.append(_GRADED.decode(line))
        else:
            records.others.append((kind, line))
    return records


def build(settings: ClassSettings, records: Records, problems: tuple[str, ...]) -> Book:
    """Builds the book from records."""
    book = Book(settings, problems=problems, journals=records.journals)
    for handed in records.handed:
        book.handed.setdefault(handed.assignment, []).append(handed)
    for graded in records.graded:
        book.grades.setdefault((graded.assignment, graded.module, graded.blob), []).append(graded)
    for kind, line in records.others:
        if kind in DECISIONS:
            ruling = _RULING.decode(line)
            key = (ruling.student, ruling.assignment)
            if kind != "extended":
                book.excused.pop(key, None)
                book.overridden.pop(key, None)
            getattr(book, kind)[key] = ruling
        elif kind == "undone":
            event = msgspec.json.decode(line)
            if event.get("decision") in DECISIONS:
                getattr(book, event["decision"]).pop((event["student"], event["assignment"]), None)
        elif kind in ("exported", "feedback"):
            event = msgspec.json.decode(line)
            assignment = str(event["assignment"])
            book.published.add(assignment)
            book.exported[assignment, str(event.get("to", ""))] = event.get("scores", {})
            if kind == "feedback":
                book.sent |= {(assignment, student): event for student in event.get("scores", {})}
    return book


def _time(handed: Handed) -> tuple[bool, datetime]:
    """Orders submissions; those without a time keep their order, before all others."""
    return (handed.at is not None, handed.at or datetime.min)
