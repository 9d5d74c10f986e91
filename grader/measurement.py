"""What a clock said of one case on one GPU, beside what this GPU reaches at its best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

from grader.report import Verdict
from grader.suite import Cost, Tolerance

SPREAD = 0.10  # (p80 - p20) / median, above which a time is too noisy to decide anything
# What no kernel passes, as a multiple of the measured ceiling. On an H200 a copy reaches 0.90 of
# what the datasheet gives, so reading alone may be a tenth faster; matmul 0.69 to 0.80 of it, as
# random numbers cost power that zeros do not.
FASTEST_COPY, FASTEST_MATMUL = 1.25, 1.6
SOME = 1e-6  # a share below asks for no speed: the case is there to be run at its real size
_SLOWED = ("thermal", "hardware slowdown", "power brake")  # the GPU's own trouble
_LONGEST = 400  # characters of a text in a reply
_MOST = 1e12  # of any number in a reply

Units = Literal["fp8", "fp16", "tf32", "fp32"]


@dataclass(frozen=True)
class Gpu:
    """A device as its driver tells of it."""

    name: str
    uuid: str
    driver: str
    capability: tuple[int, int]
    l2_bytes: int
    multiprocessors: int
    memory_bytes: int

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what the GPU process answers.

        Raises:
            ValueError: it has another form.
        """
        known = _object(data, cls, "a GPU")
        name, uuid, driver = (_text(known[key]) for key in ("name", "uuid", "driver"))
        return cls(name, uuid, driver, _pair(known["capability"]), *(
            _count(known[key]) for key in ("l2_bytes", "multiprocessors", "memory_bytes")))

    def to_dict(self) -> dict[str, Any]:
        """What ``from_dict`` reads, fit for JSON."""
        return {**asdict(self), "capability": list(self.capability)}


@dataclass(frozen=True)
class Ceilings:
    """What one GPU reaches: copying, bytes read and written, and multiplying matrices.

    ``matmul_tflops`` is that of float16; the other rates, 0 where they were not measured, are those
    of float32 in TF32 and in full precision, and of float8. ``versions`` are those of torch, triton
    and the driver. ``copied_bytes`` is how large the copy was: a GPU with little memory takes less.
    """

    gpu: Gpu
    copy_gb_s: float
    matmul_tflops: float
    measured_at: str
    versions: Mapping[str, str]
    tf32_tflops: float = 0.0
    fp32_tflops: float = 0.0
    copied_bytes: int = 1 << 30
    fp8_tflops: float = 0.0

    def tflops_of(self, units: Units) -> float:
        """The rate of the units that compute in such numbers; that of float16 where unknown."""
        rates = {"tf32": self.tf32_tflops, "fp32": self.fp32_tflops, "fp8": self.fp8_tflops}
        return rates.get(units, 0.0) or self.matmul_tflops

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what the GPU process answers, or what a cache holds.

        Raises:
            ValueError: it has another form, or a rate that there cannot be.
        """
        known = _object(data, cls, "ceilings")
        if not isinstance(known["versions"], dict):
            raise ValueError("versions are an object")
        versions = {_text(name): _text(value) for name, value in known["versions"].items()}
        copy, matmul, tf32, fp32, fp8 = (_number(known[key]) for key in (
            "copy_gb_s", "matmul_tflops", "tf32_tflops", "fp32_tflops", "fp8_tflops"))
        if not copy or not matmul:
            raise ValueError("a ceiling is above nothing")
        return cls(Gpu.from_dict(known["gpu"]), copy, matmul, _text(known["measured_at"]),
                   versions, tf32, fp32, _count(known["copied_bytes"]), fp8)

    def to_dict(self) -> dict[str, Any]:
        """What ``from_dict`` reads, fit for JSON."""
        return {**{one.name: getattr(self, one.name) for one in fields(self)},
                "gpu": self.gpu.to_dict(), "versions": dict(self.versions)}


@dataclass(frozen=True)
class Measurement:
    """How long a call took on the GPU, in milliseconds: the median and two percentiles.

    ``graph``: the launches were captured and replayed as a whole, so that what Python needs for
    each is not in the time. ``clocks_mhz`` are those of the multiprocessors and of memory, the
    lowest that were seen; 0 where nobody tells. ``throttled`` says what held the GPU back, and
    ``config`` which of an autotuner's configurations this is.
    """

    ms: float
    p20_ms: float
    p80_ms: float
    repeats: int
    graph: bool
    clocks_mhz: tuple[int, int] = (0, 0)
    throttled: str = ""
    config: str = ""

    @property
    def spread(self) -> float:
        """How far the middle 60 % of the repeats lie apart, as a share of the median."""
        return (self.p80_ms - self.p20_ms) / self.ms

    @property
    def noisy(self) -> bool:
        return self.spread > SPREAD

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read what the GPU process answers.

        Raises:
            ValueError: it has another form, or times that there cannot be.
        """
        known = _object(data, cls, "a measurement")
        ms, p20, p80 = (_number(known[key]) for key in ("ms", "p20_ms", "p80_ms"))
        if not 0 < p20 <= ms <= p80:
            raise ValueError("a median lies between its percentiles, and above nothing")
        repeats = _count(known["repeats"])
        if not repeats or not isinstance(known["graph"], bool):
            raise ValueError("a measurement has repeats, and says whether it is of a graph")
        return cls(ms, p20, p80, repeats, known["graph"], _pair(known["clocks_mhz"]),
                   _text(known["throttled"]), _text(known["config"]))

    def to_dict(self) -> dict[str, Any]:
        """What ``from_dict`` reads, fit for JSON."""
        return {**asdict(self), "clocks_mhz": list(self.clocks_mhz)}


