"""The rows of track 3, for `tests.benchmarks.kernels`: what was repaired, and how it was before."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it

from tests.benchmarks import peers
from tests.benchmarks.modules import solution
from tests.benchmarks.rows import ROUNDING, Inputs, Row, few, normal, short, side
from tests.benchmarks.rows_optimization import pair


def debugging_rows() -> list[Row]:
    return [*normalize_rows(), *memory_rows()]


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


# ---------------------------------------------------------------------------------------------
# track3/memory-debugging


def memory_rows() -> list[Row]:
    def places(scale: int, device: str) -> Inputs:
        x = normal(few(1 << 18, scale), 512, device=device)
        return x, torch.randint(0, x.shape[0], (x.shape[0],), device=device)

    return [
        Row("copy rows 16384 x 8192",
            lambda scale, device: (normal(side(16_384, scale), side(8_192, scale), device=device),),
            lambda x: x.double(),
            lambda: {"solution": solution("memory-debugging").copy_rows,
                     **peers.function(lambda x: x.clone())},
            least_bytes=lambda x: 2 * x.nbytes, goal=0.9),
        Row("gather 262144 rows of 512", places,
            lambda x, index: x.double()[index],
            lambda: {"solution": solution("memory-debugging").gather_rows,
                     **peers.function(lambda x, index: x[index])},
            least_bytes=lambda x, index: 2 * x.nbytes + index.nbytes, goal=0.9),
    ]
