"""The GPU's part of a grade: which GPU there is, and whether all values come out right on it too.

How fast a kernel is, ``grader.timing`` says.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grader import timing
from grader.contract import broken_contract
from grader.diagnosis.effects import UNNOTICED, effect
from grader.diagnosis.explanation import replay_options, result_of
from grader.gpus import NoGpu
from grader.measurement import Ceilings, Gpu
from grader.outcome import Run, Stopped, same_bits
from grader.report import CaseResult, Finding, Kind, Verdict
from grader.sandbox import SandboxBroken
from grader.sandbox.arena import WITH_HOLES
from grader.speed import Foretold
from grader.words import ONLY_HERE, sentence

if TYPE_CHECKING:
    from grader.judge import Judge, Trial

PATIENCE_S = 120.0  # for all cases; compiling for real takes most of it
MOST_LOST = 3  # processes: each fault of a kernel takes one with it
DECIDED_BY_VALUES = (Kind.CORRECTNESS, Kind.EDGE)


class Device:
    """The GPU of one grade. Cases are kept for it while they are judged on the processor."""

    def __init__(self, judge: Judge, *, throughout: bool = False) -> None:
        """Nothing is asked of a GPU yet.

        Args:
            throughout: run cases there that failed on the processor too, to compare both.
        """
        self._judge = judge
        self.throughout = throughout
        self.kept: list[Trial] = []
        self._left_out = 0  # cases that lie on more memory than is worth moving
        self._lost = 0
        self._failed_before: dict[str, str] = {}  # case -> first code, on the processor
        self.gpu: Gpu | None = None
        self.ceilings: Ceilings | None = None
        self.unusable = ""  # why the GPU that is there cannot be used
        self.results: list[CaseResult] = []  # of each value case
        self.foretold: dict[str, Foretold] = {}  # what is known of the cases that ask for speed

    @property
    def name(self) -> str:
        """What the result over all cases is called."""
        return f"the same on the {self.gpu.name}" if self.gpu else "the same on a GPU"

    def verdicts(self, before: Sequence[CaseResult],
                 tell: Callable[[str], None]) -> Iterator[CaseResult]:
        """All values on the GPU too, and then the time of what asks for speed.

        Args:
            before: the results on the processor; those that ask for speed get their verdict here.
            tell: is told what comes next.

        Raises:
            SandboxBroken: the processes are gone.
        """
        why = "not timed: right values come first"
        right = not any(result.verdict in (Verdict.FAILED, Verdict.ERROR) and not result.advisory
                        and result.kind is not Kind.PERFORMANCE for result in before)
        if (right or self.throughout) and (self.kept or self.foretold):
            if not self.look():
                right, why = False, f"the GPU of this machine cannot be used: {self.unusable}"
            elif self.kept:
                tell(self.name)
                summary = self._values(before, tell)
                yield summary
                right &= summary.verdict is Verdict.PASSED
        for result in before:
            if result.name not in self.foretold:
                continue
            if right:
                tell(f"{result.name}, timed")
                yield self._timed(result)
            else:
                yield replace(result, reason="; ".join(filter(None, (result.reason, why))))

    def _timed(self, before: CaseResult) -> CaseResult:
        """A case that asks for speed by the clock; what a kernel does there costs this case alone.
        """
        started = time.monotonic()
        said = self.foretold[before.name]
        self._judge.turn_to(said.case)
        try:
            result = timing.timed(self._judge, self, said)
        except Stopped as stop:
            result = result_of(said.case, [stop.finding], said.facts)
        except SandboxBroken:
            raise
        except Exception:
            result = CaseResult(before.name, before.kind, Verdict.ERROR,
                                reason=traceback.format_exc())
        return replace(result, seconds=before.seconds + time.monotonic() - started,
                       advisory=before.advisory, clocked=True, details=before.details)

    def keep(self, trial: Trial) -> None:
        """Have a case run on the GPU later."""
        recording = trial.outcome.recording
        if trial.case.kind not in DECIDED_BY_VALUES or recording is None:
            return
        if recording.launches and _nbytes(trial.inputs) > WITH_HOLES:
            self._left_out += 1
        elif recording.launches:
            self.kept.append(trial)

    def look(self) -> bool:
        """Whether the GPU answers; ``unusable`` says why it does not."""
        if self.gpu is None and not self.unusable:
            try:
                self._take(self._judge.session.look())
            except NoGpu as error:
                self.unusable = str(error)
        return self.gpu is not None

    def _take(self, gpu: Gpu) -> None:
        least = self._judge.whole.least_capability
        if gpu.capability >= least:
            self.gpu = gpu
        else:
            self.unusable = (f"its compute capability is {_version(gpu.capability)}, and this "
                             f"module's kernels need {_version(least)}")

    def measure_ceilings(self) -> bool:
        """Whether it is known how fast the GPU copies and multiplies."""
        if self.look() and self.ceilings is None:
            try:
                self.ceilings = self._judge.session.ceilings()
            except NoGpu as error:
                self.unusable = str(error)
        return self.ceilings is not None

    def versions(self) -> dict[str, str]:
        """What a verdict depends on here, beside the packages."""
        return {"driver": self.gpu.driver} if self.gpu else {}

    def told(self) -> dict[str, Any]:
        """The ceilings for a report: nothing that tells one GPU of a kind from another."""
        if self.ceilings is None:
            return {}
        found = self.ceilings.to_dict()
        return {**found, "gpu": self.ceilings.gpu.name}

    def _values(self, before: Sequence[CaseResult], tell: Callable[[str], None]) -> CaseResult:
        """Run every case that was kept; the result over all of them, ``results`` for each.

        Raises:
            SandboxBroken: the processes are gone.
        """
        started = time.monotonic()
        assert self.gpu is not None
        self._failed_before = {r.name: r.findings[0].code for r in before if r.findings}
        for trial in self.kept:
            tell(f"{trial.case.name}, on the GPU")
            late = time.monotonic() - started > PATIENCE_S
            if late or self._lost >= MOST_LOST:
                why = f"{PATIENCE_S:.0f} s had passed" if late else \
                    f"{self._lost} cases before it had taken the GPU's process with them"
                result = CaseResult(trial.case.name, trial.case.kind, Verdict.SKIPPED,
                                    reason=f"not run on the GPU: {why}")
            else:
                result = self._one(trial)
            self.results.append(replace(result, advisory=trial.case.advisory))
        return replace(self._summary(), seconds=time.monotonic() - started)

    def _one(self, trial: Trial) -> CaseResult:
        started = time.monotonic()
        self._judge.turn_to(trial.case)
        try:
            findings = list(self._findings(trial))
        except SandboxBroken:
            raise
        except NoGpu as error:
            return CaseResult(trial.case.name, trial.case.kind, Verdict.SKIPPED,
                              reason=f"not run on the GPU: {error}")
        except Stopped as stop:
            self._lost += 1
            findings = [stop.finding]
        except Exception:
            return CaseResult(trial.case.name, trial.case.kind, Verdict.ERROR,
                              reason=traceback.format_exc())
        result = result_of(trial.case, findings)
        return replace(result, seconds=time.monotonic() - started)

    def _findings(self, trial: Trial) -> Iterator[Finding]:
        """What is wrong with a case that is run twice, with other garbage in fresh memory."""
        judge, inputs = self._judge, trial.inputs
        recording = trial.outcome.recording
        assert recording is not None
        runs = [judge.session.run_on_gpu(recording, inputs, poison=poison) for poison in (0, 1)]
        if found := [*runs[0].findings, *runs[1].findings]:
            yield from (self._named(finding, trial) for finding in found)
            return
        if broken := broken_contract(judge.suite, trial.case, recording, inputs):
            yield from broken  # as on the processor: values of another shape cannot be compared
            return
        for run in runs:
            difference = judge.difference(run.results, inputs, on_gpu=True)
            if difference is None:
                continue
            if not _alike(*runs):
                again = judge.session.run_on_gpu(recording, inputs, poison=0)
                yield _unlike(runs, again)
            yield self._named(judge.wrong(difference, inputs, recording), trial,
                              effect(judge.wrong(difference, inputs), difference))
            return

    def _named(self, finding: Finding, trial: Trial, because: str = "") -> Finding:
        """A finding with the reason for which the processor does not show it, if one is known."""
        if trial.case.name in self._failed_before:
            return finding
        because = because or effect(finding, None)
        return replace(finding, seen=f"{sentence(finding.seen)} {because}".strip())

    def _summary(self) -> CaseResult:
        """One result for all cases: what failed first, and how that differs from the processor."""
        assert self.gpu is not None
        deciding = [result for result in self.results if not result.advisory]
        passed = sum(result.verdict is Verdict.PASSED for result in deciding)
        facts = {"right": f"{passed} of {len(deciding)} cases, each run twice with other garbage "
                          f"in fresh memory"}
        if self._left_out:
            cases = "case lies" if self._left_out == 1 else "cases lie"
            facts["left out"] = f"{self._left_out} {cases} on too much memory to be moved"
        summary = CaseResult(self.name, Kind.CORRECTNESS, Verdict.PASSED, facts=facts)
        failed = [result for result in deciding if result.verdict is Verdict.FAILED]
        if failed:
            names = [case.name for case in self._judge.whole.ordered()]
            again = replay_options(failed[0].name, names, self._judge.draws.seed)
            return replace(summary, verdict=Verdict.FAILED, findings=(self._told(failed),),
                           replay=again)
        for verdict in (Verdict.ERROR, Verdict.SKIPPED):
            if others := [result for result in deciding if result.verdict is verdict]:
                return replace(summary, verdict=verdict, reason=others[0].reason)
        return summary

    def _told(self, failed: list[CaseResult]) -> Finding:
        assert self.gpu is not None
        first = failed[0].findings[0]
        others = len(failed) - 1
        more = f" and {others} other{'' if others == 1 else 's'}" if others else ""
        only = [result for result in failed if result.name not in self._failed_before]
        differ = means = ""
        if len(only) == len(failed):
            differ = " It passes on the processor." if not others else \
                " All of them pass on the processor."
            means = ONLY_HERE
        said, *quoted = first.seen.split("\n")
        seen = f"{said} Seen on the {self.gpu.name} in the case '{failed[0].name}'{more}.{differ}"
        return replace(first, seen="\n".join([seen, *quoted]), means=means)


def differences(before: Sequence[CaseResult],
                on_gpu: Sequence[CaseResult]) -> list[tuple[str, str]]:
    """Where processor and GPU do not agree: (case, which says what, and why if that is known)."""
    there = {result.name: result for result in on_gpu}
    found = []
    for here in before:
        other = there.get(here.name)
        if other is None or other.verdict is here.verdict or \
                not {here.verdict, other.verdict} <= {Verdict.PASSED, Verdict.FAILED}:
            continue
        if here.verdict is Verdict.FAILED:
            code = here.findings[0].code
            why = UNNOTICED.get(code, "")
            found.append((here.name, f"{code} on the processor, right on the GPU"
                                     f"{f': {why}' if why else ''}"))
        else:
            seen = other.findings[0]
            found.append((here.name, f"right on the processor, {seen.code} on the GPU: "
                                     f"{seen.seen}"))
    return found


def _alike(first: Run, second: Run) -> bool:
    return all(same_bits(one, other)
               for one, other in zip(first.results, second.results, strict=True))


def _unlike(runs: list[Run], again: Run) -> Finding:
    """Two runs gave different results, one of them wrong: what the third, like the first, says."""
    if _alike(runs[0], again):
        return Finding("M06", "Two runs on the GPU gave different results, which change with the "
                              "garbage in memory that nobody wrote.")
    return Finding("M09", "Two runs on the GPU gave different results: they depend on the order "
                          "in which programs happen to run.")


def _nbytes(inputs: list[Any]) -> int:
    tensors = [value for value in inputs if hasattr(value, "untyped_storage")]
    return max((tensor.untyped_storage().nbytes() for tensor in tensors), default=0)


def _version(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))
