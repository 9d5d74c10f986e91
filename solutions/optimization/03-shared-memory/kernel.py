"""Gram matrices, column statistics and a tile planner that reuse data on the chip.

    out[i, j] = sum_k x[i, k] * x[j, k]
    mean[c] = sum_r x[r, c] / R,   var[c] = sum_r (x[r, c] - mean[c])**2 / R

A Gram matrix is symmetric, so only the tiles on and below its diagonal are computed. Each loads two
blocks of rows through shared memory; a tile on the diagonal loads one and uses it twice. Each tile
above the diagonal is stored as the transpose of the one below it.

The statistics read the rows once. Each element of a BLOCK_R x BLOCK_C block keeps its own mean and
sum of squared distances in registers, and a tree reduction merges them per column at the end.

Cost: about M * M * K FLOP for the Gram matrix, half of a full product. Its tiles load M * M * K /
BLOCK_M elements and store M * M. The statistics load R * C elements and store 2 * C floats.

Inputs: float16, bfloat16 or float32, any strides; the statistics need at least one row.
Result: a new contiguous matrix of x's dtype; two new float32 vectors.

Precision: products and sums are float32, without TF32. Distances from the mean are squared, never
the values themselves, so a large mean causes no cancellation.

Source: pairwise merging is in T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for Computing the
Sample Variance", 1983; adding one value at a time is B. P. Welford's method of 1962.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)

PREDICT = {
    "fetches_16": 32,  # 256 / 16 columns of tiles read a row, and as many rows of tiles
    "gram_16_bytes": (2 * 256 * 256 * 16 + 256 * 256) * 2,
    "gram_128_bytes": (2 * 256 * 256 * 2 + 256 * 256) * 2,
    "buffers": 3 * (128 + 128) * 64 * 2,
    "shared_elementwise": 0,  # no thread needs a value of another one
    "column_share": 0.125,  # 4 bytes of each 32
    "merges": 31,  # each makes one of two
    "levels": 5,
}


@triton.jit
def gram_kernel(
    x_ptr, out_ptr,          # [M, K] with any strides; [M, M] contiguous
    M, K,
    stride_xm, stride_xk,    # elements
    BLOCK_M: tl.constexpr,   # rows and columns of a tile of out
    BLOCK_K: tl.constexpr,   # columns of x per step, at least 16
):
    """out[i, j] = sum_k x[i, k] * x[j, k]. One program owns one tile and its mirror image.

    It loads 2 * BLOCK_M * K elements, half as many on the diagonal.
    """
    # Tiles of the lower half are numbered row by row: row r starts with tile r * (r + 1) / 2. The
    # root gives the row, and float32 may round it to a neighbor.
    pid = tl.program_id(axis=0)
    row = ((tl.sqrt(8.0 * pid + 1.0) - 1.0) * 0.5).to(tl.int32)
    row -= (row * (row + 1) // 2 > pid).to(tl.int32)
    row += ((row + 1) * (row + 2) // 2 <= pid).to(tl.int32)
    col = pid - row * (row + 1) // 2

    offs_i = row.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # row * stride passes 2**31
    offs_j = col.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    in_i = offs_i < M
    in_j = offs_j < M
    a_ptrs = x_ptr + offs_i[:, None] * stride_xm + offs_k[None, :] * stride_xk
    b_ptrs = x_ptr + offs_j[:, None] * stride_xm + offs_k[None, :] * stride_xk
    k_step = tl.cast(BLOCK_K, tl.int64) * stride_xk
    acc = tl.zeros((BLOCK_M, BLOCK_M), dtype=tl.float32)

    # Two loops instead of a branch in one: the compiler pipelines only unconditional loads.
    if row == col:
        for step in range(tl.cdiv(K, BLOCK_K)):
            in_k = offs_k < K - step * BLOCK_K
            a = tl.load(a_ptrs, mask=in_i[:, None] & in_k[None, :], other=0.0)
            acc = tl.dot(a, tl.trans(a), acc, input_precision="ieee")  # no TF32 for float32
            a_ptrs += k_step
    else:
        for step in range(tl.cdiv(K, BLOCK_K)):
            in_k = offs_k < K - step * BLOCK_K
            a = tl.load(a_ptrs, mask=in_i[:, None] & in_k[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=in_j[:, None] & in_k[None, :], other=0.0)
            acc = tl.dot(a, tl.trans(b), acc, input_precision="ieee")
            a_ptrs += k_step
            b_ptrs += k_step

    tile = acc.to(out_ptr.dtype.element_ty)
    mask = in_i[:, None] & in_j[None, :]
    tl.store(out_ptr + offs_i[:, None] * M + offs_j[None, :], tile, mask=mask)
    if row != col:  # the mirror image: rows and columns of this tile exchanged
        mirror = out_ptr + offs_j[:, None] * M + offs_i[None, :]
        tl.store(mirror, tl.trans(tile), mask=in_j[:, None] & in_i[None, :])


def gram(x: torch.Tensor) -> torch.Tensor:
    """Returns x @ x.T as a new contiguous matrix of x's dtype and device.

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
        ValueError: x does not have two dimensions.
    """
    check_argument(x)
    m, k = x.shape
    out = torch.empty((m, m), dtype=x.dtype, device=x.device)
    if m == 0:
        return out

    # Three stages of two 128 x 64 blocks in 16 bits take 96 KiB of shared memory, which every GPU
    # since 2020 has; tiles of 128 x 128 load each element at most M / 128 times. float32 without
    # TF32 uses no tensor cores and keeps its blocks in registers, hence smaller tiles.
    if x.dtype == torch.float32:
        block_m, block_k, warps = 64, 16, 8
    else:
        block_m, block_k, warps = 128, 64, 8
    tiles = triton.cdiv(m, block_m)
    gram_kernel[(tiles * (tiles + 1) // 2,)](
        x, out, m, k, x.stride(0), x.stride(1),
        BLOCK_M=block_m, BLOCK_K=block_k, num_warps=warps, num_stages=3,
    )
    return out


@triton.jit
def merge(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    """Merges mean, sum of squared distances and count of two sets of values.

    An empty set is neutral, and two empty sets merge to an empty one.
    """
    n = n_a + n_b
    share = n_b / tl.maximum(n, 1.0)  # 0 / 0 would be NaN
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def column_stats_kernel(
    x_ptr,                   # [R, C] with any strides
    mean_ptr, var_ptr,       # [C]
    R, C,
    stride_xr, stride_xc,    # elements
    BLOCK_R: tl.constexpr,   # rows per step
    BLOCK_C: tl.constexpr,   # columns per program
):
    """Mean and variance of columns. One program owns BLOCK_C columns and reads their rows once.

    Loads R * C elements and stores 2 * C floats.
    """
    cols = tl.program_id(axis=0) * BLOCK_C + tl.arange(0, BLOCK_C)
    rows = tl.arange(0, BLOCK_R)
    in_c = cols < C
    x_ptrs = (x_ptr + rows.to(tl.int64)[:, None] * stride_xr
              + cols.to(tl.int64)[None, :] * stride_xc)
    step_rows = tl.cast(BLOCK_R, tl.int64) * stride_xr

    # Every element of the block starts with no value.
    mean = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    m2 = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    count = tl.zeros((BLOCK_R,), dtype=tl.float32)

    # No `tl.dot` is in this loop, so only `tl.range` can ask for a pipeline.
    for step in tl.range(0, tl.cdiv(R, BLOCK_R), num_stages=3):
        in_r = rows < R - step * BLOCK_R
        x = tl.load(x_ptrs, mask=in_r[:, None] & in_c[None, :], other=0.0).to(tl.float32)
        delta = tl.where(in_r[:, None], x - mean, 0.0)  # 0 in padding rows: they change nothing
        mean += delta * (1.0 / (step + 1))
        m2 += delta * (x - mean)
        count += in_r.to(tl.float32)
        x_ptrs += step_rows

    n = tl.broadcast_to(count[:, None], (BLOCK_R, BLOCK_C))
    mean_c, m2_c, n_c = tl.reduce((mean, m2, n), 0, merge)

    tl.store(mean_ptr + cols, mean_c, mask=in_c)
    tl.store(var_ptr + cols, m2_c / n_c, mask=in_c)


def column_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns mean and biased variance of every column of x (R, C), as two float32 vectors (C,).

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
        ValueError: x does not have two dimensions, or it has no row.
    """
    check_argument(x)
    n_rows, n_cols = x.shape
    if n_rows == 0:
        raise ValueError(f"x: expected at least one row, got shape {tuple(x.shape)}")
    mean = torch.empty(n_cols, dtype=torch.float32, device=x.device)
    var = torch.empty_like(mean)
    if n_cols == 0:
        return mean, var

    # 32 columns are 4 whole sectors of float32, 2 of float16. Narrow blocks make many programs: for
    # 8,192 columns on an H200, 128 x 32 reaches 84 % of the speed of a copy, and 32 x 128 reaches
    # 49 %, because its 64 programs leave half of the SMs idle.
    block_r, block_c = 128, 32
    column_stats_kernel[(triton.cdiv(n_cols, block_c),)](
        x, mean, var, n_rows, n_cols, x.stride(0), x.stride(1),
        BLOCK_R=block_r, BLOCK_C=block_c, num_warps=8,  # 16 elements of the block per thread
    )
    return mean, var


