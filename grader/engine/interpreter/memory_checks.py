"""What is wrong with an access, seen before it happens."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Protocol

import numpy as np

from grader.engine.interpreter.address_space import Part, Region, Storage
from grader.engine.interpreter.barrier_check import line_number, own
from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.finding_aggregation import Note
from grader.engine.interpreter.index_runs import Place, in_order
from grader.engine.interpreter.shadow_memory import KERNEL, NOBODY, cells_of
from grader.engine.interpreter.transaction import Attempt, RunningLaunch
from grader.finding import AccessKind, Action, MemoryAccess

_WRAP = 1 << 32
_INT32_ELEMENTS = 1 << 31


class LaunchState(Protocol):
    """What the checks read of the memory they belong to."""

    running: RunningLaunch
    duplicate_writes: bool

    @property
    def attempt(self) -> Attempt: ...


class Checks:
    """The checks of one memory, and the shadows that they read and write."""

    def __init__(self, memory: LaunchState) -> None:
        self._memory = memory

    # -- bounds --------------------------------------------------------------------------------

    def outside(self, action: Action, line: int | None, rows: int, why: AccessKind,
                region: Region | None, index: Array, owners: Array) -> None:
        """M01, M02 or M05 for lanes outside every tensor, or askew in one."""
        code, kind = "M01" if action == "loaded" else "M02", why
        if region is not None and why in ("before", "past") and wrapped(
                int(index[0]), region.elements):
            code, kind = "M05", "overflow"
        self._note(code, kind, region, owners, index, action, line, rows)

    # -- loads ---------------------------------------------------------------------------------

    def load(self, part: Part, itemsize: int, rows: int, line: int | None, *,
             volatile: bool) -> None:
        """M06 and M09, and who reads what. ``volatile``: it may read what atomics change."""
        storage, running = part.region.storage, self._memory.running
        shadow, recent = storage.shadow, running.attempt.recent
        shared = storage.stored_in == running.number
        if shadow.touched or shadow.default == NOBODY:
            cells = self._cells(part, itemsize, shadow)
            least, most = int(cells.min()), int(cells.max())
            if least <= NOBODY <= most:
                self._unwritten(part, cells, itemsize, rows, line)
            if shared and most > running.order.floor:
                self._raced("race", part, cells, itemsize, "loaded", line)
            if shared and -least > running.order.floor and not volatile:
                self._raced("early", part, -cells, itemsize, "loaded", line)
            if shared and not volatile and recent.holds(storage) and (
                    most > running.order.floor or -least > running.order.floor):
                self._unseen(part, cells, itemsize, "loaded", line)
        if id(storage) in running.watched:
            self._note_readers(part, itemsize, rows)

    def _unwritten(self, part: Part, cells: Array, itemsize: int, rows: int,
                   line: int | None) -> None:
        unwritten = cells == NOBODY
        if unwritten.any():
            self._tell("M06", "unwritten", part, self._lanes(part, unwritten),
                       itemsize, "loaded", line, rows=rows)

    def _note_readers(self, part: Part, itemsize: int, rows: int) -> None:
        """Two readers of each element are kept: one of them is another program, if any is."""
        attempt, storage = self._memory.attempt, part.region.storage
        at = cells_of(part.place, itemsize, storage.granule)
        me = self._per_run(attempt.segments[part.rows], at)
        if rows == 1 and attempt.count > 1:  # all programs of the group read it
            self._note_reader(storage, at, me)
            self._note_reader(storage, at, np.full_like(me, int(attempt.segments[1])))
        else:
            self._note_reader(storage, at, me)

    def _note_reader(self, storage: Storage, at: Place, me: Array) -> None:
        attempt, order = self._memory.attempt, self._memory.running.order
        first, second = storage.readers
        old = first.get(at)
        fresh = old <= order.floor
        if fresh.any():
            attempt.undo_with(lambda: first.set(at, old))
            first.set(at, me if fresh.all() else np.where(fresh, me, old))
            kept = first.get(at)
        else:
            kept = old
        others = kept != me
        if order.parted and others.any():  # a program has several segments after a release
            others = order.owners(kept) != order.owners(np.broadcast_to(me, kept.shape))
        if others.any():
            before = second.get(at)
            attempt.undo_with(lambda: second.set(at, before))
            second.set(at, np.where(others, me, before))

    # -- stores and atomics --------------------------------------------------------------------

    def store(self, part: Part, values: Array, line: int | None) -> None:
        """M04, M07 and M09 of a plain store. ``values``: [runs, length]."""
        storage, memory = part.region.storage, self._memory
        itemsize = values.dtype.itemsize
        self._modified(part, itemsize, line)
        if itemsize < storage.granule:
            return
        if storage.stored_in == memory.running.number and storage.shadow.touched:
            cells = self._cells(part, itemsize, storage.shadow)
            order = memory.running.order
            if not memory.duplicate_writes and cells.max() > order.floor:
                self._twice(part, cells, itemsize, line)
            if -int(cells.min()) > order.floor and not (
                    order.locks and (id(storage), int(part.place.starts[0])) in order.locks):
                self._raced("unordered", part, -cells, itemsize, "stored", line)
        if not memory.duplicate_writes and not part.place.distinct():
            self._overlap(part, values, itemsize, line)
        self._overwritten(part, itemsize, line)

    def change(self, part: Part, itemsize: int, line: int | None) -> None:
        """M06, M07 and M09 of an atomic."""
        storage = part.region.storage
        self._modified(part, itemsize, line)
        self._overwritten(part, itemsize, line, "changed")
        if storage.is_input and not storage.shadow.touched:
            return
        cells = self._cells(part, itemsize, storage.shadow)
        if (cells == NOBODY).any():  # only the first lane on an element finds it so
            _, first = np.unique(part.place.starts, return_index=True)
            alone = np.full_like(cells, KERNEL)
            alone[first] = cells[first]
            self._unwritten(part, alone, itemsize, 0, line)
        if storage.stored_in == self._memory.running.number:
            self._raced("race", part, cells, itemsize, "changed", line)
            if self._memory.attempt.recent.holds(storage):  # atomics see each other
                self._unseen(part, np.maximum(cells, 0), itemsize, "changed", line)

    def set_writers(self, part: Part, itemsize: int, value: Any) -> None:
        """Note who wrote: a segment for each run, or one state for all."""
        storage, attempt = part.region.storage, self._memory.attempt
        shadow = storage.shadow
        at = cells_of(part.place, itemsize, storage.granule)
        old = shadow.get(at)
        attempt.undo_with(lambda: shadow.set(at, old))
        shadow.set(at, value if np.ndim(value) == 0 else self._per_run(value[:, 0], at))
        storage.stored_in = self._memory.running.number

    def _modified(self, part: Part, itemsize: int, line: int | None) -> None:
        part.region.storage.stored_into = True
        if part.region.storage.protected:
            everything = np.ones(len(part.place.starts) * part.place.length, np.bool_)
            self._tell("M07", "modified", part, everything, itemsize, "stored", line)

    def _twice(self, part: Part, cells: Array, itemsize: int, line: int | None) -> None:
        foreign = self._foreign(part, cells)
        if foreign is None:
            return
        owners = np.zeros(cells.shape, np.int64)
        owners[foreign] = self._memory.running.order.owners(cells[foreign])
        lanes, other = self._lanes(part, foreign), self._one_each(part, owners, foreign)
        self._tell_pairs(part, lanes, other[lanes], itemsize, line)

    def _overlap(self, part: Part, values: Array, itemsize: int, line: int | None) -> None:
        """Lanes of one store that meet in an element."""
        index = part.place.indices().reshape(-1)
        programs = np.repeat(self._memory.attempt.programs[part.rows], part.place.length)
        order = in_order(index)
        same = index[order][1:] == index[order][:-1]
        before, after = order[:-1][same], order[1:][same]
        others = programs[before] != programs[after]
        if others.any():
            lanes = np.zeros(len(index), np.bool_)
            other = np.zeros(len(index), np.int64)
            lanes[after[others]] = True
            other[after[others]] = programs[before[others]]
            self._tell_pairs(part, lanes, other[lanes], itemsize, line)
        bits = np.ascontiguousarray(values).reshape(-1).view(np.dtype(f"u{itemsize}"))
        unlike = ~others & (bits[before] != bits[after])
        if unlike.any():
            lanes = np.zeros(len(index), np.bool_)
            lanes[after[unlike]] = True
            self._tell("M04", "two lanes", part, lanes, itemsize, "stored", line)

    def _tell_pairs(self, part: Part, lanes: Array, others: Array, itemsize: int,
                    line: int | None) -> None:
        """M04 where two programs store one element; the one with the higher number is named."""
        running = self._memory.running
        programs = np.repeat(running.programs[part.rows], part.place.length)[lanes]
        pairs = np.sort(np.stack([programs, others]), axis=0)
        index = part.place.indices().reshape(-1)[lanes]
        first = int(pairs[1].min())
        mine = pairs[1] == first
        low = int(pairs[0][mine][0])
        self._make("M04", "two programs", part.region, "stored", line, first,
                   frozenset(pairs[1].tolist()), int(mine.sum()),
                   self._element(part.region, int(index[mine][0]), itemsize),
                   other=low, axes=_axes(self._memory.attempt.axes, running.grid),
                   asked=tuple(sorted(self._memory.attempt.axes)))

    def _overwritten(self, part: Part, itemsize: int, line: int | None,
                     action: Action = "stored") -> None:
        """M09 for a store to what another program read."""
        storage, running = part.region.storage, self._memory.running
        if id(storage) not in running.watched or not storage.readers[0].touched:
            return
        cells = self._cells(part, itemsize, storage.readers[0])
        if storage.readers[1].touched:
            foreign = self._foreign(part, cells)
            second = self._cells(part, itemsize, storage.readers[1])
            cells = second if foreign is None else np.where(foreign, cells, second)
        self._raced("overwritten", part, cells, itemsize, action, line)

    # -- races ---------------------------------------------------------------------------------

    def _raced(self, kind: AccessKind, part: Part, cells: Array, itemsize: int, action: Action,
               line: int | None) -> None:
        foreign = self._foreign(part, cells)
        if foreign is None:
            return
        running = self._memory.running
        lanes = self._lanes(part, foreign)
        owners = np.zeros(cells.shape, np.int64)
        owners[foreign] = running.order.owners(cells[foreign])
        other = self._one_each(part, owners, foreign)[lanes]
        programs = np.repeat(running.programs[part.rows], part.place.length)[lanes]
        named = int(other[int(np.argmin(programs))])
        self._tell("M09", kind, part, lanes, itemsize, action, line, other=named)

    def _unseen(self, part: Part, cells: Array, itemsize: int, action: Action,
                line: int | None) -> None:
        """M09 within a program: a thread gets what another one may not have stored yet."""
        running, attempt = self._memory.running, self._memory.attempt
        lines = attempt.recent.lines(part, itemsize)
        unseen = own(lines, cells, attempt.programs[part.rows], running.order)
        lanes = self._lanes(part, unseen)
        if not lanes.any():
            return
        programs = np.repeat(attempt.programs[part.rows], part.place.length)[lanes]
        first = int(np.flatnonzero(lanes)[np.argmin(programs)])  # the lane that is spoken of
        cell = int(unseen.reshape(len(lanes), -1)[first].argmax())
        where, who = (int(values.reshape(len(lanes), -1)[first, cell]) for values in (lines, cells))
        self._tell("M09", "no barrier", part, lanes, itemsize, action, line,
                   earlier="stored" if who > 0 else "changed", earlier_line=line_number(where))

    def _foreign(self, part: Part, cells: Array) -> Array | None:
        """Which cells belong to another program of this launch that nothing has put before this
        one; None where there are none. ``cells``: [runs, cells of a run]."""
        running, attempt = self._memory.running, self._memory.attempt
        order = running.order
        highest = int(cells.max())
        if highest <= order.floor:
            return None
        if len(part.rows) == 1 and int(cells.min()) == highest:  # one program, and one before it
            program = int(attempt.programs[part.rows[0]])
            if order.owner(highest) == program or order.before(highest, program):
                return None
            return np.ones(cells.shape, np.bool_)
        foreign: Array = cells > order.floor
        programs = np.broadcast_to(attempt.programs[part.rows][:, None], cells.shape)
        foreign[foreign] = order.owners(cells[foreign]) != programs[foreign]
        if order.any_acquired and foreign.any():
            width = running.all_programs
            pairs = cells[foreign].astype(np.int64) * width + programs[foreign]
            unique, which = np.unique(pairs, return_inverse=True)
            unordered = np.array([not order.before(*divmod(pair, width))
                                  for pair in unique.tolist()])
            foreign[foreign] = unordered[which.reshape(-1)]
        return foreign if foreign.any() else None

    # -- words ---------------------------------------------------------------------------------

    def _tell(self, code: str, kind: AccessKind, part: Part, lanes: Array, itemsize: int,
              action: Action, line: int | None, *, rows: int = 0, **extra: Any) -> None:
        """A note about some lanes, given as a mask over all lanes of the part."""
        if not lanes.any():
            return
        owners = np.repeat(part.rows, part.place.length)[lanes]
        places = part.place.indices().reshape(-1)[lanes]
        index = (places * itemsize - part.region.start) // part.region.itemsize
        self._note(code, kind, part.region, owners, index, action, line, rows, **extra)

    def _note(self, code: str, kind: AccessKind, region: Region | None, owners: Array, index: Array,
              action: Action, line: int | None, rows: int, **extra: Any) -> None:
        running = self._memory.running
        programs = running.programs[owners]
        everyone = frozenset(np.unique(programs).tolist())
        if rows == 1 and running.count > 1:  # all programs of the group did the same
            everyone = frozenset(running.programs.tolist())
            programs = np.full_like(programs, int(running.programs.min()))
        first = int(programs.min())
        mine = programs == first
        self._make(code, kind, region, action, line, first, everyone, int(mine.sum()),
                   int(index[mine][0]), **extra)

    def _make(self, code: str, kind: AccessKind, region: Region | None, action: Action,
              line: int | None, program: int, programs: frozenset[int], lanes: int, index: int,
              **extra: Any) -> None:
        access = MemoryAccess(kind, action, lanes, index, program, self._memory.running.grid,
                              region.name if region else "",
                              int(region.elements) if region else 0, **extra)
        self._memory.attempt.notes.append(Note(code, line, access, programs))

    # -- cells and lanes -----------------------------------------------------------------------

    def _cells(self, part: Part, itemsize: int, shadow: Any) -> Array:
        """[runs, cells of a run]."""
        at = cells_of(part.place, itemsize, part.region.storage.granule)
        cells: Array = shadow.get(at).reshape(len(part.place.starts), -1)
        return cells

    @staticmethod
    def _lanes(part: Part, cells: Array) -> Array:
        """Which lanes have any of the cells."""
        lanes = len(part.place.starts) * part.place.length
        return np.asarray(cells.reshape(lanes, -1).any(axis=1))

    @staticmethod
    def _one_each(part: Part, values: Array, chosen: Array) -> Array:
        """For each lane, the value of the first of its cells that is chosen."""
        lanes = len(part.place.starts) * part.place.length
        values, chosen = values.reshape(lanes, -1), chosen.reshape(lanes, -1)
        picked: Array = values[np.arange(lanes), chosen.argmax(axis=1)]
        return picked

    @staticmethod
    def _per_run(values: Array, at: Any) -> Array:
        """[runs, 1] for a place whose runs may be parts of the runs that ``values`` are for."""
        runs = len(at.starts)
        return (values if runs == len(values) else np.repeat(values, runs // len(values)))[:, None]

    @staticmethod
    def _element(region: Region, index: int, itemsize: int) -> int:
        return (index * itemsize - region.start) // region.itemsize


def wrapped(index: int, size: int) -> bool:
    """Whether an index outside a tensor of ``size`` elements is a right one cut to 32 bits."""
    if 0 <= index % _WRAP < size and size > _INT32_ELEMENTS:
        return True
    return size >= _INT32_ELEMENTS and (index < 0 or index >= 2 * size)


def _axes(asked: Set[int], grid: tuple[int, int, int]) -> str:
    """Why all programs work on the same place, where the axes that were asked for show it."""
    if not asked:
        return "unused"
    if all(grid[axis] == 1 for axis in asked):
        return "flat"
    return "part" if any(size > 1 and axis not in asked for axis, size in enumerate(grid)) else ""
