"""An L2 cache of sectors that forgets the least recently used, fed by every access of a launch."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

import numpy as np

SECTOR = 32  # bytes


@dataclass
class Cache:
    """Counts the sectors that it reads from and writes to DRAM; ``flush`` writes what is left."""

    sectors: int
    loaded: int = 0
    stored: int = 0
    _kept: OrderedDict[int, bool] = field(default_factory=OrderedDict)  # whether it is dirty

    def touch(self, sector: int, *, reads: bool, writes: bool) -> None:
        dirty = self._kept.pop(sector, None)
        if dirty is None:
            self.loaded += reads
            if len(self._kept) >= self.sectors:
                self.stored += self._kept.popitem(last=False)[1]
        self._kept[sector] = bool(dirty) or writes

    def flush(self) -> None:
        self.stored += sum(self._kept.values())
        self._kept.clear()


Program = list[tuple[bool, bool, np.ndarray]]  # reads, writes, sectors of each access in order


def simulate(programs: list[Program], resident: int, l2_bytes: int) -> tuple[int, int]:
    """Bytes loaded from and stored to DRAM: ``resident`` programs take turns, access by access,
    and where one ends the next one starts."""
    cache = Cache(l2_bytes // SECTOR)
    waiting = deque(map(iter, programs))
    running = deque(waiting.popleft() for _ in range(min(resident, len(waiting))))
    while running:
        program = running.popleft()
        access = next(program, None)
        if access is not None:
            reads, writes, sectors = access
            for sector in sectors.tolist():
                cache.touch(sector, reads=reads, writes=writes)
            running.append(program)
        elif waiting:
            running.append(waiting.popleft())
    cache.flush()
    return cache.loaded * SECTOR, cache.stored * SECTOR
