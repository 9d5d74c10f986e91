"""A group of programs that run at once, and how to undo what they did so far."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from grader.engine.interpreter.handle import Array
from grader.engine.interpreter.observed import Note, Observations
from grader.engine.interpreter.races import Order
from grader.engine.interpreter.traffic import Ledger

_MANY_POLLS = 64  # in one turn; a loop that reads more does not just wait
_PATIENCE = 200  # turns of a loop that polls the same values and sees no change


class Diverged(BaseException):
    """The programs of a group go different ways; ``labels`` tells which of them go together."""

    def __init__(self, labels: Array) -> None:
        super().__init__("programs diverge")
        self.labels = labels


@dataclass(frozen=True)
class Poll:
    """A loop read ``value`` at one place; ``changed`` tells whether another one is there now."""

    what: str  # the place, in words
    line: int | None
    index: int
    value: bytes
    changed: Callable[[], bool] = field(compare=False)


class Spinning(BaseException):
    """A loop waits for what no program of the group will do."""

    def __init__(self, poll: Poll) -> None:
        super().__init__(poll.what)
        self.poll = poll


@dataclass
class Attempt:
    """``programs``: numbers of the group, in the order in which their atomics take place."""

    programs: Array
    segments: Array  # of each program, as the shadows note them
    order: Order
    ledger: Ledger = field(default_factory=Ledger)
    notes: list[Note] = field(default_factory=list)
    stored: Array = field(init=False)  # which programs stored anything
    axes: set[int] = field(default_factory=set)  # along which the kernel asked for its place
    largest: int = 1  # elements of the largest block, of one program
    _undo: list[Callable[[], None]] = field(default_factory=list)
    _changes: int = 0
    looping: bool = False  # a ``while`` is or was running
    _polls: list[Poll] = field(default_factory=list)
    _before: tuple[int, list[Poll]] = field(default_factory=lambda: (0, []))
    _turns: int = 0

    def __post_init__(self) -> None:
        self.stored = np.zeros(len(self.programs), np.bool_)

    @property
    def count(self) -> int:
        return len(self.programs)

    def count_product(self, flops: int) -> None:
        self.ledger.flops += flops * self.count

    # -- undo ----------------------------------------------------------------------------------

    def undo_with(self, action: Callable[[], None]) -> None:
        self._undo.append(action)

    def remember(self, place: Any, flat: Array) -> None:
        """Keep what stands at a place of an array before it is overwritten."""
        self._undo.append(partial(place.write, flat, place.read(flat)))

    def roll_back(self) -> None:
        """Memory, shadows and order as they were before; what was counted is dropped."""
        for action in reversed(self._undo):
            action()

    def commit(self, ledger: Ledger, observed: Observations) -> None:
        ledger.merge(self.ledger)
        for note in self.notes:
            observed.note(note)

    # -- loops that wait -----------------------------------------------------------------------

    def changed(self) -> None:
        """Some value in memory is another one now."""
        self._changes += 1

    def polled(self, poll: Poll) -> None:
        """A loop read a value; it may be waiting for another one."""
        if len(self._polls) < _MANY_POLLS:
            self._polls.append(poll)

    def another_turn(self) -> None:
        """A ``while`` goes round once more.

        Raises:
            Spinning: it has read the same values again and again, and nothing changed.
        """
        self.looping = True
        now = (self._changes, self._polls)
        same = bool(self._polls) and now == self._before
        self._turns = self._turns + 1 if same else 0
        self._before, self._polls = now, []
        if self._turns > _PATIENCE:
            raise Spinning(now[1][-1])


def line_in(file: str) -> int | None:
    """The line of the learner's file that is being executed: the innermost frame in it."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return int(frame.f_lineno)
        frame = frame.f_back
    return None
