"""One case graded alone: what the cases before it would have told, and those that tell its mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grader.diagnosis.explanation import explained, telling_cases
from grader.draws import block_of
from grader.outcome import Stopped
from grader.report import CaseResult, Kind, Verdict
from grader.suite import Case, Property

if TYPE_CHECKING:
    from grader.judge import Judge


def prepare(judge: Judge, case: Case | Property) -> None:
    """Find out the block that sizes follow, and have the details of the case gathered.

    In a whole grade the last case before this one shows the block of the learner's own launches.
    They are recorded for that, and not run, in other processes, so that nothing they print is taken
    for the case's own.
    """
    function = case.function if isinstance(case, Case) else ""
    before = judge.whole.ordered()
    before = before[:before.index(case)]
    with judge.beside() as other:
        for earlier in reversed(before):
            if not isinstance(earlier, Case) or earlier.kind is not Kind.CORRECTNESS:
                continue
            if earlier.function != function:
                continue
            other.turn_to(earlier)
            try:
                outcome = other.session.record(other.draw(earlier.name, earlier.inputs))
            except Stopped:
                break
            if outcome.recording is not None and (block := block_of(outcome.recording)):
                judge.draws.blocks[function] = block
                break
        judge.draws.seed = other.draws.seed
    judge.turn_to(case)
    judge.take_notes(case)


def witnesses(judge: Judge, results: Sequence[CaseResult]) -> list[CaseResult]:
    """Where one case is graded alone and failed: the cases that tell its mistake from others.

    They are judged for the diagnosis only; with the same seed, it is that of the whole grade.
    """
    telling = set().union(*(telling_cases(result, judge.whole) for result in results))
    telling -= {result.name for result in results}
    cases = [case for case in judge.whole.ordered() if case.name in telling]
    if not cases:
        return []
    with judge.beside() as other:
        return [other.verdict_on(case) for case in cases]


def diagnosed(judge: Judge, result: CaseResult) -> CaseResult:
    """One result in words, as a grade of its case alone explains it."""
    others = witnesses(judge, [result]) if result.verdict is Verdict.FAILED else []
    (diagnosis,) = explained([result], judge.whole, judge.submitted, witnesses=others)
    return diagnosis
