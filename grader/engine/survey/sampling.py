"""Runs a few programs of a launch for the addresses alone: no values, no shadows, nothing stored.

Tensors may have any size, since nothing of them is touched: what is loaded is zero, but for the
few tensors whose values are known (indices). A loop of many turns is cut: its first turns and its
last one run, and what they do counts for all of them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from grader.engine.interpreter.attempt import (
    Attempt,
    Diverged,
    Poll,
    line_in,
    of_all_programs,
)
from grader.engine.interpreter.checks import Checks
from grader.engine.interpreter.errors import explain
from grader.engine.interpreter.handle import Array, Handle
from grader.engine.interpreter.install import installed
from grader.engine.interpreter.launch import bind
from grader.engine.interpreter.memory import LOCKS, Memory
from grader.engine.interpreter.regions import Part, Region
from grader.engine.interpreter.rewrite import rewritten
from grader.engine.interpreter.traffic import Key, Ledger
from grader.report import Finding


class TooLong(BaseException):
    """The time for a launch is over."""


class Stopped(Exception):
    """A program of the launch could not go on."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.seen)
        self.finding = finding


@dataclass(frozen=True)
class Access:
    """One access of a group of programs.

    ``first`` and ``nbytes`` are runs of bytes in the storage (one length for all, or one each),
    ``rows`` whose they are. With ``alike`` every program does the same. ``weight``: how many turns
    of loops it stands for, one number or one a program; ``nest``: the cut loops around it, each
    with the weight that it adds.
    """

    key: Key
    first: Array
    nbytes: Any
    rows: Array
    alike: bool
    itemsize: int
    weight: Any
    nest: tuple[tuple[int, float], ...]


class Trail(Ledger):
    """What a group of programs did, access after access."""

    def __init__(self, programs: int, deadline: float) -> None:
        super().__init__()
        self.programs = programs
        self.accesses: list[Access] = []
        self.visits: dict[tuple[int | None, str, tuple[str, ...]], float] = {}
        self.products = 0.0  # multiplications and additions of tl.dot, over all programs
        self.weight: Any = 1.0
        self.nest: tuple[tuple[int, float], ...] = ()
        self.loops = 0
        self._deadline = deadline

    def count(self, key: Key, tensor: str, storage_bytes: int, first: Array, nbytes: Any,
              rows: Array, programs: int, itemsize: int) -> None:
        self.check_time()
        self.accesses.append(Access(key, first, nbytes, rows, programs > 1, itemsize, self.weight,
                                    self.nest))

    def count_product(self, flops: int) -> None:
        self.products += flops * float(np.mean(self.weight))

    def visit(self, key: tuple[int | None, str, tuple[str, ...]]) -> None:
        weight = self.weight if np.ndim(self.weight) else np.array([self.weight] * self.programs)
        self.visits[key] = self.visits.get(key, 0.0) + float(np.sum(weight))

    def merge(self, other: Ledger) -> None:
        """Trails stay apart: each is read by itself."""

    def check_time(self) -> None:
        if time.process_time() > self._deadline:
            raise TooLong


class _Timed(Attempt):
    def another_turn(self, frame: FrameType) -> None:
        if isinstance(self.ledger, Trail):
            self.ledger.check_time()
        super().another_turn(frame)


class _BoundsOnly(Checks):
    """Nobody's values are looked at, so nobody notes who stored them."""

    def load(self, *_: Any, **__: Any) -> None:
        pass

    def store(self, *_: Any, **__: Any) -> None:
        pass

    def change(self, *_: Any, **__: Any) -> None:
        pass

    def set_writers(self, *_: Any, **__: Any) -> None:
        pass


