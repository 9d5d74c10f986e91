"""All cases of the performance set."""

from __future__ import annotations

from . import (
    attention,
    elementwise,
    formerly_held_out,
    formerly_held_out_products,
    gathers,
    held_out,
    held_out_products,
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

HELD_OUT = (*held_out.CASES, *held_out_products.CASES)
"""Kernels that the timing model was not fitted to. Only their times count: their defects are not
listed, and they are not part of ``CASES``."""

CASES = (*(case for room in (elementwise, rows, transposes, reductions, gathers, products,
                            attention, loops, styles, strangers, steps)
           for case in room.family.cases), *unseen.CASES, *unseen_products.CASES,
         *formerly_held_out.CASES, *formerly_held_out_products.CASES)
