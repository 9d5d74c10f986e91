"""Right but different: tensor descriptors where the layout allows them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

SUPPORTED = (
    torch.int8, torch.uint8, torch.int16, torch.float16, torch.bfloat16,
    torch.int32, torch.float32, torch.int64, torch.float64,
)

PREDICT = {
    "column_share": 1 / 8, "column_share_int64": 1 / 4, "least_bytes": 524_288,
    "column_bytes": 2.3e6, "programs": 768, "sweep_calls": 30,
}

@triton.jit
def described_kernel(x_desc, out_desc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    batch = tl.program_id(0)
    row = tl.program_id(1) * BLOCK_M
    col = tl.program_id(2) * BLOCK_N
    tile = x_desc.load([batch, row, col]).reshape(BLOCK_M, BLOCK_N)
    out_desc.store([batch, col, row], tile.T.reshape(1, BLOCK_N, BLOCK_M))


@triton.jit
def strided_kernel(x_ptr, out_ptr, xb, xm, xn, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    batch = tl.program_id(0).to(tl.int64)
    rows = (tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64))[:, None]
    cols = (tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64))[None, :]
    mask = (rows < M) & (cols < N)
    tile = tl.load(x_ptr + batch * xb + rows * xm + cols * xn, mask=mask)
    tl.store(out_ptr + (batch * N + cols) * M + rows, tile, mask=mask)


def can_be_described(*tensors: torch.Tensor) -> bool:
    """Rows without gaps; bases and strides that are multiples of 16 bytes."""
    return all(
        t.stride(-1) == 1 and t.data_ptr() % 16 == 0
        and all(0 < step * t.element_size() < 1 << 40 and step * t.element_size() % 16 == 0
                for step in t.stride()[:-1])
        for t in tensors)


def batched_transpose(x: torch.Tensor) -> torch.Tensor:
    check(x)
    n_batch, m, n = x.shape
    out = torch.empty((n_batch, n, m), dtype=x.dtype, device=x.device)
    if 0 in x.shape:
        return out
    rows, cols = choose_tile(m, n, x.element_size())
    grid = (n_batch, triton.cdiv(m, rows), triton.cdiv(n, cols))
    if can_be_described(x, out) and min(rows, cols) * x.element_size() >= 16:
        described_kernel[grid](
            TensorDescriptor.from_tensor(x, [1, rows, cols]),
            TensorDescriptor.from_tensor(out, [1, cols, rows]), BLOCK_M=rows, BLOCK_N=cols)
    else:
        strided_kernel[grid](x, out, *x.stride(), m, n, BLOCK_M=rows, BLOCK_N=cols)
    return out


def choose_tile(m: int, n: int, itemsize: int) -> tuple[int, int]:
    side = {1: 64, 2: 64, 4: 32, 8: 32}[itemsize]
    return min(side, triton.next_power_of_2(m)), min(side, triton.next_power_of_2(n))


@dataclass(frozen=True)
class SweepResult:
    best: int
    table: tuple[tuple[int, float, float], ...]


def sweep_block_sizes(time_ms, candidates, *, repeats=5):
    sizes = sorted(set(candidates))
    if not sizes:
        raise ValueError("candidates: expected some, got none")
    wrong = [size for size in sizes if size <= 0 or size.bit_count() != 1]
    if wrong:
        raise ValueError(f"candidates: expected powers of two, got {wrong}")
    if repeats < 2:
        raise ValueError(f"repeats: expected 2 or more, got {repeats}")
    for size in sizes:
        time_ms(size)  # compiles
    rounds = [[time_ms(size) for size in sizes] for _ in range(repeats - 1)]
    table = []
    for size, times in zip(sizes, zip(*rounds, strict=True), strict=True):
        middle = statistics.median(times)
        table.append((size, middle, (max(times) - min(times)) / middle))
    least = min(row[1] for row in table)
    return SweepResult(min(row[0] for row in table if row[1] <= least * 1.02), tuple(table))


def check(x: torch.Tensor) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a tensor, got {type(x).__name__}")
    if x.dtype not in SUPPORTED:
        raise TypeError(f"x: expected one of {SUPPORTED}, got {x.dtype}")
    if x.ndim != 3:
        raise ValueError(f"x: expected (B, M, N), 3 dimensions, got {x.ndim}: {tuple(x.shape)}")