class Addresses(Memory):
    """A memory that is never touched, but for storages in ``known`` (by id), which are read.

    ``turns_run``: of a loop, at most. ``trial``: values that are not known are not zero but drawn
    from it, to see whether addresses depend on them.
    """

    computes = False
    attempt_kind = _Timed

    def __init__(self) -> None:
        super().__init__()
        self.checks = _BoundsOnly(self)
        self.known: set[int] = set()
        self.turns_run = 9
        self.deadline = float("inf")
        self.trial: np.random.Generator | None = None

    @property
    def trail(self) -> Trail:
        trail = self.attempt.ledger
        assert isinstance(trail, Trail)
        return trail

    def try_with(self, programs: Array) -> Attempt:
        attempt = super().try_with(programs)
        attempt.ledger = Trail(len(programs), self.deadline)
        return attempt

    def turns(self, counts: Array) -> Iterator[Any]:
        trail = self.trail
        turns = int(of_all_programs(np.minimum(counts, self.turns_run)))
        if (counts == turns).all():
            for turn in range(turns):
                trail.check_time()
                yield turn
            return
        before, nest = trail.weight, trail.nest
        stands_for = (counts - 1) / (turns - 1)
        weight = stands_for if len(counts) > 1 else float(stands_for[0])
        trail.loops += 1
        loop = trail.loops
        try:
            trail.weight = before * weight
            trail.nest = (*nest, (loop, float(np.mean(weight))))
            for turn in range(turns - 1):
                trail.check_time()
                yield turn
            trail.weight = before
            yield counts - 1
        finally:
            trail.weight, trail.nest = before, nest

    def _read(self, parts: Sequence[Part], mask: Handle | None, other: Handle | None,
              dtype: np.dtype[Any], rows: int, shape: tuple[int, ...]) -> Array:
        if parts and all(id(part.region.storage) in self.known for part in parts):
            return super()._read(parts, mask, other, dtype, rows, shape)
        return self._unknown(dtype, shape)

    def _unknown(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """The same number everywhere."""
        value: Any = 0
        if self.trial is not None:
            value = bool(self.trial.integers(2)) if dtype.kind == "b" else (
                int(self.trial.integers(1, 100)) if dtype.kind in "iu"
                else float(self.trial.normal()) * 10)
        return np.full((1,) * (len(shape) + 1), value, dtype)

    def _described(self, part: Part, line: int | None, data: Array) -> Poll:
        return Poll(f"`{part.region.name}`", line, int(part.place.starts[0]), data.tobytes(),
                    lambda: False)

    def _write(self, part: Part, values: Array, line: int | None, *, scalar: bool) -> None:
        pass

    def _atomic(self, operation: str, pointers: Handle, mask: Handle | None, value: Handle,
                change: Any, ordered: bool) -> Handle:
        running = self.running
        dtype, line = value.data.dtype, line_in(running.file)
        parts = running.regions.parts(
            pointers, mask, running.count, dtype.itemsize,
            partial(self.checks.outside, "changed", line, running.count))
        self._count("atomic", line, parts, dtype.itemsize, running.count)
        result = np.zeros((1,) * (len(pointers.shape) + 1), dtype)
        if operation not in LOCKS:  # a lock is found open
            result = self._unknown(dtype, pointers.shape)
        return Handle(result, value.dtype, pointers.shape)

    def _count(self, kind: str, line: int | None, parts: Sequence[Part], itemsize: int,
               rows: int) -> None:
        self.trail.visit((line, kind, tuple(part.region.name for part in parts)))
        super()._count(kind, line, parts, itemsize, rows)


Groups = list[tuple[Array, Trail]]


@dataclass
class Sampler:
    """One launch on a memory of addresses; ``run`` lets any of its programs run."""

    kernel: Any
    memory: Addresses
    call: Callable[[], Any]

    @classmethod
    def of(cls, kernel: Any, grid: tuple[int, int, int], arguments: Mapping[str, Any],
           memory: Addresses) -> Sampler:
        """Raises:
            Stopped: an argument that no kernel can get.
        """
        file = kernel.fn.__code__.co_filename
        memory.begin(grid, file)
        with installed(memory):
            try:
                body = rewritten(kernel.fn)
                bound = bind(kernel, arguments, memory)
            except Exception as error:
                raise Stopped(explain(error, file, kernel.fn.__name__)) from error
        return cls(kernel, memory, lambda: body(**bound))

    def region(self, number: int) -> Region:
        return self.memory.running.regions.numbered(number)

    def run(self, programs: Array, *, silent: bool = False) -> Groups:
        """Trails of groups of programs that go the same way, with their numbers.

        Raises:
            Stopped: a program fails.
            Spinning: programs wait for others.
            TooLong: it takes too long.
        """
        memory, file = self.memory, self.kernel.fn.__code__.co_filename
        done: Groups = []
        groups = deque([programs])
        with installed(memory):
            while groups:
                group = groups.popleft()
                attempt = memory.try_with(group)
                try:
                    self.call()
                except Diverged as apart:
                    _, which = np.unique(apart.labels, return_inverse=True)
                    which = which.reshape(-1)
                    groups.extendleft(group[which == label] for label in range(which.max() + 1))
                except Exception as error:
                    raise Stopped(explain(error, file, self.kernel.fn.__name__)) from error
                else:
                    done.append((group, memory.trail))
                    if not silent:
                        for note in attempt.notes:
                            memory.observed.note(note)
        return done
