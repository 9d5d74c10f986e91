"""Cases that are asked in words: what host code answers, what files say, and laws of the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from grader.strands import Strand, Wait
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
                                large.limits(judge.whole), all_of_them=judge.tells_all)
        return result_of(case, wrong_answer(call, answers, inputs))
    answer = judge.ask(call, inputs)
    if case.raises and not answer.findings:
        return result_of(case, broken_refusal(case, answer.error))
    return result_of(case, unanswered(call, answer) or wrong_answer(call, answer.value, inputs))


class Laws:
    """Properties of the learner's functions, which call these as they like.

    A law waits at every call; so all of them go on together, and the calls of one are answered
    while the others look at theirs.
    """

    def __init__(self, judge: Judge, tried: Iterable[Property]) -> None:
        """Nothing is begun yet."""
        self._strands = {one.name: Strand(partial(_law, judge, one)) for one in tried}

    def take(self, tried: Property) -> CaseResult:
        """Judge a law, and go on with those that are left meanwhile.

        Raises:
            grader.outcome.Stopped: a process did not survive it.
        """
        wanted = self._strands.pop(tried.name)
        while not wanted.over:
            wanted.advance()
            for strand in self._strands.values():
                strand.advance()
        return wanted.result()

    def drop(self) -> None:
        """End those that were not taken."""
        for strand in self._strands.values():
            strand.drop()


def _law(judge: Judge, tried: Property, wait: Wait) -> CaseResult:
    case = Case(tried.name, tried.kind)

    def broken(suite: Suite, recording: Recording, inputs: Sequence[Any]) -> list[Finding]:
        """What a call did not keep; its launches have to compile as well."""
        judge.gate.add(case.name, recording)
        return broken_contract(suite, case, recording, inputs)

    functions = {suite.entry: (session, partial(broken, suite))
                 for suite, session in judge.parts if suite.entry}
    try:
        tried.test(Submission(tried.name, functions, judge.draw, wait))
    except Faulty as fault:
        return result_of(tried, fault.findings)
    except AssertionError as error:
        return result_of(tried, [Finding("N01", sentence(str(error)))])
    return result_of(tried, [])
