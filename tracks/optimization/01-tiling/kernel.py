"""Transpose a batch of matrices. The kernel is correct and far slower than memory allows.

    out[b, n, m] = x[b, m, n]

Shapes:  x has three dimensions, elements of 1, 2, 4 or 8 bytes and any strides;
         the result is a new contiguous tensor (B, N, M) of its dtype and device.
Given:   a kernel, a function that chooses tiles, and a sweep over block sizes. All three are
         correct, and each wastes something: sectors, time or calls.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Rewrite these parts as you like.
           kernel and grid  DECIDE 1 to 6      tiles  DECIDE 7      sweep  DECIDE 8
Graded:  values  every bit arrives, for all shapes, dtypes and strides, as in the given code
         cost    one launch; 2 * B * M * N * itemsize bytes; loads and stores use 95 % of the bytes
                 of their sectors; at most one program per 16 x 16 elements
         plans   the docstrings of `choose_tile` and `sweep_block_sizes`
         numbers in `PREDICT` within 15 %, counts of programs and calls exactly; a wrong number is
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
MAX_ELEMENTS = 4096  # per tile; with 4 warps, each of the 128 threads holds 32
ALIKE = 1.02  # medians within 2 % of the fastest are a tie

SUPPORTED = (
    torch.int8, torch.uint8, torch.int16, torch.float16, torch.bfloat16,
    torch.int32, torch.float32, torch.int64, torch.float64,
)

# Replace each None by a number before you measure. All tensors are contiguous.
PREDICT = {
    # The kernel below loads pieces of columns. What share of the 32 bytes of each loaded sector does
    # one program use (0 to 1), for float32 and for int64?
    "column_share": None,
    "column_share_int64": None,
    # How many bytes must a transpose of one 256 x 256 matrix of float32 read and write?
    "least_bytes": None,
    # How many bytes do the loads and stores of the kernel below move for that matrix, if no cache
    # helps? Each load of a program counts 32 bytes for every sector that it touches, each store
    # too; add up all programs.
    "sector_bytes": None,
    # How many programs does a batch of 3 matrices of 1,000 x 500 need, in tiles of 64 x 32?
    "programs": None,
    # How often does a sweep over 6 candidates with 5 repeats call its timer, by its docstring?
    "sweep_calls": None,
}


@triton.jit
def transpose_kernel(
    x_ptr, out_ptr,                  # [B, M, N] with any strides; [B, N, M] contiguous
    stride_xb, stride_xm, stride_xn,
    M, N,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,  # rows and columns of a tile of x
):
    """out[b, n, m] = x[b, m, n]. One program owns BLOCK_M rows of one column of x[b].

    Moves 2 * B * M * N * itemsize bytes, in sectors that it uses only in part.
    """
    # DECIDE 1: the grid has one axis, and three indices are computed from one program id. A grid
    #           can have three axes: which of batch, rows and columns belongs to which axis?
    pid = tl.program_id(axis=0)
    n_pieces = tl.cdiv(M, BLOCK_M)
    piece = pid % n_pieces
    col = pid // n_pieces % N

    # DECIDE 2: the program id has 32 bits, and batch * stride can exceed 2**31. Which values have
    #           to be int64 once the batch has its own axis?
    batch = (pid // n_pieces // N).to(tl.int64)

    # DECIDE 3: a tile has many rows and one column here. Which vectors give the rows and the
    #           columns of a tile that is wide in both directions, and how do they broadcast?
    rows = piece * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    x_ptrs = x_ptr + batch * stride_xb + rows * stride_xm + col.to(tl.int64) * stride_xn

    # DECIDE 4: a tile can extend past both edges of a matrix. Which comparisons make its mask?
    mask = rows < M

    tile = tl.load(x_ptrs, mask=mask)

    # DECIDE 5: rows of x are adjacent in the result. For a whole tile, which of the two indices is
    #           multiplied by a stride in the address of the store, and which is not?
    out_ptrs = out_ptr + (batch * N + col) * M + rows
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
    # DECIDE 6: axis 0 takes 2**31 - 1 programs, axes 1 and 2 take 65,535 each. Which of the three
    #           counts can be larger than 65,535?
    grid = (n_batch * triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
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
    # DECIDE 7: the tile is one column wide. How many elements fill a sector, and what else limits a
    #           tile? What is the tile of a matrix that is narrower than the one you would choose?
    return min(triton.next_power_of_2(m), 64), 1


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

    # DECIDE 8: the result is what the docstring promises, but each candidate is called ten times
    #           before anything counts. What is a warm-up for, and how many calls is that?
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
