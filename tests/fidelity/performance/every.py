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
    steps,
    strangers,
    styles,
    transposes,
    unseen,
    unseen_products,
)

UNSEEN = (*unseen.CASES, *unseen_products.CASES)
"""Kernels that the timing model was not fitted to."""

CASES = (*(case for room in (elementwise, rows, transposes, reductions, gathers, products,
                            attention, loops, styles, strangers, steps)
           for case in room.family.cases), *UNSEEN)
