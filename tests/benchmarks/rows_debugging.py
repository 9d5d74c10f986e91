"""The rows of track 3, for `tests.benchmarks.kernels`: what was repaired, and how it was before."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it

from tests.benchmarks import peers
from tests.benchmarks.rows import ROUNDING, Row, few, normal, short
from tests.benchmarks.rows_optimization import pair


def debugging_rows() -> list[Row]:
    return normalize_rows()


# ---------------------------------------------------------------------------------------------
# track3/performance-profiling


def normalize_rows() -> list[Row]:
    """Its threshold is for 16,384 x 4,096 floats; narrow rows show what a program each costs."""
    sizes = ((16_384, 4_096, torch.float32, 1.0), (16_384, 4_096, torch.float16, 1.0),
             (8_192, 16_384, torch.float32, None), (1 << 20, 64, torch.float32, None))
    return [Row(
        f"rows to norm 1 {short(dtype)} {rows}x{columns}",
        lambda scale, device, rows=rows, columns=columns, dtype=dtype: (
            normal(few(rows, scale, 3), columns, dtype=dtype, device=device),),
        lambda x: F.normalize(x.double()),
        lambda: {**pair("performance-profiling", lambda module: module.row_l2_normalize),
                 **peers.function(F.normalize)},
        least_bytes=lambda x: 2 * x.nbytes, goal=goal, tolerance=ROUNDING[dtype],
    ) for rows, columns, dtype, goal in sizes]
