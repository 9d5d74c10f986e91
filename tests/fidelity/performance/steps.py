"""Jobs in several launches: steps that belong together, and steps that have to wait for others."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import MANY, Family, matrices, vectors

family = Family("steps")


@triton.jit
def silu_kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, x * tl.sigmoid(x), mask=o < n)


@triton.jit
def gate_kernel(x_ptr, y_ptr, z_ptr, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    x, y = tl.load(x_ptr + o, mask=o < n), tl.load(y_ptr + o, mask=o < n)
    tl.store(z_ptr + o, x * y, mask=o < n)


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    row, o = tl.program_id(0), tl.arange(0, B)
    x = tl.load(x_ptr + row * n + o, mask=o < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(y_ptr + row * n + o, e / tl.sum(e), mask=o < n)


@family("a gate in two launches of different blocks", vectors(4), "unfused launches",
        moves=3 * 4 * MANY)
def _(a, b, t, c):
    n = a.numel()
    silu_kernel[(triton.cdiv(n, 2048),)](a, t, n, B=2048)
    gate_kernel[(triton.cdiv(n, 1024),)](t, b, c, n, B=1024)


@family("softmax of rows that a flat launch prepares", matrices(3, 16384, 4096),
        "unfused launches", moves=2 * 4 * 16384 * 4096)
def _(x, t, y):
    n = x.numel()
    silu_kernel[(triton.cdiv(n, 1024),)](x, t, n, B=1024)
    softmax_kernel[(x.shape[0],)](t, y, x.shape[1], B=4096, num_warps=8)


@triton.jit
def heat_kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    left = tl.load(x_ptr + o - 1, mask=(o >= 1) & (o < n), other=0.0)
    here = tl.load(x_ptr + o, mask=o < n)
    right = tl.load(x_ptr + o + 1, mask=o < n - 1, other=0.0)
    tl.store(y_ptr + o, 0.25 * left + 0.5 * here + 0.25 * right, mask=o < n)


@family("heat in four steps", vectors(3), moves=8 * 4 * MANY)
def _(x, a, b):
    grid = (triton.cdiv(x.numel(), 1024),)
    for source, target in ((x, a), (a, b), (b, a), (a, b)):
        heat_kernel[grid](source, target, x.numel(), B=1024)


@triton.jit
def scan_blocks_kernel(x_ptr, y_ptr, sums_ptr, n, B: tl.constexpr):
    i = tl.program_id(0)
    o = i * B + tl.arange(0, B)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.store(y_ptr + o, tl.cumsum(x, 0), mask=o < n)
    tl.store(sums_ptr + i, tl.sum(x))


@triton.jit
def scan_sums_kernel(sums_ptr, before_ptr, n, B: tl.constexpr):
    carry = 0.0
    for start in range(0, n, B):
        o = start + tl.arange(0, B)
        s = tl.load(sums_ptr + o, mask=o < n, other=0.0)
        tl.store(before_ptr + o, tl.cumsum(s, 0) - s + carry, mask=o < n)
        carry += tl.sum(s)


@triton.jit
def add_before_kernel(y_ptr, before_ptr, z_ptr, n, B: tl.constexpr):
    i = tl.program_id(0)
    o = i * B + tl.arange(0, B)
    y = tl.load(y_ptr + o, mask=o < n)
    tl.store(z_ptr + o, y + tl.load(before_ptr + i), mask=o < n)


@family("a running sum in three launches", (*vectors(3), *vectors(2, MANY // 4096)),
        moves=4 * 4 * MANY)
def _(x, y, z, sums, before):
    n, programs = x.numel(), sums.numel()
    scan_blocks_kernel[(programs,)](x, y, sums, n, B=4096, num_warps=8)
    scan_sums_kernel[(1,)](sums, before, programs, B=4096, num_warps=8)
    add_before_kernel[(programs,)](y, before, z, n, B=4096, num_warps=8)
