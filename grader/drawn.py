"""A case whose sizes are drawn anew: all are judged, and the first that fails is shrunk."""

from __future__ import annotations

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


def verdict(judge: Judge, case: Case, *, shrink: bool) -> CaseResult:
    """Judges every drawn size until one fails, which is described at the smallest that fails too.

    Args:
        shrink: look for a smaller size; otherwise the drawn one is described.

    Raises:
        grader.outcome.Stopped: a process did not survive a size; the finding names it.
    """
    assert case.sizes is not None
    drawn = judge.sizes(case)
    with judge.without_notes():
        failed = _first_failure(judge, case, drawn)
        if failed is None:
            return result_of(case, [])
        size, code = failed
        smallest = case.sizes.shrunk(size, lambda other: _code(judge, case, other) == code) \
            if shrink else size
    shown = case.at(smallest)
    result = _whole(judge, shown)
    if shown.name in judge.printed:
        judge.printed[case.name] = judge.printed.pop(shown.name)
    note = f" (the smallest found; drawn: {words(size)})" if smallest != size else ""
    findings = [_named(finding, words(smallest) + note) for finding in result.findings]
    return result_of(case, findings, dict(result.facts))


def _first_failure(judge: Judge, case: Case, drawn: list[Drawn]) -> tuple[Drawn, str] | None:
    """The first size that fails, and the code of its finding."""
    trials = judge.trials([case.at(size) for size in drawn])
    for size in drawn:
        cancellation.check()
        try:
            findings = asked.host_code(judge, case.at(size)).findings if case.call \
                else judge.found(next(trials))
        except Stopped as stop:
            if stop.final:
                raise
            raise Stopped(_named(stop.finding, words(size))) from None
        except Exception as error:
            error.add_note(f"at the drawn size {words(size)}")
            raise
        if findings:
            return size, findings[0].code
    return None


def _code(judge: Judge, case: Case, size: Drawn) -> str:
    """What fails at a size; nothing where it passes, or where the kernel does not end."""
    cancellation.check()
    try:
        if case.call:
            findings = asked.host_code(judge, case.at(size)).findings
        else:
            findings = tuple(judge.found(next(judge.trials([case.at(size)]))))
    except Stopped:
        return ""
    return findings[0].code if findings else ""


def _whole(judge: Judge, case: Case) -> CaseResult:
    """The verdict at one size, with its diagnosis."""
    if case.call:
        return asked.host_code(judge, case)
    return judge.values(next(judge.trials([case])))


def _named(finding: Finding, size: str) -> Finding:
    return replace(finding, seen=f"At {size}: {finding.seen}")
