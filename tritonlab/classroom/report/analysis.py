"""Statistics of an assignment: points, first failures, TODOs, cases, and who needs attention."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from grader.report import Verdict
from grader.suite.mutants import Mutant
from tritonlab.classroom import mistakes
from tritonlab.classroom.book import Book, Graded, Score, State
from tritonlab.classroom.mistakes import GradedAnswer, UnexplainedFailure
from tritonlab.classroom.report.outcomes import ResultView, ResultViews
from tritonlab.classroom.report.sources import Sources
from tritonlab.classroom.settings import ClassAssignment, ClassSettings
from tritonlab.progress.journal import JournalReading, Record

BINS = 10
MOST_LINES = 3  # lines of code of a first failure
SAME_FAILURE = 5  # submissions in a row
STOPPED = timedelta(days=3)  # without a submission
NEARLY_ALL = 0.95
LEAST_GRADED = 10  # grades that a statement about a case needs
LEAST_FAILED = 3
_MOST_HINTS = 50
_LABEL = 20  # characters of what a journal names
_TIMES = ((timedelta(hours=1), "under 1 hour"), (timedelta(hours=4), "1 to 4 hours"),
          (timedelta(days=1), "4 to 24 hours"), (timedelta(days=7), "1 to 7 days"),
          (timedelta.max, "longer"))


@dataclass(frozen=True)
class FirstFailure:
    """A first failure that ``count`` students share, with lines of their code."""

    code: str
    name: str
    words: str
    count: int
    share: float
    lines: tuple[str, ...] = ()


@dataclass
class Todo:
    """How many students have a TODO right, wrong, not filled in, or not judged."""

    number: int
    right: int = 0
    wrong: int = 0
    blank: int = 0
    unjudged: int = 0


@dataclass(frozen=True)
class Item:
    """The statistics of one case over the submissions that count.

    ``discrimination`` is the correlation of passing it with the share of other cases passed.
    """

    name: str
    kind: str
    judged: int
    failed: float
    discrimination: float | None
    seconds: float
    remark: str = ""


@dataclass(frozen=True)
class Concern:
    """Students who need attention for the same reason, each with a detail."""

    title: str
    students: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Practice:
    """The work on a module as journals show it, up to the first pass.

    ``hints``, ``grades`` and ``times`` have a label and a count of students.
    """

    students: int
    passed: int
    hints: list[tuple[str, int]]
    grades: list[tuple[str, int]]
    times: list[tuple[str, int]]


@dataclass
class ModuleAnalysis:
    module: str
    graded: int = 0
    failures: list[FirstFailure] = field(default_factory=list)
    todos: list[Todo] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    attempts: list[tuple[str, int]] = field(default_factory=list)  # until the first pass
    unexplained: tuple[UnexplainedFailure, ...] = ()
    practice: Practice | None = None


@dataclass
class Analysis:
    """All statistics of one assignment; ``histogram`` has a label, a count and a share a bin."""

    assignment: ClassAssignment
    scores: list[Score]
    states: Counter[State]
    late: int
    mean: float | None
    median: float | None
    histogram: list[tuple[str, int, float]]
    modules: list[ModuleAnalysis]
    concerns: list[Concern]


def analyse(settings: ClassSettings, book: Book, outcomes: ResultViews, sources: Sources,
            assignment: ClassAssignment, scores: list[Score],
            mutants: Mapping[str, Sequence[Mutant]] | None = None,
            readings: Mapping[str, JournalReading] | None = None) -> Analysis:
    """Computes the statistics of an assignment from the scores of its students.

    Args:
        mutants: by module; without those of a module, no failure of it is unexplained.
        readings: the journals of students.
    """
    points = [score.points for score in scores
              if score.points is not None and score.state is not State.MISSING]
    modules = [_module(book, outcomes, sources, assignment, number, scores, mutants or {})
               for number in range(len(assignment.modules))]
    for one in modules:
        one.practice = _practice([readings[score.student] for score in scores
                                  if score.student in readings] if readings else [], one.module)
    return Analysis(
        assignment, scores, Counter(score.state for score in scores),
        sum(score.is_late for score in scores), statistics.fmean(points) if points else None,
        statistics.median(points) if points else None, _histogram(points, assignment.points),
        modules, [one for one in _concerns(settings, book, assignment, scores) if one.students])


def _histogram(points: Sequence[float], out_of: float) -> list[tuple[str, int, float]]:
    bins = Counter(BINS if value >= out_of else max(0, int(BINS * value / out_of))
                   for value in points)
    most = max(bins.values(), default=1)
    labels = [f"{out_of * n / BINS:g} to {out_of * (n + 1) / BINS:g}" for n in range(BINS)]
    return [(label, bins[n], bins[n] / most) for n, label in enumerate([*labels, f"{out_of:g}"])]


def _module(book: Book, outcomes: ResultViews, sources: Sources, assignment: ClassAssignment,
            number: int, scores: Sequence[Score],
            mutants: Mapping[str, Sequence[Mutant]]) -> ModuleAnalysis:
    module = assignment.modules[number]
    graded: list[tuple[Graded, ResultView]] = []
    answers = []
    for score in scores:
        grade = score.modules[number].graded
        if not score.excused and grade is not None:
            outcome = outcomes.of(grade.key)
            if outcome is not None and outcome.verdict in (Verdict.PASSED, Verdict.FAILED):
                graded.append((grade, outcome))
                lines = sources.exercise(grade.blob) if outcome.failures else []
                answers.append(GradedAnswer(score.student, outcome, lines))
    unexplained = mistakes.analyze(answers, mutants[module]).unexplained \
        if module in mutants else ()
    judged = [outcome for _, outcome in graded]
    return ModuleAnalysis(module, len(graded), _first_failures(graded, sources), _todos(judged),
                          _items([one for one in judged if not (one.steps or one.refused)]),
                          _attempts(book, assignment, module, scores), unexplained)


def _first_failures(graded: Sequence[tuple[Graded, ResultView]],
                    sources: Sources) -> list[FirstFailure]:
    groups: dict[tuple[str, str], list[tuple[Graded, ResultView]]] = {}
    for grade, outcome in graded:
        if outcome.failures:
            first = outcome.failures[0]
            groups.setdefault((first.code, first.means), []).append((grade, outcome))
        elif outcome.blanks:
            groups.setdefault(("", f"TODO {outcome.blanks[0]} is not filled in."),
                              []).append((grade, outcome))
    result = []
    for (code, means), members in groups.items():
        lines: dict[str, None] = {}
        for grade, outcome in members:
            if code and len(lines) < MOST_LINES and outcome.failures[0].line:
                lines[sources.line(grade.blob, outcome.failures[0].line)] = None
        name, words = "blanks", means
        if code:
            example = members[0][1].failures[0]
            name, words = example.name, f"{example.words} {means}".strip()
        result.append(FirstFailure(code, name, words, len(members), len(members) / len(graded),
                                   tuple(filter(None, lines))))
    return sorted(result, key=lambda one: -one.count)


def _todos(outcomes: Sequence[ResultView]) -> list[Todo]:
    numbers = {todo for one in outcomes for todo, _ in one.steps}
    numbers |= {todo for one in outcomes for failure in one.failures for todo in failure.todos}
    rows = {number: Todo(number) for number in sorted(numbers)}
    for one in outcomes:
        states = dict(one.steps)
        wrong = one.failures[0].todos if one.failures else ()
        for number, row in rows.items():
            state = states.get(number, "right" if one.verdict == Verdict.PASSED else "")
            if not state and number in wrong and one.refused:
                row.blank += 1
            elif state == "wrong" or (not state and number in wrong):
                row.wrong += 1
            elif state == "right":
                row.right += 1
            elif state:
                row.blank += 1
            else:
                row.unjudged += 1
    return [*rows.values()]


def _items(outcomes: Sequence[ResultView]) -> list[Item]:
    names = {(case.name, case.kind): None for one in outcomes for case in one.cases}
    rows: dict[tuple[str, str], list[tuple[bool, float | None, float]]] = {
        name: [] for name in names}
    for one in outcomes:
        decided = [case for case in one.cases
                   if case.verdict in (Verdict.PASSED, Verdict.FAILED)]
        passed = sum(case.verdict == Verdict.PASSED for case in decided)
        for case in decided:
            passes = case.verdict == Verdict.PASSED
            rest = (passed - passes) / (len(decided) - 1) if len(decided) > 1 else None
            rows[case.name, case.kind].append((passes, rest, case.seconds))
    return [_item(name, kind, row) for (name, kind), row in rows.items() if row]


def _item(name: str, kind: str, rows: Sequence[tuple[bool, float | None, float]]) -> Item:
    failing = sum(not passes for passes, _, _ in rows)
    share = failing / len(rows)
    pairs = [(float(passes), rest) for passes, rest, _ in rows if rest is not None]
    discrimination = _correlation(pairs)
    remark = ""
    if len(rows) >= LEAST_GRADED:
        if share >= NEARLY_ALL:
            remark = "Look at this case: nearly all fail it."
        elif failing >= LEAST_FAILED and discrimination is not None and discrimination < 0:
            remark = "Look at this case: those who fail it do better in the others."
    return Item(name, kind, len(rows), share, discrimination,
                statistics.median(seconds for _, _, seconds in rows), remark)


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < 2:
        return None
    try:
        return statistics.correlation(*zip(*pairs, strict=True))
    except statistics.StatisticsError:  # one of them is constant
        return None


def _attempts(book: Book, assignment: ClassAssignment, module: str,
              scores: Sequence[Score]) -> list[tuple[str, int]]:
    counted: Counter[int] = Counter()
    for score in scores:
        for number, handed in enumerate(book.of(score.student, assignment.name, module), 1):
            grade = book.grade_of(handed)
            if grade is not None and grade.verdict == Verdict.PASSED:
                counted[min(number, SAME_FAILURE)] += 1
                break
    return _counted(counted)


def _practice(readings: Sequence[JournalReading], module: str) -> Practice | None:
    """Counts hints, grades and hours until the first pass; None if no journal has the module."""
    students, passed = 0, 0
    hints: Counter[str] = Counter()
    grades: Counter[int] = Counter()
    times: Counter[str] = Counter()
    for reading in readings:
        records = [record for record in reading.records if record.module == module]
        students += bool(records)
        end = next((n for n, record in enumerate(records) if record.passed), None)
        before = records if end is None else records[:end + 1]
        hints.update({f"{str(one['group'])[:_LABEL]}, step {str(one['rung'])[:_LABEL]}"
                      for one in before if one.event == "hint"})
        if end is not None:
            passed += 1
            grades[min(SAME_FAILURE, sum(one.event == "graded" for one in before))] += 1
            first, last = _moment(before[0]), _moment(before[-1])
            if first and last:
                times[next(label for most, label in _TIMES if last - first < most)] += 1
    if not students:
        return None
    return Practice(students, passed, sorted(hints.items())[:_MOST_HINTS], _counted(grades),
                    [(label, times[label]) for _, label in _TIMES] if times else [])


def _moment(record: Record) -> datetime | None:
    """The day and minute of a record; None in journals of earlier versions."""
    try:
        return datetime.fromisoformat(f"{record.date}T{record['time']}")
    except ValueError:
        return None


def _counted(counts: Counter[int]) -> list[tuple[str, int]]:
    return [(f"{n} or more" if n == SAME_FAILURE else str(n), counts[n])
            for n in range(1, SAME_FAILURE + 1)] if counts else []


def _concerns(settings: ClassSettings, book: Book, assignment: ClassAssignment,
              scores: Sequence[Score]) -> list[Concern]:
    times = [one.at for one in book.handed.get(assignment.name, ()) if one.at]
    missing, undecided, weak, stopped, same = [], [], [], [], []
    for score in scores:
        student, state = score.student, score.state
        if state is State.MISSING:
            missing.append((student, ""))
        for module in score.modules:
            grade = module.graded
            if grade is None or score.excused:
                continue
            if module.state is State.UNDECIDED:
                undecided.append((student, grade.reason))
            tier = grade.isolation[5:6] if grade.isolation.startswith("tier ") else ""
            if tier.isdigit() and int(tier) < settings.require_isolation:
                weak.append((student, f"tier {tier}"))
            if module.state is State.OPEN and (failure := _same_failure(
                    book, student, assignment, module.module)):
                same.append((student, failure))
        last = max((one.at for one in book.of(student, assignment.name) if one.at), default=None)
        end = min([max(times), *([score.due] if score.due else [])]) if times else None
        if state is State.OPEN and last and end and end - last >= STOPPED:
            stopped.append((student, f"{(end - last).days} days before the end"))
    return [
        Concern("Not decided", tuple(undecided)),
        Concern(f"Graded with isolation below tier {settings.require_isolation}", tuple(weak)),
        Concern(f"The same failure {SAME_FAILURE} times or more", tuple(same)),
        Concern("Started and stopped", tuple(stopped)),
        Concern("Not handed in", tuple(missing))]


def _same_failure(book: Book, student: str, assignment: ClassAssignment, module: str) -> str:
    """Describes the failure that a student's last submissions share."""
    grades = [book.grade_of(one) for one in book.of(student, assignment.name, module)]
    codes = [grade.code for grade in grades if grade is not None]
    count = 0
    for code in reversed(codes):
        if not code or code != codes[-1]:
            break
        count += 1
    return f"{codes[-1]}, {count} times" if count >= SAME_FAILURE else ""
