"""One case of a grade, from its inputs to its verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from grader.diagnosis.explain import result_of
from grader.diagnosis.messages import NOT_WRITTEN
from grader.judge import autotune_configs, host_calls, oversized, properties
from grader.judge.context import Context, RecordedCall
from grader.judge.contract import broken_refusal, wrong_text
from grader.judge.draws import block_of
from grader.judge.launch_report import SurveyBegun, begin_survey, examine_call
from grader.judge.perf_bound import FOR_VALUES, Forecast, forecast
from grader.judge.perf_limits import check, code_limits
from grader.judge.values import check_run, diagnose, wrong_values
from grader.processes.replies import Run, Stopped, unusable
from grader.processes.time_limit import OutOfTime
from grader.recording.arena import SparseTensor
from grader.recording.model import MAX_SAMPLED_PROGRAMS
from grader.report import AFTER_FAILURE, SPARED, CaseResult, Finding, Kind, Skip, Verdict
from grader.sandbox import SandboxBroken, cancellation
from grader.suite import Case, Property, Suite
from grader.suite.sizes import Drawn, words

SHRINK_S = 10.0  # most failures shrink in a tenth of a second


def judge_case(case: Case, ctx: Context) -> CaseResult:
    """Judges the call of a case: records it, replays its launches, compares the results.

    Raises:
        Stopped: a process did not survive it.
    """
    call = ctx.record(case)  # in the worker, on inputs drawn for it
    if case.raises:
        return result_of(case, call.outcome.findings or broken_refusal(case, call.outcome.error))
    ctx.keep(call)
    if call.findings:
        return result_of(case, call.findings)
    run = ctx.replay(call)  # in the executor
    if run.printed:
        ctx.printed[case.name] = run.printed
    findings = check_run(call, run, ctx)
    if findings and not ctx.diagnoses:
        return result_of(case, findings)
    if findings:
        with suppress(OutOfTime):  # the cause is left open then
            findings = diagnose(findings, call, run, ctx)
    elif case.kind is Kind.CORRECTNESS and not case.advisory:
        findings = autotune_configs.check(call, ctx)
    facts, over_limit = _check_limits(call, run, ctx)
    return result_of(case, [*findings, *over_limit], facts)


def verdict(case: Case, ctx: Context) -> CaseResult:
    """Judges one case, whatever happens; a hang or a crash costs this case alone.

    Raises:
        SandboxBroken: the processes are gone.
    """
    started = time.monotonic()
    if ctx.schedule.failed and ctx.schedule.leads(case):
        ctx.vain_contrasts.clear()  # a contrast that was in vain further back may show its cause
    ctx.patience.check()
    try:
        result = _too_late(case, ctx) if ctx.patience.over else _judge(case, ctx)
    except OutOfTime:  # although some may be left: a wait for a CPU is known only afterwards
        ctx.patience.end()
        result = _too_late(case, ctx)
    except Stopped as stop:
        ctx.patience.count(stop, ctx.session(case).processes.lost_s)
        result = result_of(case, [stop.finding])
    except SandboxBroken:
        raise
    except Exception as error:  # ours or the suite's: never a failure of the learner
        result = CaseResult(case.name, case.kind, Verdict.ERROR, reason=ctx.reason(error))
        if refusal := ctx.gate.refusal_in(case.name):  # what no GPU runs need not run here
            result = result_of(case, [refusal])
    result = replace(result, seconds=time.monotonic() - started, advisory=case.advisory,
                     details=ctx.notes.details if ctx.notes else None,
                     clocked=oversized.is_measured(case))
    if not (ctx.in_steps and result.findings and result.findings[0].means == NOT_WRITTEN):
        ctx.schedule.note(result)
    return result


def value_cases(part: Suite) -> list[Case]:
    """The cases whose values decide whether a function's speed means anything."""
    return [case for case in part.cases if case.kind in (Kind.CORRECTNESS, Kind.EDGE)
            and oversized.runs_whole(case) and not (case.raises or case.advisory)]


def first_wrong(part: Suite, ctx: Context) -> CaseResult | None:
    """The first case of a function that shows wrong values, or None."""
    results = (verdict(case, ctx) for case in value_cases(part))
    return next((result for result in results
                 if result.verdict in (Verdict.FAILED, Verdict.ERROR)), None)


