"""The GPU's part of a grade: whether all values come out right on it, too, and how fast."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import torch

from grader.diagnosis.difference import Difference, effect
from grader.diagnosis.explain import replay_options, result_of
from grader.diagnosis.messages import ONLY_HERE
from grader.engine.gpu import measurement
from grader.engine.gpu.measurement import Ceilings, Gpu
from grader.finding import fault
from grader.gpu.client import NoGpu
from grader.judge import compare, large_tensors, oversized
from grader.judge.context import Context, RecordedCall
from grader.judge.contract import broken_contract
from grader.judge.launch_report import MOST_CONFIGURATIONS, recordings_of
from grader.judge.perf_bound import Forecast
from grader.judge.values import finding_of
from grader.processes.replies import Run, Stopped, same_bits
from grader.processes.time_limit import OutOfTime
from grader.recording.arena import SparseTensor
from grader.recording.model import Recording
from grader.report import CaseResult, Finding, Kind, Report, Skip, Verdict
from grader.sandbox import SandboxBroken
from grader.suite import Case, Cost, Suite
from grader.text import sentence

PATIENCE_S = 120.0  # for all cases; compiling for real takes most of it
MOST_LOST = 3  # processes: each fault of a kernel takes one with it
SETS = 2  # of inputs, so that no result of an earlier call is the right one
LARGE = 4 << 30  # bytes that a job moves, from where on one set has to do
TRIES = 2  # of a time that is too noisy, which the clock itself tried three times
ROOM = 2.5  # times the bytes of a job: inputs and results, each twice, and what a judge holds
SHARE_OF_MEMORY = 0.9  # of the GPU, that this may take
GIB = 1 << 30
AGAIN = "no clear time, however often it was taken. Let nothing else use the GPU and let it " \
        "cool, then run `tritonlab grade` again."


class GpuVerdicts:
    """The GPU of one grade, and its verdicts on what the context has gathered for it."""

    def __init__(self, ctx: Context, *, throughout: bool = False) -> None:
        """Asks nothing of a GPU yet.

        Args:
            throughout: run cases there that failed on the CPU too, to compare both.
        """
        self._ctx = ctx
        self._throughout = throughout
        self._n_lost = 0  # processes
        self._n_begun = 0  # calls that are compiled for the GPU, or will be
        self._failed_before: set[str] = set()  # names of cases, on the CPU
        self.name = ""  # of the result over all cases
        self.gpu: Gpu | None = None
        self.ceilings: Ceilings | None = None
        self.unusable = ""  # why the GPU that is there cannot be used
        self.results: list[CaseResult] = []  # of each value case

    def compile_ahead(self, *, timed: bool = False) -> None:
        """Has what was called so far compiled for the GPU, while the CPU goes on.

        Args:
            timed: add what is to be timed, and start CUDA in this process too.
        """
        ctx = self._ctx
        if ctx.schedule.failed and not self._throughout:
            return
        recordings = [call.recording for call in ctx.gpu_calls[self._n_begun:]]
        self._n_begun = len(ctx.gpu_calls)
        if timed and ctx.forecasts:
            threading.Thread(target=large_tensors.start, daemon=True).start()
            for forecast in ctx.forecasts.values():
                with suppress(Stopped, OutOfTime):  # which its verdict reports
                    case = forecast.case
                    recordings += recordings_of(
                        ctx.session(case), ctx.outlines(case), MOST_CONFIGURATIONS)[0]
        if recordings:
            ctx.session().compile_on_gpu(recordings)

    def verdicts(self, before: Sequence[CaseResult]) -> Iterator[CaseResult]:
        """All values on the GPU too, and then the time of what asks for speed.

        Args:
            before: the results on the CPU; those that ask for speed get their verdict here.

        Raises:
            SandboxBroken: the processes are gone.
        """
        why = "not timed: a case with wrong values comes first"
        right = not any(result.verdict in (Verdict.FAILED, Verdict.ERROR) and not result.advisory
                        and result.kind is not Kind.PERFORMANCE for result in before)
        if (right or self._throughout) and (self._ctx.gpu_calls or self._ctx.forecasts):
            if not self._look():
                right, why = False, f"the GPU of this machine cannot be used: {self.unusable}"
            elif self._ctx.gpu_calls:
                self._ctx.tell(self.name)
                summary = self._values(before)
                yield summary
                right &= summary.verdict is Verdict.PASSED
        for result in before:
            forecast = self._ctx.forecasts.get(result.name)
            if forecast is None:
                continue
            if right:
                self._ctx.tell(f"{result.name}, timed")
                timed = self._judged(forecast.case, partial(self._time_case, forecast),
                                     forecast.facts)
                yield replace(timed, seconds=result.seconds + timed.seconds, clocked=True,
                              details=result.details)
            else:
                yield replace(result, reason="; ".join(filter(None, (result.reason, why))))

    def _judged(self, case: Case, judge: Callable[[], CaseResult],
                facts: dict[str, str] | None = None) -> CaseResult:
        """The verdict on a case; what a kernel does there costs this case alone."""
        started = time.monotonic()
        try:
            result = judge()
        except SandboxBroken:
            raise
        except NoGpu as error:
            result = CaseResult(case.name, case.kind, Verdict.SKIPPED,
                                reason=f"not run on the GPU: {error}", skipped=Skip.GPU)
        except Stopped as stop:
            self._n_lost += 1
            result = result_of(case, [stop.finding], facts)
        except Exception as error:
            result = CaseResult(case.name, case.kind, Verdict.ERROR,
                                reason=self._ctx.reason(error))
        return replace(result, seconds=time.monotonic() - started, advisory=case.advisory)

    def _look(self) -> bool:
        """Whether the GPU answers; ``unusable`` is the reason why it does not."""
        try:
            gpu = self._ctx.session().look()
        except NoGpu as error:
            self.unusable = str(error)
            return False
        least = self._ctx.suite.least_capability
        if gpu.capability >= least:
            self.gpu, self.name = gpu, f"the same on the {gpu.name}"
        else:
            self.unusable = (f"its compute capability is {_version(gpu.capability)}, and this "
                             f"module's kernels need {_version(least)}")
        return self.gpu is not None

    def report(self, report: Report, on_gpu: tuple[CaseResult, ...]) -> Report:
        """The report with the GPU's part; nothing in it identifies one GPU of a kind."""
        report = replace(report, unusable_gpu=self.unusable, on_gpu=on_gpu, ceilings={
            **self.ceilings.to_dict(), "gpu": self.ceilings.gpu.name} if self.ceilings else {})
        if self.gpu is None or not (self.results or self.ceilings):
            return report
        return replace(report, gpu=self.gpu.name, engine=f"{report.engine}; {self.gpu.name}",
                       versions={**report.versions, "driver": self.gpu.driver})

    def _values(self, before: Sequence[CaseResult]) -> CaseResult:
        """Runs every gathered call; returns the result over all of them, ``results`` has each."""
        started = time.monotonic()
        self._failed_before = {result.name for result in before if result.findings}
        for call in self._ctx.gpu_calls:
            case = call.case
            self._ctx.tell(f"{case.name}, on the GPU")
            late = time.monotonic() - started > PATIENCE_S
            if late or self._n_lost >= MOST_LOST:
                why = f"{PATIENCE_S:.0f} s had passed" if late else \
                    f"{self._n_lost} cases before it had taken the GPU's process with them"
                result = CaseResult(case.name, case.kind, Verdict.SKIPPED, advisory=case.advisory,
                                    reason=f"not run on the GPU: {why}", skipped=Skip.GPU)
            else:
                result = self._judged(case, partial(self._run_twice, call))
            self.results.append(result)
        return replace(self._summary(), seconds=time.monotonic() - started)

    def _run_twice(self, call: RecordedCall) -> CaseResult:
        """Judges a call that is run twice, with other undefined values in fresh memory."""
        case, inputs, recording = call.case, call.inputs, call.recording
        suite, session = self._ctx.part(case), self._ctx.session(case)
        runs = [session.run_on_gpu(recording, inputs, poison=poison) for poison in (0, 1)]
        if findings := [*runs[0].findings, *runs[1].findings]:
            return result_of(case, [self._named(finding, case) for finding in findings])
        if broken := broken_contract(suite, case, recording, inputs):
            return result_of(case, broken)  # values of another shape cannot be compared
        difference = next(filter(None, (
            compare.difference(suite, run.results, inputs, on_gpu=True) for run in runs)), None)
        if difference is None:
            return result_of(case, [])
        findings = []
        if not _alike(*runs):  # the third repeats the first
            again = _alike(runs[0], session.run_on_gpu(recording, inputs, poison=0))
            findings = [Finding("M06", fault("unwritten on GPU")) if again else
                        Finding("M09", fault("order on GPU"))]
        finding = finding_of(difference, suite, inputs, recording,
                             pattern=self._ctx.schedule.leads(case))
        return result_of(case, [*findings, self._named(finding, case, difference)])

    def _named(self, finding: Finding, case: Case,
               difference: Difference | None = None) -> Finding:
        """A finding with the reason for which the CPU does not show it, if one is known."""
        if case.name in self._failed_before:
            return finding
        return finding.within("reason", effect=effect(finding, difference))

    def _summary(self) -> CaseResult:
        """One result for all cases: what failed first, and how that differs from the CPU."""
        assert self.gpu is not None
        deciding = [result for result in self.results if not result.advisory]
        passed = sum(result.verdict is Verdict.PASSED for result in deciding)
        facts = {"right": f"{passed} of {len(deciding)} cases, each run twice with other garbage "
                          f"in fresh memory"}
        if left_out := len(self._ctx.left_out):
            cases = "case lies" if left_out == 1 else "cases lie"
            facts["left out"] = f"{left_out} {cases} too large for the GPU"
        summary = CaseResult(self.name, Kind.CORRECTNESS, Verdict.PASSED, facts=facts)
        failed = [result for result in deciding if result.verdict is Verdict.FAILED]
        if failed:
            first, names = failed[0], [case.name for case in self._ctx.suite.ordered()]
            passes = self._failed_before.isdisjoint(result.name for result in failed)
            finding = first.findings[0].within("on the GPU", gpu=self.gpu.name, case=first.name,
                                               others=len(failed) - 1, passes=passes)
            return replace(summary, verdict=Verdict.FAILED,
                           findings=(replace(finding, means=ONLY_HERE if passes else ""),),
                           replay=replay_options(first.name, names, self._ctx.draws.seed))
        for verdict in (Verdict.ERROR, Verdict.SKIPPED):
            if others := [result for result in deciding if result.verdict is verdict]:
                return replace(summary, verdict=verdict, reason=others[0].reason,
                               skipped=others[0].skipped)
        return summary

    def _time_case(self, forecast: Forecast) -> CaseResult:
        """Judges by the clock a case that was looked at without a GPU before."""
        case, ctx, gpu = forecast.case, self._ctx, self.gpu
        assert gpu is not None
        skipped = CaseResult(case.name, case.kind, Verdict.SKIPPED, facts=forecast.facts,
                             skipped=Skip.MACHINE)
        outlines = ctx.outlines(case)
        needed = oversized.least(ctx.part(case), outlines)
        if oversized.has_holes(case):
            return replace(skipped, reason="not timed: its inputs are too far apart in memory")
        if needed.bytes > LARGE and large_tensors.device() == "cpu":
            return replace(skipped, skipped=Skip.GPU, reason=(
                "not timed: drawing inputs of this size takes a GPU that the grader's own torch "
                "can use"))
        room = ROOM * _sets(needed) * needed.bytes
        if room > SHARE_OF_MEMORY * gpu.memory_bytes:
            return replace(skipped, reason=f"not timed: it takes {room / GIB:.0f} GiB, and the "
                                           f"{gpu.name} has {gpu.memory_bytes / GIB:.0f} GiB")
        try:
            self.ceilings = self.ceilings or ctx.session().ceilings()
            recordings, findings = recordings_of(ctx.session(case), outlines, MOST_CONFIGURATIONS)
            if findings:
                return result_of(case, findings, forecast.facts)
            return _measured(forecast, ctx, needed, self.ceilings, recordings)
        except NoGpu as error:
            self.unusable = self.unusable if self.ceilings else str(error)
            return replace(skipped, skipped=Skip.GPU, reason=f"not timed: {error}")
        except (MemoryError, torch.OutOfMemoryError) as error:
            return replace(skipped, reason=f"not timed: this machine has too little memory for it "
                                           f"({str(error).partition(chr(10))[0]:.120})")
        finally:
            large_tensors.free()


