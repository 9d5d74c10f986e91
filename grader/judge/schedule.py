"""Case order, and when a grade ends early. Reordering never changes a verdict.

Sizes of a case may follow the block that the learner's launches had in the case before it. So each
case has a place in the suite's order too, and what it is sized by is found there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from grader.processes.replies import Stopped
from grader.processes.time_limit import TimeLimit
from grader.report import CaseResult, Kind, Skip
from grader.suite import Case

GRADE_S = 50.0  # of an early grade; starting and what is under way then take ten more at most
LOST_S = 20.0  # spent on runs that did not end normally, after which nothing more is run


class Schedule:
    """The cases of a grade in the order of their turns, and the first of them that failed."""

    def __init__(self, cases: Sequence[Case], first: Collection[str] = (),
                 last: Collection[str] = ()) -> None:
        """``cases`` are in the order of the suite; names that none has are passed over.

        Those of ``first`` go before the others, and those of ``last`` after them.
        """
        self._places = {case.name: place for place, case in enumerate(cases)}
        self._suite = list(cases)
        self.cases = sorted(cases, key=lambda case: (case.name not in first, case.name in last))
        self.changed = [case.name for case in self.cases] != list(self._places)
        self._blocks: dict[str, int] = {}  # 0: its launches named none
        self._first_failure = len(self._suite)

    def learn(self, case: Case, block: int | None) -> None:
        """Notes the block that the launches of a case had."""
        self._blocks[case.name] = block or 0

    def block_before(self, case: Case, recorded: Callable[[Case], int | None]) -> int | None:
        """The block that sizes of a case follow; None where no case before it shows one.

        ``recorded`` calls the learner's function for an earlier case and returns its block.
        """
        for earlier in reversed(self._suite[:self._places[case.name]]):
            if earlier.kind is not Kind.CORRECTNESS or earlier.function != case.function:
                continue
            if earlier.name not in self._blocks:
                self.learn(earlier, recorded(earlier))
            if self._blocks[earlier.name]:
                return self._blocks[earlier.name]
        return None

    def leads(self, case: Case) -> bool:
        """Whether it comes before all cases that failed, so that a failure of it is the first."""
        return self._places.get(case.name, 0) < self._first_failure

    @property
    def failed(self) -> bool:
        """Whether a case that counts has failed by now."""
        return self._first_failure < len(self._suite)

    def note(self, result: CaseResult) -> None:
        """Notes a result."""
        if result.fails:
            self._first_failure = min(self._first_failure, self._places[result.name])

    def insert(self, case: Case, listed: Case) -> None:
        """Gives a case that the suite does not list the place of one that it does."""
        self._places[case.name] = self._places[listed.name]

    def sorted(self, results: Sequence[CaseResult]) -> list[CaseResult]:
        """Results in the order of the suite, where they were judged in another one.

        Those that belong to no case of it stay at the end.
        """
        if not self.changed:
            return list(results)
        return sorted(results, key=lambda result: self._places.get(result.name, len(self._suite)))


class Patience:
    """Whether a grade goes on; ``over`` is the reason why the cases that are left are not run."""

    def __init__(self, time_limit: TimeLimit) -> None:
        self._time_limit = time_limit
        self.over = ""
        self.skip = Skip.ENDED

    def check(self) -> None:
        """Ends a grade that has taken its time."""
        if not self.over and self._time_limit.left_s() <= 0:
            self.end()

    def end(self) -> None:
        """Ends a grade whose time did not suffice for what it had begun."""
        self.skip = Skip.TIME
        self.over = f"not run: the grade had reached its limit of {self._time_limit.limit_s:.0f} s"

    def count(self, stop: Stopped, lost_s: float) -> None:
        """Ends a grade whose file cannot be used, or whose runs end abnormally for too long."""
        if stop.final:
            self.over = "not run: the file could not be used"
        elif lost_s > LOST_S:
            self.over = ("not run: earlier cases did not end normally, which took "
                         f"{lost_s:.0f} s")
