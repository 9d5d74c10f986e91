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
    trial_1,
    trial_1_products,
    trial_2,
    trial_2_products,
    trial_3,
    trial_3_products,
    unseen,
    unseen_products,
)

HELD_OUT = (*trial_2.CASES, *trial_2_products.CASES, *trial_3.CASES, *trial_3_products.CASES)
"""Kernels that were timed before the timing model was fitted to them. Only their times count: their
defects are not listed, and they are not part of ``CASES``."""

CASES = (*(case for room in (elementwise, rows, transposes, reductions, gathers, products,
                            attention, loops, styles, strangers, steps)
           for case in room.family.cases), *unseen.CASES, *unseen_products.CASES,
         *trial_1.CASES, *trial_1_products.CASES)