# ---------------------------------------------------------------------------------------------
# Beside the ceilings


def units_of(inputs: Sequence[Any], tolerance: Tolerance) -> Units:
    """The units on which products of such inputs are to be computed: of those that are multiplied
    as matrices, where ``tolerance`` names them. It also says what may be rounded to TF32.
    """
    factors = [inputs[place] for place in tolerance.products] or inputs
    dtypes = [dtype for value in factors
              if (dtype := getattr(getattr(value, "like", value), "dtype", None)) is not None]
    sizes = [dtype.itemsize // (1 + dtype.is_complex) for dtype in dtypes
             if dtype.is_floating_point or dtype.is_complex]
    if max(sizes, default=2) <= 2:
        return "fp8" if set(sizes) == {1} else "fp16"
    return "tf32" if tolerance.tf32 else "fp32"


def gb_s(measurement: Measurement, cost: Cost) -> float:
    """The least bytes that the job needs, per second of the time that it took."""
    return cost.bytes / measurement.ms / 1e6


def tflops(measurement: Measurement, cost: Cost) -> float:
    """The operations that the job needs, per second of the time that it took."""
    return cost.flops / measurement.ms / 1e9


def bound(cost: Cost, ceilings: Ceilings, units: Units = "fp16") -> Literal["copy", "matmul"]:
    """Which ceiling the job meets first: at its best it takes longer to move, or to compute."""
    moving = cost.bytes / (ceilings.copy_gb_s * 1e9)
    computing = cost.flops / (ceilings.tflops_of(units) * 1e12)
    return "matmul" if computing > moving else "copy"


def share(measurement: Measurement, cost: Cost, ceilings: Ceilings,
          units: Units = "fp16") -> float:
    """What was reached of the ceiling that bounds the job."""
    if bound(cost, ceilings, units) == "matmul":
        return tflops(measurement, cost) / ceilings.tflops_of(units)
    return gb_s(measurement, cost) / ceilings.copy_gb_s


