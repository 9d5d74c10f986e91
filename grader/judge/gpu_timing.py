"""A case that asks for speed, by the clock of a GPU: inputs of its real size, timed and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import torch

from grader.diagnosis.explain import result_of
from grader.engine.gpu import measurement
from grader.engine.gpu.measurement import Ceilings, Gpu
from grader.gpu.client import NoGpu
from grader.judge import large_tensors, oversized
from grader.judge.context import Context
from grader.judge.launch_report import MOST_CONFIGURATIONS, recordings_of
from grader.judge.perf_bound import Forecast
from grader.judge.values import finding_of
from grader.recording.arena import SparseTensor
from grader.recording.model import Recording
from grader.report import CaseResult, Finding, Skip, Verdict
from grader.suite import Case, Cost, Suite
from grader.text import sentence

SETS = 2  # of inputs, so that no result of an earlier call is the right one
LARGE = 4 << 30  # bytes that a job moves, from where on one set has to do
TRIES = 2  # of a time that is too noisy, which the clock itself tried three times
ROOM = 2.5  # times the bytes of a job: inputs and results, each twice, and what a judge holds
SHARE_OF_MEMORY = 0.9  # of the GPU, that this may take
GIB = 1 << 30
AGAIN = "no clear time, however often it was taken. Let nothing else use the GPU and let it " \
        "cool, then run `tritonlab grade` again."


def timed(forecast: Forecast, ctx: Context, gpu: Gpu,
          measure_ceilings: Callable[[], Ceilings]) -> CaseResult:
    """Judges a case that was looked at without a GPU before.

    Args:
        measure_ceilings: measures how fast the GPU copies and multiplies, or raises NoGpu.

    Raises:
        grader.processes.replies.Stopped: a process did not survive it.
    """
    case = forecast.case
    assert case.limits is not None and case.limits.pass_at is not None
    skipped = CaseResult(case.name, case.kind, Verdict.SKIPPED, facts=forecast.facts,
                         skipped=Skip.MACHINE)
    outlines = ctx.outlines(case)
    needed = oversized.least(ctx.part(case), outlines)
    if oversized.has_holes(case):
        return replace(skipped, reason="not timed: its inputs lie too far apart in memory")
    if needed.bytes > LARGE and large_tensors.device() == "cpu":
        return replace(skipped, skipped=Skip.GPU, reason=(
            "not timed: drawing inputs of this size takes a GPU that the grader's own torch can "
            "use"))
    room = ROOM * _sets(needed) * needed.bytes
    if room > SHARE_OF_MEMORY * gpu.memory_bytes:
        return replace(skipped, reason=f"not timed: it takes {room / GIB:.0f} GiB, and the "
                                       f"{gpu.name} has {gpu.memory_bytes / GIB:.0f} GiB")
    try:
        ceilings = measure_ceilings()
        recordings, findings = recordings_of(ctx.session(case), outlines, MOST_CONFIGURATIONS)
        if findings:
            return result_of(case, findings, forecast.facts)
        return _timed(forecast, ctx, needed, ceilings, recordings)
    except NoGpu as error:
        return replace(skipped, skipped=Skip.GPU, reason=f"not timed: {error}")
    except (MemoryError, torch.OutOfMemoryError) as error:
        return replace(skipped, reason=f"not timed: this machine has too little memory for it "
                                       f"({str(error).partition(chr(10))[0]:.120})")
    finally:
        large_tensors.free()


def _timed(forecast: Forecast, ctx: Context, needed: Cost, ceilings: Ceilings,
           recordings: Sequence[Recording]) -> CaseResult:
    case, recording = forecast.case, recordings[0]
    assert case.limits is not None and case.limits.pass_at is not None
    pass_at = case.limits.pass_at
    # Not the suite of the context, whose reference would keep large inputs in memory.
    suite = next(one for one in ctx.suite.parts if one.entry == ctx.part(case).entry)
    units = measurement.units_of(ctx.outlines(case), suite.tolerance)
    sets = input_sets(case, ctx, _sets(needed))
    rows = large_tensors.windows(suite, recording, sets[0])
    large_tensors.free()
    for _ in range(TRIES):
        timed = ctx.session(case).measure(recording, list(map(large_tensors.on_cpu, sets)),
                                          others=recordings[1:],
                                          windows=_elements(recording, rows))
        if (measured := timed.measurement) is None:
            return result_of(case, [*timed.findings, *forecast.broken], forecast.facts)
        verdict, words = measurement.judge(measured, needed, ceilings, pass_at, units)
        if verdict is not Verdict.INCONCLUSIVE:
            break
    assert measured is not None
    findings = list(timed.findings)
    for sets_of_results in (timed.results, timed.untimed):  # the latter only where they differ
        for results, inputs in zip(sets_of_results, sets, strict=False):
            findings = findings or _wrong(suite, case, recording, results, inputs, rows)
    if verdict is Verdict.FAILED and not findings:
        impossible = measurement.impossible(measured, needed, ceilings)
        findings.append(Finding("T08" if impossible else "T07", sentence(words)))
    share = measurement.share(measured, needed, ceilings, units)
    facts = forecast.facts | {"measured": words} | _beside(forecast, measured.ms)
    if case.limits.stretch is not None and verdict is Verdict.PASSED:
        reached = "reached" if share >= case.limits.stretch else "not reached"
        facts["stretch goal"] = f"{case.limits.stretch:.0%}, {reached}"
    result = replace(result_of(case, [*findings, *forecast.broken], facts), measured={
        **measured.to_dict(), "share": share, "pass_at": pass_at,
        "gb_s": measurement.gb_s(measured, needed),
        "tflops": measurement.tflops(measured, needed) if needed.flops else None})
    if result.verdict is Verdict.PASSED and verdict is Verdict.INCONCLUSIVE:
        return replace(result, verdict=verdict, reason=AGAIN)
    return result


def _sets(needed: Cost) -> int:
    return SETS if needed.bytes <= LARGE else 1


def _elements(recording: Recording, rows: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Rows of a result as (first element, count)."""
    width = prod(recording.results[0].shape[1:]) if rows else 0
    return [(first * width, count * width) for first, count in rows]


