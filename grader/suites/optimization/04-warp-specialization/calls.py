"""Calls the order of tiles and the choice of GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def orders(module: Any, fields: Sequence[Sequence[int]]) -> list[list[int]]:
    """Returns the order of tiles for each (tiles down, tiles across, group_m)."""
    return [order(module, *field) for field in fields]


def order(module: Any, rows: int, cols: int, group_m: int) -> list[int]:
    """Returns the row-major index of each program's tile."""
    field = torch.arange(rows * cols, dtype=torch.int32).view(rows, cols)
    return module.walk_tiles(field, group_m=group_m).tolist()


def gate(module: Any, capability: Sequence[int]) -> Any:
    """Returns the result of ``use_warp_specialization`` for a GPU."""
    return module.use_warp_specialization(tuple(capability))
