"""What it costs to run programs for their addresses, in lanes: so that time is spent alike."""

from __future__ import annotations

import numpy as np

from grader.engine.interpreter.handle import Array
from grader.engine.survey.sampling import Access, Groups, Sampler, TooLong

_CHUNK_COST = 1 << 19  # of programs that are run at once
_RUN_COST = 8  # lanes whose time a run of neighbours costs on top of its own
TURNS = (9, 5, 3)  # of a loop that is cut


def in_chunks(sampler: Sampler, programs: Array, cost: float, *, silent: bool = False) -> Groups:
    """Run programs of a known cost, as many at once as fit the processor's cache."""
    chunk = max(1, int(_CHUNK_COST / cost))
    return [pair for at in range(0, len(programs), chunk)
            for pair in sampler.run(programs[at:at + chunk], silent=silent)]




def cost_of_one(sampler: Sampler, programs: int, wanted: float) -> float | None:
    """What a program costs, with as many turns of its loops as leave it at ``wanted`` or below, or
    the fewest; None where even that takes too long."""
    cost = None
    for turns in TURNS:
        sampler.memory.turns_run = turns
        try:
            cost = max(1.0, _cost(sampler.run(np.array([programs // 2]), silent=True)))
        except TooLong:
            continue
        if cost <= wanted:
            break
    return cost


def _cost(groups: Groups) -> float:
    """In lanes: what a program computes, and the runs of bytes that are kept of it."""
    return float(sum(lane_count(access) + _RUN_COST * len(access.first)
                     for _, trail in groups for access in trail.accesses))




def lane_count(access: Access) -> int:
    total = (len(access.first) * access.nbytes if isinstance(access.nbytes, int)
             else int(access.nbytes.sum()))
    return int(total) // access.itemsize
