"""Feedback: one file a student, with as much as the assignment reveals."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from grader.text import plural
from tritonlab.classroom.book import Book, ModuleScore, Score, State
from tritonlab.classroom.report import templating
from tritonlab.classroom.report.outcomes import CaseView, FailureView, ResultViews
from tritonlab.classroom.settings import ClassAssignment, ClassSettings
from tritonlab.classroom.store import Store
from tritonlab.errors import not_saved
from tritonlab.grading.points import number

Format = Literal["html", "md"]
FORMATS: tuple[Format, ...] = ("html", "md")
DRAFT = "This is a draft: only values were judged, and the grade may differ."
_LONGEST = 100  # characters of a file name
_EVENT_STUDENTS = 500  # in one event, whose line has a largest length
_UNSAFE = re.compile(r"[^A-Za-z0-9._@+-]+")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # names of Windows devices


@dataclass(frozen=True)
class ModuleFeedback:
    """One module of a student's feedback."""

    module: str
    state: State
    evidence: str
    failures: tuple[FailureView, ...] = ()
    cases: tuple[CaseView, ...] = ()
    blanks: tuple[int, ...] = ()
    draft: bool = False
    points: str = ""  # by kind of case


@dataclass(frozen=True)
class Feedback:
    """The feedback of one student; the student is named by nothing but the file."""

    title: str
    assignment: str
    state: State
    points: str
    out_of: str
    days: int
    modules: tuple[ModuleFeedback, ...]
    due: str = ""  # while it may still be handed in
    by_hand: bool = False
    deducted: str = ""


def write(settings: ClassSettings, book: Book, store: Store, assignment: ClassAssignment,
          students: Sequence[str], folder: Path, form: Format = "html",
          now: datetime | None = None) -> dict[str, str]:
    """Writes the feedback of these students, and events "feedback".

    Returns:
        The names of the files by student.

    Raises:
        NotSaved: a file or an event cannot be written.
    """
    outcomes = ResultViews(store)
    now = now or datetime.now(UTC)
    scores = book.scores(assignment, students)
    names = file_names(students, form)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for score in scores:
            text = render(feedback_of(settings, outcomes, assignment, score, now), form)
            (folder / names[score.student]).write_text(text, encoding="utf-8")
    except OSError as error:
        raise not_saved("The feedback", error, folder) from error
    store.append(*(_event(assignment, scores[first:first + _EVENT_STUDENTS], form, now)
                   for first in range(0, len(scores), _EVENT_STUDENTS)))
    return names


def feedback_of(settings: ClassSettings, outcomes: ResultViews, assignment: ClassAssignment,
                score: Score, now: datetime | None = None) -> Feedback:
    """Returns what a student may read about an assignment."""
    settled = score.is_settled(now)
    deducted = sum(module.raw - module.points for module in score.modules)
    return Feedback(
        settings.name, assignment.name, score.state,
        number(score.points) if settled else "", number(score.out_of),
        0 if score.excused else score.days,
        tuple(_module(outcomes, assignment, module, settled and score.ruling is None)
              for module in score.modules),
        templating.time(settings.zone, score.due) if not settled else "", score.by_hand,
        number(deducted) if round(deducted, 2) else "")


def _module(outcomes: ResultViews, assignment: ClassAssignment, module: ModuleScore,
            count: bool) -> ModuleFeedback:
    grade = module.graded or module.draft
    outcome = outcomes.of(grade.key) if grade else None
    if grade is None or outcome is None or (
            grade is module.graded and module.state not in (State.PASSED, State.OPEN)):
        return ModuleFeedback(module.module, module.state, "")
    reveal = assignment.reveal
    return ModuleFeedback(
        module.module, module.state, grade.evidence, outcome.revealed(reveal),
        outcome.cases if reveal == "all" and not outcome.steps else (),
        () if reveal == "verdict" else tuple(outcome.blanks), grade is module.draft,
        templating.breakdown(module) if count and reveal != "verdict" else "")


def render(feedback: Feedback, form: Format) -> str:
    """Returns feedback as a page or as Markdown."""
    if form == "html":
        return templating.templates().get_template("feedback.html").render(
            feedback=feedback, summary=summary, shown=str, draft=DRAFT)
    return "\n".join(_markdown(feedback)) + "\n"


def _markdown(feedback: Feedback) -> list[str]:
    md = templating.markdown
    lines = [f"# {md(feedback.title)}: {md(feedback.assignment)}", "", summary(feedback)]
    for module in feedback.modules:
        lines += ["", f"## {md(module.module)}: {module.state}"]
        if module.draft:
            lines += ["", DRAFT]
        if module.evidence:
            lines += ["", f"Evidence: {md(module.evidence)}."]
        if module.points:
            lines += ["", f"Points: {md(module.points)}."]
        if module.blanks:
            lines += ["", f"Not filled in: {todos(module.blanks)}."]
        for failure in module.failures:
            line = f", line {failure.line}" if failure.line else ""
            lines += ["", f"Failed: **{md(failure.case)}**{line}: {md(failure.words)}"]
            lines += [text for label, part in parts(failure) if part
                      for text in ("", f"{label}: {md(part)}")]
        if module.cases:
            lines += ["", "| Check | Outcome |", "|---|---|"]
            lines += [f"| {md(case.name)} | {case.verdict} |" for case in module.cases]
    return lines


def summary(feedback: Feedback) -> str:
    """The state and the points in one sentence."""
    if feedback.state is State.EXCUSED:
        return "You are excused from this assignment."
    if not feedback.points:
        due = f", due {feedback.due}" if feedback.due and feedback.state is State.MISSING else ""
        return f"No points yet: {feedback.state}{due}."
    points = f"{feedback.points} of {feedback.out_of} points"
    if feedback.by_hand:
        return f"{points}, set by the instructor."
    late = f", {plural(feedback.days, 'day')} late" * bool(feedback.days)
    deduction = f", which costs {feedback.deducted} points" if late and feedback.deducted else ""
    return f"{points}: {feedback.state}{late}{deduction}."


def parts(failure: FailureView) -> tuple[tuple[str, str], ...]:
    """The labeled sentences of a failure after its first."""
    return (("Usually", failure.means), ("Where", failure.where), ("Next", failure.next_step))


def todos(numbers: Sequence[int]) -> str:
    return ", ".join(f"TODO {number}" for number in numbers)


def file_names(students: Sequence[str], form: Format) -> dict[str, str]:
    """The file names of students: the id, with a part of its hash where it cannot name a file."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for student in students:
        name = _UNSAFE.sub("_", student).lstrip(".-")[:_LONGEST]
        if not name or name != student or name.lower() in taken or _RESERVED.fullmatch(name):
            name = f"student-{name}-{hashlib.sha256(student.encode()).hexdigest()[:12]}"
        taken.add(name.lower())
        names[student] = f"{name}.{form}"
    return names


def _event(assignment: ClassAssignment, scores: Sequence[Score], form: Format,
           now: datetime) -> dict[str, Any]:
    return {"event": "feedback", "assignment": assignment.name, "to": f"feedback-{form}",
            "reveal": assignment.reveal,
            "scores": {score.student: score.points if score.is_settled(now) else None
                       for score in scores},
            "results": {score.student: {module.module: module.graded.key
                                        for module in score.modules if module.graded}
                        for score in scores}}