@dataclass(frozen=True)
class TilePlan:
    """Tiles of a product of (m, k) and (k, n): their sides and their cost.

    ``smem_bytes`` is the shared memory of a program; ``traffic_bytes`` is the sum of all loads and
    stores.
    """

    block_m: int
    block_n: int
    block_k: int
    smem_bytes: int
    traffic_bytes: int


def plan_tiles(m: int, n: int, k: int, itemsize: int, smem_bytes: int,
               *, num_stages: int = 3) -> TilePlan:
    """Returns the tiles with the least traffic among those whose buffers fit in ``smem_bytes``.

    block_m and block_n are powers of two from 16 to 256, and their product is at most 32,768;
    block_k is a power of two from 16 to 128. Each stage holds one tile of each matrix. Among plans
    with equal traffic, the larger block_k wins, then the smaller tile, then the larger block_n.

    Args:
        m, n, k: sizes of the product, at least 1.
        itemsize: bytes per element.
        smem_bytes: shared memory available to a program.
        num_stages: steps whose tiles are in shared memory at the same time.

    Raises:
        ValueError: no tile fits.
    """
    plans = []
    for block_m in (16, 32, 64, 128, 256):
        for block_n in (16, 32, 64, 128, 256):
            for block_k in (16, 32, 64, 128):
                needed = num_stages * (block_m + block_n) * block_k * itemsize
                if block_m * block_n <= 32_768 and needed <= smem_bytes:
                    # a is loaded once per column of tiles, b once per row of tiles
                    elements = m * k * -(-n // block_n) + k * n * -(-m // block_m) + m * n
                    plans.append(TilePlan(block_m, block_n, block_k, needed, elements * itemsize))
    if not plans:
        raise ValueError(f"smem_bytes: expected room for {num_stages} stages of two tiles of "
                         f"16 x 16 elements of {itemsize} bytes, got {smem_bytes}")
    return min(plans, key=lambda plan: (plan.traffic_bytes, -plan.block_k,
                                        plan.block_m * plan.block_n, -plan.block_n))


def check_argument(x: torch.Tensor) -> None:
    """Refuses arguments outside the contract, before anything is allocated or launched.

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
        ValueError: x does not have two dimensions.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in SUPPORTED:
        names = ", ".join(str(dtype) for dtype in SUPPORTED)
        raise TypeError(f"x: expected one of {names}, got {x.dtype}")
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got {x.dim()} in shape {tuple(x.shape)}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
