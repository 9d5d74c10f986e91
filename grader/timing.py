"""A case that asks for speed, by the clock of a GPU: inputs of its real size, timed and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import torch

from grader import bulk, large, measurement
from grader.diagnosis.explanation import result_of
from grader.examination import MOST_CONFIGURATIONS
from grader.gpus import NoGpu
from grader.measurement import Ceilings
from grader.outcome import unusable
from grader.recording import Recording
from grader.report import CaseResult, Finding, Verdict
from grader.sandbox.arena import SparseTensor
from grader.speed import Foretold
from grader.suite import Case, Cost, Suite
from grader.words import sentence

if TYPE_CHECKING:
    from grader.device import Device
    from grader.judge import Judge

SETS = 2  # of inputs, so that no result of an earlier call is the right one
LARGE = 4 << 30  # bytes that a job moves, from where on one set has to do
TRIES = 2  # of a time that is too noisy, which the clock itself tried three times
ROOM = 2.5  # times the bytes of a job: inputs and results, each twice, and what a judge holds
SHARE_OF_MEMORY = 0.9  # of the GPU, that this may take
GIB = 1 << 30
AGAIN = "no clear time, however often it was taken. Let nothing else use the GPU and let it " \
        "cool, then run `tritonlab grade` again."


def timed(judge: Judge, device: Device, said: Foretold) -> CaseResult:
    """Judge a case of which ``said`` is known already.

    Raises:
        grader.outcome.Stopped: a process did not survive it.
    """
    case, gpu = said.case, device.gpu
    assert case.limits is not None and case.limits.pass_at is not None and gpu is not None
    skipped = CaseResult(case.name, case.kind, Verdict.SKIPPED, facts=said.facts)
    needed = large.least(judge.suite, judge.outlines(case))
    if large.has_holes(case):
        return replace(skipped, reason="not timed: its inputs lie too far apart in memory")
    if needed.bytes > LARGE and bulk.device() == "cpu":
        return replace(skipped, reason="not timed: drawing inputs of this size takes a GPU that "
                                       "the grader's own torch can use")
    room = ROOM * _sets(needed) * needed.bytes
    if room > SHARE_OF_MEMORY * gpu.memory_bytes:
        return replace(skipped, reason=f"not timed: it takes {room / GIB:.0f} GiB, and the "
                                       f"{gpu.name} has {gpu.memory_bytes / GIB:.0f} GiB")
    if not device.measure_ceilings():
        return replace(skipped, reason=f"not timed: {device.unusable}")
    assert device.ceilings is not None
    recordings = _recorded(judge, case)
    if isinstance(recordings, CaseResult):
        return replace(recordings, facts=said.facts)
    try:
        return _timed(judge, said, needed, device.ceilings, recordings)
    except NoGpu as error:
        return replace(skipped, reason=f"not timed: {error}")
    except (MemoryError, torch.OutOfMemoryError) as error:
        return replace(skipped, reason=f"not timed: this machine has too little memory for it "
                                       f"({str(error).partition(chr(10))[0]:.120})")
    finally:
        bulk.free()


def _timed(judge: Judge, said: Foretold, needed: Cost, ceilings: Ceilings,
           recordings: Sequence[Recording]) -> CaseResult:
    case = said.case
    assert case.limits is not None and case.limits.pass_at is not None
    pass_at = case.limits.pass_at
    units = measurement.units_of(judge.outlines(case), judge.suite.tolerance)
    suite = next(part for part in judge.whole.parts if part.entry == judge.suite.entry)
    sets = input_sets(judge, case, _sets(needed))
    rows = bulk.windows(suite, recordings[0], sets[0])
    bulk.free()
    for _ in range(TRIES):
        timed = judge.session.measure(recordings[0], [bulk.on_cpu(one) for one in sets],
                                      others=recordings[1:],
                                      windows=_elements(recordings[0], rows))
        if (measured := timed.measurement) is None:
            return result_of(case, [*timed.findings, *said.broken], said.facts)
        verdict, words = measurement.judge(measured, needed, ceilings, pass_at, units)
        if verdict is not Verdict.INCONCLUSIVE:
            break
    assert measured is not None
    found = list(timed.findings)
    for made in (timed.results, timed.untimed):  # the latter only where they differ
        for results, inputs in zip(made, sets, strict=False):
            found = found or _wrong(judge, suite, case, recordings[0], results, inputs, rows)
    if verdict is Verdict.FAILED and not found:
        impossible = measurement.impossible(measured, needed, ceilings)
        found.append(Finding("T08" if impossible else "T07", sentence(words)))
    share = measurement.share(measured, needed, ceilings, units)
    facts = said.facts | {"measured": words} | _beside(said, measured.ms)
    if case.limits.stretch is not None and verdict is Verdict.PASSED:
        reached = "reached" if share >= case.limits.stretch else "not reached"
        facts["stretch goal"] = f"{case.limits.stretch:.0%}, {reached}"
    result = replace(result_of(case, [*found, *said.broken], facts), measured={
        **measured.to_dict(), "share": share, "pass_at": pass_at,
        "gb_s": measurement.gb_s(measured, needed),
        "tflops": measurement.tflops(measured, needed) if needed.flops else None})
    if result.verdict is Verdict.PASSED and verdict is Verdict.INCONCLUSIVE:
        return replace(result, verdict=verdict, reason=AGAIN)
    return result


def _recorded(judge: Judge, case: Case) -> list[Recording] | CaseResult:
    """What the learner's function launches, by each configuration that an autotuner may choose."""
    recordings: list[Recording] = []
    for outcome in judge.session.configurations(judge.outlines(case), MOST_CONFIGURATIONS):
        findings = unusable(outcome)
        if findings or outcome.recording is None:
            return result_of(case, findings)
        recordings.append(outcome.recording)
    return recordings


