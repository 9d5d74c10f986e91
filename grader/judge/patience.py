"""Patience: when a grade runs nothing more, and why."""

from __future__ import annotations

import time

from grader.processes.replies import Stopped

PATIENCE_S = 60.0  # a learner's: then a submission that has failed already is not run any further
LOST_S = 20.0  # spent on runs that did not end normally, after which nothing more is run


class Patience:
    """Whether a grade goes on; ``over`` is the reason why the cases that are left are not run."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self.over = ""

    def check(self) -> None:
        """End a grade that takes long; only one that has failed already is ended."""
        if not self.over and time.monotonic() - self._started > PATIENCE_S:
            self.over = f"not run: {PATIENCE_S:.0f} s had passed, and a case before it had failed"

    def count(self, stop: Stopped, lost_s: float) -> None:
        """End a grade whose file cannot be used, or whose runs end abnormally for too long."""
        if stop.final:
            self.over = "not run: the file could not be used"
        elif lost_s > LOST_S:
            self.over = ("not run: cases before it did not end normally, which took "
                         f"{lost_s:.0f} s")
