"""The checks of an access, before it happens."""

from collections.abc import Set
from typing import Any, NamedTuple

import numpy as np

from grader.engine.interpreter.address_space import Part, Region, Storage
from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.index_runs import Runs, in_order
from grader.engine.interpreter.shadow_memory import KERNEL, NOBODY, Shadow
from grader.engine.interpreter.transaction import Note, RunningLaunch
from grader.finding import AccessKind, Action, MemoryAccess

_WRAP = 1 << 32
_INT32_ELEMENTS = 1 << 31
_ACTIONS: dict[str, Action] = {"load": "loaded", "store": "stored", "atomic": "changed"}


class MemoryInstruction(NamedTuple):
    """An operation of a group of programs: ``load``, ``store`` or ``atomic`` at a line.

    ``rows``: along the programs; 1 where all programs do the same.
    """

    kind: str
    line: int | None
    rows: int


class Checks:
    """The checks of one launch, and the shadows that they read and write."""

    def __init__(self, running: RunningLaunch, duplicate_writes: bool) -> None:
        self._running = running
        self._duplicate_writes = duplicate_writes

    # -- bounds --------------------------------------------------------------------------------

    def outside(self, access: MemoryInstruction, kind: AccessKind, region: Region | None,
                index: Array, rows: Array) -> None:
        """M01, M02 or M05 for elements outside every tensor, or misaligned in one."""
        code = "M01" if access.kind == "load" else "M02"
        if region is not None and kind in ("before", "past") and wrapped(
                int(index[0]), region.elements):
            code, kind = "M05", "overflow"
        self._note(code, kind, access, region, self._running.attempt.programs[rows], index)

    # -- loads ---------------------------------------------------------------------------------

    def load(self, part: Part, access: MemoryInstruction, *, volatile: bool) -> None:
        """M06 and M09, and who reads what. ``volatile``: it may read what atomics change."""
        storage, running = part.region.storage, self._running
        shadow, floor = storage.shadow, running.order.floor
        if shadow.touched or shadow.default == NOBODY:
            cells = self._cells(part, shadow)
            least, most = int(cells.min()), int(cells.max())
            if least <= NOBODY <= most:
                self._unwritten(part, cells, access)
            if storage.stored_in == running.number:
                if most > floor:
                    self._raced("race", part, cells, access)
                if -least > floor and not volatile:
                    self._raced("early", part, -cells, access)
                if max(most, -least) > floor and not volatile and (
                        running.attempt.recent.holds(storage)):
                    self._unseen(part, cells, access)
        if id(storage) in running.watched:
            self._note_readers(part, access.rows)

    def _unwritten(self, part: Part, cells: Array, access: MemoryInstruction) -> None:
        unwritten = cells == NOBODY
        if unwritten.any():
            self._tell("M06", "unwritten", part, self._lanes(part, unwritten),
                       access._replace(kind="load"))

    def _note_readers(self, part: Part, rows: int) -> None:
        """Two readers of each element are kept: one of them is another program, if any is."""
        attempt, at = self._running.attempt, part.cells
        me = self._per_run(attempt.segments[part.rows], at)
        self._note_reader(part.region.storage, at, me)
        if rows == 1 and attempt.count > 1:  # all programs of the group read it
            self._note_reader(part.region.storage, at,
                              np.full_like(me, int(attempt.segments[1])))

    def _note_reader(self, storage: Storage, at: Runs, me: Array) -> None:
        attempt, order = self._running.attempt, self._running.order
        first, second = storage.readers
        kept = old = first.get(at)
        fresh = old <= order.floor
        if fresh.any():
            attempt.undo.append(lambda: first.set(at, old))
            first.set(at, me if fresh.all() else np.where(fresh, me, old))
            kept = first.get(at)
        others = kept != me
        if order.parted and others.any():  # a program has several segments after a release
            others = order.owners(kept) != order.owners(np.broadcast_to(me, kept.shape))
        if others.any():
            before = second.get(at)
            attempt.undo.append(lambda: second.set(at, before))
            second.set(at, np.where(others, me, before))

    # -- stores and atomics --------------------------------------------------------------------

    def store(self, part: Part, values: Array, access: MemoryInstruction) -> None:
        """M04, M07 and M09 of a plain store. ``values``: [runs, length]."""
        storage, order = part.region.storage, self._running.order
        self._modified(part, access)
        if part.itemsize < storage.granule:
            return
        if storage.stored_in == self._running.number and storage.shadow.touched:
            cells = self._cells(part, storage.shadow)
            if not self._duplicate_writes and (pairs := self._others(part, cells)):
                self._tell_pairs(part, *pairs, access)
            if -int(cells.min()) > order.floor and not (
                    order.locks and (id(storage), int(part.place.starts[0])) in order.locks):
                self._raced("unordered", part, -cells, access)
        if not self._duplicate_writes and not part.place.distinct():
            self._overlap(part, values, access)
        self._overwritten(part, access)

    def change(self, part: Part, access: MemoryInstruction) -> None:
        """M06, M07 and M09 of an atomic."""
        storage = part.region.storage
        self._modified(part, access)
        self._overwritten(part, access)
        if storage.is_input and not storage.shadow.touched:
            return
        cells = self._cells(part, storage.shadow)
        if (cells == NOBODY).any():  # only the first element of a place finds it so
            _, first = np.unique(part.place.starts, return_index=True)
            alone = np.full_like(cells, KERNEL)
            alone[first] = cells[first]
            self._unwritten(part, alone, access)
        if storage.stored_in == self._running.number:
            self._raced("race", part, cells, access)
            if self._running.attempt.recent.holds(storage):  # atomics see each other
                self._unseen(part, np.maximum(cells, 0), access)

    def set_writers(self, part: Part, segments: Array) -> None:
        """Notes who wrote: a segment for each run."""
        storage, at = part.region.storage, part.cells
        shadow = storage.shadow
        old = shadow.get(at)
        self._running.attempt.undo.append(lambda: shadow.set(at, old))
        shadow.set(at, self._per_run(segments, at))
        storage.stored_in = self._running.number

    def _modified(self, part: Part, access: MemoryInstruction) -> None:
        if part.region.storage.protected:
            self._tell("M07", "modified", part, np.ones(part.size, np.bool_),
                       access._replace(kind="store"))

    def _overlap(self, part: Part, values: Array, access: MemoryInstruction) -> None:
        """M04 for elements of one store that lie in the same place."""
        index = part.place.indices().reshape(-1)
        programs = part.each(self._running.attempt.programs)
        order = in_order(index)
        same = index[order][1:] == index[order][:-1]
        before, after = order[:-1][same], order[1:][same]
        others = programs[before] != programs[after]
        bits = np.ascontiguousarray(values).reshape(-1).view(np.dtype(f"u{part.itemsize}"))
        unlike = ~others & (bits[before] != bits[after])
        other = np.zeros(len(index), np.int64)
        other[after[others]] = programs[before[others]]
        stored_twice, lanes = np.zeros((2, len(index)), np.bool_)
        stored_twice[after[others]] = lanes[after[unlike]] = True
        if others.any():
            self._tell_pairs(part, stored_twice, other[stored_twice], access)
        self._tell("M04", "two lanes", part, lanes, access)

    def _tell_pairs(self, part: Part, lanes: Array, others: Array,
                    access: MemoryInstruction) -> None:
        """M04 where two programs store one element; the one with the higher number is named."""
        running, asked = self._running, self._running.attempt.axes
        pairs = np.sort(np.stack([part.each(running.attempt.programs)[lanes], others]), axis=0)
        index = part.region.element(part.place.indices().reshape(-1)[lanes], part.itemsize)
        self._note("M04", "two programs", access, part.region, pairs[1], index,
                   other=int(pairs[0][pairs[1].argmin()]), axes=_axes(asked, running.grid),
                   asked=tuple(sorted(asked)))

    def _overwritten(self, part: Part, access: MemoryInstruction) -> None:
        """M09 for a store to what another program read."""
        storage, running = part.region.storage, self._running
        if id(storage) not in running.watched or not storage.readers[0].touched:
            return
        cells = self._cells(part, storage.readers[0])
        if storage.readers[1].touched:
            foreign = self._foreign(part, cells)
            second = self._cells(part, storage.readers[1])
            cells = second if foreign is None else np.where(foreign, cells, second)
        self._raced("overwritten", part, cells, access)

    # -- races ---------------------------------------------------------------------------------

    def _raced(self, kind: AccessKind, part: Part, cells: Array,
               access: MemoryInstruction) -> None:
        if pairs := self._others(part, cells):
            lanes, others = pairs
            programs = part.each(self._running.attempt.programs)[lanes]
            self._tell("M09", kind, part, lanes, access, other=int(others[programs.argmin()]))

    def _others(self, part: Part, cells: Array) -> tuple[Array, Array] | None:
        """The elements of which another program owns a cell, as a mask, and these programs."""
        foreign = self._foreign(part, cells)
        if foreign is None:
            return None
        owners = np.zeros(cells.shape, np.int64)
        owners[foreign] = self._running.order.owners(cells[foreign])
        lanes = self._lanes(part, foreign)
        first = foreign.reshape(part.size, -1).argmax(axis=1)
        return lanes, owners.reshape(part.size, -1)[np.arange(part.size), first][lanes]

    def _unseen(self, part: Part, cells: Array, access: MemoryInstruction) -> None:
        """M09 within a program: a thread gets what another one may not have stored yet."""
        running, attempt = self._running, self._running.attempt
        lines = attempt.recent.lines(part, cells, attempt.programs[part.rows], running.order)
        unseen = lines != 0
        lanes = self._lanes(part, unseen)
        if not lanes.any():
            return
        programs = part.each(attempt.programs)[lanes]
        first = int(np.flatnonzero(lanes)[np.argmin(programs)])  # the one that is reported
        cell = int(unseen.reshape(len(lanes), -1)[first].argmax())
        line, who = (int(values.reshape(len(lanes), -1)[first, cell]) for values in (lines, cells))
        self._tell("M09", "no barrier", part, lanes, access,
                   earlier="stored" if who > 0 else "changed",
                   earlier_line=line if line > 0 else None)

    def _foreign(self, part: Part, cells: Array) -> Array | None:
        """Which cells belong to another program of this launch that nothing has put before this
        one; None where there are none. ``cells``: [runs, cells of a run]."""
        running, attempt = self._running, self._running.attempt
        order = running.order
        highest = int(cells.max())
        if highest <= order.floor:
            return None
        if len(part.rows) == 1 and int(cells.min()) == highest:  # one program, and one before it
            program = int(attempt.programs[part.rows[0]])
            if order.owned(highest)[0] == program or order.before(highest, program):
                return None
            return np.ones(cells.shape, np.bool_)
        foreign: Array = cells > order.floor
        programs = np.broadcast_to(attempt.programs[part.rows][:, None], cells.shape)
        foreign[foreign] = order.owners(cells[foreign]) != programs[foreign]
        if foreign.any():
            width = running.all_programs
            pairs = cells[foreign].astype(np.int64) * width + programs[foreign]
            unique, which = np.unique(pairs, return_inverse=True)
            unordered = np.array([not order.before(*divmod(pair, width))
                                  for pair in unique.tolist()])
            foreign[foreign] = unordered[which.reshape(-1)]
        return foreign if foreign.any() else None

    # -- notes ---------------------------------------------------------------------------------

    def _tell(self, code: str, kind: AccessKind, part: Part, lanes: Array,
              access: MemoryInstruction, **extra: Any) -> None:
        """A note about some elements, given as a mask over all elements of the part."""
        if lanes.any():
            index = part.region.element(part.place.indices().reshape(-1)[lanes], part.itemsize)
            programs = part.each(self._running.attempt.programs)[lanes]
            self._note(code, kind, access, part.region, programs, index, **extra)

    def _note(self, code: str, kind: AccessKind, access: MemoryInstruction, region: Region | None,
              programs: Array, index: Array, **extra: Any) -> None:
        """A note about elements at ``index``, each accessed by one of ``programs``."""
        running, attempt = self._running, self._running.attempt
        if access.rows == 1 and attempt.count > 1:  # all programs of the group did the same
            everyone, first = attempt.programs, np.ones(len(index), np.bool_)
        else:
            everyone, first = programs, programs == programs.min()
        own = index[first]
        data = MemoryAccess(kind, _ACTIONS[access.kind], len(np.unique(own)), int(own[0]),
                            int(everyone.min()), running.grid, region.name if region else "",
                            int(region.elements) if region else 0, **extra)
        attempt.notes.append(
            Note(code, access.line, data, frozenset(np.unique(everyone).tolist())))

    # -- cells and elements --------------------------------------------------------------------

    def _cells(self, part: Part, shadow: Shadow) -> Array:
        """[runs, cells of a run]."""
        cells: Array = shadow.get(part.cells).reshape(len(part.place.starts), -1)
        return cells

    @staticmethod
    def _lanes(part: Part, cells: Array) -> Array:
        """Returns the elements that have any of the cells."""
        return np.asarray(cells.reshape(part.size, -1).any(axis=1))

    @staticmethod
    def _per_run(values: Array, at: Runs) -> Array:
        """[runs, 1] for a place whose runs may be parts of the runs that ``values`` are for."""
        runs = len(at.starts)
        return (values if runs == len(values) else np.repeat(values, runs // len(values)))[:, None]


def wrapped(index: int, size: int) -> bool:
    """Whether an index outside a tensor of ``size`` elements is a right one cut to 32 bits."""
    if 0 <= index % _WRAP < size and size > _INT32_ELEMENTS:
        return True
    return size >= _INT32_ELEMENTS and (index < 0 or index >= 2 * size)


def _axes(asked: Set[int], grid: tuple[int, int, int]) -> str:
    """Returns why programs share elements, if the ``program_id`` axes explain it."""
    if not asked:
        return "unused"
    if all(grid[axis] == 1 for axis in asked):
        return "flat"
    return "part" if any(size > 1 and axis not in asked for axis, size in enumerate(grid)) else ""
