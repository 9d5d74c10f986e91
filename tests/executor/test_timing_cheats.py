"""No trick with streams, caches, threads, graphs or clocks gets a false time.

What the learner's host code does is over when a recording is there. Its launches are timed, on
tensors that it never had, in a process that runs nothing else of its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec import structs

from grader.gpu.client import NoGpu, present
from grader.processes.replies import Outcome, Stopped, Timed, unusable
from grader.processes.session import Session
from grader.recording.model import Launch
from grader.sandbox import Sandbox
from grader.submission import source

CHEATS = Path(__file__).parents[1] / "fidelity" / "cheats" / "timing"
# What the second of two calls gives: a recording as the honest file's, or a finding.
RECORDED = ("side_stream", "graph_outside", "patched_clock")
REFUSED = {"cached_result": "X01", "after_the_end": "R01"}
ELEMENTS = 1 << 25  # of each tensor on a GPU, 128 MiB
HONEST = 0.9  # of the honest time: faster is false


@pytest.fixture
def of(sandbox: Sandbox) -> Iterator[Any]:
    opened: list[Session] = []

    def session(name: str) -> Session:
        opened.append(Session(source.read(CHEATS / f"{name}.py"), "vector_add", sandbox))
        return opened[-1]

    yield session
    for one in opened:
        one.close()


def second_call(session: Session) -> Outcome:
    """Most tricks are honest the first time."""
    generator = torch.Generator().manual_seed(3)
    inputs = [torch.randn(1000, generator=generator) for _ in range(2)]
    session.record(inputs, as_they_are=True)
    return session.record(inputs, as_they_are=True)


def test_every_cheat_is_tried():
    files = {path.stem for path in CHEATS.glob("*.py")}

    assert files == {"honest", *RECORDED, *REFUSED}
    assert len(RECORDED) + len(REFUSED) == 5


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_recorded_is_the_honest_work(of, name):
    honest, cheat = second_call(of("honest")), second_call(of(name))

    assert unusable(cheat) == []
    assert work(cheat) == work(honest)
    assert len(work(cheat)) == 2  # an allocation and a launch


def work(outcome: Outcome) -> list[Any]:
    """What happens to memory, whatever line asked for it."""
    assert outcome.recording is not None
    return [structs.replace(event, line=None) if isinstance(event, Launch) else event
            for event in outcome.recording.events]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_work_of_the_call_is_refused(of, name):
    session = of(name)
    outcome = second_call(session)
    findings = unusable(outcome)

    assert REFUSED[name] in {finding.code for finding in findings}


@cache
def pairs(count: int) -> list[list[torch.Tensor]]:
    return [[torch.randn(count, generator=torch.Generator().manual_seed(seed)) for _ in range(2)]
            for seed in (1, 2)]


def times(sessions: Sequence[Session]) -> list[Timed | str]:
    """Of the second call of each, on the GPU; what stopped it where it has none."""
    sets = pairs(ELEMENTS)
    found: list[Timed | str] = []
    for session in sessions:
        outcome = session.record(sets[0], as_they_are=True)
        outcome = session.record(sets[0], as_they_are=True)
        if outcome.recording is None or unusable(outcome):
            found.append(unusable(outcome)[0].code)
            continue
        try:
            found.append(session.measure(outcome.recording, sets, windows=[(0, 4096)]))
        except Stopped as stop:
            found.append(stop.finding.code)
    return found


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*RECORDED, *REFUSED])
def test_on_a_gpu_no_false_time_comes_out(of, name):
    honest, cheat = of("honest"), of(name)
    if not present():
        pytest.skip("no device file of a GPU is there")
    try:
        honest.look()
    except NoGpu as error:
        pytest.skip(str(error))

    right, tried = times([honest, cheat])

    assert isinstance(right, Timed) and right.measurement is not None
    if isinstance(tried, Timed):
        assert tried.measurement is not None
        assert tried.measurement.ms >= HONEST * right.measurement.ms
        assert tried.findings == ()
    else:
        assert tried == REFUSED[name]
