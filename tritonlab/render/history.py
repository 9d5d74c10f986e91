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
    for module, group in groupby(sorted(attempts, key=lambda a: order.index(a.module)),
                                 key=lambda a: a.module):
        if not screen.plain:
            screen.line((module, "strong"))
        for attempt in group:
            _attempt(screen, attempt)
        screen.blank()
    screen.next(command)


def _attempt(screen: Screen, attempt: Attempt) -> None:
    cases = f"{attempt.cases_passed} of {attempt.cases_total} checks"
    hints = "1 hint" if attempt.hints_used == 1 else f"{attempt.hints_used} hints"
    rest = [attempt.device or attempt.engine.partition(",")[0]]
    rest += ["solution seen"] * attempt.solution_seen + ["earlier tests"] * (not attempt.today)
    rest += ["another machine"] * (not attempt.here)
    if screen.plain:
        facts = [attempt.evidence, cases, attempt.code, hints, *rest]
        screen.line(f"{attempt.module} {attempt.date} ", word(attempt.verdict),
                    f" {', '.join(filter(None, facts))}")
        return
    lead = (f"  {attempt.date}  ", word(attempt.verdict), f" {attempt.evidence:<9}  {cases:<15}  "
            f"{attempt.code:<3}  {hints:<8}  ")
    screen.line((", ".join(filter(None, rest)), "dim"), lead=lead)
