"""Transpose a batch of matrices: right already, and far slower than memory allows.

    out[b, n, m] = x[b, m, n]

Shapes:  x has three dimensions, elements of 1, 2, 4 or 8 bytes and any strides;
         the result is a new contiguous tensor (B, N, M) of its dtype and device.
Given:   a kernel, a planner of tiles and a sweep over block sizes. All three are right, and each of
         them wastes something: bytes, sectors, or calls. The check of the argument is fine.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Write these parts anew as you like.
           kernel and grid  DECIDE 1, 3, 4, 5 and 6      tiles  DECIDE 2      sweep  DECIDE 7
Judged:  values  every bit arrives, for all shapes, dtypes and strides; this holds from the start
         cost    one launch, 2 * B * M * N * itemsize bytes, 95 % of every sector that moves is used
                 in both directions, at most one program for 16 x 16 elements
         plans   what the docstrings of `choose_tile` and `sweep_block_sizes` say
         numbers in `PREDICT` within 15 %, counts of programs and calls exactly; a wrong one is
                 explained and fails nothing

`python kernel.py` runs four public cases, `tritonlab grade track2/tiling` runs all of them.
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

# Write a number in place of each None, before you measure. All tensors are contiguous.
PREDICT = {
    # The kernel below reads pieces of columns. What share of each sector that it loads does it use,
    # from 0 to 1, for float32, and for int64?
    "column_share": None,
    "column_share_int64": None,
    # How many bytes does the transpose of one 256 x 256 matrix of float32 have to read and write?
    "least_bytes": None,
    # And how many bytes do the sectors hold that the kernel below loads and stores for it?
    "column_bytes": None,
    # How many programs does a batch of 3 matrices of 1000 x 500 take, in tiles of 64 x 32?
    "programs": None,
    # How often does a sweep over 6 candidates with 5 repeats call its timer, by its docstring?
    "sweep_calls": None,
}


@triton.jit
def transpose_kernel(
    x_ptr, out_ptr,                  # [B, M, N] with any strides; [B, N, M] without gaps
    stride_xb, stride_xm, stride_xn,
    M, N,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,  # rows and columns of a tile of x
):
    """out[b, n, m] = x[b, m, n]. One program owns BLOCK_M rows of one column of x[b].

    Moves 2 * B * M * N * itemsize bytes, but in sectors of which it uses a part only.
    """
    # DECIDE 1: the grid has one axis, and three numbers are divided out of it. A grid can have
    #           three axes of its own: which of batch, rows and columns goes along which?
    pid = tl.program_id(axis=0)
    n_pieces = tl.cdiv(M, BLOCK_M)
    piece = pid % n_pieces
    col = pid // n_pieces % N

    # DECIDE 5: the program id has 32 bits, and the product of batch and stride passes them. Where
    #           does the widening belong, once the batch has an axis of its own?
    batch = (pid // n_pieces // N).to(tl.int64)

    # DECIDE 3: many rows, one column. Which vectors describe the rows and which the columns of a
    #           tile that is wide in both directions, and how do they broadcast?
    rows = piece * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    x_ptrs = x_ptr + batch * stride_xb + rows * stride_xm + col.to(tl.int64) * stride_xn

    # DECIDE 4: what has to be compared with what, when a tile can pass both edges of a matrix?
    mask = rows < M

    tile = tl.load(x_ptrs, mask=mask)

    # DECIDE 6: here rows are adjacent, above they are M or more elements apart. In which order do
    #           row and column stand in the address of the result, for a whole tile?
    out_ptrs = out_ptr + (batch * N + col) * M + rows
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
    # DECIDE 1: axis 0 takes 2**31 - 1 programs, axes 1 and 2 take 65,535 each.
    grid = (n_batch * triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
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
    # DECIDE 2: one column wide. How many elements fill a sector, and what else bounds a tile? What
    #           becomes of a matrix that is narrower than the tile you would like?
    return min(triton.next_power_of_2(m), 64), 1


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

    # DECIDE 7: what the docstring promises holds, but each candidate is called too often: ten times
    #           to warm up before anything counts. What is there to wait for, and how long?
    times: dict[int, list[float]] = {candidate: [] for candidate in sorted(candidates)}
    for candidate in times:
        for _ in range(10):
            time_ms(candidate)
    for _ in range(repeats - 1):
        for candidate, calls in times.items():
            calls.append(time_ms(candidate))

    table = []
    for candidate, calls in times.items():
        typical = median(calls)
        table.append((candidate, typical, (max(calls) - min(calls)) / typical))
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
