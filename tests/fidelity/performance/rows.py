"""Row by row: softmax and norms, read once or again, wide and narrow, along and across rows."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Family, Given, matrices

family = Family("rows")


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offs, x / tl.sum(x, axis=0), mask=mask)


@triton.jit
def three_pass_softmax_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    most = -float("inf")
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride + offs, mask=offs < n_cols, other=-float("inf"))
        most = tl.maximum(most, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride + offs, mask=offs < n_cols, other=-float("inf"))
        total += tl.sum(tl.exp(x - most), axis=0)
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride + offs, mask=offs < n_cols, other=-float("inf"))
        tl.store(out_ptr + row * stride + offs, tl.exp(x - most) / total, mask=offs < n_cols)


@triton.jit
def column_softmax_kernel(x_ptr, out_ptr, stride, n_rows, BLOCK_SIZE: tl.constexpr):
    column = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_rows
    x = tl.load(x_ptr + offs * stride + column, mask=mask, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + offs * stride + column, x / tl.sum(x, axis=0), mask=mask)


@triton.jit
def many_rows_softmax_kernel(x_ptr, out_ptr, stride, n_rows, ROWS: tl.constexpr,
                             N_COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offs = rows[:, None] * stride + tl.arange(0, N_COLS)[None, :]
    mask = (rows < n_rows)[:, None]
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    x = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + offs, x / tl.sum(x, axis=1)[:, None], mask=mask)


def _softmax(x, out, warps):
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, x.stride(0), columns,
                            BLOCK_SIZE=triton.next_power_of_2(columns), num_warps=warps)


@family("softmax in one pass", matrices(2, 16384, 4096))
def _(x, out):
    _softmax(x, out, 8)


@family("softmax of wide rows, 16 warps", matrices(2, 4096, 32768))
def _(x, out):
    _softmax(x, out, 16)


@family("softmax of wide rows, 4 warps", matrices(2, 4096, 32768), "register spills")
def _(x, out):
    _softmax(x, out, 4)


@family("softmax in three passes over long rows", matrices(2, 1024, 131072), "data read again")
def _(x, out):
    rows, columns = x.shape
    three_pass_softmax_kernel[(rows,)](x, out, x.stride(0), columns, BLOCK_SIZE=4096, num_warps=8)


@family("softmax across rows", matrices(2, 2048, 65536), "strided access")
def _(x, out):
    rows, columns = x.shape
    column_softmax_kernel[(columns,)](x, out, x.stride(0), rows, BLOCK_SIZE=rows, num_warps=8)


@family("softmax of rows of 384 with 32 warps", matrices(2, 1 << 18, 384), "idle lanes")
def _(x, out):
    _softmax(x, out, 32)


@family("softmax of rows of 64, one a program", matrices(2, 1 << 20, 64), "tiny programs")
def _(x, out):
    _softmax(x, out, 1)


@family("softmax of rows of 64, 32 a program", matrices(2, 1 << 20, 64))
def _(x, out):
    rows, columns = x.shape
    many_rows_softmax_kernel[(triton.cdiv(rows, 32),)](x, out, x.stride(0), rows, ROWS=32,
                                                       N_COLS=columns)


@triton.jit
def layer_norm_kernel(x_ptr, out_ptr, weight_ptr, bias_ptr, stride, n_cols, eps,
                      BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + offs, mask=mask)
    bias = tl.load(bias_ptr + offs, mask=mask)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * stride + offs, centred * scale * weight + bias, mask=mask)


@triton.jit
def reading_layer_norm_kernel(x_ptr, out_ptr, weight_ptr, bias_ptr, stride, n_cols, eps,
                              BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        total += tl.load(x_ptr + row * stride + offs, mask=offs < n_cols, other=0.0)
    mean = tl.sum(total, axis=0) / n_cols
    squares = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride + offs, mask=offs < n_cols, other=0.0)
        centred = tl.where(offs < n_cols, x - mean, 0.0)
        squares += centred * centred
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n_cols + eps)
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        mask = offs < n_cols
        x = tl.load(x_ptr + row * stride + offs, mask=mask, other=0.0)
        weight = tl.load(weight_ptr + offs, mask=mask)
        bias = tl.load(bias_ptr + offs, mask=mask)
        tl.store(out_ptr + row * stride + offs, (x - mean) * scale * weight + bias, mask=mask)


@family("layer norm", (*matrices(2, 16384, 4096), Given((4096,)), Given((4096,))))
def _(x, out, weight, bias):
    rows, columns = x.shape
    layer_norm_kernel[(rows,)](x, out, weight, bias, x.stride(0), columns, 1e-5, BLOCK_SIZE=4096,
                               num_warps=8)


@family("layer norm that reads long rows three times",
        (*matrices(2, 2048, 65536), Given((65536,)), Given((65536,))), "data read again")
def _(x, out, weight, bias):
    rows, columns = x.shape
    reading_layer_norm_kernel[(rows,)](x, out, weight, bias, x.stride(0), columns, 1e-5,
                                       BLOCK_SIZE=2048, num_warps=8)


@triton.jit
def rms_norm_kernel(x_ptr, out_ptr, weight_ptr, stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    weight = tl.load(weight_ptr + offs, mask=mask)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * stride + offs, mask=mask, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + 1e-6)
        tl.store(out_ptr + row * stride + offs, (x * scale * weight).to(tl.bfloat16), mask=mask)


@family("rms norm, programs that take many rows",
        (*matrices(2, 65536, 4096, "bfloat16"), Given((4096,), "bfloat16")))
def _(x, out, weight):
    rows, columns = x.shape
    rms_norm_kernel[(132 * 8,)](x, out, weight, x.stride(0), rows, columns, BLOCK_SIZE=4096,
                                num_warps=4)
