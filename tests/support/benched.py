"""A benchmark that never ran: times as an H200 gives them, for tests and for looking at pictures.

``python -m tests.support.benched FOLDER`` draws them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.bench import bench
from grader.bench.benchmark import (
    COMPILED,
    REFERENCE,
    TORCH,
    YOURS,
    Benchmark,
    Chart,
    Contender,
    Roof,
    Speed,
    Without,
)
from grader.engine.gpu import measurement
from grader.engine.gpu.measurement import Units
from grader.judge.context import Context
from grader.judge.draws import Draws
from grader.recording.launch_stats import Prediction
from grader.report import CaseResult, Finding, Kind, Verdict
from grader.suite import Case, spec

ROOT = Path(__file__).parents[2]
H200 = "NVIDIA H200"
COPY = 4.28e12
PEAKS: dict[Units, float] = {"fp8": 1200e12, "fp16": 722e12, "tf32": 380e12, "fp32": 51e12}
REACHED = {YOURS: 0.81, REFERENCE: 0.97, TORCH: 0.62, COMPILED: 0.90}


class FakeClock:
    """A GPU whose times are made up: a share of the ceiling after 4 microseconds."""

    def __init__(self, *, measured: bool = True, found: dict[str, Any] | None = None,
                 kernels: Sequence[str] = (YOURS, REFERENCE)) -> None:
        """``kernels`` are those of whom kernels will be asked for, in this order."""
        self.measured = measured
        self.device = H200
        self.of = {"ceilings": {"copy_gb_s": COPY / 1e9}} if measured else {}
        self.found = found or {}  # by who, what comes instead of a time
        self.asked: list[tuple[str, str]] = []
        self._kernels, self._contexts = kernels, []

    def roof(self, units: Units) -> Roof:
        return Roof(self.device, self.measured, COPY, PEAKS[units], units)

    def kernels(self, case: Case, ctx: Context, name: str,
                inputs: Sequence[Any]) -> Speed | Without:
        if ctx not in self._contexts:
            self._contexts.append(ctx)
        who = self._kernels[self._contexts.index(ctx)]
        return self._time(who, name, ctx.part(case), inputs)

    def peer(self, part: Any, size: int, *, compiled: bool) -> Speed | Without:
        who = COMPILED if compiled else TORCH
        return self._time(who, str(size), part, part.bench.inputs(size))

    def _time(self, who: str, name: str, part: Any, inputs: Sequence[Any]) -> Speed | Without:
        self.asked.append((who, name))
        if who in self.found:
            return self.found[who]
        like = [getattr(value, "like", value) for value in Draws(part.name, "0").draw(
            "bench", inputs, outlines=True)]
        roof = self.roof(measurement.units_of(like, part.tolerance))
        return speed(roof.seconds(part.cost(*like)), who, self.measured)


def predicted(seconds: float) -> Prediction:
    """A prediction that tensor cores bound and DRAM follows."""
    parts = {"dram": 0.6, "l2": 0.3, "compute": 0.8, "latency": 0.1, "launch": 0.1, "programs": 0.0,
             "atomics": 0.0}
    pipes = {"tensor": 0.75, "xu": 0.2, "fma": 0.005}
    return Prediction(seconds, "compute", "dram", *({
        name: share * seconds for name, share in shares.items()} for shares in (parts, pipes)))


def speed(least: float, who: str, measured: bool = True) -> Speed:
    """A time of the kind that is measured: the more work, the nearer to what is reached at best."""
    seconds = 4e-6 + least / REACHED[who] + 2e-6 * math.log10(1 + least * 1e6)
    if not measured:
        return Speed(seconds, seconds, seconds, prediction=predicted(seconds))
    return Speed(seconds, 0.985 * seconds, 1.03 * seconds, 40)


def charted(part: Any, who: Sequence[str] = tuple(REACHED), *, measured: bool = True) -> Chart:
    """The chart of one function with these contenders."""
    clock, made = FakeClock(measured=measured), part.bench
    outlines = {size: bench._outlines(part, part, made, size) for size in made.sizes}
    needed = {size: part.cost(*like) for size, like in outlines.items()}
    roof = clock.roof(measurement.units_of(outlines[max(made.sizes)], part.tolerance))
    return Chart(part.entry, made.axis, made.at, made.peer_name, roof, needed, tuple(
        Contender(name, {size: speed(roof.seconds(cost), name, measured)
                         for size, cost in needed.items()}) for name in who))


def benchmark(module: str, *, measured: bool = True, who: Sequence[str] = ()) -> Benchmark:
    """All functions of one module's suite."""
    loaded = spec.load(ROOT / "grader" / "suites" / module / "suite.py")
    names = who or (tuple(REACHED) if measured else (YOURS, REFERENCE))
    charts = tuple(charted(part, names, measured=measured) for part in bench.benched(loaded))
    return Benchmark(loaded.name, "0" * 64, measured, H200, {}, charts, (),
                     {"torch": "2.11.0", "triton": "3.6.0"})


def wrong() -> CaseResult:
    finding = Finding("N01", "3 of 128 elements are wrong.", means="Some values are off.")
    return CaseResult("4 x 127", Kind.CORRECTNESS, Verdict.FAILED, (finding,))


if __name__ == "__main__":
    from tritonlab.course import course
    from tritonlab.render import charts, pages

    the_course = course.load()
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name in ("missing-elements/03-softmax", "missing-elements/02-matrix-mul",
                 "mastery/01-custom-kernels", "optimization/01-tiling"):
        for measured in (True, False):
            found = benchmark(name, measured=measured)
            kind = "measured" if measured else "predicted"
            stem = f"{name.split('-', 2)[-1].replace('/', '-')}-{kind}"
            (folder / f"{stem}.png").write_bytes(charts.benchmark_png(found, name))
            module = next(m for m in the_course.modules if str(m.suite.parent).endswith(name))
            (folder / f"{stem}.html").write_text(pages.benchmark(module, found))