def impossible(measurement: Measurement, cost: Cost, ceilings: Ceilings) -> str:
    """Why so short a time cannot be the whole job's; empty where it can.

    What was written last may still lie in L2 when the clock stops, so as much is not counted. The
    units of 8-bit floats are twice as fast as those of float16.
    """
    moved = max(0, cost.bytes - ceilings.gpu.l2_bytes)
    moving = moved / (FASTEST_COPY * ceilings.copy_gb_s * 1e9)
    computing = cost.flops / (2 * FASTEST_MATMUL * ceilings.matmul_tflops * 1e12)
    if measurement.ms / 1e3 >= max(moving, computing):
        return ""
    least = f"{cost.bytes:,} bytes" if moving >= computing else f"{cost.flops:,} operations"
    return f"{_time(measurement.ms)} is less than a {ceilings.gpu.name} needs for {least}: the " \
           "work was not done while the clock ran."


def judge(measurement: Measurement, cost: Cost, ceilings: Ceilings, pass_at: float,
          units: Units = "fp16") -> tuple[Verdict, str]:
    """Whether a measured time is fast enough, and that in words with all numbers.

    PASSED, FAILED, or INCONCLUSIVE where the time is too noisy to tell, or where the GPU was held
    back by itself and the kernel did not pass. A time that cannot be fails; see ``impossible``.

    Args:
        pass_at: the share of the ceiling that is asked for.
        units: those on which a product of the inputs is to be computed.
    """
    said = words(measurement, cost, ceilings, pass_at, units)
    why = impossible(measurement, cost, ceilings)
    if why:
        return Verdict.FAILED, f"{why} {said}"
    if measurement.noisy:
        return Verdict.INCONCLUSIVE, f"{said}: too noisy to tell, as the spread has to be at " \
                                     f"most {100 * SPREAD:.0f} %"
    if share(measurement, cost, ceilings, units) >= pass_at:
        return Verdict.PASSED, said
    if any(reason in measurement.throttled for reason in _SLOWED):
        return Verdict.INCONCLUSIVE, f"{said}: the GPU was held back ({measurement.throttled})"
    return Verdict.FAILED, said


def words(measurement: Measurement, cost: Cost, ceilings: Ceilings,
          pass_at: float | None = None, units: Units = "fp16") -> str:
    """The speed beside its limit: ``2.91 TB/s, 68 % of this GPU's copy speed, …``."""
    yardstick = bound(cost, ceilings, units)
    part = share(measurement, cost, ceilings, units)
    speed = f"{tflops(measurement, cost):.4g} TFLOP/s" if yardstick == "matmul" else \
        _bandwidth(gb_s(measurement, cost))
    asked = "" if pass_at is None or pass_at < SOME else f", {percent(pass_at)} is asked for"
    return f"{speed}, {percent(part)} of this GPU's {yardstick} speed{asked}; " \
           f"{measurement.repeats} repeats, spread {100 * measurement.spread:.0f} %"


def _bandwidth(gigabytes: float) -> str:
    return f"{gigabytes / 1e3:.2f} TB/s" if gigabytes >= 1000 else f"{gigabytes:.3g} GB/s"


def percent(part: float) -> str:
    """Rounded down to as few digits as tell it, so that 69.96 % is not shown as 70 %."""
    percents = 100 * part
    digits = 0 if percents >= 10 or percents == 0 else 1 if percents >= 1 else 2
    return f"{math.floor(percents * 10**digits + 1e-9) / 10**digits:.{digits}f} %"


def _time(ms: float) -> str:
    return f"{ms:.3g} ms" if ms >= 1 else f"{ms * 1e3:.3g} us"


# ---------------------------------------------------------------------------------------------
# Reading: a reply may come from a process that a kernel took over


def _object(data: Any, cls: Any, what: str) -> dict[str, Any]:
    names = {one.name for one in fields(cls)}
    if not isinstance(data, dict) or data.keys() != names:
        raise ValueError(f"{what} is an object with certain names")
    return data


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise ValueError(f"no text: {value!r:.40}")
    return value.encode("utf-8", "backslashreplace").decode()


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        raise ValueError(f"no number that fits here: {value!r:.40}")
    return float(value)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
        raise ValueError(f"no count: {value!r:.40}")
    return value


def _pair(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"no pair of counts: {value!r:.40}")
    return _count(value[0]), _count(value[1])
