"""Timers of a benchmark: the GPU of this machine, or a prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from grader.bench.bench import Roof, Speed, Without
from grader.bench.torch_baselines import Peers
from grader.engine.compiler.targets import Target
from grader.engine.gpu import measurement
from grader.engine.gpu.measurement import Ceilings, Measurement, Units
from grader.gpu import client, detect
from grader.gpu.client import NoGpu
from grader.judge import large_tensors
from grader.judge.context import Context
from grader.judge.draws import Draws, rolled
from grader.judge.launch_report import examine_call, recordings_of
from grader.judge.perf_bound import MATMUL_OF_PEAK, peak_of
from grader.recording.model import Recording
from grader.report import Finding, Kind
from grader.suite import Case, Cost, Suite

MOST_CONFIGURATIONS = 32  # of an autotuner that are timed at each size


class Predicted:
    """A GPU that is not there: times predicted from compiled code and counted bytes."""

    measured = False

    def __init__(self, target: Target) -> None:
        self.target = target
        self.device = target.title

    def of(self) -> dict[str, Any]:
        return {"target": asdict(self.target)}

    def roof(self, units: Units) -> Roof:
        """Copies and matrix products as fast as ``grader.judge.perf_bound`` expects them of a
        good library.
        """
        target = self.target
        return Roof(target.title, False, target.dram,
                    max(MATMUL_OF_PEAK) * peak_of(units, target), units)

    def kernels(self, case: Case, ctx: Context, name: str,
                inputs: Sequence[Any]) -> Speed | Without:
        session = ctx.session(case)
        session.ready()
        outlines = ctx.draws.draw(name, inputs, outlines=True)
        examined = examine_call(session, outlines, ctx.submitted.text, self.target)
        if examined.findings:
            return Without(findings=examined.findings)
        if examined.prediction is None or examined.unknown:
            return Without(" ".join(examined.unknown) or "Its time cannot be predicted.")
        return Speed.predicted(examined.prediction.seconds)

    def peer(self, part: Suite, size: int, *, compiled: bool) -> Speed | Without:
        raise NotImplementedError("torch's kernels are not there to predict their time")


class Measured:
    """The GPU of this machine. Kernels run in the process before it, torch in another one."""

    measured = True

    def __init__(self, ceilings: Ceilings, peers: Peers) -> None:
        self.ceilings = ceilings
        self.device = ceilings.gpu.name
        self._peers = peers
        self._drawn: tuple[str, list[list[Any]]] = ("", [])

    def of(self) -> dict[str, Any]:
        return {"ceilings": self.ceilings.to_dict()}

    def roof(self, units: Units) -> Roof:
        return Roof(self.device, True, self.ceilings.copy_gb_s * 1e9,
                    self.ceilings.tflops_of(units) * 1e12, units)

    def kernels(self, case: Case, ctx: Context, name: str,
                inputs: Sequence[Any]) -> Speed | Without:
        suite, session = ctx.part(case), ctx.session(case)
        session.ready()
        outlines = ctx.draws.draw(name, inputs, outlines=True)
        recordings, findings = recordings_of(session, outlines, MOST_CONFIGURATIONS)
        if findings:
            return Without(findings=tuple(findings))
        sets = self._sets(ctx.draws, name, inputs)
        try:
            timed = session.measure(recordings[0], list(map(large_tensors.on_cpu, sets)),
                                    others=recordings[1:])
        except NoGpu as error:
            return Without(str(error))
        if timed.findings or timed.measurement is None:
            return Without("" if timed.findings else "The GPU told no time.", timed.findings)
        wrong = [finding for drawn, results in zip(sets, timed.results, strict=False)
                 for finding in _wrong(suite, recordings[0], results, drawn)]
        if wrong:
            return Without(findings=tuple(wrong[:1]))
        return self._speed(timed.measurement, suite.cost(*sets[0]))

    def peer(self, part: Suite, size: int, *, compiled: bool) -> Speed | Without:
        measured = self._peers.measure(part.entry, size, compiled=compiled)
        return Without(measured) if isinstance(measured, str) else self._speed(measured, None)

    def _sets(self, draws: Draws, name: str, inputs: Sequence[Any]) -> list[list[Any]]:
        """The same for all contenders at one size, and kept no longer."""
        if self._drawn[0] != name:
            self._drawn = "", []
            large_tensors.free()
            first = draws.draw(name, inputs, device=large_tensors.device())
            self._drawn = name, [first, rolled(first)]
        return self._drawn[1]

    def _speed(self, made: Measurement, needed: Cost | None) -> Speed | Without:
        if needed and (why := measurement.impossible(made, needed, self.ceilings)):
            return Without(why)
        notes = [f"spread {100 * made.spread:.0f} %"] * made.noisy
        if made.throttled:
            notes.append(f"held back: {made.throttled}")
        if not made.graph:
            notes.append("with Python's part of each launch")
        if made.config:
            notes.append(made.config)
        return Speed(made.ms / 1e3, made.p20_ms / 1e3, made.p80_ms / 1e3, made.repeats,
                     "; ".join(notes))


@contextmanager
def measuring(sandbox: Any, suite: Path) -> Iterator[Measured]:
    """The clock of this machine's GPU, for the module with this suite.

    Raises:
        NoGpu: there is none that can be used.
    """
    if not detect.present():
        raise NoGpu("no GPU was found")
    with client.process(sandbox) as ask:
        ceilings = client.ceilings(ask)
    with Peers(suite) as peers:
        yield Measured(ceilings, peers)


def _wrong(suite: Suite, recording: Recording, results: Sequence[torch.Tensor],
           inputs: Sequence[Any]) -> list[Finding]:
    """Checks the results of timed runs, where there is room to compare them."""
    case = Case("the runs that were timed", Kind.CORRECTNESS)
    try:
        findings, difference = large_tensors.check(suite, case, recording, results, inputs)
    except (MemoryError, torch.OutOfMemoryError):
        return []  # small inputs were right; a larger machine would tell of these
    finally:
        large_tensors.free()
    if difference and not findings:
        findings = [Finding("N01", difference.data())]
    return [Finding(one.code, one.data).within("timed") for one in findings[:1]]
