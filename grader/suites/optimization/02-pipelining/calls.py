"""Calls the picker of stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def picks(module: Any, loops: Sequence[Sequence[int]]) -> list[Any]:
    """Returns the stages for each (tile_bytes, smem_limit, k_iters, max_stages)."""
    return [module.pick_num_stages(*one, max_stages=most) for *one, most in loops]


def picks_by_default(module: Any) -> Any:
    """Returns the stages for many small tiles with the default of max_stages."""
    return module.pick_num_stages(16, 1 << 20, 1_000)
