"""A group of programs that run at once: what was observed, and how to undo what they did."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import msgspec
import numpy as np
import triton.language as tl

from grader import text
from grader.engine.interpreter.address_space import Regions
from grader.engine.interpreter.barrier_check import Recent
from grader.engine.interpreter.block_value import Array, Handle
from grader.engine.interpreter.happens_before import Order
from grader.engine.interpreter.traffic import Ledger
from grader.finding import MemoryAccess
from grader.report import Finding

_MANY_POLLS = 64  # in one turn; a loop that reads more does not just wait
_PATIENCE = 500  # turns of a loop that reads the same values, before others may go on
_KEPT_PROGRAMS = 1 << 16  # more are counted as "at least" so many


class Diverged(BaseException):
    """The programs of a group go different ways; ``labels`` tells which of them go together."""

    def __init__(self, labels: Array) -> None:
        super().__init__("programs diverge")
        self.labels = labels


def of_all_programs(values: Any) -> Any:
    """The value that all programs have.

    Raises:
        Diverged: they have different ones.
    """
    first = values[0]
    if len(values) > 1 and (values != first).any():
        raise Diverged(values)
    return first


@dataclass(frozen=True)
class Poll:
    """A loop read ``value`` at one place; ``changed`` tells whether another one is there now."""

    place: str  # in words; empty for a loop that reads nothing
    line: int | None
    index: int
    value: bytes
    changed: Callable[[], bool] = field(compare=False)


class Spinning(BaseException):
    """A loop waits for what no program of the group will do."""

    def __init__(self, poll: Poll) -> None:
        super().__init__(poll.place)
        self.poll = poll


@dataclass(frozen=True)
class Note:
    """One event: the same at one place of the source, on one tensor, by one or more programs.

    ``access`` is that of the first of ``programs``.
    """

    code: str
    line: int | None
    access: MemoryAccess
    programs: frozenset[int]


class Observations:
    """Collects events; of several programs, the access of the first in numbering order stays."""

    def __init__(self) -> None:
        self._accesses: dict[tuple[str, int | None, str, str], tuple[MemoryAccess, set[int]]] = {}
        self._plain: dict[tuple[str, int | None, str], Finding] = {}

    def note(self, note: Note) -> None:
        key = (note.code, note.line, note.access.tensor, note.access.kind)
        if key not in self._accesses:
            self._accesses[key] = (note.access, set(note.programs))
            return
        access, programs = self._accesses[key]
        if len(programs) < _KEPT_PROGRAMS:
            programs |= note.programs
        if note.access.program < access.program:
            access = note.access
        elif note.access.program == access.program:
            access = msgspec.structs.replace(access, count=access.count + note.access.count)
        self._accesses[key] = (access, programs)

    def add(self, finding: Finding) -> None:
        self._plain.setdefault((finding.code, finding.line, finding.seen), finding)

    def findings(self) -> list[Finding]:
        accesses = [
            Finding(code, msgspec.structs.replace(access, others=len(programs) - 1), line=line)
            for (code, line, _, _), (access, programs) in self._accesses.items()
        ]
        return [*accesses, *self._plain.values()]


@dataclass(frozen=True)
class _Turn:
    """The state of a loop at the end of one iteration."""

    place: tuple[int, int]
    changes: int
    variables: tuple[tuple[str, Any], ...]
    polls: list[Poll]

    def poll(self, order: Order) -> Poll:
        if self.polls:
            return self.polls[-1]
        return Poll("", self.place[1], 0, b"", lambda: order.changes != self.changes)


@dataclass
class Attempt:
    """``programs``: numbers of the group, in the order in which their atomics take place."""

    programs: Array
    segments: Array  # of each program, as the shadows note them
    order: Order
    ledger: Ledger = field(default_factory=Ledger)
    notes: list[Note] = field(default_factory=list)
    stored: Array = field(init=False)  # which programs stored anything
    recent: Recent = field(default_factory=Recent)  # what their threads may not all see yet
    axes: set[int] = field(default_factory=set)  # along which the kernel asked for its place
    largest: int = 1  # elements of the largest block, of one program
    looping: bool = False  # a ``while`` is or was running
    others: bool = False  # whether more programs can run before these
    on_wait: Callable[[Poll, bool], None] | None = None  # hands over to other programs
    undo: list[Callable[[], None]] = field(default_factory=list)
    _polls: list[Poll] = field(default_factory=list)
    _last: _Turn | None = None
    _alike: int = 0  # turns in a row that read the same

    def __post_init__(self) -> None:
        self.stored = np.zeros(len(self.programs), np.bool_)

    @property
    def count(self) -> int:
        return len(self.programs)

    def roll_back(self) -> None:
        """Restores memory, shadows and order as they were before; what was counted is dropped."""
        for action in reversed(self.undo):
            action()

    def commit(self, ledger: Ledger, observed: Observations) -> None:
        ledger.merge(self.ledger)
        for note in self.notes:
            observed.note(note)

    # -- loops that wait -----------------------------------------------------------------------

    def polled(self, poll: Poll) -> None:
        """A loop read a value; it may be waiting for another one."""
        if len(self._polls) < _MANY_POLLS:
            self._polls.append(poll)

    def another_turn(self, frame: FrameType) -> None:
        """A ``while`` goes round once more; ``frame`` is where it stands.

        A turn that changed neither memory nor a variable will be followed by others like it: only
        another program can end the loop. A loop that counts its turns may end by itself, so it is
        interrupted only where others can run meanwhile.

        Raises:
            Spinning: the loop waits.
        """
        self.looping = True
        now = _Turn((id(frame.f_code), frame.f_lineno), self.order.changes,
                    tuple((name, value) for name, value in frame.f_locals.items()
                          if not name.startswith("__tritonlab_")), self._polls)
        before, self._last, self._polls = self._last, now, []
        if before is None or before.place != now.place or before.changes != now.changes:
            self._alike = 0
        elif _equal(before.variables, now.variables):
            self.wait(now.poll(self.order), for_ever=True)
        else:
            self._alike = self._alike + 1 if now.polls and now.polls == before.polls else 0
            if self._alike > _PATIENCE and self.others:
                self._alike = 0
                self.wait(now.poll(self.order), for_ever=False)

    def wait(self, poll: Poll, *, for_ever: bool) -> None:
        """Let others go on.

        Raises:
            Spinning: there is nobody to hand over to from here.
        """
        if self.on_wait is None:
            raise Spinning(poll)
        self.on_wait(poll, for_ever)


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    x, y = getattr(a, "handle", None), getattr(b, "handle", None)
    if isinstance(x, Handle) and isinstance(y, Handle):
        return x.data is y.data or (
            x.data.shape == y.data.shape and x.data.tobytes() == y.data.tobytes())
    if isinstance(a, tuple | tl.tuple) and isinstance(b, tuple | tl.tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return type(a) is type(b) and isinstance(a, int | float | str) and a == b


def line_in(file: str) -> int | None:
    """The line of the learner's file that is being executed: the innermost frame in it."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return int(frame.f_lineno)
        frame = frame.f_back
    return None


@dataclass
class RunningLaunch:
    """The launch that is running, and the group of programs whose turn it is."""

    grid: tuple[int, int, int]
    file: str  # the kernel's source; findings give lines of this file
    number: int  # of the launch
    order: Order
    attempt: Attempt
    regions: Regions
    warps: int = 4  # of each program; one alone issues in order
    ledger: Ledger = field(default_factory=Ledger)
    watched: set[int] = field(default_factory=set)  # storages whose readers are noted, by id
    idle: int = 0  # programs that ended and stored nothing

    @property
    def all_programs(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def place_along(self, axis: int) -> Array:
        """The programs' places along one axis of the grid."""
        place: Array = np.unravel_index(self.attempt.programs, self.grid, order="F")[axis]
        return place.astype(np.int32)

    def place(self, program: int) -> str:
        return text.program(program, self.grid)
