"""Right but different: half of the tiles on a folded grid; statistics as one packed tree."""

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


@triton.jit
def tile_of(i, j, x_ptr, M, K, sm, sk, BK: tl.constexpr, SAME: tl.constexpr):
    acc = tl.zeros((i.shape[0], j.shape[0]), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK).to(tl.int64)
        in_k = (k < K)[None, :]
        a = tl.load(x_ptr + i[:, None] * sm + k[None, :] * sk, mask=(i < M)[:, None] & in_k,
                    other=0)
        if SAME:
            b = a
        else:
            b = tl.load(x_ptr + j[:, None] * sm + k[None, :] * sk, mask=(j < M)[:, None] & in_k,
                        other=0)
        acc = tl.dot(a, tl.permute(b, (1, 0)), acc, input_precision="ieee")
    return acc


@triton.jit
def folded_kernel(x_ptr, out_ptr, M, K, sm, sk, B: tl.constexpr, BK: tl.constexpr):
    """Row p of the grid is row p of the triangle and row T - 1 - p, T + 1 tiles together."""
    tiles = tl.cdiv(M, B)
    p, q = tl.program_id(0), tl.program_id(1)
    low = q <= p
    row = tl.where(low, p, tiles - 1 - p)
    col = tl.where(low, q, q - p - 1)
    if low | (row > p):  # the middle row of an odd number is there twice
        i = row.to(tl.int64) * B + tl.arange(0, B)
        j = col.to(tl.int64) * B + tl.arange(0, B)
        at = (i < M)[:, None] & (j < M)[None, :]
        if row == col:
            acc = tile_of(i, j, x_ptr, M, K, sm, sk, BK, SAME=True)
            tl.store(out_ptr + i[:, None] * M + j[None, :], acc, mask=at)
        else:
            acc = tile_of(i, j, x_ptr, M, K, sm, sk, BK, SAME=False)
            tl.store(out_ptr + i[:, None] * M + j[None, :], acc, mask=at)
            tl.store(out_ptr + j[None, :] * M + i[:, None], acc, mask=at)


def gram(x: torch.Tensor) -> torch.Tensor:
    check(x)
    m, k = x.shape
    out = x.new_empty((m, m))
    if m:
        tiles = triton.cdiv(m, 64)
        folded_kernel[(triton.cdiv(tiles, 2), tiles + 1)](
            x, out, m, k, *x.stride(), B=64, BK=32)
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
        x = x.contiguous()
        stats_kernel[(triton.cdiv(cols, 32),)](x, out, rows, cols, cols, 1, BR=128, BC=32,
                                               num_warps=8)
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
