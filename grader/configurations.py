"""The configurations of an autotuner beside the first: a GPU may find any of them the fastest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grader.contract import broken_contract
from grader.diagnosis import codes
from grader.outcome import unusable
from grader.report import Finding
from grader.suite import Case

if TYPE_CHECKING:
    from grader.judge import Judge

MOST = 16  # of an autotuner that are tried
AT_ONCE = 3  # with one case, after the first


class Configurations:
    """Which of them were tried in this grade.

    All are tried on the first case and some on each later one, so that each meets many shapes.
    """

    def __init__(self) -> None:
        self._tried = 0

    def others(self, judge: Judge, case: Case, inputs: list[Any], count: int) -> list[Finding]:
        """What is wrong in one of ``count`` configurations other than the first.

        Raises:
            grader.outcome.Stopped: a process did not survive it.
        """
        numbers = list(range(1, min(count, MOST)))
        if self._tried:
            turn = self._tried % max(1, len(numbers))
            numbers = [*numbers[turn:], *numbers[:turn]][:AT_ONCE]
        self._tried += len(numbers)
        for number in numbers:
            if findings := _wrong(judge, case, inputs, number, count):
                first = codes.in_order(findings)[0]
                seen = f"With configuration {number + 1} of {count}: {first.seen}"
                return [replace(first, seen=seen)]
        return []


def _wrong(judge: Judge, case: Case, inputs: list[Any], number: int, count: int) -> list[Finding]:
    outcome = judge.session.record(inputs, config=number)
    findings = unusable(outcome)
    if outcome.recording is None or findings:
        return findings
    judge.gate.add(case.name, outcome.recording, count)
    run = judge.session.replay(outcome.recording, inputs)
    return (list(run.findings) or broken_contract(judge.suite, case, outcome.recording, inputs)
            or judge.wrong_values(run.results, inputs, outcome.recording))
