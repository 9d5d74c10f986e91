"""Asks for the order of tiles, and for the choice of a feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def orders(module: Any, fields: Sequence[Sequence[int]]) -> list[list[int]]:
    """Which tile each program owns, for each (tiles down, tiles across, group_m)."""
    return [order(module, *field) for field in fields]


def order(module: Any, rows: int, cols: int, group_m: int) -> list[int]:
    """The number of each program's tile; tiles are numbered row by row."""
    field = torch.arange(rows * cols, dtype=torch.int32).view(rows, cols)
    return module.walk_tiles(field, group_m=group_m).tolist()


def gate(module: Any, capability: Sequence[int]) -> Any:
    """Whether ``use_warp_specialization`` wants the option for a GPU."""
    return module.use_warp_specialization(tuple(capability))
