"""A case whose sizes are drawn anew: all are judged, and the first that fails is shrunk."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from grader import asked
from grader.diagnosis.explanation import result_of
from grader.outcome import Stopped
from grader.report import CaseResult, Finding
from grader.sandbox import cancellation
from grader.sizes import Drawn, words
from grader.suite import Case

if TYPE_CHECKING:
    from grader.judge import Judge

SHRINK_S = 10.0  # most failures shrink in a tenth of a second


def verdict(judge: Judge, case: Case, *, shrink: bool) -> CaseResult:
    """Judges every drawn size until one fails, which is described at the smallest that fails too.

    Args:
        shrink: look for a smaller size; otherwise the drawn one is described.

    Raises:
        grader.outcome.Stopped: a process did not survive a size; the finding names it.
    """
    assert case.sizes is not None
    with judge.without_notes():
        size, findings = _first_failure(judge, case)
        if not findings:
            return result_of(case, [])
        smallest = _shrunk(judge, case, size, findings[0].code) if shrink else size
    described = case.at(smallest)
    result = asked.host_code(judge, described) if case.call else \
        judge.values(next(judge.trials([described])))
    if described.name in judge.printed:
        judge.printed[case.name] = judge.printed.pop(described.name)
    note = f" (the smallest found; drawn: {words(size)})" if smallest != size else ""
    # A result that changes from run to run may be right this time.
    return result_of(case, [_named(finding, words(smallest) + note)
                            for finding in result.findings or findings])


def _first_failure(judge: Judge, case: Case) -> tuple[Drawn, Sequence[Finding]]:
    """The first drawn size that fails, and why; no findings where none does."""
    drawn = judge.sizes(case)
    results = _findings(judge, [case.at(size) for size in drawn])
    for size in drawn:
        cancellation.check()
        try:
            findings = next(results)
        except Stopped as stop:
            if stop.final:
                raise
            raise Stopped(_named(stop.finding, words(size))) from None
        except Exception as error:
            error.add_note(f"at the drawn size {words(size)}")
            raise
        if findings:
            return size, findings
    return {}, ()


def _shrunk(judge: Judge, case: Case, size: Drawn, code: str) -> Drawn:
    """The smallest size found that fails with the same code."""
    assert case.sizes is not None
    started = time.monotonic()

    def fails(other: Drawn) -> bool:
        cancellation.check()
        if time.monotonic() - started > SHRINK_S:
            return False
        try:
            findings = next(_findings(judge, [case.at(other)]))
        except Stopped:
            return False
        return bool(findings) and findings[0].code == code

    return case.sizes.shrunk(size, fails)


def _findings(judge: Judge, cases: Sequence[Case]) -> Iterator[Sequence[Finding]]:
    """The findings of each case; all cases call host code, or none does."""
    if cases[0].call:
        return (asked.host_code(judge, case).findings for case in cases)
    return map(judge.findings, judge.trials(cases))


def _named(finding: Finding, size: str) -> Finding:
    return replace(finding, seen=f"At {size}: {finding.seen}")
