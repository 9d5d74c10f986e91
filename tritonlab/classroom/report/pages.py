"""The pages of a class: an overview, and one page a student."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from grader.finding import NAMES
from grader.suite.mutants import Mutant
from tritonlab.classroom import journals
from tritonlab.classroom.book import Book, Graded, Score, State, collecting_rarely
from tritonlab.classroom.report import analysis, templating
from tritonlab.classroom.report.outcomes import FailureView, ResultViews
from tritonlab.classroom.report.people import LETTERS, People
from tritonlab.classroom.report.sources import Change, Sources
from tritonlab.classroom.roster import Roster
from tritonlab.classroom.settings import ClassAssignment, ClassSettings, days_late
from tritonlab.classroom.similarity import clusters
from tritonlab.classroom.similarity.clusters import LastComparison
from tritonlab.classroom.store import Store
from tritonlab.errors import not_saved
from tritonlab.grading.points import number

INDEX = "index.html"
STUDENTS = "students"
# The class and the letter of each state; the letter says what the color shows.
MARKS = {State.PASSED: ("p", "P"), State.OPEN: ("o", "O"), State.MISSING: ("m", "–"),
         State.WAITING: ("w", "W"), State.UNDECIDED: ("u", "?"), State.EXCUSED: ("x", "X")}
EFFICIENT = ("e", "E")
LEGEND = (("p", "P passed"), ("e", "E passed, efficient"), ("o", "O open"), ("l", "L late"),
          ("m", "– not handed in"), ("w", "W not graded"), ("u", "? not decided"),
          ("x", "X excused"), ("", "* points set by hand"), ("", "+ more time"))
_PAGE = re.compile(rf"[A-Z]{{{LETTERS}}}\.html")


@dataclass(frozen=True)
class Cell:
    """One assignment of one student in the overview."""

    style: str
    text: str


@dataclass(frozen=True)
class Row:
    """One submission on a student's page."""

    time: str
    module: str
    verdict: str
    note: str
    days: int
    counts: bool
    failures: tuple[FailureView, ...]
    change: Change | None
    since: str


@dataclass(frozen=True)
class Sent:
    """Feedback as it was sent."""

    time: str
    points: str
    parts: tuple[tuple[str, str, tuple[FailureView, ...]], ...]  # module, verdict, failures


@collecting_rarely()
def build(settings: ClassSettings, book: Book, store: Store, roster: Roster,
          assignments: Sequence[ClassAssignment], starters: Mapping[str, str] | None = None,
          mutants: Mapping[str, Sequence[Mutant]] | None = None, *,
          anonymous: bool = False) -> dict[str, str]:
    """Returns the pages of a class by their path.

    Args:
        starters: the exercise files as handed out, by module; first submissions are compared with
            them.
        mutants: by module; failures that none of them explains are listed.
        anonymous: show letters instead of names, and mask names in code and sentences.
    """
    ids = list(dict.fromkeys([
        *(one.id for one in roster.students),
        *(student for one in assignments for student in sorted(book.students(one.name)))]))
    people = People(store, roster, ids, anonymous=anonymous)
    ids.sort(key=people.order)
    outcomes, sources = ResultViews(store), Sources(store, starters or {})
    readings = journals.latest(store, book)
    analyses = [analysis.analyse(settings, book, outcomes, sources, one, book.scores(one, ids),
                                 mutants, readings) for one in assignments]
    similar = {} if anonymous else {
        one.assignment.name: comparison for one in analyses
        if (comparison := clusters.read(store, book, one.assignment.name, one.scores))}
    pages = {INDEX: _index(settings, book, people, ids, analyses, similar)}
    sent = _sent(settings, book, outcomes, {one.name for one in assignments})
    template = templating.templates().get_template("student.html")
    for place, student in enumerate(ids):
        scores = [one.scores[place] for one in analyses]
        pages[f"{STUDENTS}/{people.letters(student)}.html"] = template.render(
            settings=settings, people=people, student=student, cell=cell, scores=scores,
            breakdown=templating.breakdown,
            due={score.assignment: templating.time(settings.zone, score.due) for score in scores},
            rows={score.assignment: _rows(settings, book, outcomes, sources, score)
                  for score in scores},
            sent=sent.get(student, {}))
    return pages


