"""Bench: how fast functions are on inputs of growing size, on a GPU or as predicted for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from grader import alone, measurement, source
from grader.diagnosis import codes
from grader.measurement import Units
from grader.report import EXIT_FAILED, EXIT_PASSED, CaseResult, Finding, Kind, Verdict, versions
from grader.suite import Bench, Case, Cost, Suite

if TYPE_CHECKING:
    from grader.judge import Judge
    from grader.sandbox import Sandbox

SCHEMA = 1
YOURS, REFERENCE, TORCH, COMPILED = "yours", "reference", "PyTorch", "torch.compile"
OnEvent = Callable[[str], None]


@dataclass(frozen=True)
class Roof:
    """What a device allows: ``copy`` bytes a second, and ``peak`` operations on these ``units``."""

    device: str
    measured: bool
    copy: float
    peak: float
    units: Units

    def bound(self, needed: Cost) -> Literal["copy", "matmul"]:
        """What takes a job longer: moving its bytes, or its operations."""
        return "matmul" if needed.flops / self.peak > needed.bytes / self.copy else "copy"

    def seconds(self, needed: Cost) -> float:
        """What a job takes at the ceiling that bounds it."""
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
    """Why there is no time: a sentence, or findings about the learner's kernels."""

    reason: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Contender:
    """Who was timed, at which sizes, and why not at others.

    ``wrong`` is the result of the case that the function fails: then nothing of it is timed.
    """

    who: str
    speeds: Mapping[int, Speed] = field(default_factory=dict)
    without: Mapping[int, Without] = field(default_factory=dict)
    wrong: CaseResult | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with its kernels, each once."""
        found = [finding for one in self.without.values() for finding in one.findings]
        return tuple(dict.fromkeys((*(self.wrong.findings if self.wrong else ()), *found)))


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
        """In what the speed is told: what bounds the largest size."""
        largest = self.needed[max(self.needed)]
        return "FLOP/s" if self.roof.bound(largest) == "matmul" else "B/s"

    def work(self, size: int) -> int:
        """Bytes or operations of a size, as ``unit`` says."""
        needed = self.needed[size]
        return needed.flops if self.unit == "FLOP/s" else needed.bytes

    def rate(self, size: int, seconds: float) -> float:
        """The speed of a job of this size, in ``unit``."""
        return self.work(size) / seconds

    def ceiling(self, size: int) -> float:
        """The speed that the device allows at this size, in ``unit``."""
        return self.work(size) / self.roof.seconds(self.needed[size])

    def share(self, size: int, speed: Speed) -> float:
        """What was reached of that."""
        return self.roof.seconds(self.needed[size]) / speed.seconds

    @property
    def timed(self) -> tuple[Contender, ...]:
        return tuple(one for one in self.contenders if one.speeds)


@dataclass(frozen=True)
class Benchmark:
    """A submission beside others, function by function.

    ``findings`` say why the learner's file cannot be used at all. ``of`` tells of the device:
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
            "findings": [asdict(finding) for finding in self.findings],
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
            "findings": [asdict(finding) for finding in one.findings],
            "times": [{"size": size, **asdict(speed), "measured": chart.roof.measured,
                       "rate": chart.rate(size, speed.seconds),
                       "share": chart.share(size, speed)}
                      for size, speed in one.speeds.items()],
            "without": {str(size): why.reason for size, why in one.without.items()},
        } for one in chart.contenders],
    }


# ---------------------------------------------------------------------------------------------
# How a benchmark comes about


class Clock(Protocol):
    """By which all contenders are timed: a GPU, or a prediction."""

    measured: bool
    device: str

    def of(self) -> dict[str, Any]:
        """What the device is, as plain data."""

    def roof(self, units: Units) -> Roof:
        """What it allows, where products are computed on these units."""

    def kernels(self, judge: Judge, name: str, inputs: Sequence[Any]) -> Speed | Without:
        """Time the function to which ``judge`` has turned; ``inputs`` are described, not drawn."""

    def peer(self, suite: Suite, part: Suite, size: int, *, compiled: bool) -> Speed | Without:
        """Time torch's own way."""


