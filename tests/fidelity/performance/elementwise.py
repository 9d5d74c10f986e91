"""Element by element: vector add, copies, and a fused chain against its parts."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import MANY, Family, Given, vectors

family = Family("elementwise")
SMALL = 1 << 16
CHUNKS = 64


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


@triton.jit
def strided_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + 2 * offs, mask=mask)
    y = tl.load(y_ptr + 2 * offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


@triton.jit
def looping_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    step = tl.num_programs(0) * BLOCK_SIZE
    for start in range(tl.program_id(0) * BLOCK_SIZE, n, step):
        offs = start + tl.arange(0, BLOCK_SIZE)
        mask = offs < n
        x = tl.load(x_ptr + offs, mask=mask)
        y = tl.load(y_ptr + offs, mask=mask)
        tl.store(out_ptr + offs, x + y, mask=mask)


def _add(x, y, out, block, warps=4):
    n = out.numel()
    add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK_SIZE=block, num_warps=warps)


@family("vector add", vectors(3))
def _(x, y, out):
    _add(x, y, out, 1024)


@family("vector add, large blocks", vectors(3))
def _(x, y, out):
    _add(x, y, out, 8192, warps=8)


@family("vector add of every second element", (*vectors(2, 2 * MANY), Given((MANY,))),
        "strided access", moves=3 * MANY * 4)
def _(x, y, out):
    n = out.numel()
    strided_add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)


@family("vector add from an odd offset", [Given((MANY,), offset=1)] * 3, "scalar access")
def _(x, y, out):
    _add(x, y, out, 1024)


@family("vector add, 32 elements and 4 warps a program", vectors(3),
        {"tiny programs", "idle lanes"})
def _(x, y, out):
    _add(x, y, out, 32)


@family("vector add, 32 elements and 1 warp a program", vectors(3), "tiny programs")
def _(x, y, out):
    _add(x, y, out, 32, warps=1)


@family("vector add by 32 programs", vectors(3), "too few programs")
def _(x, y, out):
    looping_add_kernel[(32,)](x, y, out, out.numel(), BLOCK_SIZE=1024)


@family("vector add by programs that take many blocks", vectors(3))
def _(x, y, out):
    looping_add_kernel[(132 * 16,)](x, y, out, out.numel(), BLOCK_SIZE=1024)


@family("vector add, one launch per chunk", vectors(3, CHUNKS * SMALL), "launch-bound")
def _(x, y, out):
    for x_part, y_part, part in zip(x.split(SMALL), y.split(SMALL), out.split(SMALL), strict=True):
        _add(x_part, y_part, part, 1024)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


def _copy(x, out, block):
    n = out.numel()
    copy_kernel[(triton.cdiv(n, block),)](x, out, n, BLOCK_SIZE=block)


@family("copy bf16", vectors(2, 2 * MANY, "bfloat16"))
def _(x, out):
    _copy(x, out, 1024)


@family("copy bf16, large blocks", vectors(2, 2 * MANY, "bfloat16"))
def _(x, out):
    _copy(x, out, 4096)


@family("copy bf16 from an odd offset", [Given((2 * MANY,), "bfloat16", offset=1)] * 2,
        {"scalar access", "few spills"})
def _(x, out):
    _copy(x, out, 4096)


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.maximum(x, 0.0), mask=offs < n)


@triton.jit
def mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    product = tl.load(x_ptr + offs, mask=mask) * tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, product, mask=mask)


@triton.jit
def add_relu_mul_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    total = tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask)
    z = tl.load(z_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.maximum(total, 0.0) * z, mask=mask)


def _fused(x, y, z, out):
    n = out.numel()
    add_relu_mul_kernel[(triton.cdiv(n, 1024),)](x, y, z, out, n, BLOCK_SIZE=1024)


def _three(x, y, z, total, positive, out):
    n = out.numel()
    grid = (triton.cdiv(n, 1024),)
    add_kernel[grid](x, y, total, n, BLOCK_SIZE=1024)
    relu_kernel[grid](total, positive, n, BLOCK_SIZE=1024)
    mul_kernel[grid](positive, z, out, n, BLOCK_SIZE=1024)


@family("add, relu and mul fused", vectors(4))
def _(x, y, z, out):
    _fused(x, y, z, out)


@family("add, relu and mul in three launches", vectors(6), "unfused launches", moves=16 * MANY)
def _(x, y, z, total, positive, out):
    _three(x, y, z, total, positive, out)


@family("add, relu and mul fused, few elements", vectors(4, SMALL), "small size")
def _(x, y, z, out):
    _fused(x, y, z, out)


@family("add, relu and mul in three launches, few elements", vectors(6, SMALL), "launch-bound",
        moves=16 * SMALL)
def _(x, y, z, total, positive, out):
    _three(x, y, z, total, positive, out)


@triton.jit
def complex_mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Numbers as pairs: each load takes every second element, two of them the whole sector."""
    real = 2 * (tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE))
    mask = real < 2 * n
    a = tl.load(x_ptr + real, mask=mask)
    b = tl.load(x_ptr + real + 1, mask=mask)
    c = tl.load(y_ptr + real, mask=mask)
    d = tl.load(y_ptr + real + 1, mask=mask)
    tl.store(out_ptr + real, a * c - b * d, mask=mask)
    tl.store(out_ptr + real + 1, a * d + b * c, mask=mask)


@family("product of complex numbers stored as pairs", vectors(3))
def _(x, y, out):
    n = out.numel() // 2
    complex_mul_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
