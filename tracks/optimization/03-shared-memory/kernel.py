"""Gram matrices, column statistics and a tile planner, all correct and slow.

    out[i, j] = sum_k x[i, k] * x[j, k]
    mean[c] = sum_r x[r, c] / R,   var[c] = sum_r (x[r, c] - mean[c])**2 / R

Shapes:  x has two dimensions, float16, bfloat16 or float32, any strides. `gram` gives a new matrix
         (M, M) of its dtype, `column_stats` two new vectors (C,) of float32.
Given:   two kernels and a planner. All three are correct, and each loads again from memory what it
         could have kept on the chip. The argument check is complete.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Rewrite these parts as you like.
           gram  DECIDE 1 to 3      column_stats  DECIDE 4 to 7      plan_tiles  DECIDE 8
Graded:  values  within the rounding of float32 sums, for all shapes, dtypes and strides, as in the
                 given code
         cost    gram: for 256 x 256 in float16 at most three times the bytes of x and the result,
                 and at most 101,376 bytes of shared memory. column_stats: each element is loaded
                 once, loads use 95 % of the bytes of their sectors, `tl.reduce` merges the rows
         plans   the docstring of `plan_tiles`
         numbers in `PREDICT` within 15 %, counts exactly; a wrong number is explained and fails
                 nothing

`python kernel.py` runs six public cases, `tritonlab grade track2/shared-memory` runs all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)

# Replace each None by a number before you measure.
PREDICT = {
    # How often is each element of a 256 x 256 matrix x loaded by all programs of `gram` together?
    "fetches_16": None,
    # How many bytes do they load and store if x is float16?
    "gram_16_bytes": None,
    # And how many with tiles of 128 x 128, one program for each of the four tiles?
    "gram_128_bytes": None,
    # One step of such a tile needs two blocks of 128 x 64 elements of 2 bytes. How many bytes of
    # shared memory do three steps in flight take?
    "buffers": None,
    # How many bytes of shared memory does a program of vector addition use (track 1)?
    "shared_elementwise": None,
    # `column_stats` below loads pieces of columns. What share of each loaded sector's bytes does it
    # use (0 to 1), if x is float32, contiguous and wide?
    "column_share": None,
    # A tree merges 32 partial results in pairs. How many merges does it do, and how many levels
    # does it have?
    "merges": None,
    "levels": None,
}


@triton.jit
def gram_kernel(
    x_ptr, out_ptr,          # [M, K] with any strides; [M, M] contiguous
    M, K,
    stride_xm, stride_xk,    # elements
    BLOCK_M: tl.constexpr,   # rows and columns of a tile of out
    BLOCK_K: tl.constexpr,   # columns of x per step, at least 16
):
    """out[i, j] = sum_k x[i, k] * x[j, k]. One program owns one tile.

    It loads 2 * BLOCK_M * K elements.
    """
    # DECIDE 1: out[i, j] equals out[j, i], and both are computed. Which tiles are enough, how many
    #           are there, and how does a program find its own? Which program writes the other
    #           tiles?
    row = tl.program_id(axis=0)
    col = tl.program_id(axis=1)

    offs_i = row.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # row * stride passes 2**31
    offs_j = col.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    in_i = offs_i < M
    in_j = offs_j < M
    a_ptrs = x_ptr + offs_i[:, None] * stride_xm + offs_k[None, :] * stride_xk
    b_ptrs = x_ptr + offs_j[:, None] * stride_xm + offs_k[None, :] * stride_xk
    k_step = tl.cast(BLOCK_K, tl.int64) * stride_xk
    acc = tl.zeros((BLOCK_M, BLOCK_M), dtype=tl.float32)

    # DECIDE 2: on the diagonal of the result, a and b are the same block. Which load can be left
    #           out there, and which value replaces it in the product?
    for step in range(tl.cdiv(K, BLOCK_K)):
        in_k = offs_k < K - step * BLOCK_K
        a = tl.load(a_ptrs, mask=in_i[:, None] & in_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_j[:, None] & in_k[None, :], other=0.0)
        acc = tl.dot(a, tl.trans(b), acc, input_precision="ieee")  # no TF32 for float32
        a_ptrs += k_step
        b_ptrs += k_step

    tile = acc.to(out_ptr.dtype.element_ty)
    mask = in_i[:, None] & in_j[None, :]
    tl.store(out_ptr + offs_i[:, None] * M + offs_j[None, :], tile, mask=mask)


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

    # DECIDE 3: with these tiles, each element of x is loaded once per 16 rows and once per 16
    #           columns of the result. What does a larger tile cost on the chip, and what limits its
    #           size?
    block_m, block_k = 16, 16
    tiles = triton.cdiv(m, block_m)
    gram_kernel[(tiles, tiles)](
        x, out, m, k, x.stride(0), x.stride(1), BLOCK_M=block_m, BLOCK_K=block_k
    )
    return out


@triton.jit
def column_stats_kernel(
    x_ptr,                   # [R, C] with any strides
    mean_ptr, var_ptr,       # [C]
    R,
    stride_xr, stride_xc,    # elements
    BLOCK_R: tl.constexpr,   # rows per step
):
    """Mean and variance of columns. One program owns one column and reads its rows twice.

    Loads 2 * R * C elements and stores 2 * C floats.
    """
    # DECIDE 4: the block runs along the rows of one column. Along which dimension should adjacent
    #           threads be? And which statistics of the rows read so far make a single pass enough?
    col = tl.program_id(axis=0).to(tl.int64)
    rows = tl.arange(0, BLOCK_R)
    x_ptrs = x_ptr + col * stride_xc + rows.to(tl.int64) * stride_xr
    step_rows = tl.cast(BLOCK_R, tl.int64) * stride_xr
    first = tl.load(x_ptr + col * stride_xc).to(tl.float32)  # a shift: less cancellation in sums

    total = tl.zeros((BLOCK_R,), dtype=tl.float32)
    ptrs = x_ptrs
    for step in range(tl.cdiv(R, BLOCK_R)):
        in_r = rows < R - step * BLOCK_R
        x = tl.load(ptrs, mask=in_r, other=0.0).to(tl.float32)
        # DECIDE 5: rows past the end add nothing to a sum. Which count, mean and sum of squares
        #           must they have when statistics are merged instead?
        total += tl.where(in_r, x - first, 0.0)
        ptrs += step_rows
    mean = first + tl.sum(total, axis=0) / R

    # DECIDE 6: the second pass needs the mean of all rows. If each element of a block keeps its own
    #           mean, sum of squared distances and count, what are the mean, sum and count of two
    #           elements together? `tl.reduce` makes a tree of a function that merges two.
    squares = tl.zeros((BLOCK_R,), dtype=tl.float32)
    ptrs = x_ptrs
    for step in range(tl.cdiv(R, BLOCK_R)):
        in_r = rows < R - step * BLOCK_R
        x = tl.load(ptrs, mask=in_r, other=0.0).to(tl.float32)
        distance = tl.where(in_r, x - mean, 0.0)
        squares += distance * distance
        ptrs += step_rows

    # DECIDE 7: the tree can also count rows. By which number is the sum of squares divided?
    tl.store(mean_ptr + col, mean)
    tl.store(var_ptr + col, tl.sum(squares, axis=0) / R)


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

    column_stats_kernel[(n_cols,)](
        x, mean, var, n_rows, x.stride(0), x.stride(1), BLOCK_R=128
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
    # DECIDE 8: this is the first tile that fits, and so the smallest. What do the others cost?
    #           There are fewer than a hundred of them.
    block_m, block_n, block_k = 16, 16, 16
    needed = num_stages * (block_m + block_n) * block_k * itemsize
    if needed > smem_bytes:
        raise ValueError(f"smem_bytes: expected room for {num_stages} stages of two tiles of "
                         f"16 x 16 elements of {itemsize} bytes, got {smem_bytes}")
    # a is loaded once per column of tiles, b once per row of tiles
    elements = m * k * -(-n // block_n) + k * n * -(-m // block_m) + m * n
    return TilePlan(block_m, block_n, block_k, needed, elements * itemsize)


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
