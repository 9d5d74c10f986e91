"""One case graded alone: the block its sizes follow, and the cases that tell its mistake."""

from __future__ import annotations

from collections.abc import Sequence

from grader.diagnosis.case_details import Notes
from grader.diagnosis.explain import explained, telling_cases
from grader.judge.case import verdict
from grader.judge.context import Context
from grader.judge.solution_reruns import causes_of, refuted_mistakes
from grader.report import CaseResult, Verdict
from grader.suite import Case


def prepare(case: Case, ctx: Context) -> None:
    """Finds the block that sizes of the case follow, and has notes of its details taken.

    In a whole grade the last case before this one shows the block of the learner's own launches.
    They are recorded for that, and not run, in other processes, so that nothing they print is taken
    for the case's own.
    """
    with ctx.beside() as other:
        if block := other.block_before(case):
            ctx.draws.blocks[case.function] = block
        ctx.draws.seed = other.draws.seed
    names = ctx.part(case).named_inputs
    if case.call:
        functions = {part.entry: part.named_inputs for part, _ in ctx.parts} | {**ctx.suite.host}
        names = functions.get(case.call.of, ())
    ctx.notes = Notes(names)


def witnesses(results: Sequence[CaseResult], ctx: Context) -> list[CaseResult]:
    """Results of the cases that distinguish the mistake of a case that failed alone.

    They are judged for the diagnosis only; with the same seed, it is that of the whole grade.
    """
    telling = set().union(*(telling_cases(result, ctx.suite) for result in results))
    telling -= {result.name for result in results}
    cases = [case for case in ctx.suite.ordered() if case.name in telling]
    if not cases:
        return []
    with ctx.beside() as other:
        return [verdict(case, other) for case in cases]


def diagnosed(result: CaseResult, ctx: Context) -> CaseResult:
    """One result in words, as a grade of its case alone explains it."""
    others = witnesses([result], ctx) if result.verdict is Verdict.FAILED else []
    causes = causes_of([result], ctx)
    (diagnosis,) = explained([result], ctx.suite, ctx.submitted, witnesses=others, causes=causes,
                             refuted=refuted_mistakes([result, *others], causes, ctx))
    return diagnosis
