"""Transposes: through tiles, and with one side strided."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Family, matrices

family = Family("transposes")
SIDE = 8192


@triton.jit
def tiled_kernel(x_ptr, out_ptr, M, N, TILE: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=(m < M)[:, None] & (n < N)[None, :])
    tl.store(out_ptr + n[:, None] * M + m[None, :], tl.trans(x),
             mask=(n < N)[:, None] & (m < M)[None, :])


@triton.jit
def strided_write_kernel(x_ptr, out_ptr, M, N, BLOCK_SIZE: tl.constexpr):
    m = tl.program_id(1)
    n = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + m * N + n, mask=n < N)
    tl.store(out_ptr + n * M + m, x, mask=n < N)


@triton.jit
def strided_read_kernel(x_ptr, out_ptr, M, N, BLOCK_SIZE: tl.constexpr):
    n = tl.program_id(1)
    m = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + m * N + n, mask=m < M)
    tl.store(out_ptr + n * M + m, x, mask=m < M)


def _tiled(x, out, tile):
    grid = (triton.cdiv(x.shape[0], tile), triton.cdiv(x.shape[1], tile))
    tiled_kernel[grid](x, out, *x.shape, TILE=tile)


@family("transpose in tiles of 32", matrices(2, SIDE, SIDE))
def _(x, out):
    _tiled(x, out, 32)


@family("transpose in tiles of 64", matrices(2, SIDE, SIDE))
def _(x, out):
    _tiled(x, out, 64)


@family("transpose of bf16 in tiles of 64", matrices(2, SIDE, SIDE, "bfloat16"))
def _(x, out):
    _tiled(x, out, 64)


@family("transpose that writes columns", matrices(2, SIDE, SIDE), "strided access")
def _(x, out):
    strided_write_kernel[(SIDE // 1024, SIDE)](x, out, *x.shape, BLOCK_SIZE=1024)


@family("transpose that reads columns", matrices(2, SIDE, SIDE), "strided access")
def _(x, out):
    strided_read_kernel[(SIDE // 1024, SIDE)](x, out, *x.shape, BLOCK_SIZE=1024)
