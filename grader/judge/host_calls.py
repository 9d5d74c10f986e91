"""Cases that look at host code: its answers, the texts of its files."""

from __future__ import annotations

from grader.diagnosis.explain import result_of
from grader.judge import file_trees, oversized
from grader.judge.context import Context
from grader.judge.contract import broken_refusal, unanswered, wrong_answer, wrong_text
from grader.report import SPARED, CaseResult, Skip, Verdict
from grader.suite import Case


def judge_text(case: Case, ctx: Context) -> CaseResult:
    """Judges a case that only reads the submission's files."""
    assert case.reading is not None
    return result_of(case, wrong_text(case.reading, ctx.submitted.texts))


def judge(case: Case, ctx: Context) -> CaseResult:
    """Judges the answer of host code, in the learner's files or in several trees.

    Raises:
        grader.processes.replies.Stopped: the worker did not survive it.
    """
    call = case.call
    assert call is not None
    if call.trees and ctx.spares_work:
        return CaseResult(case.name, case.kind, Verdict.SKIPPED, reason=SPARED,
                          skipped=Skip.EFFORT)
    inputs = ctx.draw(case)
    if call.trees:
        answers = file_trees.answers(call, inputs, ctx.suite.calls, ctx.submitted, ctx.sandbox,
                                     oversized.limits(ctx.suite), target=ctx.gate.target.name,
                                     all_of_them=ctx.whole_messages)
        return result_of(case, wrong_answer(call, answers, inputs))
    answer = ctx.ask(call, inputs)
    if case.raises and not answer.findings:
        return result_of(case, broken_refusal(case, answer.error))
    return result_of(case, unanswered(call, answer) or wrong_answer(call, answer.value, inputs))
