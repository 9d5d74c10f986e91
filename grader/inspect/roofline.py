"""Roofline: where launches lie below what memory and arithmetic of a target allow."""

from __future__ import annotations

from dataclasses import dataclass

from grader.engine.compiler.targets import Target


@dataclass(frozen=True)
class Point:
    """Work at a predicted speed. ``flops`` and ``bytes`` to and from DRAM, in ``seconds``."""

    label: str
    flops: int
    bytes: int
    seconds: float
    peak: float  # flops a second of the units that do the work
    units: str  # their name

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.bytes

    @property
    def rate(self) -> float:
        """Operations per second."""
        return self.flops / self.seconds

    def ceiling(self, target: Target) -> float:
        """Operations per second that the target allows at this intensity."""
        return min(self.peak, self.intensity * target.dram)

    def bound_by_memory(self, target: Target) -> bool:
        return self.intensity * target.dram < self.peak

    def share(self, target: Target) -> float:
        return self.rate / self.ceiling(target)
