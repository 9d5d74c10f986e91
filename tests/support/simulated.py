"""A GPU that is not there: it computes what the interpreter does, in times that a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from grader.engine.gpu.measurement import Ceilings, Gpu, Measurement
from grader.gpu import detect
from grader.gpu.client import NoGpu
from grader.processes.replies import Run, Stopped, Timed
from grader.processes.session import Session
from grader.recording.model import Recording
from grader.report import Finding

H200 = Gpu("NVIDIA H200", "GPU-0", "580.65", (9, 0), 50 << 20, 132, 139 << 30)
CEILINGS = Ceilings(H200, 4_282.0, 790.0, "2026-11-22",
                    {"torch": "2.11.0", "triton": "3.6.0", "driver": "580.65"})


def taking(ms: float, spread: float = 0.03, **more: Any) -> Measurement:
    """A measurement with this median and spread."""
    half = spread * ms / 2
    return Measurement(ms, ms - half, ms + half, 40, True, (1_980, 2_619), **more)


@dataclass
class Simulated:
    """What the GPU answers; ``change`` makes of the results of a run what it would compute."""

    measurements: list[Measurement] = field(default_factory=lambda: [taking(0.2)])
    change: Callable[[torch.Tensor, int], torch.Tensor] = lambda result, run: result
    stops: Finding | None = None  # instead of any run
    missing: str = ""  # why it does not answer at all
    woken: int = 0  # before it is looked at
    compiled: list[tuple[int, int]] = field(default_factory=list)  # (recordings, runs so far)
    runs: int = 0
    timed: int = 0
    configurations: int = 0  # of the last call that was timed
    windows: int = 0
    poisons: list[int] = field(default_factory=list)  # of all runs
    sets: Sequence[Sequence[Any]] = ()  # of inputs, of the last call that was timed

    def wake(self, session: Session) -> None:
        self.woken += 1

    def compile(self, session: Session, recordings: Sequence[Recording]) -> None:
        self.compiled.append((len(recordings), self.runs))

    def look(self, session: Session) -> Gpu:
        if self.missing:
            raise NoGpu(self.missing)
        return H200

    def run(self, session: Session, recording: Recording, inputs: Sequence[Any], *,
            poison: int = 0) -> Run:
        self.runs += 1
        self.poisons.append(poison)
        if self.stops:
            raise Stopped(self.stops)
        run = session.replay(recording, inputs, poison=poison)
        return replace(run, results=tuple(self.change(one, self.runs) for one in run.results))

    def measure(self, session: Session, recording: Recording, sets: Sequence[Sequence[Any]], *,
                others: Sequence[Recording] = (),
                windows: Sequence[tuple[int, int]] | None = None) -> Timed:
        self.timed += 1
        self.sets = sets
        self.configurations = 1 + len(others)
        measured = self.measurements[min(self.timed, len(self.measurements)) - 1]
        runs = [self.run(session, recording, one).results for one in sets]
        self.windows = len(windows or ())
        if windows:
            runs = [tuple(result.reshape(-1)[first:first + count] for result in results
                          for first, count in windows) for results in runs]
        return Timed((), measured, (measured,), tuple(runs))


def install(monkeypatch: pytest.MonkeyPatch, gpu: Simulated) -> Simulated:
    """Put it where this machine's own would be."""
    monkeypatch.setattr(detect, "names", lambda: (H200.name,))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name, answer in (("wake_gpu", gpu.wake), ("compile_on_gpu", gpu.compile),
                         ("look", gpu.look), ("run_on_gpu", gpu.run),
                         ("measure", gpu.measure), ("ceilings", lambda session: CEILINGS)):
        monkeypatch.setattr(Session, name, _method(answer), raising=False)
    return gpu


def _method(answer: Callable[..., Any]) -> Callable[..., Any]:
    return lambda session, *args, **kwargs: answer(session, *args, **kwargs)
