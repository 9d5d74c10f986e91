"""Good kernels in other styles than the rest: nothing in them may be taken for a defect."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .case import MANY, Family, Given, matrices, vectors

family = Family("styles")


@triton.jit
def grid_2d_kernel(x_ptr, y_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn,
                   stride_om, stride_on, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (m < M) & (n < N)
    x = tl.load(x_ptr + m * stride_xm + n * stride_xn, mask=mask)
    y = tl.load(y_ptr + m * stride_ym + n * stride_yn, mask=mask)
    tl.store(out_ptr + m * stride_om + n * stride_on, x * y, mask=mask)


@family("a 2-D grid with all strides as arguments", matrices(3, 8192, 8192))
def _(x, y, out):
    grid_2d_kernel[(8192 // 16, 8192 // 128)](x, y, out, 8192, 8192, *x.stride(), *y.stride(),
                                              *out.stride(), BLOCK_M=16, BLOCK_N=128)


@triton.jit
def described_kernel(x, out, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    out.store([m, n], tl.maximum(x.load([m, n]), 0.0))


@family("blocks through descriptors", matrices(2, 16384, 8192))
def _(x, out):
    block = [32, 128]
    described_kernel[(16384 // block[0], 8192 // block[1])](
        TensorDescriptor.from_tensor(x, block), TensorDescriptor.from_tensor(out, block),
        BLOCK_M=block[0], BLOCK_N=block[1])


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _at(pid, BLOCK_SIZE: tl.constexpr):
    return pid.to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)


@triton.jit
def silu_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = _at(tl.program_id(0), BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, x * _sigmoid(x), mask=offs < n)


@family("helpers and 64-bit indices", vectors(2))
def _(x, out):
    silu_kernel[(triton.cdiv(x.numel(), 2048),)](x, out, x.numel(), BLOCK_SIZE=2048)


@triton.jit
def swiglu_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    """Both halves of each row are read, on two lines, from one tensor."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    gate = tl.load(x_ptr + row * 2 * n_cols + offs, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * n_cols + n_cols + offs, mask=mask, other=0.0).to(tl.float32)
    value = gate * _sigmoid(gate) * up
    tl.store(out_ptr + row * n_cols + offs, value.to(tl.bfloat16), mask=mask)


@family("two halves of a row on two lines",
        (Given((16384, 16384), "bfloat16"), Given((16384, 8192), "bfloat16")))
def _(x, out):
    swiglu_kernel[(16384, 4)](x, out, 8192, BLOCK_SIZE=2048)


@triton.jit
def adam_kernel(p_ptr, g_ptr, m_ptr, v_ptr, n, rate, BLOCK_SIZE: tl.constexpr):
    """In place: what is read is written."""
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    g = tl.load(g_ptr + offs, mask=mask)
    m = 0.9 * tl.load(m_ptr + offs, mask=mask) + 0.1 * g
    v = 0.99 * tl.load(v_ptr + offs, mask=mask) + 0.01 * g * g
    p = tl.load(p_ptr + offs, mask=mask) - rate * m / (tl.sqrt(v) + 1e-8)
    tl.store(m_ptr + offs, m, mask=mask)
    tl.store(v_ptr + offs, v, mask=mask)
    tl.store(p_ptr + offs, p, mask=mask)


@family("seven tensors, three of them in place", vectors(4), moves=7 * 4 * MANY)
def _(p, g, m, v):
    adam_kernel[(triton.cdiv(p.numel(), 1024),)](p, g, m, v, p.numel(), 1e-3, BLOCK_SIZE=1024)


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, seed, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    kept = tl.rand(seed, offs) > 0.5
    tl.store(out_ptr + offs, tl.where(kept, 2 * x, 0.0), mask=offs < n)


@family("dropout", vectors(2))
def _(x, out):
    dropout_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), 7, BLOCK_SIZE=1024)


