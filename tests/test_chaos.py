"""Kills during a real grade; `python -m tests.fidelity.chaos` does it 300 times."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fidelity.chaos import torment


def test_kills_at_random_moments_lose_nothing_and_leave_nothing(tmp_path):
    outcome = torment(kills=8, seed=2, folder=tmp_path)

    assert outcome.problems == ()
    assert outcome.recorded >= outcome.acknowledged >= 1