def _too_late(case: Case, ctx: Context) -> CaseResult:
    return CaseResult(case.name, case.kind, Verdict.SKIPPED, reason=ctx.patience.over,
                      skipped=ctx.patience.skip)


def _judge(case: Case, ctx: Context) -> CaseResult:
    """Judges a case by the function for its form."""
    if isinstance(case, Property):
        return properties.judge(case, ctx)
    if case.sizes is not None:
        return _judge_sizes(case, ctx)
    if ctx.spares_work and (oversized.is_measured(case) or (case.call and case.call.trees)):
        why = AFTER_FAILURE if ctx.effort == "early" else SPARED
        return CaseResult(case.name, case.kind, Verdict.SKIPPED, reason=why, skipped=Skip.FAILED)
    if case.reading is not None:
        return result_of(case, wrong_text(case.reading, ctx.submitted.texts))
    if case.call is not None:
        return host_calls.judge(case, ctx)
    if oversized.is_measured(case):
        return _judge_speed(case, ctx)
    if oversized.is_large(case):
        return _judge_ends(case, ctx)
    return judge_case(case, ctx)


def _check_limits(call: RecordedCall, run: Run,
                  ctx: Context) -> tuple[dict[str, str], list[Finding]]:
    """Checks a run, and the code of its launches, against the limits of a performance case."""
    case, limits = call.case, call.case.limits
    if limits is None:
        return {}, []
    needed = oversized.least(ctx.part(case), call.inputs)
    facts, findings = check(limits, needed, run.facts, call.recording, call.block)
    enough = bool(findings) and not ctx.is_exhaustive
    if limits.of_code and not enough and not ctx.spares_work:
        ctx.tell(f"{case.name}: waiting for the compiler")
        _begin_surveys(ctx)
        begun = ctx.code.pop(case.name, None)
        compiled = ctx.gate.compiled(call.recording, limits.target,
                                     begun.compiled if begun else None)
        code_facts, over_limit = code_limits(limits, run.facts, compiled.binaries)
        return facts | code_facts, [*findings, *compiled.findings, *over_limit]
    return facts, findings


def _judge_speed(case: Case, ctx: Context) -> CaseResult:
    """Judges, as far as that is possible without a GPU, whether a case can be fast enough.

    Of one that asks for no speed, launches have to compile and to stay within their tensors.
    """
    block, outlines, target = ctx.block(case), ctx.outlines(case), ctx.gate.target
    examine = partial(examine_call, ctx.session(case), outlines, ctx.submitted.text, target)
    if oversized.asks_for_speed(case):
        _begin_survey(case, ctx)
        if ctx.is_exhaustive:
            ctx.gate.begin()
        _begin_surveys(ctx)
        expected = forecast(case, ctx.part(case), outlines,
                            examine(begun=ctx.surveys.pop(case.name, None)), target, block=block,
                            failed=ctx.schedule.failed)
    else:
        expected = Forecast(case, {}, examine(timed=False).findings, expected=FOR_VALUES)
    if ctx.uses_gpu:
        ctx.forecasts[case.name] = expected
    return expected.result()


def _begin_surveys(ctx: Context) -> None:
    """Begins to survey all cases whose code was begun, in the order in which it is compiled."""
    with suppress(Stopped, OutOfTime):  # which is raised again in the turn of that case
        for case in filter(oversized.is_measured, ctx.schedule.cases):
            _begin_survey(case, ctx)


def _begin_survey(case: Case, ctx: Context) -> None:
    """Begins to survey a case whose code was begun, for the GPU of the grade.

    Raises:
        Stopped: its code was not compiled in time, or the executor did not survive.
    """
    if begun := ctx.code.get(case.name):
        compiled = begun.compiled()
        if not compiled.findings and begun.target == ctx.gate.target:
            ctx.surveys[case.name] = SurveyBegun(begun.recording, begin_survey(
                ctx.session(case), begun.recording, begun.inputs, compiled.binaries,
                begun.target))
        del ctx.code[case.name]