def _alike(first: Run, second: Run) -> bool:
    return all(same_bits(one, other)
               for one, other in zip(first.results, second.results, strict=True))


def _version(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


# ---------------------------------------------------------------------------------------------
# A case that asks for speed, by the clock


def _measured(forecast: Forecast, ctx: Context, needed: Cost, ceilings: Ceilings,
              recordings: Sequence[Recording]) -> CaseResult:
    case, limits, recording = forecast.case, forecast.case.limits, recordings[0]
    assert limits is not None and limits.pass_at is not None
    # Not the suite of the context, whose reference would keep large inputs in memory.
    suite = next(one for one in ctx.suite.parts if one.entry == ctx.part(case).entry)
    units = measurement.units_of(ctx.outlines(case), suite.tolerance)
    sets = input_sets(case, ctx, _sets(needed))
    rows = large_tensors.windows(suite, recording, sets[0])
    width = prod(recording.results[0].shape[1:]) if rows else 0  # elements of a row
    large_tensors.free()
    for _ in range(TRIES):
        timed = ctx.session(case).measure(
            recording, sets, others=recordings[1:],
            windows=[(first * width, count * width) for first, count in rows])
        if (measured := timed.measurement) is None:
            return result_of(case, [*timed.findings, *forecast.broken], forecast.facts)
        verdict, words = measurement.judge(measured, needed, ceilings, limits.pass_at, units)
        if verdict is not Verdict.INCONCLUSIVE:
            break
    assert measured is not None
    findings = list(timed.findings)
    for sets_of_results in (timed.results, timed.untimed):  # the latter only where they differ
        for results, inputs in zip(sets_of_results, sets, strict=False):
            findings = findings or _wrong(suite, case, recording, results, inputs, rows)
    if verdict is Verdict.FAILED and not findings:
        impossible = measurement.impossible(measured, needed, ceilings)
        causes = () if impossible else forecast.defects
        findings.append(Finding("T08" if impossible else "T07",
                                " ".join(map(sentence, (words, *causes)))))
    share = measurement.share(measured, needed, ceilings, units)
    facts = forecast.facts | {"measured": words} | _beside(forecast, measured.ms)
    if limits.stretch is not None and verdict is Verdict.PASSED:
        reached = "reached" if share >= limits.stretch else "not reached"
        facts["stretch goal"] = f"{limits.stretch:.0%}, {reached}"
    result = replace(result_of(case, [*findings, *forecast.broken], facts), measured={
        **measured.to_dict(), "share": share, "pass_at": limits.pass_at,
        "gb_s": measurement.gb_s(measured, needed),
        "tflops": measurement.tflops(measured, needed) if needed.flops else None})
    if result.verdict is Verdict.PASSED and verdict is Verdict.INCONCLUSIVE:
        return replace(result, verdict=verdict, reason=AGAIN)
    return result


def _sets(needed: Cost) -> int:
    return SETS if needed.bytes <= LARGE else 1


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
