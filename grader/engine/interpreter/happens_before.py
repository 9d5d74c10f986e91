"""Orders accesses of programs: an atomic publishes the program's earlier accesses.

A scalar atomic releases what its program did so far and acquires what others released on the same
element: locks, counters and flags work so. Atomics on blocks (a histogram, a split sum) order
nothing. The rule is the happens-before relation of the PTX memory model with every scalar atomic
as acquire and release, unless it says ``sem="relaxed"``.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from grader.engine.interpreter.block_value import Array

Cell = tuple[int, int]  # which storage, which element


@dataclass
class _View:
    """The vector clock of one program, updated by its acquires."""

    done: int = 0  # of its own acquires
    releases: dict[int, int] = field(default_factory=dict)  # of each program, how many it knows
    followed: dict[int, int] = field(default_factory=dict)  # of each program's acquires
    seen: dict[Cell, int] = field(default_factory=dict)  # of each element's releases


@dataclass
class Order:
    """One launch. A *segment* is what a program does between two of its releases.

    Shadows hold numbers of segments. Those up to ``floor`` belong to earlier launches; then comes
    the first segment of every program, then the others in the order in which they began.
    """

    floor: int
    programs: int
    changes: int = 0  # of memory, whoever made them
    locks: set[Cell] = field(default_factory=set)  # a plain store to one of these releases too
    _later: list[tuple[int, int]] = field(default_factory=list)  # (program, its how manyth segment)
    _current: dict[int, int] = field(default_factory=dict)
    _acquired: dict[int, list[tuple[Cell, int]]] = field(default_factory=lambda: defaultdict(list))
    _released: dict[Cell, list[tuple[int, int, int]]] = field(
        default_factory=lambda: defaultdict(list))
    _releases: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    _known: dict[int, _View] = field(default_factory=dict)

    @property
    def last(self) -> int:
        return self.floor + self.programs + len(self._later)

    def segments(self, programs: Array) -> Array:
        """The segment in which each program is now."""
        now: Array = (programs + (self.floor + 1)).astype(np.int32)
        if self._current:
            for row, program in enumerate(programs.tolist()):
                now[row] = self._current.get(program, now[row])
        return now

    def owners(self, segments: Array) -> Array:
        """The programs of segments of this launch."""
        number: Array = segments.astype(np.int64) - (self.floor + 1)
        late = number >= self.programs
        if late.any():
            table = np.array([program for program, _ in self._later])
            number[late] = table[number[late] - self.programs]
        return number

    def owned(self, segment: int) -> tuple[int, int]:
        """The program of a segment of this launch, and how many releases lie before it."""
        number = segment - (self.floor + 1)
        return (number, 0) if number < self.programs else self._later[number - self.programs]

    def acquire(self, program: int, cell: Cell) -> Callable[[], None]:
        """A program sees what was released on an element. Returns what undoes it."""
        self._acquired[program].append((cell, len(self._released[cell])))

        def undo() -> None:
            self._acquired[program].pop()
            self._known.clear()

        return undo

    def release(self, program: int, cell: Cell) -> Callable[[], None]:
        """A program publishes on an element what it did so far. Returns what undoes it."""
        before = self._current.get(program)
        self._releases[program] += 1
        self._released[cell].append(
            (program, len(self._acquired[program]), self._releases[program]))
        self._later.append((program, self._releases[program]))
        self._current[program] = self.last

        def undo() -> None:
            self._released[cell].pop()
            self._later.pop()
            self._releases[program] -= 1
            if before is None:
                del self._current[program]
            else:
                self._current[program] = before
            self._known.clear()

        return undo

    def knows(self, cell: Cell) -> bool:
        """Whether programs synchronize on it."""
        return cell in self._released

    @property
    def parted(self) -> bool:
        """Whether any program has more than one segment."""
        return bool(self._later)

    def before(self, segment: int, program: int) -> bool:
        """Whether a segment of another program was released to this one."""
        if not self._acquired.get(program):
            return False
        owner, which = self.owned(segment)
        return self._what_is_known_to(program).get(owner, 0) > which

    def _what_is_known_to(self, program: int) -> dict[int, int]:
        """For other programs, how many of their releases came before.

        What was followed once is not followed again: a release holds for ever.
        """
        view = self._known.get(program)
        if view is None:
            view = self._known[program] = _View()
        acquired = self._acquired[program]
        open_ends = acquired[view.done:]
        view.done = len(acquired)
        while open_ends:
            cell, position = open_ends.pop()
            start = view.seen.get(cell, 0)
            if position <= start:
                continue
            view.seen[cell] = position
            for other, acquires, releases in self._released[cell][start:position]:
                view.releases[other] = max(view.releases.get(other, 0), releases)
                done = view.followed.get(other, 0)
                if acquires > done:
                    open_ends += self._acquired[other][done:acquires]
                    view.followed[other] = acquires
        return view.releases