def _judge_ends(case: Case, ctx: Context) -> CaseResult:
    """Judges the first and last program of a case too large to run whole.

    Its inputs are memory with holes. Of a case that does not run, only the recording is checked.
    """
    inputs, session = ctx.draw(case), ctx.session(case)
    outcome = session.record(inputs)
    recording = outcome.recording
    findings = unusable(outcome)
    if recording is None or findings or not case.runs:
        return result_of(case, findings)
    block, elements = block_of(recording), inputs[0].elements
    programs = sum(launch.programs for launch in recording.launches)
    if programs > MAX_SAMPLED_PROGRAMS:
        return CaseResult(case.name, case.kind, Verdict.SKIPPED,
                          reason=f"{programs} programs are too many to sample",
                          skipped=Skip.MACHINE)
    if not block or len(recording.launches) != 1 or programs != -(-elements // block):
        return CaseResult(case.name, case.kind, Verdict.SKIPPED,
                          reason="only a grid of one program per block can be sampled",
                          skipped=Skip.MACHINE)
    tail = elements - (programs - 1) * block
    windows = [(0, block), (elements - tail, tail)]
    run = session.replay(recording, inputs, sample=1, windows=windows)
    findings = list(run.findings)
    for number, (start, length) in enumerate(windows):
        if not findings:
            parts = [value.part(number, start, length) if isinstance(value, SparseTensor) else value
                     for value in inputs]
            findings = wrong_values(case, run.results[number::len(windows)], parts, ctx)
    return result_of(case, findings)


# ---------------------------------------------------------------------------------------------
# A case whose sizes are drawn anew: all are judged, and the first that fails is shrunk


def _judge_sizes(case: Case, ctx: Context) -> CaseResult:
    """Judges every drawn size until one fails, which is described at the smallest that fails too.

    A smaller one is looked for only where the failure would be the first of the grade.
    """
    at_sizes = _findings_at(case, ctx.sizes(case), ctx)
    size, findings = next((one for one in at_sizes if one[1]), ({}, ()))
    if not findings:
        return result_of(case, [])
    if not ctx.diagnoses:
        return result_of(case, findings)
    smallest = _shrunk(case, size, findings[0].code, ctx) if ctx.schedule.leads(case) else size
    described = _at(case, smallest, ctx)
    try:
        result = _judge(described, ctx)
    except OutOfTime:
        result = result_of(case, findings)
    if described.name in ctx.printed:
        ctx.printed[case.name] = ctx.printed.pop(described.name)
    drawn = words(size) if smallest != size else ""
    # A result that changes from run to run may be right this time.
    return result_of(case, [finding.within("size", size=words(smallest), drawn=drawn)
                            for finding in result.findings or findings])


def _shrunk(case: Case, size: Drawn, code: str, ctx: Context) -> Drawn:
    """The smallest size found that fails with the same code."""
    assert case.sizes is not None
    started = time.monotonic()

    def fails(other: Drawn) -> bool:
        if time.monotonic() - started > SHRINK_S:
            return False
        try:
            _, findings = next(_findings_at(case, [other], ctx))
        except (Stopped, OutOfTime):
            return False
        return bool(findings) and findings[0].code == code

    return case.sizes.shrunk(size, fails)


def _at(case: Case, size: Drawn, ctx: Context) -> Case:
    """The case at one size, in the place of the suite's own."""
    sized = case.at(size)
    ctx.schedule.insert(sized, case)
    return sized


def _findings_at(case: Case, sizes: Sequence[Drawn],
                 ctx: Context) -> Iterator[tuple[Drawn, Sequence[Finding]]]:
    """The findings of a case at each size, without their cause; an exception names the size."""
    cases = [_at(case, size, ctx) for size in sizes]
    ctx = ctx.look_ahead(cases, noted=False)
    for size, sized in zip(sizes, cases, strict=True):
        cancellation.check()
        try:
            if sized.call:
                yield size, host_calls.judge(sized, ctx).findings
            else:
                call = ctx.record(sized)
                yield size, call.findings or check_run(call, ctx.replay(call), ctx)
        except Stopped as stop:
            if stop.final:
                raise
            raise Stopped(stop.finding.within("size", size=words(size))) from None
        except Exception as error:
            error.add_note(f"at the drawn size {words(size)}")
            raise
