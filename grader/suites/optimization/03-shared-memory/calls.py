"""Calls the planner of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FIELDS = ("block_m", "block_n", "block_k", "smem_bytes", "traffic_bytes")


def plans(module: Any, problems: Sequence[Sequence[int]]) -> list[Any]:
    """Returns the fields of the plan for each (m, n, k, itemsize, smem_bytes, stages).

    0 stages mean the default.
    """
    answers = []
    for *problem, stages in problems:
        plan = module.plan_tiles(*problem, **({"num_stages": stages} if stages else {}))
        answers.append(tuple(getattr(plan, name) for name in FIELDS))
    return answers


def changed(module: Any) -> bool:
    """Returns whether a field of a plan can be assigned."""
    plan = module.plan_tiles(256, 256, 256, 2, 49_152)
    try:
        plan.block_m = 16
    except AttributeError:
        return False
    return True
