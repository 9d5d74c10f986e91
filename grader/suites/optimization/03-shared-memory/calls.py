"""Calls the planner of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FIELDS = ("block_m", "block_n", "block_k", "smem_bytes", "traffic_bytes")


def plans(module: Any, problems: Sequence[Sequence[int]]) -> list[Any]:
    """The fields of what ``plan_tiles`` answers for each (m, n, k, itemsize, smem_bytes, stages).

    Where the last is 0, nobody says how many stages there are.
    """
    answers = []
    for *problem, stages in problems:
        plan = module.plan_tiles(*problem, **({"num_stages": stages} if stages else {}))
        answers.append(tuple(getattr(plan, name) for name in FIELDS))
    return answers


def changed(module: Any) -> bool:
    """Whether a field of a plan can be given another value."""
    plan = module.plan_tiles(256, 256, 256, 2, 49_152)
    try:
        plan.block_m = 16
    except AttributeError:
        return False
    return True