def _sets(needed: Cost) -> int:
    return SETS if needed.bytes <= LARGE else 1


def _elements(recording: Recording, rows: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Rows of a result as (first element, count)."""
    width = prod(recording.results[0].shape[1:]) if rows else 0
    return [(first * width, count * width) for first, count in rows]


def input_sets(judge: Judge, case: Case, count: int = SETS) -> list[list[Any]]:
    """Inputs of the case's real size, several times over with other values.

    What has to be there before launches are known (indices, lengths) stays the same in all.
    """
    outlines = judge.outlines(case)
    sets = [judge.draws.draw(f"{case.name}, timed, {number}", case.inputs,
                             judge.draws.block(case.function), device=bulk.device())
            for number in range(count)]
    return [[drawn if isinstance(outline, SparseTensor) else outline
             for drawn, outline in zip(one, outlines, strict=True)] for one in sets]


def _wrong(judge: Judge, suite: Suite, case: Case, recording: Recording,
           results: Sequence[torch.Tensor], inputs: Sequence[Any],
           rows: Sequence[tuple[int, int]]) -> list[Finding]:
    """What is wrong with the results of a run that was timed, or with some of their rows."""
    findings: list[Finding] = []
    if rows:
        difference = bulk.judged_rows(suite, rows, results, recording, inputs)
    else:
        findings, difference = bulk.judged(suite, case, recording, results, inputs)
    if difference is not None:
        findings.append(judge.wrong(difference, inputs, pattern=False))
    return [replace(finding, seen=f"{sentence(finding.seen)} Seen in a run that was timed.")
            for finding in findings]


def _beside(said: Foretold, ms: float) -> dict[str, str]:
    """What was said without a clock: how long it would take, and why it could not be fast enough.
    """
    facts = {}
    if said.milliseconds:
        facts["predicted"] = f"{said.milliseconds:.3g} ms for the {said.target}, and {ms:.3g} ms " \
                             "were measured"
    if said.bound:
        facts["without a GPU"] = f"would have failed: {said.bound[0].seen}"
    return facts
