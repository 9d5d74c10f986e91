"""Sums and histograms: atomics that meet and that do not, columns by few and by many programs."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import MANY, Family, Given

family = Family("reductions")


@triton.jit
def atomic_sum_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


@triton.jit
def element_sum_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.atomic_add(out_ptr + 0 * offs, x, mask=offs < n)


@triton.jit
def partial_sum_kernel(x_ptr, part_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(part_ptr + tl.program_id(0), tl.sum(x, axis=0))


@triton.jit
def final_sum_kernel(part_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    total = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, n, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        total += tl.load(part_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0))


@family("sum, one atomic for each 1024 elements", (Given((2 * MANY,)), Given((1,))),
        "contended atomics")
def _(x, out):
    atomic_sum_kernel[(x.numel() // 1024,)](x, out, x.numel(), BLOCK_SIZE=1024)


@family("sum, one atomic for each 8192 elements", (Given((2 * MANY,)), Given((1,))))
def _(x, out):
    atomic_sum_kernel[(x.numel() // 8192,)](x, out, x.numel(), BLOCK_SIZE=8192, num_warps=8)


@family("sum, one atomic for each element", (Given((1 << 22,)), Given((1,))), "contended atomics")
def _(x, out):
    element_sum_kernel[(x.numel() // 1024,)](x, out, x.numel(), BLOCK_SIZE=1024)


@family("sum in two phases", (Given((2 * MANY,)), Given((2 * MANY // 8192,)), Given((1,))))
def _(x, part, out):
    partial_sum_kernel[(part.numel(),)](x, part, x.numel(), BLOCK_SIZE=8192, num_warps=8)
    final_sum_kernel[(1,)](part, out, part.numel(), BLOCK_SIZE=8192, num_warps=16)


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for start in range(0, n_rows, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < n_rows)[:, None] & (columns < n_cols)[None, :]
        total += tl.load(x_ptr + rows[:, None] * n_cols + columns[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + columns, tl.sum(total, axis=0), mask=columns < n_cols)


@triton.jit
def split_column_sum_kernel(x_ptr, out_ptr, n_rows, n_cols, SPLIT: tl.constexpr,
                            ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    first = tl.program_id(1) * SPLIT
    for start in range(first, first + SPLIT, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < n_rows)[:, None] & (columns < n_cols)[None, :]
        total += tl.load(x_ptr + rows[:, None] * n_cols + columns[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + columns, tl.sum(total, axis=0), mask=columns < n_cols)


@family("column sums by 32 programs", (Given((131072, 1024)), Given((1024,))), "too few programs")
def _(x, out):
    column_sum_kernel[(32,)](x, out, *x.shape, ROWS=64, COLUMNS=32)


@family("column sums, rows split among programs", (Given((131072, 1024)), Given((1024,))))
def _(x, out):
    split_column_sum_kernel[(8, 256)](x, out, *x.shape, SPLIT=512, ROWS=32, COLUMNS=128)


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    bins = tl.load(x_ptr + offs, mask=offs < n, other=0)
    tl.atomic_add(out_ptr + bins, 1, mask=offs < n)


def _histogram(x, out):
    histogram_kernel[(x.numel() // 1024,)](x, out, x.numel(), BLOCK_SIZE=1024)


@family("histogram of 16 bins", (Given((1 << 24,), "int32", below=16), Given((16,), "int32")),
        "contended atomics")
def _(x, out):
    _histogram(x, out)


@family("histogram of 65,536 bins", (Given((1 << 24,), "int32", below=1 << 16),
                                     Given((1 << 16,), "int32")))
def _(x, out):
    _histogram(x, out)
