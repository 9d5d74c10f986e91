"""Bench: how fast functions are on inputs of growing size, on a GPU or as predicted for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from grader.diagnosis.explain import explain_findings
from grader.engine.gpu import measurement
from grader.engine.gpu.measurement import Units
from grader.report import EXIT_FAILED, EXIT_PASSED, CaseResult, Finding, Kind, Verdict, versions
from grader.submission import source
from grader.suite import Bench, Case, Cost, Suite

if TYPE_CHECKING:
    from grader.judge.context import Context
    from grader.sandbox import Sandbox

SCHEMA = 1
YOURS, REFERENCE, TORCH, COMPILED = "yours", "reference", "PyTorch", "torch.compile"
OnEvent = Callable[[str], None]


@dataclass(frozen=True)
class Roof:
    """Ceilings of a device: ``copy`` bytes a second, ``peak`` operations on these ``units``."""

    device: str
    measured: bool
    copy: float
    peak: float
    units: Units

    def bound(self, needed: Cost) -> Literal["copy", "matmul"]:
        """The slower part of a job: moving its bytes, or its operations."""
        return "matmul" if needed.flops / self.peak > needed.bytes / self.copy else "copy"

    def seconds(self, needed: Cost) -> float:
        """The time of a job at the ceiling that bounds it."""
        return max(needed.bytes / self.copy, needed.flops / self.peak)


@dataclass(frozen=True)
class Speed:
    """One time in seconds, with the 20th and the 80th percentile; a prediction has no repeats.

    ``note``: what is to be known of it, such as that the GPU was held back.
    """

    seconds: float
    low: float
    high: float
    repeats: int = 0
    note: str = ""

    @classmethod
    def predicted(cls, seconds: float) -> Speed:
        return cls(seconds, seconds, seconds)


@dataclass(frozen=True)
class Without:
    """The reason why there is no time: a sentence, or findings about the kernels."""

    reason: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Contender:
    """One contender: its times by size, and the reasons where it has none.

    ``wrong`` is the result of the case that the function fails: then nothing of it is timed.
    """

    who: str
    speeds: Mapping[int, Speed] = field(default_factory=dict)
    without: Mapping[int, Without] = field(default_factory=dict)
    wrong: CaseResult | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about its kernels, each once."""
        of_times = [finding for one in self.without.values() for finding in one.findings]
        return tuple(dict.fromkeys((*(self.wrong.findings if self.wrong else ()), *of_times)))


@dataclass(frozen=True)
class Chart:
    """One function: all contenders over its sizes, below the roof of the device."""

    function: str
    axis: str
    at: str
    peer_name: str
    roof: Roof
    needed: Mapping[int, Cost]  # of each size
    contenders: tuple[Contender, ...]

    @property
    def unit(self) -> Literal["B/s", "FLOP/s"]:
        """The unit of the speed, by the bound of the largest size."""
        largest = self.needed[max(self.needed)]
        return "FLOP/s" if self.roof.bound(largest) == "matmul" else "B/s"

    def work(self, size: int) -> int:
        """Bytes or operations of a size, after ``unit``."""
        needed = self.needed[size]
        return needed.flops if self.unit == "FLOP/s" else needed.bytes

    def rate(self, size: int, seconds: float) -> float:
        """The speed of a job of this size, in ``unit``."""
        return self.work(size) / seconds

    def ceiling(self, size: int) -> float:
        """The speed that the device allows at this size, in ``unit``."""
        return self.work(size) / self.roof.seconds(self.needed[size])

    def share(self, size: int, speed: Speed) -> float:
        """The share of the ceiling that was reached."""
        return self.roof.seconds(self.needed[size]) / speed.seconds

    @property
    def timed(self) -> tuple[Contender, ...]:
        return tuple(one for one in self.contenders if one.speeds)


