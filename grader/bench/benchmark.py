"""A benchmark: times of functions on inputs of growing size, measured or predicted."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from grader.engine.gpu.measurement import Units
from grader.recording.launch_stats import Prediction
from grader.report import EXIT_FAILED, EXIT_PASSED, CaseResult, Finding
from grader.suite import Cost

SCHEMA = 1
YOURS, REFERENCE, TORCH, COMPILED = "yours", "reference", "PyTorch", "torch.compile"
# What a file may hold that a benchmark is read from.
_Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
_Size = Annotated[int, Meta(gt=0)]
_Text = Annotated[str, Meta(max_length=200, pattern="^[^$]*$")]  # $ would begin a formula
_Who = Annotated[str, Meta(pattern=r"\A(yours|reference|PyTorch|torch\.compile)\Z")]


@dataclass(frozen=True)
class Roof:
    """Ceilings of a device: ``copy`` bytes a second, ``peak`` operations on these ``units``."""

    device: str
    measured: bool
    copy: _Positive
    peak: _Positive
    units: Units

    def bound(self, needed: Cost) -> Literal["copy", "matmul"]:
        """The slower part of a job: moving its bytes, or its operations."""
        return "matmul" if needed.flops / self.peak > needed.bytes / self.copy else "copy"

    def seconds(self, needed: Cost) -> float:
        """The time of a job at the ceiling that bounds it."""
        return max(needed.bytes / self.copy, needed.flops / self.peak)


@dataclass(frozen=True)
class Speed:
    """One time in seconds, with the 20th and the 80th percentile; a prediction has no repeats."""

    seconds: _Positive
    low: _Positive
    high: _Positive
    repeats: int = 0
    note: str = ""  # such as that the GPU was held back
    prediction: Prediction | None = None  # where the time is predicted


@dataclass(frozen=True)
class Without:
    """The reason why there is no time: a sentence, or findings about the kernels."""

    reason: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Contender:
    """One contender: its times by size, and the reasons where it has none."""

    who: _Who
    speeds: Mapping[int, Speed] = field(default_factory=dict)
    without: Mapping[int, Without] = field(default_factory=dict)
    wrong: CaseResult | None = None  # of the case that it fails: then nothing of it is timed

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about its kernels, each once."""
        of_times = [finding for one in self.without.values() for finding in one.findings]
        return tuple(dict.fromkeys((*(self.wrong.findings if self.wrong else ()), *of_times)))


@dataclass(frozen=True)
class Chart:
    """One function: all contenders over its sizes, below the roof of the device."""

    function: _Text
    axis: _Text
    at: _Text
    peer_name: _Text
    roof: Roof
    needed: Mapping[_Size, Cost]  # of each size
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
    """A submission beside others, function by function."""

    suite: str
    source_sha256: str
    measured: bool
    device: str
    of: Mapping[str, Any]  # the device's measured ceilings, or the target of predictions
    charts: tuple[Chart, ...]
    findings: tuple[Finding, ...]  # why the learner's file cannot be used at all
    versions: Mapping[str, str]
    why: str = ""  # nothing was measured, unless that was asked for

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
            "schema": SCHEMA, "suite": self.suite, "source_sha256": self.source_sha256,
            "measured": self.measured, "not_measured": self.why, "device": self.device,
            "of": dict(self.of), "versions": dict(self.versions), "exit_code": self.exit_code,
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
