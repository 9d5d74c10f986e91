"""Measured times of a case on a GPU, beside the ceilings of that GPU."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from msgspec import Meta

from grader import report
from grader.recording.codec import WHOLE, JsonObject
from grader.report import Verdict
from grader.suite import Cost, Tolerance

SPREAD = 0.10  # (p80 - p20) / median, above which a time is too noisy to decide anything
# What no kernel passes, as a multiple of the measured ceiling. On an H200 a copy reaches 0.90 of
# what the datasheet gives, so reading alone may be a tenth faster; matmul 0.69 to 0.80 of it, as
# random numbers cost power that zeros do not.
FASTEST_COPY, FASTEST_MATMUL = 1.25, 1.6
SOME = 1e-6  # a share below asks for no speed: the case is there to be run at its real size
_SLOWED = ("thermal", "hardware slowdown", "power brake")  # the GPU's own trouble
_Text = Annotated[str, Meta(max_length=400, pattern=WHOLE)]
_Count = Annotated[int, Meta(ge=0, lt=1 << 62)]
_Number = Annotated[float, Meta(ge=0, le=1e12)]
_Positive = Annotated[float, Meta(gt=0, le=1e12)]

Units = Literal["fp8", "fp16", "tf32", "fp32"]


@dataclass(frozen=True)
class Gpu(JsonObject):
    """A device, as its driver describes it."""

    name: _Text
    uuid: _Text
    driver: _Text
    capability: tuple[_Count, _Count]
    l2_bytes: _Count
    multiprocessors: _Count
    memory_bytes: _Count


@dataclass(frozen=True)
class Ceilings(JsonObject):
    """Rates of one GPU: of a copy, and of matrix products; 0 where one was not measured."""

    gpu: Gpu
    copy_gb_s: _Positive  # bytes read and written
    matmul_tflops: _Positive  # of float16
    measured_at: _Text
    versions: Mapping[_Text, _Text]  # of torch, triton and the driver
    tf32_tflops: _Number = 0.0
    fp32_tflops: _Number = 0.0
    copied_bytes: _Count = 1 << 30  # less on a GPU with little memory
    fp8_tflops: _Number = 0.0

    def tflops_of(self, units: Units) -> float:
        """The rate of these units in TFLOP/s; that of float16 where unknown."""
        rate: float = getattr(self, f"{units}_tflops", 0.0)
        return rate or self.matmul_tflops


@dataclass(frozen=True)
class Measurement(JsonObject):
    """The time of a call on the GPU, in milliseconds: the median and two percentiles.

    ``graph``: the launches were captured and replayed as a whole, without Python's part of each.
    """

    ms: _Positive
    p20_ms: _Positive
    p80_ms: _Positive
    repeats: Annotated[int, Meta(ge=1, lt=1 << 62)]
    graph: bool
    clocks_mhz: tuple[_Count, _Count] = (0, 0)  # the lowest of SMs and of memory; 0 if unknown
    throttled: _Text = ""  # the reasons that held the GPU back
    config: _Text = ""  # of an autotuner

    @property
    def spread(self) -> float:
        """The range of the middle 60 % of the repeats, as a share of the median."""
        return (self.p80_ms - self.p20_ms) / self.ms

    @property
    def noisy(self) -> bool:
        return self.spread > SPREAD

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Reads what the GPU process sent.

        Raises:
            ValueError: it has another form, or times that there cannot be.
        """
        measurement = super().from_dict(data)
        if not measurement.p20_ms <= measurement.ms <= measurement.p80_ms:
            raise ValueError("a median lies between its percentiles")
        return measurement


# -- beside the ceilings ------------------------------------------------------------------------


def units_of(inputs: Sequence[Any], tolerance: Tolerance) -> Units:
    """The units for products of the inputs that ``tolerance`` names, or of all inputs."""
    factors = [inputs[place] for place in tolerance.products] or inputs
    dtypes = [dtype for value in factors
              if (dtype := getattr(getattr(value, "like", value), "dtype", None)) is not None]
    sizes = [dtype.itemsize // (1 + dtype.is_complex) for dtype in dtypes
             if dtype.is_floating_point or dtype.is_complex]
    if max(sizes, default=2) <= 2:
        return "fp8" if set(sizes) == {1} else "fp16"
    return "tf32" if tolerance.tf32 else "fp32"