@dataclass(frozen=True)
class Benchmark:
    """A submission beside others, function by function.

    ``findings`` say why the learner's file cannot be used at all. ``of`` describes the device:
    measured ceilings, or the target of predictions; ``why`` nothing was measured, unless that was
    asked for.
    """

    suite: str
    source_sha256: str
    measured: bool
    device: str
    of: Mapping[str, Any]
    charts: tuple[Chart, ...]
    findings: tuple[Finding, ...]
    versions: Mapping[str, str]
    why: str = ""

    @property
    def exit_code(self) -> int:
        """Whether all of the learner's functions are right and were timed."""
        wrong = any(one.findings or one.wrong for chart in self.charts
                    for one in chart.contenders if one.who == YOURS)
        return EXIT_FAILED if wrong or self.findings else EXIT_PASSED

    def to_dict(self) -> dict[str, Any]:
        """The benchmark as plain data, ready for ``json.dumps``; the form is ``schema`` 1.

        Times in seconds, rates per second. Predictions say ``measured: false``.
        """
        return {
            "schema": SCHEMA,
            "suite": self.suite,
            "source_sha256": self.source_sha256,
            "measured": self.measured,
            "not_measured": self.why,
            "device": self.device,
            "of": dict(self.of),
            "versions": dict(self.versions),
            "exit_code": self.exit_code,
            "findings": [finding.to_dict() for finding in self.findings],
            "functions": [_chart(chart) for chart in self.charts],
        }


def _chart(chart: Chart) -> dict[str, Any]:
    return {
        "function": chart.function, "axis": chart.axis, "at": chart.at,
        "peer": chart.peer_name, "unit": chart.unit, "roof": asdict(chart.roof),
        "sizes": [{"size": size, **asdict(needed), "ceiling": chart.ceiling(size)}
                  for size, needed in chart.needed.items()],
        "contenders": [{
            "who": one.who,
            "wrong": one.wrong and {"case": one.wrong.name, "reason": one.wrong.reason},
            "findings": [finding.to_dict() for finding in one.findings],
            "times": [{"size": size, **asdict(speed), "measured": chart.roof.measured,
                       "rate": chart.rate(size, speed.seconds),
                       "share": chart.share(size, speed)}
                      for size, speed in one.speeds.items()],
            "without": {str(size): why.reason for size, why in one.without.items()},
        } for one in chart.contenders],
    }


class Clock(Protocol):
    """By which all contenders are timed: a GPU, or a prediction."""

    measured: bool
    device: str

    def of(self) -> dict[str, Any]:
        """The device as plain data."""

    def roof(self, units: Units) -> Roof:
        """Its ceilings, where products are computed on these units."""

    def kernels(self, case: Case, ctx: Context, name: str,
                inputs: Sequence[Any]) -> Speed | Without:
        """Times the function of ``case``; ``inputs`` are described, not drawn."""

    def peer(self, part: Suite, size: int, *, compiled: bool) -> Speed | Without:
        """Times torch on the same job; only where ``measured``."""


def bench(kernel: Path, suite: Suite, clock: Clock, *, sandbox: Sandbox,
          solution: Path | None = None, function: str = "",
          on_event: OnEvent | None = None) -> Benchmark:
    """Times a submission beside the reference solution and torch. Nothing is judged but values.

    Args:
        kernel: the learner's file.
        suite: of the module that it belongs to.
        clock: that of ``grader.bench.timers``.
        sandbox: where worker, executor, and compiler or GPU process run.
        solution: the reference solution's file.
        function: the only one to be timed; all that have a ``Bench`` otherwise.
        on_event: gets a line for each thing that begins.

    Raises:
        grader.submission.source.UnreadableSubmission: there is no file to read.
        grader.sandbox.SandboxBroken: the grader's processes do not start.
    """
    tell = on_event or (lambda event: None)
    submitted = source.read(kernel, suite.files, suite.kernel_file)
    refused = source.inspect(submitted, suite.signatures, suite.blanks)
    parts = [part for part in benched(suite) if function in ("", part.entry)]
    files = {} if refused else {YOURS: submitted}
    if solution is not None:
        files[REFERENCE] = source.read(solution, suite.files, suite.kernel_file)
    with ExitStack() as resources:
        from grader.judge.context import Context

        contexts = {
            who: resources.enter_context(Context(file, suite, sandbox, effort="uncompiled"))
            for who, file in files.items()}
        charts = tuple(_charted(suite, part, contexts, clock, tell) for part in parts)
    return Benchmark(suite.name, submitted.sha256, clock.measured, clock.device, clock.of(),
                     charts, explain_findings(refused, suite, submitted), versions())


