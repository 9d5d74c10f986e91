"""Cases that are asked in words: what host code answers, what files say, and laws of the result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from grader import large, trees
from grader.contract import (
    broken_contract,
    broken_refusal,
    unanswered,
    wrong_answer,
    wrong_text,
)
from grader.diagnosis.explanation import result_of
from grader.recording import Recording
from grader.report import SPARED, CaseResult, Finding, Verdict
from grader.submission import Faulty, Submission
from grader.suite import Case, Property, Suite
from grader.words import sentence

if TYPE_CHECKING:
    from grader.judge import Judge


def host_code(judge: Judge, case: Case) -> CaseResult:
    """Judge what host code answers, which is all that comes of such a call, or what files say.

    Raises:
        grader.outcome.Stopped: the worker did not survive it.
    """
    if case.reading is not None:
        return result_of(case, wrong_text(case.reading, judge.submitted.texts))
    call = case.call
    assert call is not None
    if call.trees and judge.spares_work:
        return CaseResult(case.name, case.kind, Verdict.SKIPPED, reason=SPARED)
    inputs = judge.draw(case.name, case.inputs)
    if call.trees:
        answers = trees.answers(call, inputs, judge.whole.calls, judge.submitted, judge.sandbox,
                                large.limits(judge.whole), target=judge.gate.target.name,
                                all_of_them=judge.tells_all)
        return result_of(case, wrong_answer(call, answers, inputs))
    answer = judge.ask(call, inputs)
    if case.raises and not answer.findings:
        return result_of(case, broken_refusal(case, answer.error))
    return result_of(case, unanswered(call, answer) or wrong_answer(call, answer.value, inputs))


def law(judge: Judge, tried: Property) -> CaseResult:
    """Judge a law, which calls the learner's functions as it likes.

    Raises:
        grader.outcome.Stopped: a process did not survive it.
    """
    case = Case(tried.name, tried.kind)

    def broken(suite: Suite, recording: Recording, inputs: Sequence[Any]) -> list[Finding]:
        """What a call did not keep; its launches have to compile as well."""
        judge.gate.add(case.name, recording)
        return broken_contract(suite, case, recording, inputs)

    functions = {suite.entry: (session, partial(broken, suite))
                 for suite, session in judge.parts if suite.entry}
    try:
        tried.test(Submission(tried.name, functions, judge.draw, judge.gate.target))
    except Faulty as fault:
        return result_of(tried, fault.findings)
    except AssertionError as error:
        return result_of(tried, [Finding("N01", sentence(str(error)))])
    return result_of(tried, [])
