"""A launch as the judgements see it: its facts, and the least time of each of its parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from grader.engine.compiler.targets import Target
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import SECTOR, Survey, Traffic

# What moves less than this share of a launch's sectors does not decide how fast it is.
SHARE = 0.2
MMA_SHARE = 0.62  # of wgmma's rate that mma.sync reaches on the same GPU


@dataclass(frozen=True)
class Defect:
    """A defect by name. ``code`` is that of the diagnosis: T01 to T04 and T06.

    ``weight``: a "hint" says what could be better and may cost nothing as things are.
    """

    name: str
    code: str
    line: int | None
    seen: str
    advice: str
    weight: Literal["defect", "hint"] = "defect"


@dataclass(frozen=True)
class Observed:
    """One launch of a call.

    ``sizes``: bytes from the first to the last element of each tensor argument, by parameter.
    ``storages``: which memory it lies in. ``indexed``: lines whose addresses depend on loads.
    """

    binary: Binary
    survey: Survey | None
    indexed: Collection[int] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    storages: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchCost:
    """A launch as the checks for defects see it. Each time (s) is a lower bound."""

    binary: Binary
    survey: Survey
    target: Target
    indexed: Collection[int]
    sizes: Mapping[str, int]

    @property
    def programs(self) -> int:
        return self.survey.programs

    @property
    def memory(self) -> float:
        return (self.survey.loaded.low + self.survey.stored.low) / self.target.dram

    @property
    def caches(self) -> float:
        return self.sectors * SECTOR / self.target.l2_rate

    @property
    def products(self) -> float:
        return self.survey.flops / rate(self.binary, self.target)

    @property
    def starting(self) -> float:
        return self.programs / self.target.programs_per_second

    @property
    def meeting(self) -> float:
        return self.survey.hottest / self.target.atomics_per_second

    @property
    def work(self) -> float:
        """What cannot be avoided by other programs: memory and products."""
        return max(self.memory, self.products)

    @property
    def total(self) -> float:
        return max(self.work, self.caches, self.starting, self.meeting)

    @property
    def large(self) -> bool:
        return self.work > self.target.launch_seconds / 2

    @property
    def bound_by_products(self) -> bool:
        return self.products >= self.memory / 2

    @property
    def sectors(self) -> int:
        return sum(t.sectors for t in self.survey.traffic)

    def accesses(self, traffic: Traffic) -> float:
        """How often programs come past it, all together."""
        rounds = self.survey.executions.get(traffic.line, 1.0) if traffic.line is not None else 1.0
        return max(1.0, rounds * self.programs)

    def lanes(self, traffic: Traffic) -> float:
        return traffic.lanes / self.accesses(traffic)

    def rounds(self) -> float:
        """How often a program loads at the line where it does so most often."""
        loads = [self.survey.executions.get(t.line, 0.0) for t in self.survey.traffic
                 if t.kind == "load" and t.line is not None]
        return max(loads, default=0.0)


def rate(binary: Binary, target: Target) -> float:
    """Operations per second of the units that tl.dot uses, at best."""
    best, _ = peak(target, binary)
    return best * (MMA_SHARE if mma_where_better_is(binary, target) else 1.0)


def mma_where_better_is(binary: Binary, target: Target) -> bool:
    return binary.tensor_cores == "mma" and target.capability in (90, 100, 103)


def peak(target: Target, binary: Binary) -> tuple[float, str]:
    """What the units that a kernel multiplies on can do: operations a second, and their name."""
    if not binary.tensor_cores:
        return target.fp32, "FP32"
    if binary.tf32:
        return target.tf32_tensor, "TF32 tensor cores"
    if binary.factors == ("fp8",):
        return target.fp8_tensor, "FP8 tensor cores"
    return target.fp16_tensor, "FP16 tensor cores"
