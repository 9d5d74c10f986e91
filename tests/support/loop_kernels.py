"""Kernels whose time depends on how often their loops and branches run."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def powers_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    for _ in range(n):
        x = tl.exp2(x)
    tl.store(y_ptr + offs, x)


@triton.jit
def counting_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    turn = 0
    while turn < n:
        x = tl.exp2(x)
        turn += 1
    tl.store(y_ptr + offs, x)


@triton.jit
def branching_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Programs below n of them compute."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if tl.program_id(0) < n:
        for _ in range(1000):
            x = tl.exp2(x)
    tl.store(y_ptr + offs, x)


@triton.jit
def swept(acc, x_ptr, start, stop, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    for first in range(start, stop, BLOCK):
        offs = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < stop if MASKED else None)
        for _ in tl.static_range(8):
            x = tl.exp2(x)
        acc += x
    return acc


@triton.jit
def twice_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    whole = n // BLOCK * BLOCK
    acc = tl.zeros([BLOCK], tl.float32)
    acc = swept(acc, x_ptr + row * n, 0, whole, BLOCK, False)
    acc = swept(
        acc, x_ptr + row * n, whole, n, BLOCK,
        True)
    tl.store(y_ptr + row, tl.sum(acc, axis=0))


@triton.jit
def once_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros([BLOCK], tl.float32)
    acc = swept(acc, x_ptr + row * n, 0, n, BLOCK, False)
    tl.store(y_ptr + row, tl.sum(acc, axis=0))


@triton.jit
def converging_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """How often the loop runs depends on values."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    error = tl.max(x, axis=0)
    while error > 1e-3:
        x = x * 0.5
        error = tl.max(x, axis=0)
    tl.store(y_ptr + offs, x)
