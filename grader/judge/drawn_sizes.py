"""A case whose sizes are drawn anew: all are judged, and the first that fails is shrunk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from grader.diagnosis.explain import result_of
from grader.judge import host_calls, values
from grader.judge.context import Context
from grader.processes.replies import Stopped
from grader.report import CaseResult, Finding
from grader.sandbox import cancellation
from grader.suite import Case
from grader.suite.sizes import Drawn, words

SHRINK_S = 10.0  # most failures shrink in a tenth of a second


def judge(case: Case, ctx: Context,
          judge_size: Callable[[Case, Context], CaseResult]) -> CaseResult:
    """Judges every drawn size until one fails, which is described at the smallest that fails too.

    Args:
        judge_size: judges the case at one size. A smaller one is looked for only where the
            failure would be the first of the grade.

    Raises:
        grader.processes.replies.Stopped: a process did not survive a size; the finding names it.
    """
    size, findings = _first_failure(case, ctx)
    if not findings:
        return result_of(case, [])
    smallest = size
    if ctx.schedule.leads(case):
        smallest = _shrunk(case, size, findings[0].code, ctx)
    described = _at(case, smallest, ctx)
    result = judge_size(described, ctx)
    if described.name in ctx.printed:
        ctx.printed[case.name] = ctx.printed.pop(described.name)
    note = f" (the smallest found; drawn: {words(size)})" if smallest != size else ""
    # A result that changes from run to run may be right this time.
    return result_of(case, [finding.within("size", size=words(smallest) + note)
                            for finding in result.findings or findings])


def _first_failure(case: Case, ctx: Context) -> tuple[Drawn, Sequence[Finding]]:
    """The first drawn size that fails, and why; no findings where none does."""
    sizes = ctx.sizes(case)
    results = _findings([_at(case, size, ctx) for size in sizes], ctx)
    for size in sizes:
        cancellation.check()
        try:
            findings = next(results)
        except Stopped as stop:
            if stop.final:
                raise
            raise Stopped(stop.finding.within("size", size=words(size))) from None
        except Exception as error:
            error.add_note(f"at the drawn size {words(size)}")
            raise
        if findings:
            return size, findings
    return {}, ()


def _shrunk(case: Case, size: Drawn, code: str, ctx: Context) -> Drawn:
    """The smallest size found that fails with the same code."""
    assert case.sizes is not None
    started = time.monotonic()

    def fails(other: Drawn) -> bool:
        cancellation.check()
        if time.monotonic() - started > SHRINK_S:
            return False
        try:
            findings = next(_findings([_at(case, other, ctx)], ctx))
        except Stopped:
            return False
        return bool(findings) and findings[0].code == code

    return case.sizes.shrunk(size, fails)


def _at(case: Case, size: Drawn, ctx: Context) -> Case:
    """The case at one size, in the place of the suite's own."""
    sized = case.at(size)
    ctx.schedule.insert(sized, case)
    return sized


def _findings(cases: Sequence[Case], ctx: Context) -> Iterator[Sequence[Finding]]:
    """The findings of each case, without their cause; all call host code, or none does."""
    ctx = ctx.look_ahead(cases, noted=False)
    for case in cases:
        if case.call:
            yield host_calls.judge(case, ctx).findings
        else:
            call = ctx.record(case)
            yield call.findings or values.check_run(call, ctx.replay(call), ctx)
