"""A class as text: what was imported and graded, the status of all students, one student."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from grader.finding import NAMES
from grader.text import joined, plural
from tritonlab.classroom.book import Graded, Handed, Score, State
from tritonlab.classroom.classroom import ROSTER, Classroom
from tritonlab.classroom.grading import GradePlan, Summary
from tritonlab.classroom.intake import Intake
from tritonlab.classroom.report import sources
from tritonlab.classroom.report.outcomes import ResultViews
from tritonlab.classroom.report.templating import breakdown
from tritonlab.classroom.roster import Student
from tritonlab.classroom.settings import ClassAssignment, days_late
from tritonlab.course.course import EXERCISE
from tritonlab.errors import TritonlabError, shown
from tritonlab.render.screen import Screen, padded

if TYPE_CHECKING:
    from tritonlab.classroom.mistakes import ModuleMistakes
    from tritonlab.classroom.similarity.page import ModulePage

STEP_S = 1.0  # between two lines of progress
MOST_NAMED = 20
MOST_CASES = 3  # of a cluster of failures
STYLES = {State.PASSED: "pass", State.OPEN: "skip", State.MISSING: "dim", State.WAITING: "dim",
          State.UNDECIDED: "fail", State.EXCUSED: "dim"}

SORTS: dict[str, Callable[[Score], Any]] = {
    "name": lambda score: score.student.casefold(),
    "score": lambda score: (-(score.points or 0), score.student.casefold()),
    "late": lambda score: (-score.days, score.student.casefold()),
}


def show_created(screen: Screen, folder: Path, written: Sequence[Path]) -> None:
    """Prints the files of a new class."""
    screen.line(f"The class is in {folder.resolve()}.")
    for path in written:
        screen.line(shown(path), lead=("  ",))
    if not written:
        screen.line("Its files were there and are unchanged.", lead=("  ",))
    screen.blank()


# Import


def show_intake(screen: Screen, the_class: Classroom, result: Intake, dry_run: bool) -> None:
    """Prints what was imported, and each submission that was not."""
    students = len({one.student for one in result.imported})
    verb = "would be imported" if dry_run else "imported"
    screen.line(f"{plural(len(result.imported), 'submission')} of {plural(students, 'student')} "
                f"{verb} for {result.assignment}; {result.unchanged} unchanged.")
    if dry_run:
        _some(screen, [_incoming(the_class, one) for one in result.imported])
        if result.missing:
            screen.blank()
            screen.line(f"Students without a submission: {len(result.missing)}")
            _some(screen, [str(the_class.roster.get(student)) for student in result.missing])
    for title, group in (("Not in the roster", result.unmatched), ("Refused", result.refused)):
        if group:
            screen.blank()
            screen.line((f"{title}: {len(group)}", "fail"))
        _some(screen, [f"'{one.student}' ({one.name})" + f"; {one.reason}" * bool(one.reason)
                       for one in group])
    if result.unmatched and not the_class.roster.students:
        screen.line(f"{ROSTER} has no students. Add a line for each, then import again, or add "
                    "`--add-students` to write those that the submissions name.")
    elif result.unmatched:
        screen.line(f"Add them to {ROSTER} or rename the files, then import again; "
                    "`--student-from REGEX` finds the student elsewhere in the path.")
    for problem in result.problems[:MOST_NAMED]:
        screen.line((problem, "skip"), lead=("  ",))
    screen.blank()


def _some(screen: Screen, lines: Sequence[str]) -> None:
    """Prints the first of these lines, and how many more there are."""
    for line in lines[:MOST_NAMED]:
        screen.line(line, lead=("  ",))
    if len(lines) > MOST_NAMED:
        screen.line(f"and {len(lines) - MOST_NAMED} more; --json lists all.", lead=("  ",))


def _incoming(the_class: Classroom, one: Handed) -> str:
    """A submission that would be imported, in a line."""
    due = the_class.book.due(one.student, the_class.settings.assignment(one.assignment))
    days = days_late(due, one.at)
    late = f", {plural(days, 'day')} late" if days else ", late" * bool(one.late and not one.at)
    time_ = _time(the_class, one.at) if one.at else "no time"
    student = the_class.roster.get(one.student) or one.student
    return f"{student}: {one.name}, {one.module}, {time_}{late}"


# Grade


def show_plan(screen: Screen, work: GradePlan) -> None:
    """Prints what a grading would do."""
    counted = Counter((task.assignment.name, task.module) for task in work.tasks)
    for (assignment, module), count in sorted(counted.items()):
        screen.line(f"{assignment}, {module}: {plural(count, 'grade')} to make")
    screen.line(f"{len(work.tasks)} to grade, {work.done} graded before, {work.stale} by other "
                "tests, versions or settings than today's.")
    screen.blank()


class JsonLines:
    """Events of a grading as JSON, one a line."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, kind: str, data: Mapping[str, Any]) -> None:
        print(json.dumps({"event": kind, **data}), flush=True)


