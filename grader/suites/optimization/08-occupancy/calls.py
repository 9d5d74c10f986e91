"""Calls the planners of occupancy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LIMITS = ("name", "num_sms", "regs_per_sm", "smem_per_sm", "smem_per_block", "max_warps_per_sm",
          "max_blocks_per_sm")
FIELDS = ("blocks_per_sm", "warps_per_sm", "fraction", "limiter")


def limits(module: Any, names: Sequence[str]) -> list[list[Any]]:
    """Returns the fields of ``device_limits`` for each name."""
    return [[getattr(module.device_limits(name), field) for field in LIMITS] for name in names]


def limits_at_hand(module: Any) -> list[Any]:
    """Returns the fields of ``device_limits`` without a name."""
    return [getattr(module.device_limits(), field) for field in LIMITS]


def occupancies(module: Any, kernels: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Returns the fields of ``occupancy`` for each (registers, shared, warps, device)."""
    answers = [module.occupancy(*kernel, module.device_limits(name)) for *kernel, name in kernels]
    return [[getattr(answer, field) for field in FIELDS] for answer in answers]


def grids(module: Any, launches: Sequence[Sequence[Any]]) -> list[Any]:
    """Returns the result of ``persistent_grid`` for each (device, blocks per SM, tiles)."""
    return [module.persistent_grid(module.device_limits(name),
                                   module.Occupancy(blocks, blocks, blocks / 64, "warps"), tiles)
            for name, blocks, tiles in launches]


def frozen(module: Any) -> list[str]:
    """Returns the classes with a field that could be assigned."""
    changed = []
    for value, field in ((module.device_limits("h100"), "num_sms"),
                         (module.occupancy(32, 0, 4, module.device_limits("h100")), "limiter")):
        try:
            setattr(value, field, getattr(value, field))
        except AttributeError:
            continue
        changed.append(type(value).__name__)
    return changed
