"""Runs a few programs of a launch for the addresses alone: no values, no shadows, nothing stored.

Tensors may have any size, since nothing of them is touched: what is loaded is zero, but for the
few tensors whose values are known (indices). A loop of many turns is cut: its first turns and its
last one run, and what they do counts for all of them.
"""

import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from grader.engine.dram_model.warp_requests import requests_of
from grader.engine.interpreter.address_space import Part, Region
from grader.engine.interpreter.block_value import Array, Handle
from grader.engine.interpreter.errors import explain
from grader.engine.interpreter.launch import bind
from grader.engine.interpreter.memory import LOCKS, Memory
from grader.engine.interpreter.memory_checks import Checks, MemoryInstruction
from grader.engine.interpreter.patch_triton import installed
from grader.engine.interpreter.rewrite import rewritten
from grader.engine.interpreter.source_blocks import SourceBlock, statement_of
from grader.engine.interpreter.traffic import Key, Ledger
from grader.engine.interpreter.transaction import (
    Attempt,
    Diverged,
    Poll,
    line_in,
    of_all_programs,
)
from grader.recording.compiled_kernel import AccessLayout
from grader.report import Refusal

_CHUNK_COST = 1 << 22  # of programs that run at once; with few, Python takes most of the time
_LOOKED_AT = 16  # programs of a group whose requests are counted
_RUN_COST = 8  # elements that take as long as one run of contiguous bytes
Calls = tuple[int, ...]
"""First and last line of each statement of the kernel's file that calls, the outermost first."""
TURNS = (9, 5, 3)  # iterations of a loop that is cut


class TooLong(BaseException):
    """The time for a launch is used up."""


class SamplingStopped(Refusal):
    """A program of the launch failed; ``finding`` has the reason."""


@dataclass(frozen=True)
class SampledAccess:
    """One access of a group of programs, as runs of bytes in the storage."""

    key: Key
    first: Array  # byte of each run
    nbytes: Array  # of each run
    rows: Array  # the program that each run belongs to
    alike: bool  # all programs have the same runs
    itemsize: int
    weight: Array  # iterations of loops that the access represents, for each program
    nest: tuple[tuple[int, float], ...]  # cut loops around it, and how each multiplies the weight


class Trail(Ledger):
    """The accesses of a group of programs, in order."""

    def __init__(self, programs: int, deadline: float) -> None:
        super().__init__()
        self.programs = programs
        self.accesses: list[SampledAccess] = []
        self.visits: dict[tuple[int | None, str, tuple[str, ...]], float] = {}
        self.passes: dict[tuple[Calls, SourceBlock], float] = {}  # executions by all programs
        # requests of warps, their sectors, lines and bytes, of all programs
        self.requests: dict[Key, Array] = {}
        self.products = 0.0  # FLOP of tl.dot, over all programs
        self.weight: Any = 1.0
        self.nest: tuple[tuple[int, float], ...] = ()
        self.loops = 0
        self._deadline = deadline

    def count(self, key: Key, tensor: str, first: Array, nbytes: Any, rows: Array, programs: int,
              itemsize: int) -> None:
        self.check_time()
        self.accesses.append(SampledAccess(
            key, first, np.broadcast_to(nbytes, first.shape), rows, programs > 1, itemsize,
            np.broadcast_to(np.asarray(self.weight, float), (self.programs,)), self.nest))

    def count_product(self, flops: int) -> None:
        self.products += flops * float(np.mean(self.weight))

    def visit(self, key: tuple[int | None, str, tuple[str, ...]]) -> None:
        weight = np.broadcast_to(self.weight, (self.programs,))
        self.visits[key] = self.visits.get(key, 0.0) + float(weight.sum())

    def passed(self, calls: Calls, blocks: Sequence[SourceBlock], number: int) -> None:
        """Counts a block of a function, which calls reach; those that do not run count 0."""
        if not number:
            for block in blocks:
                self.passes.setdefault((calls, block), 0.0)
        weight = np.broadcast_to(self.weight, (self.programs,))
        self.passes[calls, blocks[number]] += float(weight.sum())

    def request(self, key: Key, counts: Array) -> None:
        """Counts what one program requests; others of the group do alike."""
        weight = np.broadcast_to(self.weight, (self.programs,))
        self.requests[key] = self.requests.get(key, np.zeros(4)) + counts * weight.sum()

    def merge(self, other: Ledger) -> None:
        """Does nothing: each trail is read by itself."""

    def check_time(self) -> None:
        if time.process_time() > self._deadline:
            raise TooLong


