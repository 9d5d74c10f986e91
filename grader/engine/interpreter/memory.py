"""The memory that kernels see: every access is checked, noted and counted before it happens."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import triton.language as tl

from grader.engine.interpreter import atomics
from grader.engine.interpreter.address_space import Finder, Part, Regions
from grader.engine.interpreter.block_value import Array, Handle, contiguous_axis, spread, turned
from grader.engine.interpreter.happens_before import Cell, Order
from grader.engine.interpreter.index_runs import Runs
from grader.engine.interpreter.memory_checks import Checks, MemoryInstruction
from grader.engine.interpreter.numerics import numpy_dtype
from grader.engine.interpreter.poison import masked_lane
from grader.engine.interpreter.shadow_memory import LEAST_SEGMENT
from grader.engine.interpreter.source_blocks import SourceBlock
from grader.engine.interpreter.traffic import Key
from grader.engine.interpreter.transaction import (
    Attempt,
    Diverged,
    Observations,
    Poll,
    RunningLaunch,
    line_in,
    of_all_programs,
)
from grader.recording.model import MAX_PRINTED, MAX_PRINTED_LINE

_NONE = np.zeros(0, np.int64)  # programs
LOCKS = ("CAS", "XCHG")  # atomics that locks are made of


class Memory:
    """All storages of a recording, and what was observed on them.

    ``determined``: nothing seen so far could be different in another run of the same launches. No
    element was loaded whose value is undefined, and no atomic let programs depend on their order;
    what else could make them depend on it (or on uninitialized memory) is a finding.
    """

    computes = True  # products of blocks, which only values depend on
    attempt_kind = Attempt
    checks_kind = Checks

    def __init__(self, pattern: int = 0, *, duplicate_writes: bool = False,
                 find: Finder | None = None) -> None:
        self.pattern = pattern
        self._find = find
        self.duplicate_writes = duplicate_writes
        self.observed = Observations()
        self.determined = not duplicate_writes
        self.printed: list[str] | None = None  # by kernels; None: to standard output
        self._printed_once: set[str] = set()
        self._launches = 0
        self._last_segment = LEAST_SEGMENT
        self._start((0, 0, 0), "")

    def turns(self, counts: Array) -> Iterable[Any]:
        """Returns the iterations of a loop, given the count for each program.

        Raises:
            Diverged: programs have different numbers.
        """
        return range(int(of_all_programs(counts)))

    def passed(self, blocks: Sequence[SourceBlock], number: int) -> None:
        """Block ``number`` of a function's ``blocks`` begins; nothing here counts them."""

    @property
    def printed_enough(self) -> bool:
        """Whether no more lines are kept."""
        return self.printed is not None and len(self.printed) >= MAX_PRINTED

    def print(self, text: str) -> None:
        """Prints or keeps what ``tl.device_print`` shows of one program."""
        if self.printed is None:
            print(text)
        elif not self.printed_enough:
            self.printed += [line[:MAX_PRINTED_LINE] for line in text.splitlines()]

    def print_once(self, text: str) -> None:
        """Prints or keeps a line of ``tl.static_print``, which the programs of a launch share."""
        if text not in self._printed_once:
            self._printed_once.add(text)
            self.print(text)

    @property
    def attempt(self) -> Attempt:
        return self.running.attempt

    def begin(self, grid: tuple[int, int, int], file: str) -> RunningLaunch:
        """A new launch."""
        self._last_segment = self.running.order.last
        self._launches += 1
        return self._start(grid, file)

    def end(self) -> None:
        """Let go of the tensors of the last launch: whole inputs, which may be mapped by the GB.

        What was observed stays. Without this they would wait for Python's collector of cycles.
        """
        self._start((0, 0, 0), "")

    def _start(self, grid: tuple[int, int, int], file: str) -> RunningLaunch:
        order = Order(self._last_segment, grid[0] * grid[1] * grid[2])
        self.running = RunningLaunch(grid, file, self._launches, order,
                                     Attempt(_NONE, _NONE, order), Regions(self._find))
        self.checks = self.checks_kind(self.running, self.duplicate_writes)
        return self.running

    def try_with(self, programs: Array) -> Attempt:
        """Let these programs run from their start, all at once."""
        order = self.running.order
        self.running.attempt = self.attempt_kind(programs, order.segments(programs), order)
        return self.attempt

    def settle(self) -> None:
        """The group that ran is done; nothing of it will be undone."""
        attempt = self.attempt
        attempt.commit(self.running.ledger, self.observed)
        self.running.idle += attempt.count - int(np.count_nonzero(attempt.stored))
        self.running.attempt = Attempt(_NONE, _NONE, self.running.order)

    # -- what programs do ----------------------------------------------------------------------

    def load(self, pointers: Handle, mask: Handle | None, other: Handle | None, *,
             volatile: bool = False) -> Handle:
        """Loads from ``pointers``; masked-off elements get ``other`` or an undefined value."""
        element = pointers.get_element_ty()
        dtype = numpy_dtype(element)
        axis = contiguous_axis(pointers, dtype.itemsize)
        if axis is not None:
            loaded = self.load(turned(pointers, axis), turned(mask, axis), turned(other, axis),
                               volatile=volatile)
            return Handle(np.moveaxis(loaded.data, -1, axis + 1), element, pointers.shape)
        attempt, shape = self.attempt, pointers.shape
        rows = max(pointers.lengths[0], 1 if mask is None else len(mask.data))
        if rows == 1 and attempt.count > 1 and self._is_shared(pointers):
            rows = attempt.count  # who reads what another one stored has to be known
        access, parts = self._located("load", pointers, mask, dtype, rows)
        data = self._read(parts, mask, other, dtype, rows, shape)
        attempt.largest = max(attempt.largest, data.size // rows)
        for part in parts:
            if volatile:  # it may look at flags
                self.determined = False
                self._acquire_known(part)
            self.checks.load(part, access, volatile=volatile)
        self._count(access, parts)
        if attempt.looping and data.size <= attempt.count and parts:
            attempt.polled(self._described(parts[0], access.line, data))
        return Handle(data, element, shape)

    def _located(self, kind: str, pointers: Handle, mask: Handle | None, dtype: np.dtype[Any],
                 rows: int) -> tuple[MemoryInstruction, list[Part]]:
        """Locates the elements of an access; reports those outside every storage."""
        access = MemoryInstruction(kind, line_in(self.running.file), rows)
        return access, self.running.regions.parts(pointers, mask, rows, dtype.itemsize,
                                                  partial(self.checks.outside, access))

    def _read(self, parts: Sequence[Part], mask: Handle | None, other: Handle | None,
              dtype: np.dtype[Any], rows: int, shape: tuple[int, ...]) -> Array:
        """The values of all lanes."""
        if mask is None and len(parts) == 1 and parts[0].lanes is None:
            part = parts[0]
            return part.place.read(part.region.storage.typed(dtype)).reshape(rows, *shape)
        constant = other is not None and other.data.size == 1
        fill = other.data.reshape(()) if constant and other else masked_lane(dtype, self.pattern)
        data = np.full((rows, *shape), fill, dtype)
        if other is None and sum(part.size for part in parts) < data.size:
            self.determined = False
        for part in parts:
            part.put(part.place.read(part.region.storage.typed(dtype)), data)
        if other is not None and mask is not None and not constant:
            data = np.where(mask.data, data, other.data)
        return data

    def store(self, pointers: Handle, mask: Handle | None, value: Handle) -> None:
        """Stores values where the mask is on.

        If several programs store to one address, the last in execution order wins.
        """
        axis = contiguous_axis(pointers, value.data.dtype.itemsize)
        if axis is not None:
            pointers, mask, value = (turned(each, axis) for each in (pointers, mask, value))
        shape, rows = pointers.shape, self.attempt.count
        access, parts = self._located("store", pointers, mask, value.data.dtype, rows)
        values = spread(value, rows, shape)
        for part in parts:
            self._write(part, part.pick(values), access, scalar=not shape)
            self.attempt.stored[part.rows] = True
        self._count(access, parts)
        self.running.order.changes += 1

    def _write(self, part: Part, values: Array, access: MemoryInstruction, *,
               scalar: bool) -> None:
        """[runs, length] values to their places."""
        order, typed = self.running.order, part.region.storage.typed(values.dtype)
        self.checks.store(part, values, access)
        self._remember(part.place, typed)
        part.place.write(typed, values)
        self.checks.set_writers(part, self.attempt.segments[part.rows])
        self._note_recent(part, access)
        if order.locks and scalar:  # a lock may be opened by a plain store
            for program, cell in self._scalars(part):
                if cell in order.locks:
                    self.attempt.undo.append(order.release(program, cell))
            self._renew_segments()

    def atomic(self, operation: str, pointers: Handle, mask: Handle | None, value: Handle, *,
               ordered: bool, compare: Handle | None = None) -> Handle:
        """Changes what is at ``pointers``, program after program. Returns the values before.

        Args:
            operation: of ``atomics.rmw``, or ``CAS``.
            compare: with ``CAS``, what is there where ``value`` is stored.
        """
        self.determined = False
        shape, rows, dtype = pointers.shape, self.attempt.count, value.data.dtype
        access, parts = self._located("atomic", pointers, mask, dtype, rows)
        values = spread(value, rows, shape)
        compares = None if compare is None else spread(compare, rows, shape)
        result = np.full((rows, *shape), masked_lane(dtype, self.pattern), dtype)
        for part in parts:
            typed = part.region.storage.typed(dtype)
            index = part.place.indices().reshape(-1)
            lanes = Part(part.region, Runs(index), None, np.repeat(part.rows, part.place.length),
                         part.itemsize)
            segments = self.attempt.segments  # what comes next belongs to what is released
            if ordered and not shape:
                self._synchronize(part, locks=operation in LOCKS)
            elif ordered:
                self._acquire_known(lanes)
            if not shape:  # its result goes from one thread to all of them
                self.attempt.recent.settle()
            self.checks.change(lanes, access)
            self._remember(lanes.place, typed)
            before = typed[index]
            given = part.pick(values).reshape(-1)
            if compares is None:
                old = atomics.rmw(operation, typed, index, given)
            else:
                old = atomics.cas(typed, index, part.pick(compares).reshape(-1), given)
            if not np.array_equal(typed[index], before):
                self.running.order.changes += 1
            self.checks.set_writers(lanes, -segments[lanes.rows])
            if shape:
                self._note_recent(lanes, access)
            part.put(old.reshape(-1, part.place.length), result)
            self.attempt.stored[part.rows] = True
            if self.attempt.looping and not shape:
                self.attempt.polled(self._described(part, access.line, old))
        self._count(access, parts)
        return Handle(result, value.dtype, shape)

    def poll(self, pointers: Handle, expected: Handle, *, ends: bool) -> Handle:
        """Wait until ``expected`` stands at ``pointers``; whether it does, where the wait ends.

        Raises:
            Diverged: it does for some programs only.
            Spinning: it does not, and only another group of programs can change that.
        """
        while True:
            attempt, line = self.attempt, line_in(self.running.file)
            value = self.load(pointers, None, None, volatile=True)
            arrived = spread(value, attempt.count, pointers.shape) == spread(
                expected, attempt.count, pointers.shape)
            each = arrived.reshape(attempt.count, -1).all(axis=1)
            places = [] if ends or each.all() else self.running.regions.parts(
                pointers, None, attempt.count, value.data.dtype.itemsize, lambda *_: None)
            if not places:  # also where there is nothing to wait for: that is a finding already
                return Handle(arrived, tl.int1, pointers.shape)
            if each.any():
                raise Diverged(each)
            attempt.wait(self._described(places[0], line, value.data), for_ever=True)

    # -- order and counts ----------------------------------------------------------------------

    def _remember(self, place: Runs, typed: Array) -> None:
        """Keeps what stands at a place before it is overwritten."""
        self.attempt.undo.append(partial(place.write, typed, place.read(typed)))

    def _note_recent(self, part: Part, access: MemoryInstruction) -> None:
        if self.running.warps > 1:
            self.attempt.recent.note(part, access.line)

    def _synchronize(self, part: Part, *, locks: bool) -> None:
        """Atomics on scalars, one program after another: each comes after those before it."""
        order = self.running.order
        for program, cell in self._scalars(part):
            self.attempt.undo.append(order.acquire(program, cell))
            self.attempt.undo.append(order.release(program, cell))
            if locks:
                order.locks.add(cell)
        self._renew_segments()

    def _renew_segments(self) -> None:
        self.attempt.segments = self.running.order.segments(self.attempt.programs)

    def _acquire_known(self, part: Part) -> None:
        """A look at many elements acquires those that programs synchronize on."""
        order = self.running.order
        if not order.parted:
            return
        storage = id(part.region.storage)
        for program, index in zip(part.each(self.attempt.programs).tolist(),
                                  part.place.indices().reshape(-1).tolist(), strict=True):
            if order.knows((storage, index)):
                self.attempt.undo.append(order.acquire(program, (storage, index)))

    def _scalars(self, part: Part) -> Iterator[tuple[int, Cell]]:
        programs = self.attempt.programs[part.rows].tolist()
        storage = id(part.region.storage)
        return ((program, (storage, index)) for program, index in zip(
            programs, part.place.starts.tolist(), strict=True))

    def _is_shared(self, pointers: Handle) -> bool:
        region = self.running.regions.of(pointers.first)
        return region is not None and region.storage.stored_in == self.running.number

    def _described(self, part: Part, line: int | None, data: Array) -> Poll:
        region, index = part.region, int(part.place.starts[0])
        element = region.element(index, data.dtype.itemsize)
        typed, value = region.storage.typed(data.dtype), data.tobytes()
        first = data.reshape(-1)[:1].tobytes()
        return Poll(f"`{region.name}`[{element}]", line, index, value,
                    lambda: typed[index:index + 1].tobytes() != first)

    def _count(self, access: MemoryInstruction, parts: Sequence[Part]) -> None:
        programs = self.attempt.count if access.rows == 1 else 1
        for region in {part.region.number: part.region for part in parts}.values():
            mine = [part for part in parts if part.region is region]
            itemsize = mine[0].itemsize
            nbytes: Any = mine[0].place.length * itemsize
            first, owners = mine[0].place.starts * itemsize, mine[0].rows
            if len(mine) > 1:
                first = np.concatenate([part.place.starts * itemsize for part in mine])
                owners = np.concatenate([part.rows for part in mine])
                nbytes = np.concatenate([
                    np.full(len(part.rows), part.place.length * itemsize) for part in mine])
                order = np.lexsort((first, owners))
                first, owners, nbytes = first[order], owners[order], nbytes[order]
            self.attempt.ledger.count(
                Key(access.line, access.kind, region.number), region.name, first, nbytes, owners,
                programs, itemsize)
