"""Right but different: configurations that an autotuner chooses from, all tiles of the matrix."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

PREDICT = {
    "fetches_16": 32, "gram_16_bytes": 4.3e6, "gram_128_bytes": 5 * 2**17, "buffers": 96 * 1024,
    "shared_elementwise": 0, "column_share": 1 / 8, "merges": 31, "levels": 5,
}


@triton.jit
def merge(ma, sa, na, mb, sb, nb):
    n = na + nb
    w = tl.where(n > 0, nb / tl.maximum(n, 1), 0.0)
    d = mb - ma
    return ma + w * d, sa + sb + d * d * (na * w), n


@triton.autotune(
    configs=[triton.Config({"BM": 128, "BN": 128, "BK": 32}, num_warps=8, num_stages=3),
             triton.Config({"BM": 128, "BN": 128, "BK": 64}, num_warps=8, num_stages=2)],
    key=["M", "K"])
@triton.jit
def all_tiles_kernel(x_ptr, out_ptr, M, K, sm, sk, PRECISE: tl.constexpr,
                     BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    j = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        ka = start + tl.arange(0, BK)[None, :].to(tl.int64)
        kb = start + tl.arange(0, BK)[:, None].to(tl.int64)
        a = tl.load(x_ptr + i * sm + ka * sk, mask=(i < M) & (ka < K), other=0.0)
        b = tl.load(x_ptr + j * sm + kb * sk, mask=(j < M) & (kb < K), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee" if PRECISE else None)
    tl.store(out_ptr + i * M + j, acc, mask=(i < M) & (j < M))


def gram(x: torch.Tensor) -> torch.Tensor:
    check(x)
    m, k = x.shape
    out = x.new_empty((m, m))
    if m > 0:
        all_tiles_kernel[lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(m, meta["BN"]))](
            x, out, m, k, *x.stride(), PRECISE=x.dtype == torch.float32)
    return out


@triton.jit
def stats_kernel(x_ptr, out_ptr, R, C, sr, sc, BR: tl.constexpr, BC: tl.constexpr):
    cols = tl.program_id(0) * BC + tl.arange(0, BC)
    rows = tl.arange(0, BR)
    mean = tl.zeros((BR, BC), tl.float32)
    m2 = tl.zeros((BR, BC), tl.float32)
    n = tl.zeros((BR, BC), tl.float32)
    for start in range(0, R, BR):
        row = (start + rows).to(tl.int64)
        mask = (row < R)[:, None] & (cols < C)[None, :]
        ptrs = x_ptr + row[:, None] * sr + cols.to(tl.int64)[None, :] * sc
        x = tl.load(ptrs, mask=mask, other=0.0).to(tl.float32)
        mean, m2, n = merge(mean, m2, n, x, tl.zeros_like(x), mask.to(tl.float32))
    mean, m2, n = tl.reduce((mean, m2, n), axis=0, combine_fn=merge)
    tl.store(out_ptr + cols, mean, mask=cols < C)
    tl.store(out_ptr + C + cols, m2 / n, mask=cols < C)



def column_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    check(x)
    rows, cols = x.shape
    if rows == 0:
        raise ValueError("x: expected at least one row, got none")
    out = torch.empty((2, cols), dtype=torch.float32, device=x.device)
    if cols:
        stats_kernel[(triton.cdiv(cols, 64),)](
            x, out, rows, cols, *x.stride(), BR=16, BC=64)
    return out[0], out[1]


def check(x: torch.Tensor) -> None:
    if not isinstance(x, torch.Tensor) or x.dtype not in (
            torch.float16, torch.bfloat16, torch.float32):
        raise TypeError(f"x: expected floats of 16 or 32 bits, got {getattr(x, 'dtype', type(x))}")
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got {x.dim()} in {tuple(x.shape)}")


@dataclass(frozen=True)
class TilePlan:
    block_m: int
    block_n: int
    block_k: int
    smem_bytes: int
    traffic_bytes: int


def plan_tiles(m: int, n: int, k: int, itemsize: int, smem_bytes: int,
               *, num_stages: int = 3) -> TilePlan:
    best = None
    sides = [16, 32, 64, 128, 256]
    for bm, bn, bk in itertools.product(sides, sides, sides[:-1]):
        smem = num_stages * (bm * bk + bk * bn) * itemsize
        if bm * bn > 1 << 15 or smem > smem_bytes:
            continue
        traffic = itemsize * (m * k * math.ceil(n / bn) + k * n * math.ceil(m / bm) + m * n)
        rank = (traffic, -bk, bm * bn, -bn)
        if best is None or rank < best[0]:
            best = rank, TilePlan(bm, bn, bk, smem, traffic)
    if best is None:
        raise ValueError(f"smem_bytes: {smem_bytes} bytes hold no tile")
    return best[1]