def benched(suite: Suite) -> list[Suite]:
    """The functions of a suite that say what to time, each as a suite of its own."""
    return [part for part in suite.parts if part.bench]


def _charted(suite: Suite, part: Suite, contexts: Mapping[str, Context], clock: Clock,
             tell: OnEvent) -> Chart:
    plan = part.bench
    assert plan is not None
    wrong: dict[str, CaseResult | None] = {}
    if YOURS in contexts:
        tell(f"values of {part.entry}")
        wrong[YOURS] = _first_wrong(part, contexts[YOURS])
    outlines = {size: _outlines(suite, part, plan, size) for size in plan.sizes}
    needed = {size: part.cost(*inputs) for size, inputs in outlines.items()}
    roof = clock.roof(measurement.units_of(outlines[max(plan.sizes)], part.tolerance))
    times: dict[str, dict[int, Speed | Without]] = {
        who: {} for who in (YOURS, REFERENCE, TORCH, COMPILED)}
    for size in plan.sizes:
        name, inputs = f"bench/{part.entry}/{size}", plan.inputs(size)
        timing = {who: partial(_kernels, part, ctx, clock, name, inputs)
                  for who, ctx in contexts.items() if not wrong.get(who)}
        if clock.measured:  # without a GPU, torch's kernels and their times are unknown
            timing |= {who: partial(clock.peer, part, size, compiled=who == COMPILED)
                       for who in (TORCH, COMPILED)}
        for who, time in timing.items():
            tell(f"{part.entry}, {size:,} {plan.axis}: {who}")
            times[who][size] = time()
    contenders = (Contender(
        who, {size: time for size, time in timed.items() if isinstance(time, Speed)},
        {size: time for size, time in timed.items() if isinstance(time, Without)},
        wrong.get(who)) for who, timed in times.items())
    return Chart(part.entry, plan.axis, plan.at, plan.peer_name, roof, needed, tuple(
        one for one in contenders if one.speeds or one.without or one.wrong))


def _kernels(part: Suite, ctx: Context, clock: Clock, name: str,
             inputs: Sequence[Any]) -> Speed | Without:
    from grader.processes.replies import Stopped

    try:
        speed = clock.kernels(part.cases[0], ctx, name, inputs)
    except Stopped as stop:
        speed = Without(findings=(stop.finding,))
    if isinstance(speed, Without) and speed.findings:
        return replace(speed, findings=explain_findings(speed.findings, ctx.suite, ctx.submitted))
    return speed


def _first_wrong(part: Suite, ctx: Context) -> CaseResult | None:
    """The first case that shows wrong values; a wrong kernel may be as fast as it likes."""
    from grader.judge import single_case
    from grader.judge.case import verdict

    for case in value_cases(part):
        result = verdict(case, ctx)
        if result.verdict in (Verdict.FAILED, Verdict.ERROR):
            return single_case.diagnosed(result, ctx)
    return None


def value_cases(part: Suite) -> list[Case]:
    """The cases whose values decide whether a function is timed."""
    from grader.judge import oversized

    return [case for case in part.cases if case.kind in (Kind.CORRECTNESS, Kind.EDGE)
            and oversized.runs_whole(case) and not (case.raises or case.advisory)]


def _outlines(suite: Suite, part: Suite, plan: Bench, size: int) -> list[Any]:
    """Inputs of a size without memory, as ``cost`` may see them."""
    from grader.judge import draws

    inputs = draws.Draws(suite.name, "0").draw("bench", plan.inputs(size), outlines=True)
    return [getattr(value, "like", value) for value in inputs]
