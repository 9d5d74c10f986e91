"""Kernels without products, timed before the timing model was fitted to them."""

from __future__ import annotations

import triton
import triton.language as tl
from packaging.version import Version

from .case import Case, Family, Given, matrices, vectors

arithmetic = Family("arithmetic loops")
dependent = Family("data-dependent loops")
tails = Family("masked tails")
shuffles = Family("layout changes")
grids = Family("small grids")
tables = Family("tables and atomics")
scans = Family("scans and sorts")
rows = Family("rows")
reuse = Family("reuse in L2 and L1")
N = 1 << 24
OLD = Version(triton.__version__) < Version("3.7")
"""Triton 3.6 lets threads run down rows where no axis is contiguous: 17 times as long as a copy."""


# -- arithmetic with bounds that are known at run time -------------------------------------------


@triton.jit
def horner_kernel(x_ptr, y_ptr, n, degree, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = tl.zeros_like(x)
    for _ in range(degree):
        y = y * x + 0.5
    tl.store(y_ptr + offs, y, mask=offs < n)


def _horner(x, y, degree, block=1024, warps=4):
    grid = (triton.cdiv(x.numel(), block),)
    horner_kernel[grid](x, y, x.numel(), degree, BLOCK=block, num_warps=warps)


@arithmetic("Horner's rule, degree 512", vectors(2, N))
def _(x, y):
    _horner(x, y, 512)


@arithmetic("Horner's rule in float64, degree 1024", vectors(2, 1 << 22, "float64"))
def _(x, y):
    _horner(x, y, 1024, block=512)


@triton.jit
def murmur_kernel(x_ptr, y_ptr, n, rounds, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.load(x_ptr + offs, mask=offs < n, other=0).to(tl.uint32, bitcast=True)
    for _ in range(rounds):
        h = (h ^ (h >> 16)) * 0x85EBCA6B
        h = (h ^ (h >> 13)) * 0xC2B2AE35
        h = h ^ (h >> 16)
    tl.store(y_ptr + offs, h.to(tl.int32, bitcast=True), mask=offs < n)


@arithmetic("MurmurHash finalizer, 64 rounds", vectors(2, N, "int32"))
def _(x, y):
    murmur_kernel[(N // 1024,)](x, y, N, 64, BLOCK=1024)


@triton.jit
def iterated_exp_kernel(x_ptr, y_ptr, n, steps, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    for _ in range(steps):
        x = tl.exp(-x)
    tl.store(y_ptr + offs, x, mask=offs < n)


@arithmetic("exp, 64 times", vectors(2, N))
def _(x, y):
    iterated_exp_kernel[(N // 1024,)](x, y, N, 64, BLOCK=1024)


@triton.jit
def sin_log_kernel(x_ptr, y_ptr, n, steps, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    for _ in range(steps):
        x = tl.sin(x) + tl.log(x * x + 1.0)
    tl.store(y_ptr + offs, x, mask=offs < n)


@arithmetic("sin and log, 16 times", vectors(2, N))
def _(x, y):
    sin_log_kernel[(N // 512,)](x, y, N, 16, BLOCK=512)


@triton.jit
def fraction_kernel(x_ptr, y_ptr, n, depth, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = x
    for _ in range(depth):
        y = 1.0 / (2.0 + y)
        y = tl.sqrt(y * y + x * x)
    tl.store(y_ptr + offs, y, mask=offs < n)


@arithmetic("quotients and square roots, 32 times", vectors(2, N))
def _(x, y):
    fraction_kernel[(N // 1024,)](x, y, N, 32, BLOCK=1024)


# -- loops whose number of iterations depends on data --------------------------------------------


@triton.jit
def mandelbrot_kernel(count_ptr, width, height, most, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c_x = -2.0 + 3.0 * col.to(tl.float32) / width
    c_y = -1.5 + 3.0 * row.to(tl.float32) / height
    x = tl.zeros((BLOCK,), tl.float32)
    y = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.int32)
    step = 0
    inside = BLOCK
    while (inside > 0) & (step < most):
        bounded = x * x + y * y < 4.0
        count += bounded.to(tl.int32)
        next_x = tl.where(bounded, x * x - y * y + c_x, x)
        y = tl.where(bounded, 2.0 * x * y + c_y, y)
        x = next_x
        inside = tl.sum(bounded.to(tl.int32), axis=0)
        step += 1
    tl.store(count_ptr + row * width + col, count)


@dependent("Mandelbrot set, at most 256 steps", (Given((2048, 2048), "int32"),))
def _(count):
    mandelbrot_kernel[(2048 // 256, 2048)](count, 2048, 2048, 256, BLOCK=256)


@triton.jit
def collatz_kernel(x_ptr, steps_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=1)
    steps = tl.zeros((BLOCK,), tl.int32)
    while tl.max(x, axis=0) > 1:
        steps += (x > 1).to(tl.int32)
        x = tl.where(x > 1, tl.where(x & 1, 3 * x + 1, x >> 1), x)
    tl.store(steps_ptr + offs, steps, mask=offs < n)


@dependent("Collatz sequences, one warp a program",
           (Given((1 << 20,), "int32", below=4096), Given((1 << 20,), "int32")))
def _(x, steps):
    collatz_kernel[((1 << 20) // 128,)](x, steps, 1 << 20, BLOCK=128, num_warps=1)


@triton.jit
def ragged_mean_kernel(x_ptr, length_ptr, mean_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(length_ptr + row)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, length, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * stride + offs, mask=offs < length, other=0.0)
    tl.store(mean_ptr + row, tl.sum(acc, axis=0) / tl.maximum(length, 1))


@dependent("means of rows of different lengths",
           (Given((16384, 8192)), Given((16384,), "int32", below=8192), Given((16384,))),
           "scalar access", moves=16384 * 4096 * 4)
def _(x, length, mean):
    ragged_mean_kernel[(16384,)](x, length, mean, 8192, BLOCK=1024)


# -- sizes that no block divides -----------------------------------------------------------------


@triton.jit
def axpy_kernel(x_ptr, y_ptr, alpha, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = tl.load(y_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, alpha * x + y, mask=offs < n)


@tails("axpy of an odd number of elements", vectors(2, (1 << 26) + 13),
       "scalar access", moves=3 * 4 * ((1 << 26) + 13))
def _(x, y):
    axpy_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, 2.0, x.numel(), BLOCK=1024)


@triton.jit
def gelu_rows_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.70710678))
    tl.store(y_ptr + row * n_cols + offs, y, mask=offs < n_cols)


@tails("GELU of rows of 1,025 in blocks of 2,048", matrices(2, 65536, 1025), "scalar access")
def _(x, y):
    gelu_rows_kernel[(65536,)](x, y, 1025, BLOCK=2048)


@triton.jit
def log_softmax_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * n_cols + offs, mask=mask, other=-float("inf")).to(tl.float32)
    x = x - tl.max(x, axis=0)
    y = x - tl.log(tl.sum(tl.exp(x), axis=0))
    tl.store(y_ptr + row * n_cols + offs, y.to(tl.float16), mask=mask)


@tails("log-softmax of rows of 777, 2 warps", matrices(2, 131072, 777, "float16"),
       "scalar access")
def _(x, y):
    log_softmax_kernel[(131072,)](x, y, 777, BLOCK=1024, num_warps=2)


# -- layouts changed through shared memory and shuffles ------------------------------------------


@triton.jit
def keys_kernel(x_ptr, y_ptr, length, D: tl.constexpr, BLOCK: tl.constexpr):
    """y[b, d, s] = x[b, s, d]."""
    base = tl.program_id(1).to(tl.int64) * length * D
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + base + s[:, None] * D + d[None, :])
    tl.store(y_ptr + base + d[:, None] * length + s[None, :], tl.trans(x))


@shuffles("transpose of heads of 64, fp16", matrices(2, 256 * 4096, 64, "float16"))
def _(x, y):
    keys_kernel[(4096 // 128, 256)](x, y, 4096, D=64, BLOCK=128)


@triton.jit
def permute_kernel(x_ptr, y_ptr, n_i, n_j, n_k, BI: tl.constexpr, BJ: tl.constexpr,
                   BK: tl.constexpr):
    """y[k, i, j] = x[i, j, k]."""
    i = tl.program_id(2) * BI + tl.arange(0, BI)
    j = tl.program_id(1) * BJ + tl.arange(0, BJ)
    k = tl.program_id(0) * BK + tl.arange(0, BK)
    x = tl.load(x_ptr + (i[:, None, None] * n_j + j[None, :, None]) * n_k + k[None, None, :])
    at = (k[:, None, None] * n_i + i[None, :, None]) * n_j + j[None, None, :]
    tl.store(y_ptr + at, tl.permute(x, (2, 0, 1)))


@shuffles("axes permuted to (2, 0, 1)", (Given((256, 512, 512)), Given((512, 256, 512))))
def _(x, y):
    permute_kernel[(512 // 32, 512 // 32, 256 // 4)](x, y, 256, 512, 512, BI=4, BJ=32, BK=32)


@triton.jit
def hadamard_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """Walsh-Hadamard transform of one row."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + offs)
    for step in tl.static_range(STEPS):
        pairs = tl.reshape(x, (BLOCK // 2 // 2**step, 2, 2**step))
        a, b = tl.split(tl.permute(pairs, (0, 2, 1)))
        x = tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 2, 1)), (BLOCK,))
    tl.store(y_ptr + row * BLOCK + offs, x)


@shuffles("Hadamard transform of rows of 1,024", matrices(2, 65536, 1024))
def _(x, y):
    hadamard_kernel[(65536,)](x, y, BLOCK=1024, STEPS=10)


@triton.jit
def channel_softmax_kernel(x_ptr, y_ptr, C: tl.constexpr, HW: tl.constexpr):
    """Softmax over the outer axis of a tile, the strided one."""
    base = tl.program_id(0).to(tl.int64) * C * HW
    at = base + tl.arange(0, C)[:, None] * HW + tl.arange(0, HW)[None, :]
    x = tl.load(x_ptr + at)
    x = tl.exp(x - tl.max(x, axis=0)[None, :])
    tl.store(y_ptr + at, x / tl.sum(x, axis=0)[None, :])


@shuffles("softmax over the outer axis of 128 x 32", (Given((16384, 128, 32)),) * 2)
def _(x, y):
    channel_softmax_kernel[(16384,)](x, y, C=128, HW=32)


# -- small grids ---------------------------------------------------------------------------------


@grids("Horner's rule by one program", vectors(2, 1024))
def _(x, y):
    _horner(x, y, 1 << 16)


@grids("Horner's rule by 132 programs", vectors(2, 132 * 8192))
def _(x, y):
    _horner(x, y, 4096, block=8192, warps=8)


@grids("Horner's rule by 133 programs", vectors(2, 133 * 8192))
def _(x, y):
    _horner(x, y, 4096, block=8192, warps=8)


@triton.jit
def long_norm_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    square = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row * n_cols + start + tl.arange(0, BLOCK))
        total += x
        square += x * x
    mean = tl.sum(total, axis=0) / n_cols
    scale = tl.rsqrt(tl.sum(square, axis=0) / n_cols - mean * mean + 1e-5)
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + offs)
        tl.store(y_ptr + row * n_cols + offs, (x - mean) * scale)


@grids("layer norm of 8 long rows", matrices(2, 8, 1 << 18), "too few programs")
def _(x, y):
    long_norm_kernel[(8,)](x, y, 1 << 18, BLOCK=4096, num_warps=16)


# -- tables and atomics --------------------------------------------------------------------------


@triton.jit
def bag_kernel(table_ptr, at_ptr, out_ptr, length, D: tl.constexpr):
    bag = tl.program_id(0)
    d = tl.arange(0, D)
    acc = tl.zeros((D,), tl.float32)
    for i in range(length):
        at = tl.load(at_ptr + bag * length + i)
        acc += tl.load(table_ptr + at.to(tl.int64) * D + d).to(tl.float32)
    tl.store(out_ptr + bag * D + d, acc)


@tables("bags of 32 embeddings, 1 warp",
        (Given((1 << 20, 256), "float16"), Given((32768, 32), "int32", below=1 << 20),
         Given((32768, 256))), moves=32768 * 256 * (32 * 2 + 4))
def _(table, at, out):
    bag_kernel[(32768,)](table, at, out, 32, D=256, num_warps=1)


@triton.jit
def lookup_kernel(table_ptr, at_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(at_ptr + offs, mask=offs < n, other=0)
    tl.store(out_ptr + offs, tl.load(table_ptr + at), mask=offs < n)


@tables("random elements of a table of 4 MB",
        (Given((1 << 20,)), Given((N,), "int32", below=1 << 20), Given((N,))),
        "uncoalesced access", moves=8 * N)
def _(table, at, out):
    lookup_kernel[(N // 1024,)](table, at, out, N, BLOCK=1024)


@triton.jit
def index_add_kernel(x_ptr, at_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.load(at_ptr + row)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + offs)
    tl.atomic_add(out_ptr + at * n_cols + offs, x)


@tables("rows added to one of 1,024 by index",
        (Given((65536, 512)), Given((65536,), "int32", below=1024), Given((1024, 512))),
        "tiny programs")
def _(x, at, out):
    index_add_kernel[(65536,)](x, at, out, 512, BLOCK=512)


@triton.jit
def block_histogram_kernel(x_ptr, bins_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x_ptr + offs), BINS)
    tl.atomic_add(bins_ptr + tl.arange(0, BINS), counts)


@tables("histograms of blocks, 256 bins",
        (Given((1 << 25,), "int32", below=256), Given((256,), "int32")))
def _(x, bins):
    block_histogram_kernel[((1 << 25) // 4096,)](x, bins, 1 << 25, BINS=256, BLOCK=4096,
                                                 num_warps=8)


@triton.jit
def weight_gradient_kernel(x_ptr, dy_ptr, dw_ptr, db_ptr, n_cols, ROWS: tl.constexpr,
                           BLOCK: tl.constexpr):
    """Layer norm's gradients of weight and bias: a block of columns of ROWS rows."""
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dw = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    for i in range(ROWS):
        at = (tl.program_id(1) * ROWS + i) * n_cols + cols
        dy = tl.load(dy_ptr + at)
        dw += tl.load(x_ptr + at) * dy
        db += dy
    tl.atomic_add(dw_ptr + cols, dw)
    tl.atomic_add(db_ptr + cols, db)


@tables("layer norm's gradients of weight and bias",
        (*matrices(2, 16384, 4096), *vectors(2, 4096)))
def _(x, dy, dw, db):
    weight_gradient_kernel[(4, 16384 // 64)](x, dy, dw, db, 4096, ROWS=64, BLOCK=1024)


# -- scans and sorts -----------------------------------------------------------------------------


@triton.jit
def _recurrence(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def recurrence_kernel(a_ptr, b_ptr, h_ptr, BLOCK: tl.constexpr):
    """h[t] = a[t] * h[t - 1] + b[t] along a row."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + offs)
    b = tl.load(b_ptr + offs)
    _, h = tl.associative_scan((a, b), 0, _recurrence)
    tl.store(h_ptr + offs, h)


@scans("linear recurrences of 2,048", matrices(3, 32768, 2048))
def _(a, b, h):
    recurrence_kernel[(32768,)](a, b, h, BLOCK=2048)


@triton.jit
def column_cumsum_kernel(x_ptr, y_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Running sums down a block of columns."""
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    carry = tl.zeros((COLS,), tl.float32)
    for start in range(0, n_rows, ROWS):
        at = (start + tl.arange(0, ROWS))[:, None] * n_cols + cols[None, :]
        x = tl.load(x_ptr + at)
        tl.store(y_ptr + at, tl.cumsum(x, axis=0) + carry[None, :])
        carry += tl.sum(x, axis=0)


@scans("running sums down columns", matrices(2, 4096, 16384))
def _(x, y):
    column_cumsum_kernel[(16384 // 32,)](x, y, 4096, 16384, ROWS=64, COLS=32)


@triton.jit
def sort_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.sort(tl.load(x_ptr + offs)))


@scans("sorted rows of 512", matrices(2, 32768, 512))
def _(x, y):
    sort_kernel[(32768,)](x, y, BLOCK=512)


@triton.jit
def top_k_kernel(x_ptr, value_ptr, index_ptr, n_cols, k, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols, other=-float("inf"))
    for i in range(k):
        best, at = tl.max(x, axis=0, return_indices=True)
        tl.store(value_ptr + row * k + i, best)
        tl.store(index_ptr + row * k + i, at)
        x = tl.where(offs == at, -float("inf"), x)


@scans("8 largest of rows of 2,048",
       (Given((32768, 2048)), Given((32768, 8)), Given((32768, 8), "int32")))
def _(x, value, index):
    top_k_kernel[(32768,)](x, value, index, 2048, 8, BLOCK=2048)


# -- rows ----------------------------------------------------------------------------------------


@triton.jit
def norm_backward_kernel(x_ptr, dy_ptr, w_ptr, dx_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * n_cols + offs, mask=mask, other=0.0)
    w_dy = tl.load(dy_ptr + row * n_cols + offs, mask=mask, other=0.0)
    w_dy *= tl.load(w_ptr + offs, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + 1e-5)
    share = tl.sum(w_dy * x, axis=0) / n_cols
    tl.store(dx_ptr + row * n_cols + offs, scale * (w_dy - x * share * scale * scale), mask=mask)


@rows("RMS norm backward, 16,384 wide, 4 warps", (*matrices(2, 4096, 16384), Given((16384,)),
                                                 Given((4096, 16384))), "register spills")
def _(x, dy, w, dx):
    norm_backward_kernel[(4096,)](x, dy, w, dx, 16384, BLOCK=16384, num_warps=4)


@rows("RMS norm backward, 16,384 wide, 16 warps", (*matrices(2, 4096, 16384), Given((16384,)),
                                                  Given((4096, 16384))))
def _(x, dy, w, dx):
    norm_backward_kernel[(4096,)](x, dy, w, dx, 16384, BLOCK=16384, num_warps=16)


@rows("log-softmax of rows of 256, 1 warp", matrices(2, 262144, 256, "float16"), "tiny programs")
def _(x, y):
    log_softmax_kernel[(262144,)](x, y, 256, BLOCK=256, num_warps=1)


@triton.jit
def long_cross_entropy_kernel(x_ptr, label_ptr, loss_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = tl.full((BLOCK,), -float("inf"), tl.float32)
    s = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols,
                    other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, x)
        s = s * tl.exp(m - m_new) + tl.exp(x - m_new)
        m = m_new
    most = tl.max(m, axis=0)
    total = tl.sum(s * tl.exp(m - most), axis=0)
    label = tl.load(x_ptr + row * n_cols + tl.load(label_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + most - label)


@rows("cross entropy over 128,256 classes, 8 warps",
      (Given((2048, 128256), "bfloat16"), Given((2048,), "int32", below=128256),
       Given((2048,))))
def _(x, label, loss):
    long_cross_entropy_kernel[(2048,)](x, label, loss, 128256, BLOCK=4096, num_warps=8)


@triton.jit
def pair_rope_kernel(x_ptr, cos_ptr, sin_ptr, y_ptr, length, HALF: tl.constexpr,
                     ROWS: tl.constexpr):
    """Rotates neighbors x[2i], x[2i + 1] of each head."""
    head = tl.program_id(1).to(tl.int64)
    s = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.arange(0, HALF)[None, :]
    even = (head * length + s) * 2 * HALF + 2 * i
    cos = tl.load(cos_ptr + s * HALF + i)
    sin = tl.load(sin_ptr + s * HALF + i)
    a = tl.load(x_ptr + even).to(tl.float32)
    b = tl.load(x_ptr + even + 1).to(tl.float32)
    tl.store(y_ptr + even, (a * cos - b * sin).to(tl.float16))
    tl.store(y_ptr + even + 1, (a * sin + b * cos).to(tl.float16))


@rows("rotated neighbors of heads of 128, fp16",
      (Given((512, 4096, 128), "float16"), Given((4096, 64)), Given((4096, 64)),
       Given((512, 4096, 128), "float16")),
      "scattered requests" if OLD else ())
def _(x, cos, sin, y):
    pair_rope_kernel[(4096 // 32, 512)](x, cos, sin, y, 4096, HALF=64, ROWS=32)


# -- data that is read again ---------------------------------------------------------------------


@triton.jit
def distance_kernel(table_ptr, query_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Sum of |table - query| over a block of the table, for one query."""
    block, query = tl.program_id(0), tl.program_id(1)
    offs = block * BLOCK + tl.arange(0, BLOCK)
    t = tl.load(table_ptr + offs, mask=offs < n)
    q = tl.load(query_ptr + query)
    tl.store(out_ptr + query * tl.num_programs(0) + block, tl.sum(tl.abs(t - q), axis=0))


@reuse("distances of 128 queries to a table of 16 MB",
       (Given((1 << 22,)), Given((128,)), Given((128, 1024))))
def _(table, query, out):
    distance_kernel[(1024, 128)](table, query, out, 1 << 22, BLOCK=4096)


@triton.jit
def five_point_kernel(x_ptr, y_ptr, H, W, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(1) * BM + tl.arange(0, BM)[:, None]
    j = tl.program_id(0) * BN + tl.arange(0, BN)[None, :]
    at = i * W + j
    mask = (i < H) & (j < W)
    here = tl.load(x_ptr + at, mask=mask)
    up = tl.load(x_ptr + at - W, mask=mask & (i > 0), other=0.0)
    down = tl.load(x_ptr + at + W, mask=mask & (i < H - 1), other=0.0)
    left = tl.load(x_ptr + at - 1, mask=mask & (j > 0), other=0.0)
    right = tl.load(x_ptr + at + 1, mask=mask & (j < W - 1), other=0.0)
    tl.store(y_ptr + at, 0.25 * (up + down + left + right) - here, mask=mask)


@reuse("a stencil of five points in tiles of 16 x 128", matrices(2, 8192, 8192))
def _(x, y):
    five_point_kernel[(8192 // 128, 8192 // 16)](x, y, 8192, 8192, BM=16, BN=128)


@triton.jit
def persistent_scale_kernel(x_ptr, w_ptr, y_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    """Weights stay in registers while a program goes from row to row."""
    offs = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + offs)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n_cols + offs)
        scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + 1e-5)
        tl.store(y_ptr + row * n_cols + offs, x * scale * w)


@reuse("RMS norm by 4 programs an SM", (Given((65536, 1024)), Given((1024,)),
                                        Given((65536, 1024))))
def _(x, w, y):
    persistent_scale_kernel[(132 * 4,)](x, w, y, 65536, 1024, BLOCK=1024)


CASES: tuple[Case, ...] = tuple(
    case for family in (arithmetic, dependent, tails, shuffles, grids, tables, scans, rows, reuse)
    for case in family.cases)
