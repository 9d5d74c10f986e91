"""Reruns of the first failing case with statements of the solution, which name its causes."""

from __future__ import annotations

from collections.abc import Sequence

from grader.diagnosis.explain import functions_of
from grader.diagnosis.solution_contrast import Cause, causes, wrong_name
from grader.judge.case import verdict
from grader.judge.context import Context
from grader.report import CaseResult, Skip, Verdict
from grader.submission import dataflow

RUN_S = 5.0  # of one rerun; most take a tenth of a second
# A file that cannot be read, and runs that take as long as they are allowed to.
_OF_ACCESSES = ("M01", "M02", "M03", "M04")
_NOT_RUN_AGAIN = ("P", "R02", "R03", "R04")


def causes_of(results: Sequence[CaseResult], ctx: Context) -> list[Cause]:
    """The statements that decide the first failure of a grade; none where it is not known."""
    first = next((result for result in results if result.fails), None)
    if first is None or not first.findings or not ctx.suite.solution or ctx.submitted.tree is None:
        return []
    if first.findings[0].code.startswith(_NOT_RUN_AGAIN):
        return []
    case = next((one for one in ctx.suite.ordered() if one.name == first.name), None)
    if case is None:
        return []

    def passes(text: str) -> bool:
        with ctx.with_text(text, RUN_S) as other:
            result = verdict(case, other)
        return result.verdict is Verdict.PASSED or (
            result.verdict is Verdict.SKIPPED and result.skipped is Skip.GPU)

    exercise = ctx.suite.exercise
    text, numbers = ctx.submitted.text, ctx.submitted.places(exercise).lines
    deciding = causes(text, ctx.suite.solution, exercise, functions_of(case, ctx.suite), passes,
                      numbers)
    finding = first.findings[0]
    if deciding or finding.code not in _OF_ACCESSES or finding.line is None:
        return deciding
    lines = dataflow.lines_behind(text, finding.line)[::-1]  # the nearest first
    return wrong_name(text, lines, passes, numbers)
