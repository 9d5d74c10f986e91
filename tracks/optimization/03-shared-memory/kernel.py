"""Gram matrices, statistics of columns and a planner of tiles: right already, and slow.

    out[i, j] = sum_k x[i, k] * x[j, k]
    mean[c] = sum_r x[r, c] / R,   var[c] = sum_r (x[r, c] - mean[c])**2 / R

Shapes:  x has two dimensions, float16, bfloat16 or float32, any strides. `gram` gives a new matrix
         (M, M) of its dtype, `column_stats` two new vectors (C,) of float32.
Given:   two kernels and a planner. All three are right, and each of them fetches from memory what
         it could have kept on the chip. The check of the argument is fine.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Write these parts anew as you like.
           gram  DECIDE 1, 2 and 3      column_stats  DECIDE 4, 5, 6 and 7      plan_tiles  DECIDE 1
Judged:  values  as near as float32 sums allow, for all shapes, dtypes and strides; from the start
         cost    gram: at 256 x 256 in float16 at most three times the bytes of x and the result,
                 and at most 101,376 bytes of shared memory. column_stats: each element is read
                 once, 95 % of every sector is used, rows are merged by `tl.reduce`
         plans   what the docstring of `plan_tiles` says
         numbers in `PREDICT` within 15 %, counts exactly; a wrong one is explained and fails
                 nothing

`python kernel.py` runs six public cases, `tritonlab grade track2/shared-memory` runs all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)

# Write a number in place of each None, before you measure.
PREDICT = {
    # How often do the programs of `gram` below, together, load each element of a 256 x 256 x?
    "fetches_16": None,
    # How many bytes do they load and store then, if x is float16?
    "gram_16_bytes": None,
    # And how many would tiles of 128 x 128 load and store, one program for each of the four?
    "gram_128_bytes": None,
    # A step of such a tile holds two blocks of 128 x 64 elements of 2 bytes. How many bytes of
    # shared memory do three steps take that are in flight at the same time?
    "buffers": None,
    # How many bytes of shared memory does a program of vector addition take (track 1)?
    "shared_elementwise": None,
    # `column_stats` below reads pieces of columns. What share of each sector that it loads does it
    # use, from 0 to 1, if x is float32, contiguous and wide?
    "column_share": None,
    # A tree merges 32 partial results in pairs. How many merges is that in all, and how many levels
    # does the tree have?
    "merges": None,
    "levels": None,
}


@triton.jit
def gram_kernel(
    x_ptr, out_ptr,          # [M, K] with any strides; [M, M] without gaps
    M, K,
    stride_xm, stride_xk,    # elements
    BLOCK_M: tl.constexpr,   # rows and columns of a tile of out
    BLOCK_K: tl.constexpr,   # columns of x per step, at least 16
):
    """out[i, j] = sum_k x[i, k] * x[j, k]. One program owns one tile.

    It reads 2 * BLOCK_M * K elements.
    """
    # DECIDE 3: out[i, j] equals out[j, i], and both are computed. Which tiles are enough, how many
    #           are they, and how does a program find its own? Who writes the others?
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

    # DECIDE 2: on the diagonal of the result, a and b are the same block. What is loaded twice
    #           there, and what is there instead of the second load?
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
    """x @ x.T as a new contiguous matrix of x's dtype and device.

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
        ValueError: x does not have two dimensions.
    """
    check_argument(x)
    m, k = x.shape
    out = torch.empty((m, m), dtype=x.dtype, device=x.device)
    if m == 0:
        return out

    # DECIDE 1: with such tiles, every element of x is fetched once per 16 rows and once per 16
    #           columns of the result. What does a larger tile cost on the chip, and what bounds it?
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
    """Mean and variance of columns. One program owns one column and walks down its rows twice.

    Reads 2 * R * C elements and stores 2 * C floats.
    """
    # DECIDE 4: elements are rows, and a program is one column. Which of the two should adjacent
    #           threads be? And what has to be known of the rows so far, so that one walk is enough?
    col = tl.program_id(axis=0).to(tl.int64)
    rows = tl.arange(0, BLOCK_R)
    x_ptrs = x_ptr + col * stride_xc + rows.to(tl.int64) * stride_xr
    step_rows = tl.cast(BLOCK_R, tl.int64) * stride_xr
    first = tl.load(x_ptr + col * stride_xc).to(tl.float32)  # near the mean: differences are exact

    total = tl.zeros((BLOCK_R,), dtype=tl.float32)
    ptrs = x_ptrs
    for step in range(tl.cdiv(R, BLOCK_R)):
        in_r = rows < R - step * BLOCK_R
        x = tl.load(ptrs, mask=in_r, other=0.0).to(tl.float32)
        # DECIDE 6: rows that do not exist add nothing to a sum. What have they to be worth where
        #           statistics are merged instead?
        total += tl.where(in_r, x - first, 0.0)
        ptrs += step_rows
    mean = first + tl.sum(total, axis=0) / R

    # DECIDE 5: the second walk asks for the mean of all rows. If each element has a mean, a sum of
    #           squared distances from it and a count of its own, which are those of two of them
    #           together? `tl.reduce` makes a tree of a function that says so.
    squares = tl.zeros((BLOCK_R,), dtype=tl.float32)
    ptrs = x_ptrs
    for step in range(tl.cdiv(R, BLOCK_R)):
        in_r = rows < R - step * BLOCK_R
        x = tl.load(ptrs, mask=in_r, other=0.0).to(tl.float32)
        distance = tl.where(in_r, x - mean, 0.0)
        squares += distance * distance
        ptrs += step_rows

    # DECIDE 7: what is the sum of squares divided by, where the tree counts for itself?
    tl.store(mean_ptr + col, mean)
    tl.store(var_ptr + col, tl.sum(squares, axis=0) / R)


def column_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and biased variance of every column of x (R, C), as two new float32 vectors (C,).

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
    """Tiles of a product of (m, k) and (k, n): their sides, and what they cost.

    ``smem_bytes`` is the shared memory of a program, ``traffic_bytes`` what all programs load and
    store.
    """

    block_m: int
    block_n: int
    block_k: int
    smem_bytes: int
    traffic_bytes: int


def plan_tiles(m: int, n: int, k: int, itemsize: int, smem_bytes: int,
               *, num_stages: int = 3) -> TilePlan:
    """The tiles that move the fewest bytes among those whose buffers fit ``smem_bytes``.

    block_m and block_n are powers of two from 16 to 256 with at most 32,768 elements together,
    block_k one from 16 to 128. Each stage holds a tile of either matrix. Of plans that move as few
    bytes, the one with the larger block_k is taken, then the smaller tile, then the larger block_n.

    Args:
        m, n, k: sizes of the product, at least 1.
        itemsize: bytes of an element.
        smem_bytes: shared memory that a program may use.
        num_stages: steps that are held at the same time.

    Raises:
        ValueError: no tile fits.
    """
    # DECIDE 1: the first tile that fits, and so the smallest. What would the others cost? There are
    #           fewer than a hundred of them.
    block_m, block_n, block_k = 16, 16, 16
    needed = num_stages * (block_m + block_n) * block_k * itemsize
    if needed > smem_bytes:
        raise ValueError(f"smem_bytes: expected room for {num_stages} stages of two tiles of "
                         f"16 x 16 elements of {itemsize} bytes, got {smem_bytes}")
    # a is read once for each column of tiles, b once for each row of them
    elements = m * k * -(-n // block_n) + k * n * -(-m // block_m) + m * n
    return TilePlan(block_m, block_n, block_k, needed, elements * itemsize)


def check_argument(x: torch.Tensor) -> None:
    """Refuse what the contract does not cover, before anything is allocated or launched.

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
