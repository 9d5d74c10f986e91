"""All cases of the performance set."""

from __future__ import annotations

from . import (
    attention,
    elementwise,
    gathers,
    loops,
    products,
    reductions,
    rows,
    styles,
    transposes,
)

CASES = tuple(case for room in (elementwise, rows, transposes, reductions, gathers, products,
                                attention, loops, styles)
              for case in room.family.cases)
