"""The rows of track 3, for `tests.benchmarks.kernels`."""

from __future__ import annotations

import torch

from tests.benchmarks import peers
from tests.benchmarks.modules import solution
from tests.benchmarks.rows import Inputs, Row, few, normal, side

# ---------------------------------------------------------------------------------------------
# memory-debugging


def memory_debugging_rows() -> list[Row]:
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
