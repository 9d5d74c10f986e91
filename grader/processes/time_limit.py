"""The time that one grade may take."""

from __future__ import annotations

import math
import time

PATIENT = 3  # times the limit that are added at most while processes waited for a CPU


class OutOfTime(Exception):
    """The grade has taken its time; what is not decided yet stays undecided."""


class TimeLimit:
    """The seconds of a grade. Those in which its processes waited for a CPU do not count.

    So a busy machine decides nothing that an idle one does not.
    """

    def __init__(self, limit_s: float = math.inf) -> None:
        self.limit_s = limit_s
        self._started, self._starved_s = time.monotonic(), 0.0

    def left_s(self) -> float:
        """Seconds that are left, negative once it is over."""
        granted = min(max(0.0, self._starved_s), PATIENT * self.limit_s)
        return self._started + self.limit_s + granted - time.monotonic()

    def starved(self, seconds: float) -> None:
        """Counts seconds in which a process that was waited for had no CPU."""
        self._starved_s += seconds

    def bound(self, seconds: float) -> float:
        """The time of a request, cut to what is left.

        Raises:
            OutOfTime: nothing is left.
        """
        left = self.left_s()
        if left <= 0:
            raise OutOfTime
        return min(seconds, left)

    def lift(self) -> None:
        """Takes the limit away."""
        self.limit_s = math.inf
