"""A bound and a prediction of a case's speed at its real size, without a GPU.

Three answers: it cannot be fast enough, which a bound proves, so it fails; it is expected to be,
which nothing but a clock shows; or a GPU is needed. A prediction never decides.
``grader.judge.gpu_verdicts`` asks a clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.diagnosis.explain import result_of
from grader.engine.compiler.targets import Target
from grader.engine.compiler.time_lower_bound import (
    least_seconds,
    moving_seconds,
    sm_seconds,
    used_sms,
)
from grader.engine.compiler.timing_model.accuracy import stated_error
from grader.engine.gpu import measurement
from grader.engine.gpu.measurement import percent
from grader.finding import fault
from grader.judge import oversized
from grader.judge.launch_report import Examined
from grader.judge.perf_limits import code_limits, count
from grader.recording.launch_stats import Survey
from grader.report import CaseResult, Finding, Skip, Verdict
from grader.suite import Case, Cost, Limits, Suite

PROVED = 0.9  # the bound has to lie below a threshold by a tenth: its bytes come from a sample
EXPECTED = 0.1  # share by which a prediction must exceed a threshold, besides its stated error
FOR_VALUES = "a GPU is needed: this case checks values at this size, not speed"
WHOLE = 0.99  # of the bytes that a job needs: less moves only where something is left out
MATMUL_OF_PEAK = (0.6, 0.8)
"""Large matrices are multiplied by a good library at no less and no more than these shares of the
datasheet: ``torch.matmul`` reached 0.69 to 0.76 on an H200, in float16, bfloat16, TF32 and float32.
"""


@dataclass(frozen=True)
class Yardstick:
    """The speed of which a share is required: that of a copy, or of multiplying matrices.

    ``slow`` and ``fast`` are the seconds between which the whole job would take at that speed.
    """

    name: str
    verb: str
    slow: float
    fast: float

    @classmethod
    def of(cls, needed: Cost, peak: float, target: Target) -> Yardstick:
        """The slower part of the job: moving its bytes, or its operations on units of this peak."""
        copying = needed.bytes / target.dram
        slow, fast = (needed.flops / (share * peak) for share in MATMUL_OF_PEAK)
        if fast > copying:
            return cls("matmul", "multiplies matrices", slow, fast)
        return cls("copy", "copies", copying, copying)


def peak_of(units: measurement.Units, target: Target) -> float:
    """Operations per second of these units, by the datasheet."""
    return {"fp8": target.fp8_tensor, "fp16": target.fp16_tensor, "tf32": target.tf32_tensor,
            "fp32": target.fp32}[units]


@dataclass(frozen=True)
class Forecast:
    """The bound and the prediction for a case that asks for speed, before any clock runs.

    ``broken`` is what the launches or their code do not keep to, whatever a clock would show, and
    ``bound`` why they must be too slow. ``expected`` is a sentence on what a clock would most
    likely show, ``defects`` what was observed of each performance defect, ``milliseconds`` the
    predicted time on ``target``, and ``predicted`` the share of a copy's or a product's speed,
    beside what the case asks for.
    """

    case: Case
    facts: dict[str, str]
    broken: tuple[Finding, ...] = ()
    bound: tuple[Finding, ...] = ()
    expected: str = ""
    defects: tuple[str, ...] = ()
    milliseconds: float | None = None
    target: str = ""
    predicted: Mapping[str, Any] | None = None

    @property
    def likely(self) -> bool:
        """Whether the case is expected to pass, unless it breaks a limit."""
        return self.expected.startswith(_LIKELY)

    def result(self) -> CaseResult:
        """The verdict where there is no GPU: a prediction never decides."""
        result = result_of(self.case, [*self.bound, *self.broken], self.facts)
        if result.verdict is Verdict.FAILED:
            return result
        return replace(result, verdict=Verdict.SKIPPED, reason=self.expected,
                       skipped=Skip.GPU, predicted=self.predicted)


def forecast(case: Case, suite: Suite, inputs: Sequence[Any], examined: Examined, target: Target, *,
             block: int, failed: bool) -> Forecast:
    """Bounds and predicts a case that asks for a share of the speed of a copy or of a product.

    Args:
        inputs: outlines of the case's inputs.
        examined: the launches of the call on them, compiled and surveyed for ``target``.
        block: the learner's own.
        failed: whether a case before this one has failed.
    """
    limits = case.limits
    assert limits is not None and limits.pass_at is not None
    if examined.findings:
        return Forecast(case, {}, examined.findings)
    needed = oversized.least(suite, inputs)
    units = measurement.units_of(inputs, suite.tolerance)
    yardstick = Yardstick.of(needed, peak_of(units, target), target)
    facts, bound = _bounded(examined, needed, yardstick, limits, target)
    broken: list[Finding] = []
    surveys = [one.survey for one in examined.launches if one.survey]
    if len(surveys) == len(examined.launches):
        for more_facts, findings in (
            count(limits, needed, surveys, block),
            code_limits(limits, surveys, [one.binary for one in examined.launches]),
        ):
            facts, broken = facts | more_facts, [*broken, *findings]
    time = examined.prediction.seconds * 1e3 if examined.prediction else None
    defects = tuple(one.seen for one in examined.defects if one.weight == "defect")
    expected = _open(examined, needed, yardstick, limits, target, surveys, failed)
    predicted = None
    if time is not None and limits.pass_at >= measurement.SOME:
        predicted = {"ms": time, "share": yardstick.fast * 1e3 / time, "of": yardstick.name,
                     "target": target.title, "pass_at": limits.pass_at, "stretch": limits.stretch}
    return Forecast(case, facts, tuple(broken), tuple(bound), expected, defects, time,
                    target.title, predicted)


def _bounded(examined: Examined, needed: Cost, yardstick: Yardstick, limits: Limits,
             target: Target) -> tuple[dict[str, str], list[Finding]]:
    """The least memory traffic, and T01 where moving and computing take too long."""
    surveyed = [(one.survey, one.binary, one.dram) for one in examined.launches
             if one.survey and one.dram]
    if len(surveyed) < len(examined.launches):
        return {}, []
    low, high = (sum(getattr(dram, end) for *_, dram in surveyed) for end in ("low", "high"))
    facts = {"memory traffic": traffic(low, high, needed.bytes)}
    seconds = sum(least_seconds(survey, target, binary, cold=number == 0)
                  for number, (survey, binary, _) in enumerate(surveyed))
    assert limits.pass_at is not None
    best = yardstick.slow / seconds if seconds else float("inf")
    if best >= PROVED * limits.pass_at:
        return facts, []
    moving = sum(moving_seconds(survey, target, cold=number == 0)
                 for number, (survey, *_) in enumerate(surveyed))
    surely = low - sum(max(0, survey.loaded.low - survey.surely) for survey, *_ in surveyed
                       if survey.surely is not None)
    speeds = {"most": percent(best), "gpu": target.title, "verb": yardstick.verb,
              "asked": percent(limits.pass_at)}
    slowest, binary, _ = max(surveyed, key=lambda one: sm_seconds(one[0], target, one[1]))
    if sm_seconds(slowest, target, binary) >= seconds / 2:
        return facts, [Finding("T03", fault(
            "few SMs", programs=slowest.programs, used=used_sms(slowest, target, binary),
            multiprocessors=target.multiprocessors, **speeds))]
    cause = fault("slow traffic", n_bytes=surely, least=needed.bytes, **speeds) \
        if moving >= seconds / 2 else \
        fault("slow products", operations=sum(survey.flops for survey, *_ in surveyed),
              ms=seconds * 1e3, **speeds)
    return facts, [Finding("T01", cause)]


def _open(examined: Examined, needed: Cost, yardstick: Yardstick, limits: Limits,
          target: Target, surveys: Sequence[Survey], failed: bool) -> str:
    """The reason why the case is left open: its expected speed, or the obstacle to it."""
    assert limits.pass_at is not None
    if examined.unknown:
        return f"a GPU is needed: {examined.unknown[0]}"
    if examined.prediction is None:
        return "a GPU is needed: its time cannot be predicted"
    defects = {one.name: f"{one.name} ({one.seen})" if one.code == "T03" else one.name
               for one in examined.defects if one.weight == "defect"}
    seconds = examined.prediction.seconds
    if limits.pass_at < measurement.SOME:
        return FOR_VALUES
    share = yardstick.fast / seconds
    rate = f"{needed.flops / seconds / 1e12:.0f} TFLOP/s, about " * (yardstick.name == "matmul")
    prediction = f"predicted for the {target.title}, not measured: {seconds * 1e3:.3g} ms, bound " \
           f"by {_BOUNDS[examined.prediction.bound]}, {rate}{percent(share)} of " \
           f"{yardstick.name} speed where {percent(limits.pass_at)} is required"
    if defects:
        return f"a GPU is needed; {prediction}. `tritonlab inspect` reports: " \
               f"{', '.join(defects.values())}"
    moved = sum(survey.loaded.high + survey.stored.high for survey in surveys)
    if surveys and moved < WHOLE * needed.bytes:
        return (f"a GPU is needed; {prediction}, but only {moved / needed.bytes:.2f}x of the "
                "required bytes were observed")
    if failed:
        return f"a GPU is needed; {prediction}, but a case before this one has failed"
    error = stated_error(examined.prediction.unit(examined.prediction.bound))
    if share >= max(limits.pass_at + EXPECTED, limits.pass_at * error):
        return f"{_LIKELY}; {prediction}"
    return f"a GPU is needed; {prediction}"


_LIKELY = "expected to pass on a GPU"
_BOUNDS = {
    "dram": "memory", "l2": "the L2 cache", "compute": "arithmetic", "latency": "waiting",
    "launch": "the launch", "programs": "starting programs", "atomics": "atomics",
}


def traffic(low: int, high: int, needed: int) -> str:
    """Memory traffic over the least that the job needs.

    It is less than 1 where a sample of programs missed some, or the launches leave work out.
    """
    short = ", by an incomplete sample" * (high < WHOLE * needed)
    times = " to ".join(dict.fromkeys((f"{low / needed:.2f}", f"{high / needed:.2f}")))
    return f"{times}x of the minimum{short}"