def input_sets(case: Case, ctx: Context, count: int = SETS) -> list[list[Any]]:
    """Inputs of the case's real size, several times over with other values.

    What has to be there before launches are known (indices, lengths) stays the same in all.
    """
    outlines = ctx.outlines(case)
    sets = [ctx.draws.draw(f"{case.name}, timed, {number}", case.inputs,
                           ctx.draws.block(case.function), device=large_tensors.device())
            for number in range(count)]
    return [[drawn if isinstance(outline, SparseTensor) else outline
             for drawn, outline in zip(one, outlines, strict=True)] for one in sets]


def _wrong(suite: Suite, case: Case, recording: Recording,
           results: Sequence[torch.Tensor], inputs: Sequence[Any],
           rows: Sequence[tuple[int, int]]) -> list[Finding]:
    """Checks the results of a run that was timed, or some of their rows."""
    findings: list[Finding] = []
    if rows:
        difference = large_tensors.compare_rows(suite, rows, results, recording, inputs)
    else:
        findings, difference = large_tensors.check(suite, case, recording, results, inputs)
    if difference is not None:
        findings.append(finding_of(difference, suite, inputs, pattern=False))
    return [finding.within("timed") for finding in findings]


def _beside(forecast: Forecast, ms: float) -> dict[str, str]:
    """The forecast beside the clock: how long it would take, and why it would have failed."""
    facts = {}
    if forecast.milliseconds:
        facts["predicted"] = (f"{forecast.milliseconds:.3g} ms for the {forecast.target}, and "
                              f"{ms:.3g} ms were measured")
    if forecast.bound:
        facts["without a GPU"] = f"would have failed: {forecast.bound[0].seen}"
    return facts
