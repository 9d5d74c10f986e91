"""Which rows of a parametrized test run in the default tier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def by_default(number: int, rows: Iterable[Any]) -> list[Any]:
    """Leaves the first rows in the default tier and marks all others for the course tier."""
    first, rest = (rows := list(rows))[:number], rows[number:]
    return [*first, *(pytest.param(*(row if isinstance(row, tuple) else (row,)),
                                   marks=pytest.mark.course) for row in rest)]
