"""The GPU's part of a grade: whether all values come out right on it, too.

``grader.judge.gpu_timing`` times the cases that ask for speed.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from grader.diagnosis.explain import replay_options, result_of
from grader.diagnosis.gpu_cpu_differences import effect
from grader.engine.gpu.measurement import Ceilings, Gpu
from grader.finding import fault
from grader.gpu.client import NoGpu
from grader.judge import compare, gpu_timing
from grader.judge.context import Context, GpuQueue, RecordedCall
from grader.judge.contract import broken_contract
from grader.judge.values import finding_of
from grader.processes.replies import Run, Stopped, same_bits
from grader.report import CaseResult, Finding, Kind, Report, Skip, Verdict
from grader.sandbox import SandboxBroken
from grader.suite import Case
from grader.text import ONLY_HERE

PATIENCE_S = 120.0  # for all cases; compiling for real takes most of it
MOST_LOST = 3  # processes: each fault of a kernel takes one with it


class GpuVerdicts:
    """The GPU of one grade, and the verdicts on the cases that were queued for it."""

    def __init__(self, ctx: Context, queue: GpuQueue, *, throughout: bool = False) -> None:
        """Nothing is asked of a GPU yet.

        Args:
            queue: filled while cases are judged on the processor.
            throughout: run cases there that failed on the processor too, to compare both.
        """
        self._ctx = ctx
        self._queue = queue
        self._throughout = throughout
        self._n_lost = 0  # processes
        self._failed_before: dict[str, str] = {}  # case -> first code, on the processor
        self.gpu: Gpu | None = None
        self.ceilings: Ceilings | None = None
        self.unusable = ""  # why the GPU that is there cannot be used
        self.results: list[CaseResult] = []  # of each value case

    @property
    def name(self) -> str:
        """The name of the result over all cases."""
        return f"the same on the {self.gpu.name}" if self.gpu else "the same on a GPU"

    def verdicts(self, before: Sequence[CaseResult]) -> Iterator[CaseResult]:
        """All values on the GPU too, and then the time of what asks for speed.

        Args:
            before: the results on the processor; those that ask for speed get their verdict here.

        Raises:
            SandboxBroken: the processes are gone.
        """
        why = "not timed: right values come first"
        right = not any(result.verdict in (Verdict.FAILED, Verdict.ERROR) and not result.advisory
                        and result.kind is not Kind.PERFORMANCE for result in before)
        if (right or self._throughout) and (self._queue.calls or self._queue.forecasts):
            if not self._look():
                right, why = False, f"the GPU of this machine cannot be used: {self.unusable}"
            elif self._queue.calls:
                self._ctx.tell(self.name)
                summary = self._values(before)
                yield summary
                right &= summary.verdict is Verdict.PASSED
        for result in before:
            if result.name not in self._queue.forecasts:
                continue
            if right:
                self._ctx.tell(f"{result.name}, timed")
                yield self._timed(result)
            else:
                yield replace(result, reason="; ".join(filter(None, (result.reason, why))))

    def _timed(self, before: CaseResult) -> CaseResult:
        """A case that asks for speed by the clock."""
        forecast, gpu = self._queue.forecasts[before.name], self.gpu
        assert gpu is not None
        result = self._judged(forecast.case, lambda: gpu_timing.timed(
            forecast, self._ctx, gpu, self._measured_ceilings), forecast.facts)
        return replace(result, seconds=before.seconds + result.seconds, clocked=True,
                       details=before.details)

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
        except Exception:
            result = CaseResult(case.name, case.kind, Verdict.ERROR, reason=traceback.format_exc())
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
            self.gpu = gpu
        else:
            self.unusable = (f"its compute capability is {_version(gpu.capability)}, and this "
                             f"module's kernels need {_version(least)}")
        return self.gpu is not None

    def _measured_ceilings(self) -> Ceilings:
        """Measures how fast the GPU copies and multiplies.

        Raises:
            NoGpu: it cannot be measured.
        """
        try:
            self.ceilings = self.ceilings or self._ctx.session().ceilings()
        except NoGpu as error:
            self.unusable = str(error)
            raise
        return self.ceilings

    def report(self, report: Report, on_gpu: tuple[CaseResult, ...]) -> Report:
        """The report with the GPU's part; nothing in it identifies one GPU of a kind."""
        report = replace(report, unusable_gpu=self.unusable, on_gpu=on_gpu)
        ceilings = {**self.ceilings.to_dict(), "gpu": self.ceilings.gpu.name} if self.ceilings \
            else {}
        if self.gpu is None or not (self.results or ceilings):
            return replace(report, ceilings=ceilings)
        return replace(report, ceilings=ceilings, gpu=self.gpu.name,
                       engine=f"{report.engine}; {self.gpu.name}",
                       versions={**report.versions, "driver": self.gpu.driver})

    def _values(self, before: Sequence[CaseResult]) -> CaseResult:
        """Run every queued call; the result over all of them, ``results`` for each.

        Raises:
            SandboxBroken: the processes are gone.
        """
        started = time.monotonic()
        self._failed_before = {r.name: r.findings[0].code for r in before if r.findings}
        for call in self._queue.calls:
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
        return result_of(call.case, list(self._findings(call)))

    def _findings(self, call: RecordedCall) -> Iterator[Finding]:
        """Checks a call that is run twice, with other undefined values in fresh memory."""
        case, inputs, recording = call.case, call.inputs, call.recording
        suite, session = self._ctx.part(case), self._ctx.session(case)
        runs = [session.run_on_gpu(recording, inputs, poison=poison) for poison in (0, 1)]
        if findings := [*runs[0].findings, *runs[1].findings]:
            yield from (self._named(finding, case) for finding in findings)
            return
        if broken := broken_contract(suite, case, recording, inputs):
            yield from broken  # as on the processor: values of another shape cannot be compared
            return
        for run in runs:
            difference = compare.difference(suite, run.results, inputs, on_gpu=True)
            if difference is None:
                continue
            if not _alike(*runs):
                again = session.run_on_gpu(recording, inputs, poison=0)
                yield _unlike(runs, again)
            finding = finding_of(difference, suite, inputs, recording,
                                 pattern=self._ctx.schedule.leads(case))
            yield self._named(finding, case, effect(finding, difference))
            return

    def _named(self, finding: Finding, case: Case, because: str = "") -> Finding:
        """A finding with the reason for which the processor does not show it, if one is known."""
        if case.name in self._failed_before:
            return finding
        because = because or effect(finding, None)
        return finding.within("reason", text=because)

    def _summary(self) -> CaseResult:
        """One result for all cases: what failed first, and how that differs from the processor."""
        assert self.gpu is not None
        deciding = [result for result in self.results if not result.advisory]
        passed = sum(result.verdict is Verdict.PASSED for result in deciding)
        facts = {"right": f"{passed} of {len(deciding)} cases, each run twice with other garbage "
                          f"in fresh memory"}
        if n_left_out := self._queue.n_left_out:
            cases = "case lies" if n_left_out == 1 else "cases lie"
            facts["left out"] = f"{n_left_out} {cases} on too much memory to be moved"
        summary = CaseResult(self.name, Kind.CORRECTNESS, Verdict.PASSED, facts=facts)
        failed = [result for result in deciding if result.verdict is Verdict.FAILED]
        if failed:
            names = [case.name for case in self._ctx.suite.ordered()]
            again = replay_options(failed[0].name, names, self._ctx.draws.seed)
            return replace(summary, verdict=Verdict.FAILED, findings=(self._of_all(failed),),
                           replay=again)
        for verdict in (Verdict.ERROR, Verdict.SKIPPED):
            if others := [result for result in deciding if result.verdict is verdict]:
                return replace(summary, verdict=verdict, reason=others[0].reason,
                               skipped=others[0].skipped)
        return summary

    def _of_all(self, failed: Sequence[CaseResult]) -> Finding:
        """The first finding, with the number of cases that failed as well."""
        assert self.gpu is not None
        first = failed[0].findings[0]
        only = [result for result in failed if result.name not in self._failed_before]
        passes = len(only) == len(failed)
        return replace(first.within("on the GPU", gpu=self.gpu.name, case=failed[0].name,
                                    others=len(failed) - 1, passes=passes),
                       means=ONLY_HERE if passes else "")


def _alike(first: Run, second: Run) -> bool:
    return all(same_bits(one, other)
               for one, other in zip(first.results, second.results, strict=True))


def _unlike(runs: list[Run], again: Run) -> Finding:
    """The finding for two runs with different results; the third repeats the first."""
    if _alike(runs[0], again):
        return Finding("M06", fault("unwritten on GPU"))
    return Finding("M09", fault("order on GPU"))


def _version(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))
