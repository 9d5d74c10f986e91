"""Clocks: by which a benchmark times kernels, on the GPU of this machine or by prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from grader.bench import Roof, Speed, Without
from grader.engine.compiler.targets import Target
from grader.examination import examine_call
from grader.measurement import Units
from grader.speed import MATMUL_OF_PEAK
from grader.suite import Suite

if TYPE_CHECKING:
    from grader.judge import Judge


class Predicted:
    """What compiled code and counted bytes let one expect of a GPU that is not there."""

    measured = False

    def __init__(self, target: Target) -> None:
        self.target = target
        self.device = target.title

    def of(self) -> dict[str, Any]:
        return {"target": asdict(self.target)}

    def roof(self, units: Units) -> Roof:
        """Copies and matrix products as fast as ``grader.speed`` expects them of a good library."""
        target = self.target
        peak = {"fp16": target.fp16_tensor, "tf32": target.tf32_tensor, "fp32": target.fp32}[units]
        return Roof(target.title, False, target.dram, max(MATMUL_OF_PEAK) * peak, units)

    def kernels(self, judge: Judge, name: str, inputs: Sequence[Any]) -> Speed | Without:
        judge.session.ready()
        drawn = judge.draws.draw(name, inputs, outlines=True)
        examined = examine_call(judge.session, drawn, judge.text, self.target)
        if examined.findings:
            return Without(findings=examined.findings)
        if examined.prediction is None or examined.unknown:
            return Without(" ".join(examined.unknown) or "Its time cannot be predicted.")
        return Speed.predicted(examined.prediction.seconds)

    def peer(self, suite: Suite, part: Suite, size: int, *, compiled: bool) -> Speed | Without:
        return Without("What torch does on a GPU cannot be predicted without its kernels.")
