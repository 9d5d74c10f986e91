"""Launches at a small scale, whose DRAM traffic a simulated cache can tell exactly.

    python -m tests.support.survey_cases

prints the model's DRAM bytes beside the simulated ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from tests.support.lru import Program, simulate
from tests.support.surveys import Recorded

USABLE = 0.6  # of an L2 in the model; the simulated one keeps all that fits
SIZES = (256 << 10, 1 << 20, 4 << 20)


def streaming(to: Recorded) -> None:
    n = 1 << 19
    to.launch("add_kernel", n // 1024, resident=32, x_ptr=to.virtual(n), y_ptr=to.virtual(n),
              out_ptr=to.alloc(n), n=n, BLOCK_SIZE=1024)


def softmax_three_passes(to: Recorded) -> None:
    to.launch("softmax3_kernel", 128, resident=16, x_ptr=to.virtual(128, 4096),
              out_ptr=to.alloc(128, 4096), stride_m=4096, n_cols=4096, BLOCK_SIZE=1024)


def softmax_three_long_passes(to: Recorded) -> None:
    to.launch("softmax3_kernel", 48, resident=8, x_ptr=to.virtual(48, 16384),
              out_ptr=to.alloc(48, 16384), stride_m=16384, n_cols=16384, BLOCK_SIZE=512)


def layer_norm(to: Recorded) -> None:
    to.launch("layernorm_kernel", 128, resident=16, x_ptr=to.virtual(128, 4096),
              w_ptr=to.virtual(4096), b_ptr=to.virtual(4096), out_ptr=to.alloc(128, 4096),
              stride_m=4096, n_cols=4096, BLOCK_SIZE=4096)


def transpose(to: Recorded, rows: int, columns: int) -> None:
    to.launch("transpose_kernel", 1024 // columns, 512 // rows, resident=32,
              x_ptr=to.virtual(512, 1024), out_ptr=to.alloc(1024, 512), M=512, N=1024, BM=rows,
              BN=columns)


def tiled_transpose(to: Recorded) -> None:
    transpose(to, 32, 32)


def naive_transpose(to: Recorded) -> None:
    transpose(to, 1, 1024)


def column_softmax(to: Recorded) -> None:
    to.launch("colsoftmax_kernel", 512, resident=32, x_ptr=to.virtual(1024, 512),
              out_ptr=to.alloc(1024, 512), n_rows=1024, stride_m=512, BLOCK_SIZE=1024)


def matmul(to: Recorded, group: int, size: int = 768) -> None:
    to.launch("matmul_kernel", (size // 64) ** 2, resident=8,
              a_ptr=to.virtual(size, size, dtype="float16"),
              b_ptr=to.virtual(size, size, dtype="float16"),
              c_ptr=to.alloc(size, size, dtype="float16"), M=size, N=size, K=size, sam=size,
              sbk=size, scm=size, BM=64, BN=64, BK=32, GROUP=group)


def matmul_in_rows(to: Recorded) -> None:
    matmul(to, 1)


def matmul_in_groups(to: Recorded) -> None:
    matmul(to, 4)


def random_gather(to: Recorded) -> None:
    n, table = 1 << 17, 1 << 19
    index = torch.randint(table, (n,), generator=torch.Generator().manual_seed(0))
    to.launch("gather_kernel", n // 1024, resident=32, idx_ptr=to.real(index),
              table_ptr=to.virtual(table), out_ptr=to.alloc(n), n=n, BLOCK=1024)


def strided(to: Recorded) -> None:
    n = 1 << 17
    to.launch("strided_kernel", n // 1024, resident=32, x_ptr=to.virtual(4 * n),
              out_ptr=to.alloc(n), n=n, STRIDE=4, BLOCK=1024)


CASES: tuple[Callable[[Recorded], None], ...] = (
    streaming, softmax_three_passes, softmax_three_long_passes, layer_norm, tiled_transpose,
    naive_transpose, column_softmax, matmul_in_rows, matmul_in_groups, random_gather, strided)


def programs_of(to: Recorded) -> tuple[list[Program], int]:
    """Every access of every program of the first launch, and how many are resident."""
    sampler = to.whole()
    grid = sampler.memory.running.grid
    made: dict[int, Program] = {}
    storages: dict[int, int] = {}
    for group, trail in sampler.run(np.arange(grid[0] * grid[1] * grid[2])):
        for number in group.tolist():
            made[number] = []
        for access in trail.accesses:
            storage = id(sampler.region(access.key.region).storage)
            base = storages.setdefault(storage, len(storages)) << 40
            nbytes = np.broadcast_to(np.asarray(access.nbytes), access.first.shape)
            for row, number in enumerate(group.tolist()):
                mine = slice(None) if access.alike else access.rows == row
                sectors = np.unique(np.concatenate([
                    np.arange(first >> 5, (first + length - 1 >> 5) + 1)
                    for first, length in zip(access.first[mine].tolist(), nbytes[mine].tolist(),
                                             strict=True)] or [np.zeros(0, np.int64)]))
                kind = access.key.kind
                made[number].append((kind != "store", kind != "load", base + sectors))
    return [made[number] for number in sorted(made)], to.resident[0]


def main() -> None:
    print(f"{'case':28} {'L2':>8}  {'loaded: model':>22} {'simulated':>9} {'low':>5} {'high':>5}"
          f"  {'stored: model':>22} {'simulated':>9} {'low':>5} {'high':>5}")
    for case in CASES:
        with Recorded() as to:
            case(to)
            programs, resident = programs_of(to)
            for l2 in SIZES:
                made = to.one(round(l2 / USABLE), 32)
                row = f"{case.__name__:28} {l2 >> 10:5} KB"
                for model, real in zip((made.loaded, made.stored),
                                       simulate(programs, resident, l2), strict=True):
                    row += (f"  {model.low:>10}..{model.high:<10} {real:>9} "
                            f"{model.low / max(real, 1):5.2f} {model.high / max(real, 1):5.2f}")
                print(row, flush=True)


if __name__ == "__main__":
    main()
