"""Transposes a batch of matrices in tiles that are wide in both directions.

    out[b, n, m] = x[b, m, n]

Each program owns one tile: adjacent threads load adjacent columns of it and store adjacent rows.
In between, the compiler exchanges the elements between threads through shared memory.

Cost: x is read once and out is written once, 2 * B * M * N * itemsize bytes and no FLOP. Memory
moves in sectors of 32 bytes. A tile whose rows and columns both fill sectors moves no other bytes;
a piece of one row or one column moves 32 bytes per element on one side of the copy.

Inputs: three dimensions, elements of 1, 2, 4 or 8 bytes, any strides. Transposed views, slices and
one matrix repeated B times (stride 0) are read without a copy.
Result: a new contiguous tensor (B, N, M) with the same bits; the input is unchanged.

Source: tiles through shared memory are the classic method of G. Ruetsch and P. Micikevicius,
"Optimizing Matrix Transpose in CUDA", 2009; here the compiler generates that step. Interleaved
repeats and medians against drift and outliers: T. Mytkowicz and others, "Producing Wrong Data
Without Doing Anything Obviously Wrong!", ASPLOS 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch
import triton
import triton.language as tl

SECTOR = 32  # bytes; memory moves nothing smaller
MAX_ELEMENTS = 4096  # per tile; with 4 warps, each of the 128 threads holds 32
ALIKE = 1.02  # medians within 2 % of the fastest are a tie

SUPPORTED = (
    torch.int8, torch.uint8, torch.int16, torch.float16, torch.bfloat16,
    torch.int32, torch.float32, torch.int64, torch.float64,
)

PREDICT = {
    "column_share": 0.125,  # 4 bytes of each 32
    "column_share_int64": 0.25,
    "least_bytes": 2 * 256 * 256 * 4,
    "sector_bytes": 256 * 256 * 32 + 256 * 256 * 4,  # a sector per loaded element, and the stores
    "programs": 3 * 16 * 16,
    "sweep_calls": 6 * 5,
}


@triton.jit
def transpose_kernel(
    x_ptr, out_ptr,                  # [B, M, N] with any strides; [B, N, M] contiguous
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

    # A row of the result is a column of the tile: `rows` has stride 1 here.
    out_ptrs = out_ptr + batch * M * N + cols[None, :] * M + rows[:, None]
    tl.store(out_ptrs, tile, mask=mask)


def batched_transpose(x: torch.Tensor) -> torch.Tensor:
    """Returns the matrices of ``x`` (B, M, N) transposed, as a contiguous tensor (B, N, M).

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
    # Axis 0 takes 2**31 - 1 programs, the others 65,535; a batch of small matrices can be longer.
    grid = (n_batch, triton.cdiv(m, block_m), triton.cdiv(n, block_n))
    transpose_kernel[grid](
        x, out, x.stride(0), x.stride(1), x.stride(2), m, n, BLOCK_M=block_m, BLOCK_N=block_n
    )
    return out


def choose_tile(m: int, n: int, itemsize: int) -> tuple[int, int]:
    """Returns rows and columns of a tile, both powers of two, for matrices of m x n.

    A tile has at most ``MAX_ELEMENTS``. No side exceeds the next power of two of the matrix's side,
    and each side fills a sector if the matrix is that large.

    Args:
        m, n: sides of a matrix, at least 1.
        itemsize: bytes per element: 1, 2, 4 or 8.
    """
    least = SECTOR // itemsize
    side = max(least, 64 if itemsize <= 4 else 32)
    rows, cols = (min(triton.next_power_of_2(length), side) for length in (m, n))
    if cols < side:  # a narrow matrix leaves room for more rows, a flat one for more columns
        rows = min(triton.next_power_of_2(m), MAX_ELEMENTS // cols)
    elif rows < side:
        cols = min(triton.next_power_of_2(n), MAX_ELEMENTS // rows)
    return rows, cols


@dataclass(frozen=True)
class SweepResult:
    """Result of a sweep. ``table`` has (candidate, median in ms, spread), sorted by candidate.

    The spread is (slowest - fastest) / median of the counted calls.
    """

    best: int
    table: tuple[tuple[int, float, float], ...]


def sweep_block_sizes(
    time_ms: Callable[[int], float], candidates: Sequence[int], *, repeats: int = 5
) -> SweepResult:
    """Times every candidate ``repeats`` times and picks the smallest of the fastest.

    The calls are interleaved: each candidate once, then each again, so that a GPU that slows down
    as it warms up slows all candidates equally. The first call of each candidate compiles and does
    not count; the median of the others does. The best is the smallest candidate whose median is
    within 2 % of the least.

    Args:
        time_ms: runs the kernel with one block size and returns milliseconds.
        candidates: block sizes, powers of two; duplicates are timed once.
        repeats: calls per candidate, at least 2.

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
        counted = calls[1:]  # the first call includes compilation
        typical = median(counted)
        table.append((candidate, typical, (max(counted) - min(counted)) / typical))
    fastest = min(typical for _, typical, _ in table)
    best = next(candidate for candidate, typical, _ in table if typical <= ALIKE * fastest)
    return SweepResult(best, tuple(table))


def check_argument(x: torch.Tensor) -> None:
    """Refuses arguments outside the contract, before anything is allocated or launched.

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
