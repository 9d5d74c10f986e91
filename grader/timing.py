"""A case that asks for speed, by the clock of a GPU: inputs of its real size, timed and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import torch

from grader import bulk, large, measurement
from grader.diagnosis.explanation import result_of
from grader.examination import MOST_CONFIGURATIONS
from grader.measurement import Ceilings, Measurement
from grader.outcome import Run, Stopped, unusable
from grader.recording import Recording
from grader.report import CaseResult, Finding, Verdict
from grader.sandbox.arena import SparseTensor
from grader.speed import Foretold
from grader.suite import Case, Cost
from grader.words import sentence

if TYPE_CHECKING:
    from grader.device import Device
    from grader.judge import Judge

SETS = 2  # of inputs, so that no result of an earlier call is the right one
TRIES = 3  # of a time that is too noisy
SHARE_OF_MEMORY = 0.8  # of the GPU that inputs and results may take
GIB = 1 << 30


def timed(judge: Judge, device: Device, said: Foretold) -> CaseResult:
    """Judge a case of which ``said`` is known already.

    Raises:
        grader.outcome.Stopped: a process did not survive it.
    """
    case, gpu = said.case, device.gpu
    assert case.limits is not None and case.limits.pass_at is not None and gpu is not None
    skipped = CaseResult(case.name, case.kind, Verdict.SKIPPED, facts=said.facts)
    needed = large.least(judge.suite, judge.outlines(case))
    if SETS * needed.bytes > SHARE_OF_MEMORY * gpu.memory_bytes:
        return replace(skipped, reason=f"not timed: it takes {SETS * needed.bytes / GIB:.0f} GiB, "
                                       f"and the {gpu.name} has {gpu.memory_bytes / GIB:.0f} GiB")
    if not device.measure_ceilings():
        return replace(skipped, reason=f"not timed: {device.unusable}")
    assert device.ceilings is not None
    recordings = _recorded(judge, case)
    if isinstance(recordings, CaseResult):
        return replace(recordings, facts=said.facts)
    try:
        return _timed(judge, said, needed, device.ceilings, recordings)
    except (MemoryError, torch.OutOfMemoryError) as error:
        return replace(skipped, reason=f"not timed: this machine has too little memory for it "
                                       f"({str(error).partition(chr(10))[0]:.120})")
    finally:
        bulk.free()


def _timed(judge: Judge, said: Foretold, needed: Cost, ceilings: Ceilings,
           recordings: Sequence[Recording]) -> CaseResult:
    case = said.case
    assert case.limits is not None and case.limits.pass_at is not None
    sets = input_sets(judge, case)
    bulk.free()
    for _ in range(TRIES):
        measured, recording, runs = _fastest(judge, recordings, [bulk.on_cpu(one) for one in sets])
        verdict, words = measurement.judge(measured, needed, ceilings, case.limits.pass_at)
        if verdict is not Verdict.INCONCLUSIVE:
            break
    found: list[Finding] = []
    for run, inputs in zip(runs, sets, strict=True):
        found += run.findings or _wrong(judge, case, recording, run.results, inputs)
    facts = said.facts | {"measured": words} | _beside(said, measured)
    share = measurement.share(measured, needed, ceilings)
    if case.limits.stretch is not None and verdict is Verdict.PASSED:
        reached = "reached" if share >= case.limits.stretch else "not reached"
        facts["stretch goal"] = f"{case.limits.stretch:.0%}, {reached}"
    if verdict is Verdict.FAILED and not found:
        found.append(Finding("T08" if share > 1 else "T07", sentence(words)))
    result = replace(result_of(case, [*found, *said.broken], facts),
                     measured=_numbers(measured, needed, ceilings, case.limits.pass_at))
    if result.verdict is Verdict.PASSED and verdict is Verdict.INCONCLUSIVE:
        return replace(result, verdict=verdict, reason=f"{words}, {TRIES} times over. Let nothing "
                       "else use the GPU, then run `tritonlab grade` again.")
    return result


def _recorded(judge: Judge, case: Case) -> list[Recording] | CaseResult:
    """What the learner's function launches, by each configuration that an autotuner may choose."""
    recordings: list[Recording] = []
    inputs = judge.outlines(case)
    number, configurations = 0, 1
    while number < min(configurations, MOST_CONFIGURATIONS):
        outcome = judge.session.record(inputs, config=number)
        configurations = outcome.configurations
        findings = unusable(outcome)
        if findings or outcome.recording is None:
            return result_of(case, findings)
        recordings.append(outcome.recording)
        number += 1
    return recordings


def input_sets(judge: Judge, case: Case) -> list[list[Any]]:
    """Inputs of the case's real size, several times over with other values.

    What has to be there before launches are known (indices, lengths) stays the same in all.
    """
    outlines = judge.outlines(case)
    sets = [judge.draws.draw(f"{case.name}, timed, {number}", case.inputs,
                             judge.draws.block(case.function), device=bulk.device())
            for number in range(SETS)]
    return [[drawn if isinstance(outline, SparseTensor) else outline
             for drawn, outline in zip(one, outlines, strict=True)] for one in sets]


def _fastest(judge: Judge, recordings: Sequence[Recording], sets: Sequence[Sequence[Any]]
             ) -> tuple[Measurement, Recording, tuple[Run, ...]]:
    """The best of the configurations, as a GPU would choose it, and the results of its runs.

    Raises:
        grader.outcome.Stopped: none could be timed.
    """
    best: tuple[Measurement, Recording, tuple[Run, ...]] | None = None
    stopped: Stopped | None = None
    for recording in recordings:
        try:
            timing = judge.session.measure(recording, sets)
        except Stopped as stop:  # of several, a GPU passes over what it cannot run
            stopped = stop
            continue
        if best is None or timing.measurement.ms < best[0].ms:
            best = (timing.measurement, recording, timing.runs)
    if best is None:
        assert stopped is not None
        raise stopped
    return best


def _wrong(judge: Judge, case: Case, recording: Recording, results: Sequence[torch.Tensor],
           inputs: Sequence[Any]) -> list[Finding]:
    """What is wrong with the results of a run that was timed."""
    suite = next(part for part in judge.whole.parts if part.entry == judge.suite.entry)
    findings, difference = bulk.judged(suite, case, recording, results, inputs)
    if difference is not None:
        findings.append(judge.wrong(difference, inputs, pattern=False))
    return [replace(finding, seen=f"{sentence(finding.seen)} Seen in a run that was timed.")
            for finding in findings]


def _beside(said: Foretold, measured: Measurement) -> dict[str, str]:
    """What was predicted, and why the case would have failed or passed without a GPU."""
    facts = {}
    if said.milliseconds:
        times = measured.ms / said.milliseconds
        facts["predicted"] = f"{said.milliseconds:.3g} ms for the {said.target}, " \
                             f"{times:.2f} of it was measured"
    if said.bound:
        facts["without a GPU"] = f"would have failed: {said.bound[0].seen}"
    return facts


def _numbers(measured: Measurement, needed: Cost, ceilings: Ceilings,
             pass_at: float) -> dict[str, Any]:
    """A measurement as data, with what was asked for."""
    return {**asdict(measured), "gb_s": measurement.gb_s(measured, needed),
            "tflops": measurement.tflops(measured, needed) if needed.flops else None,
            "share": measurement.share(measured, needed, ceilings), "pass_at": pass_at}