class GradeProgress:
    """One line a second: done, left, rate, time to go; it is erased at the end on a terminal."""

    def __init__(self, screen: Screen, total: int) -> None:
        self._screen = Screen(sys.stderr, plain=screen.plain)
        self._total = total
        self._done = 0
        self._begun = self._last = time.monotonic()

    def __enter__(self) -> Self:
        if self._total:
            self._put(f"{plural(self._total, 'submission')} to grade, starting the grader …")
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.status("\r\x1b[2K")

    def __call__(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "begin":
            self._begun = time.monotonic()
            return
        self._done += 1
        now = time.monotonic()
        if now - self._last < STEP_S:
            return
        self._last = now
        rate = self._done / max(now - self._begun, 1e-9)
        left = max(self._total - self._done, 0)
        self._put(f"{self._done} done, {left} left, {60 * rate:.0f} a minute, "
                  f"{_duration(left / rate)} to go")

    def _put(self, text: str) -> None:
        if self._screen.live:
            self._screen.status("\r\x1b[2K" + text[: self._screen.width - 1])
        else:
            print(text, file=sys.stderr, flush=True)


def show_summary(screen: Screen, summary: Summary, before: int) -> None:
    """Prints the outcome of a grading."""
    verdicts = Counter(graded.verdict for graded in summary.graded)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    screen.line(f"{plural(len(summary.graded), 'submission')} graded in "
                f"{_duration(summary.seconds)} ({summary.cpu_s:.0f} CPU seconds); {before} graded "
                "before.")
    if listed:
        screen.line(f"{listed}.", lead=("  ",))
    if summary.gained or summary.lost or summary.rediagnosed or summary.kept:
        screen.line(f"{summary.gained} gained, {summary.lost} lost, {summary.rediagnosed} changed "
                    "diagnosis.", lead=("  ",))
    if summary.kept:
        screen.line(f"{summary.kept} would have lowered published points, which stay; `--lower` "
                    "lowers them.", lead=("  ",))
    if summary.elsewhere:
        screen.line(f"{len(summary.elsewhere)} are being graded by another process.", lead=("  ",))
    for task, why in summary.failed[:MOST_NAMED]:
        screen.line(f"{', '.join(task.students)}, {task.module}: {why}",
                    lead=("  ", ("Not graded ", "fail")))
    screen.blank()


def summary_to_dict(summary: Summary) -> dict[str, Any]:
    """The outcome of a grading as plain data."""
    return {
        "schema": 1, "graded": len(summary.graded),
        "verdicts": dict(Counter(graded.verdict for graded in summary.graded)),
        "failed": [{"students": task.students, "module": task.module, "reason": why}
                   for task, why in summary.failed],
        "elsewhere": len(summary.elsewhere), "gained": summary.gained, "lost": summary.lost,
        "kept": summary.kept, "changed_diagnosis": summary.rediagnosed,
        "cpu_s": round(summary.cpu_s, 1), "seconds": round(summary.seconds, 1)}


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


# Status


def show_status(screen: Screen, the_class: Classroom,
                tables: Mapping[str, Sequence[Score]]) -> None:
    """Prints a table of students for each assignment."""
    names = {one.id: one.name for one in the_class.roster.students}
    for name, scores in tables.items():
        states = Counter(score.state for score in scores)
        late = sum(score.is_late for score in scores)
        assignment = the_class.settings.assignment(name)
        due = f", due {_time(the_class, assignment.due)}" if assignment.due else ""
        screen.line((name, "strong"), f": {plural(len(scores), 'student')}{due}. " + ", ".join(
            f"{states[state]} {state}" for state in State if states[state]) +
            (f", {late} late." if late else "."))
        if screen.plain:
            for score in scores:
                screen.line(f"{score.student}: {score.state}, {_points(score)}{_days(score)}")
        elif scores:
            rows = [[score.student, names.get(score.student, ""), str(score.state), _points(score),
                     _days(score).removeprefix(", ")] for score in scores]
            screen.rows(("  ", *cells[:2], (cells[2], STYLES[score.state]), *cells[3:])
                        for cells, score in zip(padded(rows, "<<<><", "  "), scores, strict=True))
        screen.blank()


def _points(score: Score) -> str:
    points = score.points
    if points is None or (score.state in (State.MISSING, State.WAITING) and not score.by_hand):
        return "-"
    return f"{points:g} of {score.out_of:g}{', set by hand' if score.by_hand else ''}"


def _days(score: Score) -> str:
    return f", {plural(days, 'day')} late" if (days := score.days) else ""


def score_to_dict(score: Score) -> dict[str, Any]:
    """One student's score as plain data."""
    return {
        "student": score.student, "assignment": score.assignment, "state": str(score.state),
        "points": score.points, "out_of": score.out_of, "evidence": score.evidence,
        "days_late": score.days, "due": score.due.isoformat() if score.due else None,
        "overridden": score.by_hand, "excused": score.excused,
        "reason": score.ruling.reason if score.ruling else "", "modules": [{
            "module": one.module, "state": str(one.state), "points": one.points,
            "before_deduction": one.raw, "out_of": one.out_of, "days_late": one.days,
            "attempts": one.attempts, "result": one.graded.key if one.graded else None,
        } for one in score.modules]}


# One student


@dataclass(frozen=True)
class SubmissionEntry:
    """A submission with its grade, its source and the words of its first failure."""

    handed: Handed
    graded: Graded | None
    source: str
    failure: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {**msgspec.to_builtins(self.handed), "source": self.source,
                "grade": msgspec.to_builtins(self.graded), "failure": self.failure}


def entries(the_class: Classroom, student: str,
            assignment: ClassAssignment) -> list[SubmissionEntry]:
    """Returns a student's submissions of an assignment, the oldest first."""
    result = []
    results = ResultViews(the_class.store)
    for handed in the_class.book.of(student, assignment.name):
        graded = the_class.book.grade_of(handed) or the_class.book.draft_of(handed)
        try:
            content = the_class.store.files(handed.blob)[EXERCISE]
            source = content.decode("utf-8", "replace")
        except TritonlabError as error:
            source = f"# {error}"
        view = results.of(graded.key) if graded else None
        result.append(SubmissionEntry(handed, graded, source, view.first_failure if view else ""))
    return result


def show_student(screen: Screen, the_class: Classroom, student: Student,
                 assignments: Sequence[ClassAssignment], submissions: Sequence[SubmissionEntry],
                 diff: bool) -> None:
    """Prints a student's submissions; the last source of each module, or all differences."""
    facts = [student.name, student.email, student.section and f"section {student.section}"]
    screen.line((student.id, "strong"), "  ", ", ".join(filter(None, facts)))
    for assignment in assignments:
        score = the_class.book.score(student.id, assignment)
        screen.blank()
        screen.line((assignment.name, "strong"), f"  {score.state}, {_points(score)}{_days(score)}",
                    f"; {score.ruling.reason}" if score.ruling else "")
        if score.extension and score.due:
            screen.line(f"due {_time(the_class, score.due)}; {score.extension.reason}",
                        lead=("  ",))
        for module in score.modules:
            if points := breakdown(module):
                screen.line(f"{module.module}: {points}", lead=("  ",))
        before: dict[str, SubmissionEntry] = {}
        own = [one for one in submissions if one.handed.assignment == assignment.name]
        for entry in own:
            _show_entry(screen, the_class, entry)
            last = before.get(entry.handed.module)
            if diff and last is not None:
                screen.quote(sources.difference(last.source.splitlines(), entry.source.splitlines())
                             or ["unchanged"], indent=8)
            before[entry.handed.module] = entry
        for entry in () if diff else before.values():
            screen.blank()
            screen.quote(entry.source.splitlines(), indent=4)
    screen.blank()


def _show_entry(screen: Screen, the_class: Classroom, entry: SubmissionEntry) -> None:
    handed, graded = entry.handed, entry.graded
    time_ = f"{_time(the_class, handed.at)}  " if handed.at else ""
    verdict = graded.verdict if graded else "WAIT"
    code = f"  {NAMES.get(graded.code, graded.code)}" if graded and graded.code else ""
    draft = "" if graded is None or graded.is_final else "  draft"
    screen.line(f"{time_}{handed.module}{code}{draft}", (f"  {handed.name}", "dim"),
                lead=screen.verdict(verdict))
    if entry.failure:
        screen.line((entry.failure, "dim"), lead=(" " * 8,))


def _time(the_class: Classroom, moment: datetime) -> str:
    return f"{moment.astimezone(the_class.settings.zone):%Y-%m-%d %H:%M}"


def show_ruling(screen: Screen, the_class: Classroom, student: Student, score: Score) -> None:
    """Prints the score after an instructor's decision."""
    due = f", due {_time(the_class, score.due)}" if score.due else ""
    screen.line((student.id, "strong"), f", {score.assignment}{due}: {score.state}, "
                f"{_points(score)}{_days(score)}")
    screen.blank()


# Similar submissions


def show_similar(screen: Screen, assignment: str, modules: "Sequence[ModulePage]",
                 page: Path | None) -> None:
    """Prints pairs and clusters of similar submissions."""
    for module in modules:
        similarity = module.similarity
        screen.line((f"{assignment}, {module.module}", "strong"),
                    f": {plural(similarity.n_students, 'submission')} compared.")
        for note in module.notes:
            screen.line((note, "dim"), lead=("  ",))
        if len(module.sources) < 2:
            screen.line("There is nothing to compare.", lead=("  ",))
        elif not similarity.pairs:
            screen.line("No pair shares more than chance explains. What is common here is common "
                        "in this class.", lead=("  ",))
        if similarity.n_grouped:
            screen.line(f"{plural(similarity.n_grouped, 'pair')} left out: their students are in "
                        "one group of roster.csv.", lead=("  ",))
        for cluster in similarity.clusters:
            if len(cluster.students) > 2:
                screen.line(f"{_first(cluster.students)}: {plural(cluster.n_pairs, 'pair')}, the "
                            f"strongest with {cluster.kind}",
                            lead=("  ", (f"{len(cluster.students)} students ", "strong")))
        for pair in similarity.pairs[:MOST_NAMED]:
            screen.blank()
            screen.line((" and ".join(pair.students), "strong"),
                        f": {pair.kind}, {pair.bits:.0f} bits", lead=("  ",))
            for evidence in pair.evidence:
                screen.line(evidence.text, lead=("    ",))
        if len(similarity.pairs) > MOST_NAMED:
            screen.line(f"and {len(similarity.pairs) - MOST_NAMED} more with weaker evidence; "
                        "--json lists all.", lead=("  ",))
        for group in similarity.groups:
            if group.rare:
                screen.blank()
                screen.line(f"{_first(group.students)}: {group.text}",
                            lead=("  ", (f"{len(group.students)} students ", "strong")))
        screen.blank()
    screen.line("This is evidence, not a verdict. A fragment that d of n submissions contain "
                "counts log2(n / d) bits.")
    if page:
        screen.line(f"The sources are side by side in {shown(page)}.")
    screen.blank()


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def similarity_to_dict(module: "ModulePage") -> dict[str, Any]:
    """The similar submissions of one module as plain data."""
    similarity = module.similarity
    return {
        "module": module.module, "submissions": similarity.n_students,
        "threshold_bits": round(similarity.threshold, 1), "left_out": list(module.notes),
        "pairs_of_one_group": similarity.n_grouped,
        "clusters": [{"students": one.students, "kind": str(one.kind), "pairs": one.n_pairs}
                     for one in similarity.clusters],
        "pairs": [{"students": one.students, "kind": str(one.kind), "bits": round(one.bits, 1),
                   "evidence": [{"kind": str(each.kind), "text": each.text}
                                for each in one.evidence],
                   "lines": one.lines} for one in similarity.pairs],
        "groups": [{"students": one.students, "kind": str(one.kind), "rare": one.rare,
                    "text": one.text} for one in similarity.groups]}


# Mistakes


def show_mistakes(screen: Screen, assignment: str, modules: "Sequence[ModuleMistakes]", *,
                  explained: bool) -> None:
    """Prints the failures of a class, the most frequent first, and those without a mutant."""
    for module in modules:
        mistakes = module.mistakes
        share = mistakes.share_explained
        screen.line(
            (f"{assignment}, {module.module}", "strong"), f": {mistakes.graded} graded, "
            f"{mistakes.passed} passed" + (
                f", {mistakes.unfinished} with blanks left or a file that cannot be graded."
                if mistakes.unfinished else "."),
            "" if share is None else f" Mutants explain {100 * share:.0f} % of the failures.")
        for one in mistakes.explained if explained else ():
            _show_failure(screen, one.students, one.mutant.codes[0],
                          f"{one.words} {one.mutant.meaning}", one.lines)
        if mistakes.unexplained:
            screen.blank()
            screen.line(("No mutant explains these:", "strong"), lead=("  ",))
        for cluster in mistakes.unexplained:
            cases = joined([*cluster.failed[:MOST_CASES],
                            *([f"{len(cluster.failed) - MOST_CASES} more"]
                              if len(cluster.failed) > MOST_CASES else [])]) \
                if cluster.failed else "different cases"
            _show_failure(screen, cluster.students, cluster.code,
                          f"{cluster.words} They fail in {cases}.", cluster.lines)
        screen.blank()


def _show_failure(screen: Screen, students: Sequence[str], code: str, words: str,
                  lines: Sequence[str]) -> None:
    screen.blank()
    screen.line((plural(len(students), "student"), "strong"),
                (f"  {NAMES.get(code, code)}", "dim"), lead=("  ",))
    screen.line(words, lead=("    ",))
    screen.quote(lines, indent=6)


def mistakes_to_dict(module: "ModuleMistakes") -> dict[str, Any]:
    """The mistakes of one module as plain data."""
    mistakes = module.mistakes
    return {
        "module": module.module, "graded": mistakes.graded, "passed": mistakes.passed,
        "unfinished": mistakes.unfinished, "share_explained": mistakes.share_explained,
        "mutants": str(module.file),
        "explained": [{
            "mutant": one.mutant.id, "title": one.mutant.title, "codes": one.mutant.codes,
            "meaning": one.mutant.meaning, "students": one.students, "words": one.words,
            "lines": one.lines} for one in mistakes.explained],
        "unexplained": [asdict(one) for one in mistakes.unexplained]}
