"""Transposing a batch of matrices by tiles that are wide in both directions, and two planners.

    out[b, n, m] = x[b, m, n]

Every program owns one tile: adjacent threads load adjacent columns of it and store adjacent rows.
Between the two, the compiler moves the elements to other threads, through shared
memory.

Cost: x is read once and out is written once: 2 * B * M * N * itemsize bytes and no operation. Bytes
move in sectors of 32. A tile whose rows and columns both fill sectors moves no other bytes; a piece
of one row or one column moves 32 bytes for each element on one of its sides.

Inputs: three dimensions, elements of 1, 2, 4 or 8 bytes, any strides. The transposed view of a
matrix, a slice, one matrix repeated B times (stride 0): all are read where they are.
Result: a new contiguous tensor (B, N, M); the input stays as it is, every bit arrives.

Source: tiles through shared memory are the classical remedy, in G. Ruetsch, P. Micikevicius,
"Optimizing Matrix Transpose in CUDA", 2009; here the compiler makes that step. Interleaved repeats
and medians against drift and outliers: T. Mytkowicz and others, "Producing Wrong Data Without Doing
Anything Obviously Wrong!", ASPLOS 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch
import triton
import triton.language as tl

SECTOR = 32  # bytes; memory moves nothing smaller
MAX_ELEMENTS = 4096  # of a tile: with 4 warps, each of 128 threads holds 32 of them
ALIKE = 1.02  # medians this close to the fastest are a tie

SUPPORTED = (
    torch.int8, torch.uint8, torch.int16, torch.float16, torch.bfloat16,
    torch.int32, torch.float32, torch.int64, torch.float64,
)

PREDICT = {
    "column_share": 0.125,  # 4 bytes of each 32
    "column_share_int64": 0.25,
    "least_bytes": 2 * 256 * 256 * 4,
    "column_bytes": 256 * 256 * 32 + 256 * 256 * 4,  # a sector for each load, and the stores
    "programs": 3 * 16 * 16,
    "sweep_calls": 6 * 5,
}


@triton.jit
def transpose_kernel(
    x_ptr, out_ptr,                  # [B, M, N] with any strides; [B, N, M] without gaps
    stride_xb, stride_xm, stride_xn,
    M, N,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,  # rows and columns of a tile of x
):
    """out[b, n, m] = x[b, m, n]. One program owns BLOCK_M rows and BLOCK_N columns of x[b].

    Moves 2 * B * M * N * itemsize bytes: each element is loaded once and stored once.
    """
    batch = tl.program_id(axis=0).to(tl.int64)  # batch * stride passes 2**31
    rows = tl.program_id(axis=1) * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    cols = tl.program_id(axis=2) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
    mask = (rows < M)[:, None] & (cols < N)[None, :]

    x_ptrs = x_ptr + batch * stride_xb + rows[:, None] * stride_xm + cols[None, :] * stride_xn
    tile = tl.load(x_ptrs, mask=mask)

    # A row of the result is a column of the tile: here rows are adjacent.
    out_ptrs = out_ptr + batch * M * N + cols[None, :] * M + rows[:, None]
    tl.store(out_ptrs, tile, mask=mask)


def batched_transpose(x: torch.Tensor) -> torch.Tensor:
    """The matrices of ``x`` (B, M, N) transposed, as a new contiguous tensor (B, N, M).

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
        ValueError: x does not have three dimensions.
    """
    check_argument(x)
    n_batch, m, n = x.shape
    out = x.new_empty((n_batch, n, m))
    if out.numel() == 0:
        return out

    block_m, block_n = choose_tile(m, n, x.element_size())
    # Axis 0 takes 2**31 - 1 programs, the others 65,535: of many small matrices the batch is long.
    grid = (n_batch, triton.cdiv(m, block_m), triton.cdiv(n, block_n))
    transpose_kernel[grid](
        x, out, x.stride(0), x.stride(1), x.stride(2), m, n, BLOCK_M=block_m, BLOCK_N=block_n
    )
    return out


def choose_tile(m: int, n: int, itemsize: int) -> tuple[int, int]:
    """Rows and columns of a tile for matrices of m rows and n columns, both powers of two.

    A tile has at most ``MAX_ELEMENTS``, no side is longer than the next power of two of the
    matrix's, and each fills a sector where the matrix is that large.

    Args:
        m, n: sides of a matrix, at least 1.
        itemsize: bytes of an element: 1, 2, 4 or 8.
    """
    least = SECTOR // itemsize
    side = max(least, 64 if itemsize <= 4 else 32)
    rows, cols = (min(triton.next_power_of_2(length), side) for length in (m, n))
    if cols < side:  # a narrow matrix leaves room for more rows, and a flat one for more columns
        rows = min(triton.next_power_of_2(m), MAX_ELEMENTS // cols)
    elif rows < side:
        cols = min(triton.next_power_of_2(n), MAX_ELEMENTS // rows)
    return rows, cols


@dataclass(frozen=True)
class SweepResult:
    """Result of a sweep. ``table`` has (candidate, median in ms, spread) sorted by candidate.

    The spread is (slowest - fastest) / median of the calls that count.
    """

    best: int
    table: tuple[tuple[int, float, float], ...]


def sweep_block_sizes(
    time_ms: Callable[[int], float], candidates: Sequence[int], *, repeats: int = 5
) -> SweepResult:
    """Time every candidate ``repeats`` times and name the smallest of the fastest.

    The calls go round: each candidate once, then each again, so that a GPU that slows down while it
    gets warm slows all of them alike. The first call of each compiles and does not count; the rest
    count by their median. The best is the smallest candidate within 2 % of the least median.

    Args:
        time_ms: runs with one block size and returns milliseconds.
        candidates: block sizes, powers of two; one that is named twice is timed once.
        repeats: calls of each candidate, at least 2.

    Raises:
        ValueError: there is no candidate, one is not a power of two, or ``repeats`` is below 2.
    """
    if len(candidates) == 0:
        raise ValueError("candidates: expected at least one block size, got none")
    for candidate in candidates:
        if candidate < 1 or candidate & (candidate - 1):
            raise ValueError(f"candidates: expected powers of two, got {candidate}")
    if repeats < 2:
        raise ValueError(f"repeats: expected at least 2, got {repeats}")

    times: dict[int, list[float]] = {candidate: [] for candidate in sorted(candidates)}
    for _ in range(repeats):
        for candidate, calls in times.items():
            calls.append(time_ms(candidate))

    table = []
    for candidate, calls in times.items():
        counted = calls[1:]  # the first one waited for the compiler
        typical = median(counted)
        table.append((candidate, typical, (max(counted) - min(counted)) / typical))
    fastest = min(typical for _, typical, _ in table)
    best = next(candidate for candidate, typical, _ in table if typical <= ALIKE * fastest)
    return SweepResult(best, tuple(table))


def check_argument(x: torch.Tensor) -> None:
    """Refuse what the contract does not cover, before anything is allocated or launched.

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
        ValueError: x does not have three dimensions.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in SUPPORTED:
        names = ", ".join(str(dtype) for dtype in SUPPORTED)
        raise TypeError(f"x: expected one of {names}, got {x.dtype}")
    if x.dim() != 3:
        raise ValueError(f"x: expected 3 dimensions, got {x.dim()} in shape {tuple(x.shape)}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