@triton.jit
def cross_entropy_kernel(x_ptr, label_ptr, loss_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """One pass with a running maximum; the label's own value is read by itself."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(label_ptr + row)
    chosen = tl.load(x_ptr + row * stride + label).to(tl.float32)
    most = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride + offs, mask=offs < n_cols,
                    other=-float("inf")).to(tl.float32)
        newer = tl.maximum(most, tl.max(x, axis=0))
        total = total * tl.exp(most - newer) + tl.sum(tl.exp(x - newer), axis=0)
        most = newer
    tl.store(loss_ptr + row, most + tl.log(total) - chosen)


@family("cross entropy with a running maximum",
        (Given((16384, 32000), "bfloat16"), Given((16384,), "int64", below=32000),
         Given((16384,))))
def _(x, label, loss):
    cross_entropy_kernel[(x.shape[0],)](x, label, loss, x.stride(0), x.shape[1], BLOCK_SIZE=8192,
                                        num_warps=8)


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, length, HALF: tl.constexpr, ROWS: tl.constexpr):
    """The two halves of each head turn together; cosines are shared by all heads."""
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, HALF)[None, :]
    at = (head * length + rows) * 2 * HALF + columns
    cos = tl.load(cos_ptr + rows * HALF + columns)
    sin = tl.load(sin_ptr + rows * HALF + columns)
    low, high = tl.load(x_ptr + at), tl.load(x_ptr + at + HALF)
    tl.store(out_ptr + at, low * cos - high * sin)
    tl.store(out_ptr + at + HALF, high * cos + low * sin)


@family("rotated halves of heads",
        (Given((256, 4096, 128)), Given((4096, 64)), Given((4096, 64)), Given((256, 4096, 128))))
def _(x, cos, sin, out):
    rope_kernel[(4096 // 32, 256)](x, cos, sin, out, 4096, HALF=64, ROWS=32)


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        total += tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


@family("row sums in a loop", (Given((8192, 16384)), Given((8192,))))
def _(x, out):
    row_sum_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK_SIZE=2048)


@triton.jit
def stencil_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Neighbours are read again at once, out of L1."""
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    left = tl.load(x_ptr + offs - 1, mask=(offs > 0) & (offs < n), other=0.0)
    here = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    right = tl.load(x_ptr + offs + 1, mask=offs < n - 1, other=0.0)
    tl.store(out_ptr + offs, 0.25 * left + 0.5 * here + 0.25 * right, mask=offs < n)


@family("a stencil of three points", vectors(2))
def _(x, out):
    stencil_kernel[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), BLOCK_SIZE=4096)


@triton.jit
def repeat_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    """Each row is read once for every copy of it, by programs that run side by side."""
    row = tl.program_id(1).to(tl.int64)
    copy = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols)
    tl.store(out_ptr + (row * tl.num_programs(0) + copy) * n_cols + offs, x, mask=offs < n_cols)


@family("rows repeated eight times", (Given((8192, 2048)), Given((8192, 8, 2048))))
def _(x, out):
    repeat_kernel[(8, 8192)](x, out, 2048, BLOCK_SIZE=2048)


@triton.jit
def softmax_online_kernel(x_ptr, out_ptr, n_rows, n_cols, stride, BLOCK_SIZE: tl.constexpr):
    """A persistent kernel as the official tutorial has it: rows in a pipelined loop."""
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=2):
        offs = tl.arange(0, BLOCK_SIZE)
        mask = offs < n_cols
        x = tl.load(x_ptr + row * stride + offs, mask=mask, other=-float("inf"))
        x = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * stride + offs, x / tl.sum(x, axis=0), mask=mask)


@family("softmax by programs that take many rows", matrices(2, 32768, 2048))
def _(x, out):
    softmax_online_kernel[(132 * 8,)](x, out, x.shape[0], x.shape[1], x.stride(0),
                                      BLOCK_SIZE=2048, num_warps=4)