class _Timed(Attempt):
    def another_turn(self, frame: FrameType) -> None:
        if isinstance(self.ledger, Trail):
            self.ledger.check_time()
        super().another_turn(frame)


class _BoundsOnly(Checks):
    """Checks bounds only: values and their writers are not tracked."""

    load = store = change = set_writers = staticmethod(lambda *_, **__: None)


class Addresses(Memory):
    """A memory without values, except of known storages, which are read."""

    computes = False
    attempt_kind = _Timed
    checks_kind = _BoundsOnly

    def __init__(self) -> None:
        super().__init__()
        self.known: set[int] = set()  # ids of storages
        self.turns_run = TURNS[0]  # most iterations of a loop that are run
        self.deadline = float("inf")
        self.layouts: Mapping[tuple[int | None, str, tuple[int, ...]], AccessLayout] = {}
        self.counts_requests = False
        # unknown values are drawn from it instead of being zero: addresses may depend on them
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

    def passed(self, blocks: Sequence[SourceBlock], number: int) -> None:
        frame, file = sys._getframe(2), self.running.file
        if frame.f_code.co_filename != file:
            return  # a function of the library runs as often as its caller's block
        calls: list[int] = []
        while frame.f_back is not None and (frame := frame.f_back).f_code.co_filename != __file__:
            if frame.f_code.co_filename == file:
                calls[:0] = statement_of(file, frame.f_lineno)
        self.trail.passed(tuple(calls), blocks, number)

    def load(self, pointers: Handle, mask: Handle | None, other: Handle | None, *,
             volatile: bool = False) -> Handle:
        with self._requested("load", pointers, mask):
            return super().load(pointers, mask, other, volatile=volatile)

    def store(self, pointers: Handle, mask: Handle | None, value: Handle) -> None:
        with self._requested("store", pointers, mask):
            super().store(pointers, mask, value)

    @contextmanager
    def _requested(self, kind: str, pointers: Handle, mask: Handle | None) -> Iterator[None]:
        """Counts the requests of an access; within the block, none are counted."""
        if not self.counts_requests:
            yield
            return
        self._request(kind, pointers, mask)
        self.counts_requests = False  # a turned block is accessed by the same method
        try:
            yield
        finally:
            self.counts_requests = True

    def _request(self, kind: str, pointers: Handle, mask: Handle | None) -> None:
        line = line_in(self.running.file)
        layout = self.layouts.get((line, kind, tuple(pointers.shape)))
        region = self.running.regions.of(pointers.first)
        if layout is None or region is None:
            return
        # the middle of each part: the last program, which is often masked, stands for itself alone
        rows = sorted({(2 * part + 1) * self.attempt.count // (2 * _LOOKED_AT)
                       for part in range(_LOOKED_AT)})
        counts = requests_of(layout, pointers, mask, rows)
        if counts is not None:
            self.trail.request(Key(line, kind, region.number), counts)

    def _read(self, parts: Sequence[Part], mask: Handle | None, other: Handle | None,
              dtype: np.dtype[Any], rows: int, shape: tuple[int, ...]) -> Array:
        if parts and all(id(part.region.storage) in self.known for part in parts):
            return super()._read(parts, mask, other, dtype, rows, shape)
        return self._unknown(dtype, shape)

    def _unknown(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """A block with one number, zero outside trials."""
        value: Any = 0
        if self.trial is not None:
            value = bool(self.trial.integers(2)) if dtype.kind == "b" else (
                int(self.trial.integers(1, 100)) if dtype.kind in "iu"
                else float(self.trial.normal()) * 10)
        return np.full((1,) * (len(shape) + 1), value, dtype)

    def _described(self, part: Part, line: int | None, data: Array) -> Poll:
        return Poll(f"`{part.region.name}`", line, int(part.place.starts[0]), data.tobytes(),
                    lambda: False)

    def _write(self, part: Part, values: Array, access: MemoryInstruction, *,
               scalar: bool) -> None:
        pass

    def atomic(self, operation: str, pointers: Handle, mask: Handle | None, value: Handle, *,
               ordered: bool, compare: Handle | None = None) -> Handle:
        dtype = value.data.dtype
        if self.counts_requests:
            self._request("atomic", pointers, mask)
        access, parts = self._located("atomic", pointers, mask, dtype, self.attempt.count)
        self._count(access, parts)
        result = np.zeros((1,) * (len(pointers.shape) + 1), dtype)
        if operation not in LOCKS:  # a lock is found open
            result = self._unknown(dtype, pointers.shape)
        return Handle(result, value.dtype, pointers.shape)

    def _count(self, access: MemoryInstruction, parts: Sequence[Part]) -> None:
        self.trail.visit((access.line, access.kind, tuple(part.region.name for part in parts)))
        super()._count(access, parts)


Groups = list[tuple[Array, Trail]]


class Sampler:
    """One launch on a memory of addresses; ``run`` runs any of its programs."""

    def __init__(self, kernel: Any, grid: tuple[int, int, int], arguments: Mapping[str, Any],
                 memory: Addresses, layouts: Iterable[AccessLayout] = ()) -> None:
        """Raises:
            SamplingStopped: an argument is of no type that a kernel takes.
        """
        memory.layouts = {(one.line, one.kind, one.shape): one for one in layouts}
        self.memory, self._function = memory, kernel.fn
        memory.begin(grid, kernel.fn.__code__.co_filename)
        with self._installed():
            self._call = partial(rewritten(kernel.fn), **bind(kernel, arguments, memory))

    @contextmanager
    def _installed(self) -> Iterator[None]:
        """Lets kernels run on the memory; their exceptions become SamplingStopped."""
        with installed(self.memory):
            try:
                yield
            except Exception as error:
                raise SamplingStopped(explain(error, self._function.__code__.co_filename,
                                              self._function.__name__)) from error

    def region(self, number: int) -> Region:
        return self.memory.running.regions.numbered(number)

    def run(self, programs: Array, *, silent: bool = False) -> Groups:
        """Runs programs; those that take the same branches are one group with one trail.

        Raises:
            SamplingStopped: a program fails.
            Spinning: programs wait for others.
            TooLong: the deadline has passed.
        """
        done: Groups = []
        groups = deque([programs])
        self.memory.counts_requests = not silent
        with self._installed():
            while groups:
                group = groups.popleft()
                attempt = self.memory.try_with(group)
                try:
                    self._call()
                except Diverged as apart:
                    _, which = np.unique(apart.labels, return_inverse=True)
                    which = which.reshape(-1)
                    groups.extendleft(group[which == label] for label in range(which.max() + 1))
                    continue
                done.append((group, self.memory.trail))
                for note in () if silent else attempt.notes:
                    self.memory.observed.note(note)
        return done


# ---------------------------------------------------------------------------------------------
# Cost: elements that programs compute, so that samples of cheap and of dear programs take as long


def in_chunks(sampler: Sampler, programs: Array, cost: float, *, silent: bool = False) -> Groups:
    """Runs programs of a known cost, as many at once as keep the memory small."""
    chunk = max(1, int(_CHUNK_COST / cost))
    return [pair for at in range(0, len(programs), chunk)
            for pair in sampler.run(programs[at:at + chunk], silent=silent)]


def cost_of_one(sampler: Sampler, programs: int, wanted: float) -> float | None:
    """The cost of one program in elements; None where a program takes too long.

    Leaves ``turns_run`` at the most iterations of a loop with which the cost is at most ``wanted``,
    or at the fewest.
    """
    cost = None
    for turns in TURNS:
        sampler.memory.turns_run = turns
        try:
            groups = sampler.run(np.array([programs // 2]), silent=True)
        except TooLong:
            continue
        # the elements that a program accesses, and the runs of bytes that are kept of it
        cost = max(1.0, sum(int(access.nbytes.sum()) // access.itemsize
                            + _RUN_COST * len(access.first)
                            for _, trail in groups for access in trail.accesses))
        if cost <= wanted:
            break
    return cost
