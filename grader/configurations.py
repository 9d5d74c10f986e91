"""The configurations of an autotuner: a GPU may find any of them the fastest, and tries them all.
"""

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
TRIALS = 4  # of a first call; what one leaves behind shows after as many


class Configurations:
    """Which of them were tried in this grade.

    All are tried on the first case and some on each later one, so that each meets many shapes.
    What trials leave behind is looked at in the first case of a function, and where it works in
    place in all of them.
    """

    def __init__(self) -> None:
        self._tried = 0
        self._first_calls: set[str] = set()  # functions of which one was made

    def others(self, judge: Judge, case: Case, inputs: list[Any], count: int) -> list[Finding]:
        """What is wrong in one of ``count`` configurations other than the first, or after trials.

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
        entry = judge.suite.entry
        if count == 1 or (entry in self._first_calls and not judge.suite.in_place):
            return []
        self._first_calls.add(entry)
        trials = min(count, TRIALS)
        return [replace(finding, seen=f"In the first call, after {trials} trials of its autotuner "
                                      f"on the caller's tensors: {finding.seen}")
                for finding in _after_trials(judge, inputs)[:1]]


def _after_trials(judge: Judge, inputs: list[Any]) -> list[Finding]:
    """What is wrong with the results of the first call; a call that cannot be made tells nothing.

    Hooks may store into tensors that no kernel may store into, and bring back what they held.
    """
    outcome = judge.session.record(inputs, trials=TRIALS)
    if outcome.recording is None or outcome.findings:
        return []
    run = judge.session.replay(outcome.recording, inputs)
    if run.findings:
        return list(codes.in_order(run.findings)) if judge.suite.in_place else []
    return judge.wrong_values(run.results, inputs, outcome.recording)


def _wrong(judge: Judge, case: Case, inputs: list[Any], number: int, count: int) -> list[Finding]:
    outcome = judge.session.record(inputs, config=number)
    findings = unusable(outcome)
    if outcome.recording is None or findings:
        return findings
    judge.gate.add(case.name, outcome.recording, count)
    run = judge.session.replay(outcome.recording, inputs)
    return (list(run.findings) or broken_contract(judge.suite, case, outcome.recording, inputs)
            or judge.wrong_values(run.results, inputs, outcome.recording))
