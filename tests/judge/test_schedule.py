"""The order of cases, and what a case takes from those before it."""

from __future__ import annotations

from dataclasses import replace

from grader.judge.schedule import Schedule
from grader.suite import correctness, rand


def test_sizes_follow_the_last_block_of_the_same_function():
    cases = [replace(correctness(name, rand(8)), function=name[0])
             for name in ("f, first", "g, first", "f, last", "g, last")]
    schedule = Schedule(cases)
    schedule.learn(cases[0], 64)

    blocks = [schedule.block_before(case, lambda earlier: 128) for case in cases]

    assert blocks == [None, None, 64, 128]