def bench(kernel: Path, suite: Suite, clock: Clock, *, solution: Path | None = None,
          function: str = "", on_event: OnEvent | None = None,
          sandbox: Sandbox | None = None) -> Benchmark:
    """Time a submission beside the reference solution and torch. Nothing is judged but values.

    Args:
        kernel: the learner's file.
        suite: of the module that it belongs to.
        clock: that of ``grader.clocks``.
        solution: the reference solution's file.
        function: the only one to be timed; all that have a ``Bench`` otherwise.
        on_event: is told what begins.
        sandbox: a warm one to use; without it one is started and closed.

    Raises:
        grader.source.UnreadableSubmission: there is no file to read.
        grader.sandbox.SandboxBroken: the grader's processes do not start.
    """
    tell = on_event or (lambda event: None)
    submitted = source.read(kernel, suite.files, suite.kernel_file)
    refused = source.inspect(submitted, suite.signatures, suite.blanks)
    parts = [part for part in benched(suite) if function in ("", part.entry)]
    with ExitStack() as resources:
        from grader.judge import Judge
        from grader.sandbox import Sandbox as Started

        box = sandbox or resources.enter_context(Started())
        judges: dict[str, Judge] = {}
        if not refused:
            judges[YOURS] = resources.enter_context(
                Judge(submitted, suite, None, box, effort="uncompiled"))
        if solution is not None:
            read = source.read(solution, suite.files, suite.kernel_file)
            judges[REFERENCE] = resources.enter_context(
                Judge(read, suite, None, box, effort="uncompiled"))
        charts = tuple(_charted(suite, part, judges, clock, tell) for part in parts)
    return Benchmark(suite.name, submitted.sha256, clock.measured, clock.device, clock.of(),
                     charts, tuple(_explained(finding, suite, submitted) for finding in refused),
                     versions())


def benched(suite: Suite) -> list[Suite]:
    """The functions of a suite that say what to time, each as a suite of its own."""
    return [part for part in suite.parts if part.bench]


def _explained(finding: Finding, suite: Suite, submitted: source.Source) -> Finding:
    return codes.explain(finding, suite.mutants, submitted.places(suite.exercise).lines) \
        if finding.code in codes.MEANINGS else finding


def _charted(suite: Suite, part: Suite, judges: Mapping[str, Judge], clock: Clock,
             tell: OnEvent) -> Chart:
    made = part.bench
    assert made is not None
    wrong: dict[str, CaseResult | None] = {}
    for who, judge in judges.items():
        if who == YOURS:
            tell(f"values of {part.entry}")
            wrong[who] = _first_wrong(judge, part)
    outlines = {size: _outlines(suite, part, made, size) for size in made.sizes}
    needed = {size: part.cost(*inputs) for size, inputs in outlines.items()}
    roof = clock.roof(measurement.units_of(outlines[max(made.sizes)], part.tolerance))
    speeds: dict[str, dict[int, Speed]] = {}
    without: dict[str, dict[int, Without]] = {}
    for size in made.sizes:
        for who, time in _timing(suite, part, size, judges, clock):
            if wrong.get(who):
                continue
            tell(f"{part.entry}, {size:,} {made.axis}: {who}")
            got = time()
            if isinstance(got, Speed):
                speeds.setdefault(who, {})[size] = got
            else:
                without.setdefault(who, {})[size] = got
    return Chart(part.entry, made.axis, made.at, made.peer_name, roof, needed, tuple(
        Contender(who, speeds.get(who, {}), without.get(who, {}), wrong.get(who))
        for who in (YOURS, REFERENCE, TORCH, COMPILED)
        if who in speeds or who in without or wrong.get(who)))


def _timing(suite: Suite, part: Suite, size: int, judges: Mapping[str, Judge], clock: Clock
            ) -> Iterator[tuple[str, Callable[[], Speed | Without]]]:
    made = part.bench
    assert made is not None
    name = f"bench/{part.entry}/{size}"
    for who, judge in judges.items():
        yield who, partial(_kernels, judge, part, clock, name, made.inputs(size))
    if clock.measured:  # what torch does is not known without a GPU
        yield TORCH, partial(clock.peer, suite, part, size, compiled=False)
        yield COMPILED, partial(clock.peer, suite, part, size, compiled=True)


def _kernels(judge: Judge, part: Suite, clock: Clock, name: str,
             inputs: Sequence[Any]) -> Speed | Without:
    from grader.outcome import Stopped

    judge.turn_to(part.cases[0])
    try:
        found = clock.kernels(judge, name, inputs)
    except Stopped as stop:
        found = Without(findings=(stop.finding,))
    if isinstance(found, Without) and found.findings:
        return Without(found.reason, tuple(_explained(finding, judge.whole, judge.submitted)
                                           for finding in found.findings))
    return found


def _first_wrong(judge: Judge, part: Suite) -> CaseResult | None:
    """The first case that shows wrong values; a wrong kernel may be as fast as it likes."""
    for case in value_cases(part):
        result = judge.verdict_on(case)
        if result.verdict in (Verdict.FAILED, Verdict.ERROR):
            return alone.diagnosed(judge, result)
    return None


def value_cases(part: Suite) -> list[Case]:
    """The cases whose values decide whether a function is timed."""
    from grader import large

    return [case for case in part.cases if case.kind in (Kind.CORRECTNESS, Kind.EDGE)
            and not (case.raises or case.call or case.reading or case.advisory
                     or large.is_large(case))]


def _outlines(suite: Suite, part: Suite, made: Bench, size: int) -> list[Any]:
    """Inputs of a size without memory, as ``cost`` may see them."""
    from grader import draws

    inputs = draws.Draws(suite.name, "0").draw("bench", made.inputs(size), outlines=True)
    return [getattr(value, "like", value) for value in inputs]