def write(folder: Path, pages: Mapping[str, str]) -> None:
    """Writes pages, and removes those of students who are no longer there.

    Raises:
        NotSaved: the folder cannot be written.
    """
    try:
        (folder / STUDENTS).mkdir(parents=True, exist_ok=True)
        for path in (folder / STUDENTS).iterdir():
            if _PAGE.fullmatch(path.name) and f"{STUDENTS}/{path.name}" not in pages:
                path.unlink()
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise not_saved("The report", error, folder) from error


def cell(score: Score) -> Cell:
    """The color, state and points of a student's assignment."""
    style, mark = MARKS[score.state]
    if score.state is State.PASSED and score.evidence in ("efficient", "fast"):
        style, mark = EFFICIENT
    if score.is_late and not score.excused:
        style, mark = f"{style} l", f"{mark}L"
    points = "" if score.state is State.MISSING and score.ruling is None else \
        number(score.points)
    marks = "*" * score.by_hand + "+" * (score.extension is not None)
    return Cell(style, f"{mark} {points}".strip() + marks)


def _index(settings: ClassSettings, book: Book, people: People, ids: Sequence[str],
           analyses: Sequence[analysis.Analysis], similar: Mapping[str, LastComparison]) -> str:
    script = templating.source("sort.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return templating.templates().get_template("index.html").render(
        settings=settings, people=people, ids=ids, analyses=analyses, similar=similar, cell=cell,
        legend=LEGEND,
        problems=[people.shown(text) for text in book.problems], states=list(State),
        due={one.assignment.name: templating.time(settings.zone, one.assignment.due)
             for one in analyses},
        script=Markup(script), digest=digest)


def _rows(settings: ClassSettings, book: Book, outcomes: ResultViews, sources: Sources,
          score: Score) -> list[Row]:
    counting = {id(module.handed): module for module in score.modules if module.handed}
    before: dict[str, str] = {}
    rows = []
    for handed in book.of(score.student, score.assignment):
        grade = book.grade_of(handed)
        module = counting.get(id(handed))
        outcome = outcomes.of(grade.key) if grade and module else None
        rows.append(Row(
            templating.time(settings.zone, handed.at), handed.module,
            grade.verdict if grade else "not graded",
            _note(grade), days_late(score.due, handed.at) or int(bool(module and module.days)),
            module is not None, outcome.failures[:1] if outcome else (),
            sources.change(handed.module, before.get(handed.module, ""), handed.blob),
            "the submission before" if handed.module in before else "the file as handed out"))
        before[handed.module] = handed.blob
    return rows


def _note(grade: Graded | None) -> str:
    """The first failure of a grade in a few words."""
    if grade is None:
        return ""
    if not grade.code:
        return grade.reason or grade.evidence
    line = f", line {grade.line}" if grade.line else ""
    todos = "".join(f", TODO {todo}" for todo in grade.todos)
    return f"{NAMES.get(grade.code, grade.code)}{line}{todos}"


def _sent(settings: ClassSettings, book: Book, outcomes: ResultViews,
          assignments: set[str]) -> dict[str, dict[str, Sent]]:
    """The last feedback of each student by assignment."""
    sent: dict[str, dict[str, Sent]] = {}
    for (assignment, student), event in book.sent.items():
        if assignment not in assignments:
            continue
        sent.setdefault(student, {})[assignment] = Sent(
            templating.time(settings.zone, datetime.fromisoformat(event["time"])),
            number(event["scores"][student]), tuple(_parts(event, student, outcomes)))
    return sent


def _parts(event: Mapping[str, Any], student: str,
           outcomes: ResultViews) -> list[tuple[str, str, tuple[FailureView, ...]]]:
    parts = []
    for module, key in event.get("results", {}).get(student, {}).items():
        outcome = outcomes.of(key)
        if outcome is not None:
            parts.append((module, outcome.verdict, outcome.revealed(event["reveal"])))
    return parts
