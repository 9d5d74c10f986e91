"""The time of a grade: what counts, what does not, and what happens at its end."""

from __future__ import annotations

import math

import pytest

from grader.processes import time_limit
from grader.processes.time_limit import OutOfTime, TimeLimit


@pytest.fixture
def now(monkeypatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr(time_limit.time, "monotonic", lambda: clock[0])
    return clock


def test_a_request_gets_no_more_than_what_is_left(now):
    limit = TimeLimit(50.0)
    now[0] += 45.0

    assert (limit.bound(10.0), limit.bound(2.0)) == (5.0, 2.0)
    now[0] += 5.0
    with pytest.raises(OutOfTime):
        limit.bound(2.0)


def test_time_without_a_cpu_does_not_count_up_to_three_times_the_limit(now):
    limit = TimeLimit(50.0)
    now[0] += 60.0
    limit.starved(20.0)

    assert limit.left_s() == 10.0
    limit.starved(1000.0)
    assert limit.left_s() == 4 * 50.0 - 60.0


def test_a_limit_that_was_lifted_leaves_all_the_time(now):
    limit = TimeLimit(50.0)

    limit.lift()

    assert limit.left_s() == math.inf
