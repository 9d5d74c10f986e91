"""Reruns of the first failing case with statements of the solution, which name its causes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grader.diagnosis.explain import functions_of
from grader.diagnosis.solution_contrast import Cause, causes, repair
from grader.judge.case import verdict
from grader.judge.context import Context
from grader.report import CaseResult, Finding, Skip, Verdict
from grader.submission import dataflow
from grader.suite import Case

RUN_S = 5.0  # of one rerun; most take a tenth of a second
_WITH_REPAIRS = ("whole", "early", "diagnosis")
_REPAIRED = ("M", "N", "S")  # findings of values, accesses and shapes
# A file that cannot be read, and runs that take as long as they are allowed to.
_NOT_RUN_AGAIN = ("P", "R02", "R03", "R04")


def causes_of(results: Sequence[CaseResult], ctx: Context) -> list[Cause]:
    """The statements that decide the first failure of a grade; none where it is not known."""
    first = next((result for result in results if result.fails), None)
    if first is None or not first.findings or not ctx.suite.solution or ctx.submitted.tree is None:
        return []
    if first.findings[0].code.startswith(_NOT_RUN_AGAIN):
        return []

    def case_of(result: CaseResult) -> Case | None:
        return next((one for one in ctx.suite.ordered() if one.name == result.name), None)

    case = case_of(first)
    if case is None:
        return []

    def passes(text: str, case: Case = case) -> bool:
        with ctx.with_text(text, RUN_S) as other:
            result = verdict(case, other)
        return result.verdict is Verdict.PASSED or (
            result.verdict is Verdict.SKIPPED and result.skipped is Skip.GPU)

    exercise = ctx.suite.exercise
    text, numbers = ctx.submitted.text, ctx.submitted.places(exercise).lines
    deciding = causes(text, ctx.suite.solution, exercise, functions_of(case, ctx.suite), passes,
                      numbers)
    finding = first.findings[0]
    if deciding or not finding.code.startswith(_REPAIRED) or ctx.effort not in _WITH_REPAIRS:
        return deciding
    another = next((case_of(result) for result in results
                    if result.fails and result is not first and result.findings
                    and result.findings[0].code.startswith(_REPAIRED)), None)
    elsewhere = dataflow.lines_elsewhere(text, functions_of(case, ctx.suite))
    suspects = [[line for line in lines if line not in elsewhere]
                for lines in _suspects(finding, text)]
    return repair(text, suspects, lambda text: passes(text) and (
        another is None or passes(text, another)), numbers)


def _suspects(finding: Finding, text: str) -> list[Iterable[int]]:
    """Groups of lines that can be wrong, the most suspicious first."""
    launches = [*dataflow.lines_of_launches(text), *dataflow.lines_of_grid(text, None, "")]
    rest = range(1, text.count("\n") + 2)
    if finding.code == "M08":
        return [[*dataflow.lines_of_addresses(text), *launches], rest]
    if finding.code.startswith("M") and finding.line:
        return [[finding.line, *dataflow.lines_behind(text, finding.line)],
                dataflow.lines_behind(text, finding.line, far=True), launches, rest]
    if finding.code.startswith("S"):
        return [rest]
    return [dataflow.lines_of_kernels(text), launches, rest]
