"""Calls the chooser of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def groups(module: Any, problems: Sequence[Sequence[int]]) -> list[Any]:
    """Returns the groups for each (n, l2_bytes, num_programs)."""
    return [module.choose_groups(*problem) for problem in problems]
