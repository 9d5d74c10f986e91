"""Finds loads of elements that the program itself stored without a barrier in between.

The elements of a block are distributed to the threads of a program, and the layout may change for
each access: the thread that loads an element need not be the one that stored it, even with the same
pointers and mask, and a scalar is stored by one thread and loaded by all. Threads of one warp issue
in order; different warps synchronize only at barriers.
"""

import numpy as np

from grader.engine.interpreter.address_space import Part, Storage
from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.happens_before import Order
from grader.engine.interpreter.shadow_memory import Shadow


class Recent:
    """The stores of an attempt since the last barrier, which its programs reach together.

    To note a store is all that it costs, until a program loads from a tensor that the launch stored
    into. Nothing has to be undone: an attempt that is rolled back takes its notes along.
    """

    def __init__(self) -> None:
        self._noted: dict[int, list[tuple[Part, int]]] = {}  # by the storage's id
        self._lines: dict[int, Shadow] = {}  # the notes as far as they were asked for, by cell

    def note(self, part: Part, line: int | None) -> None:
        """Elements were stored, or changed by an atomic that lets nobody wait."""
        storage = part.region.storage
        if part.itemsize >= storage.granule:
            self._noted.setdefault(id(storage), []).append((part, line or -1))

    def settle(self) -> None:
        """All threads of each program wait here for the others: they see what was stored."""
        self._noted.clear()
        self._lines.clear()

    def holds(self, storage: Storage) -> bool:
        """Whether anything of it was stored."""
        return id(storage) in self._noted or id(storage) in self._lines

    def lines(self, part: Part, cells: Array, programs: Array, order: Order) -> Array:
        """[runs, cells of a run]: the line of the last store to each cell, -1 if it is unknown.

        0 where the very program that looks at the cell did not store or change it since its last
        barrier.

        Args:
            cells: [runs, cells of a run], who stored or changed each of them last.
            programs: whose each run is.
        """
        storage = part.region.storage
        shadow = self._lines.get(id(storage))
        if shadow is None or shadow.cells != storage.shadow.cells:
            shadow = self._lines[id(storage)] = Shadow(storage.shadow.cells, 0)
        for stored, line in self._noted.pop(id(storage), ()):
            shadow.set(stored.cells, line)
        lines = shadow.get(part.cells).reshape(len(part.place.starts), -1)
        stored = lines != 0
        if stored.any():
            mine = np.broadcast_to(programs[:, None], cells.shape)
            lines[stored] *= order.owners(np.abs(cells[stored])) == mine[stored]
        return lines