def gb_s(measurement: Measurement, cost: Cost) -> float:
    """GB/s: the least bytes that the job needs, per second of its time."""
    return cost.bytes / measurement.ms / 1e6


def tflops(measurement: Measurement, cost: Cost) -> float:
    """TFLOP/s: the operations that the job needs, per second of its time."""
    return cost.flops / measurement.ms / 1e9


def bound(cost: Cost, ceilings: Ceilings, units: Units = "fp16") -> Literal["copy", "matmul"]:
    """The ceiling that bounds the job: copying its bytes takes longer, or its products do."""
    moving = cost.bytes / (ceilings.copy_gb_s * 1e9)
    computing = cost.flops / (ceilings.tflops_of(units) * 1e12)
    return "matmul" if computing > moving else "copy"


def share(measurement: Measurement, cost: Cost, ceilings: Ceilings,
          units: Units = "fp16") -> float:
    """The share of the ceiling that bounds the job."""
    if bound(cost, ceilings, units) == "matmul":
        return tflops(measurement, cost) / ceilings.tflops_of(units)
    return gb_s(measurement, cost) / ceilings.copy_gb_s


def impossible(measurement: Measurement, cost: Cost, ceilings: Ceilings) -> str:
    """A sentence on why the whole job cannot take so short a time; empty where it can.

    Bytes that were written last may still lie in L2 when the clock stops, so as many as it holds
    are not counted. The units of 8-bit floats are twice as fast as those of float16.
    """
    moved = max(0, cost.bytes - ceilings.gpu.l2_bytes)
    moving = moved / (FASTEST_COPY * ceilings.copy_gb_s * 1e9)
    computing = cost.flops / (2 * FASTEST_MATMUL * ceilings.matmul_tflops * 1e12)
    if measurement.ms / 1e3 >= max(moving, computing):
        return ""
    least = {"n_bytes": cost.bytes} if moving >= computing else {"operations": cost.flops}
    return report.words("impossible time", ms=measurement.ms, gpu=ceilings.gpu.name, **least)


def judge(measurement: Measurement, cost: Cost, ceilings: Ceilings, pass_at: float,
          units: Units = "fp16") -> tuple[Verdict, str]:
    """Judges whether a measured time is fast enough; also returns a sentence with all numbers.

    PASSED, FAILED, or INCONCLUSIVE where the time is too noisy to tell, or where the GPU was held
    back by itself and the kernel did not pass. A time that cannot be fails; see ``impossible``.
    ``pass_at``: the required share of the ceiling.
    """
    speed = words(measurement, cost, ceilings, pass_at, units)
    why = impossible(measurement, cost, ceilings)
    if why:
        return Verdict.FAILED, f"{why} {speed}"
    if measurement.noisy:
        return Verdict.INCONCLUSIVE, f"{speed}: too noisy to tell, as the spread has to be at " \
                                     f"most {100 * SPREAD:.0f} %"
    if share(measurement, cost, ceilings, units) >= pass_at:
        return Verdict.PASSED, speed
    if any(reason in measurement.throttled for reason in _SLOWED):
        return Verdict.INCONCLUSIVE, f"{speed}: the GPU was throttled ({measurement.throttled})"
    return Verdict.FAILED, speed


def words(measurement: Measurement, cost: Cost, ceilings: Ceilings,
          pass_at: float | None = None, units: Units = "fp16") -> str:
    """Words the speed beside its limit: ``2.91 TB/s, 68 % of this GPU's copy speed, …``."""
    yardstick = bound(cost, ceilings, units)
    part = share(measurement, cost, ceilings, units)
    rate = gb_s(measurement, cost)
    speed = f"{tflops(measurement, cost):.4g} TFLOP/s" if yardstick == "matmul" else \
        f"{rate / 1e3:.2f} TB/s" if rate >= 1000 else f"{rate:.3g} GB/s"
    asked = "" if pass_at is None or pass_at < SOME else f", {percent(pass_at)} is required"
    return f"{speed}, {percent(part)} of this GPU's {yardstick} speed{asked}; " \
           f"{measurement.repeats} repeats, spread {100 * measurement.spread:.0f} %"


def percent(part: float) -> str:
    """Formats a share rounded down, with few digits, so that 69.96 % is not shown as 70 %."""
    percents = 100 * part
    digits = 0 if percents >= 10 or percents == 0 else 1 if percents >= 1 else 2
    return f"{math.floor(percents * 10**digits + 1e-9) / 10**digits:.{digits}f} %"
