"""Kernels of which the sectors of each load request of a warp are known in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from .case import Case, Family, Given, matrices

N = 1 << 22
SIDE = 4096
family = Family("requests")
SECTORS: dict[str, float] = {}
"""Sectors of each load request, by case."""


def request(name: str, sectors: float, *given: Given) -> Callable[[Callable[..., Any]], None]:
    def add(body: Callable[..., Any]) -> None:
        SECTORS[name] = sectors
        family(name, given)(body)

    return add


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x, mask=offs < n)


@triton.jit
def stride_kernel(x_ptr, y_ptr, STRIDE: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs * STRIDE))


@triton.jit
def scalar_kernel(x_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + tl.program_id(0))
    tl.store(y_ptr + offs, offs + x)


@triton.jit
def tile_kernel(x_ptr, y_ptr, stride_m, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    at = offs_m[:, None] * stride_m + offs_n[None, :]
    tl.store(y_ptr + at, tl.load(x_ptr + at))


@triton.jit
def row_kernel(x_ptr, y_ptr, stride_m, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Every row of the tile is the same."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + offs_n)
    tl.store(y_ptr + offs_m[:, None] * stride_m + offs_n[None, :], x[None, :] + offs_m[:, None])


@triton.jit(do_not_specialize=["stride_m", "stride_n"])
def down_kernel(x_ptr, y_ptr, stride_m, stride_n, stride_ym,
                BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """y[m, n] = x[m, n]. If x is a transposed view, the threads of a warp run down its rows."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + offs_m[:, None] * stride_m + offs_n[None, :] * stride_n)
    tl.store(y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :], x)


@triton.jit
def transpose_kernel(x_ptr, y_ptr, stride_xm, stride_ym, TILE: tl.constexpr):
    offs_m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    offs_n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :])
    tl.store(y_ptr + offs_n[:, None] * stride_ym + offs_m[None, :], tl.trans(x))


@triton.jit
def gather_kernel(x_ptr, y_ptr, EVERY: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """Elements in reverse order within groups."""
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + offs, tl.load(x_ptr + (offs ^ EVERY)))


def _copy(x, y, n=None, block=1024, warps=4):
    n = n or x.numel()
    copy_kernel[(triton.cdiv(n, block),)](x, y, n, BLOCK_SIZE=block, num_warps=warps)


def _of_copies() -> None:
    for dtype, one in (("float16", 3), ("float32", 5), ("float64", 9)):
        given = (Given((N,), dtype),) * 2
        request(f"copy of {dtype}, 16 bytes per thread", 16, *given)(_copy)
        odd = (Given((N,), dtype, offset=1),) * 2
        request(f"copy of {dtype} from an odd offset", one, *odd)(_copy)
    floats = (Given((N,)),) * 2
    for block, warps, sectors in ((32, 1, 4), (64, 1, 8), (128, 1, 16), (128, 4, 4), (256, 4, 8)):
        request(f"copy of float32 in blocks of {block}, {warps} warps", sectors, *floats)(
            lambda x, y, block=block, warps=warps: _copy(x, y, None, block, warps))
    # four elements of each thread, one at a time: the length is no multiple of 16
    request("copy of float32, odd length", 16, *floats)(lambda x, y: _copy(x, y, N - 24))


def _of_strides() -> None:
    for stride, sectors in ((2, 32), (4, 32), (8, 32), (32, 32)):
        request(f"every {stride}. float32", sectors, Given((N * stride,)), Given((N,)))(
            lambda x, y, stride=stride: stride_kernel[(N // 1024,)](
                x, y, STRIDE=stride, BLOCK_SIZE=1024))
    request("one element for a program", 1, Given((N // 1024,)), Given((N,)))(
        lambda x, y: scalar_kernel[(N // 1024,)](x, y, BLOCK_SIZE=1024))


def _of_tiles() -> None:
    for dtype, m, n, sectors in (("float32", 64, 64, 16), ("float32", 64, 16, 16),
                                 ("float32", 128, 4, 32), ("float16", 64, 64, 16),
                                 ("float16", 128, 8, 32)):
        request(f"tile of {dtype}, {m} x {n}", sectors, *matrices(2, SIDE, SIDE, dtype))(
            lambda x, y, m=m, n=n: tile_kernel[(SIDE // m, SIDE // n)](
                x, y, SIDE, BLOCK_M=m, BLOCK_N=n))
    request("one row for all rows of a tile", 8, Given((SIDE,)), Given((SIDE, SIDE)))(
        lambda x, y: row_kernel[(SIDE // 64, SIDE // 64)](x, y, SIDE, BLOCK_M=64, BLOCK_N=64))
    request("transpose in tiles of 64", 16, *matrices(2, SIDE, SIDE))(
        lambda x, y: transpose_kernel[(SIDE // 64, SIDE // 64)](x, y, SIDE, SIDE, TILE=64))
    # so many lanes lie side by side in a row, and those below them share their sectors
    for m, n, sectors in ((32, 32, 8), (64, 64, 16), (16, 128, 32)):
        request(f"threads that run down rows, {m} x {n}", sectors, *matrices(2, SIDE, SIDE))(
            lambda x, y, m=m, n=n: down_kernel[(SIDE // m, SIDE // n)](
                x, y, 1, SIDE, SIDE, BLOCK_M=m, BLOCK_N=n))


_of_copies()
_of_strides()
_of_tiles()
CASES: list[Case] = family.cases
