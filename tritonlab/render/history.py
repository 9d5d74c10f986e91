"""The history: every attempt in a line, module by module."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tritonlab.course import Course
from tritonlab.history import Attempt
from tritonlab.render.screen import Screen, word


def show(screen: Screen, course: Course, attempts: Sequence[Attempt], command: str) -> None:
    """All attempts in the order of the course; the last line is the next command."""
    if not attempts:
        screen.line("Nothing was graded yet.")
    order = [module.id for module in course.modules]
    widths = [max(map(len, column)) for column in zip(*map(_columns, attempts), strict=True)]
    for module, group in groupby(sorted(attempts, key=lambda a: order.index(a.module)),
                                 key=lambda a: a.module):
        if not screen.plain:
            screen.line((module, "strong"))
        for attempt in group:
            _attempt(screen, attempt, widths)
        screen.blank()
    screen.next(command)


def _columns(attempt: Attempt) -> tuple[str, str, str, str, str]:
    """What stands in columns: when, then behind the verdict evidence, checks, code and hints."""
    cases = f"{attempt.cases_passed} of {attempt.cases_total} checks"
    hints = "1 hint" if attempt.hints_used == 1 else f"{attempt.hints_used} hints"
    when = f"{attempt.date} {attempt.time}".strip()
    return when, attempt.evidence, cases, attempt.code, hints


def _attempt(screen: Screen, attempt: Attempt, widths: Sequence[int]) -> None:
    columns = _columns(attempt)
    rest = [attempt.device or attempt.engine.partition(",")[0]]
    rest += ["solution seen"] * attempt.solution_seen + ["earlier tests"] * (not attempt.today)
    rest += ["another machine"] * (not attempt.here)
    if screen.plain:
        facts = [*columns[1:], *rest]
        screen.line(f"{attempt.module} {columns[0]} ", word(attempt.verdict),
                    f" {', '.join(filter(None, facts))}")
        return
    when, *others = (f"{text:<{width}}" for text, width in zip(columns, widths, strict=True))
    lead = (f"  {when}  ", word(attempt.verdict),
            "".join(f" {text} " for text in others if text), " ")
    screen.line((", ".join(filter(None, rest)), "dim"), lead=lead)
