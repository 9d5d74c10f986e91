"""Calls the chooser of groups, and reads predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def groups(module: Any, problems: Sequence[Sequence[int]]) -> list[Any]:
    """What ``choose_groups`` answers for each (n, l2_bytes, num_programs)."""
    return [module.choose_groups(*problem) for problem in problems]


def prediction(module: Any, name: str) -> Any:
    """The number that was written down; what is none as text, and None where there is nothing."""
    value = module.PREDICT.get(name)
    return value if value is None or isinstance(value, int | float) else repr(value)
