"""Kernels as others write them: many jobs, good ones and spoilt ones, in no style of ours."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import MANY, Family, Given, matrices, vectors

family = Family("strangers")


@triton.jit
def one_element_kernel(x_ptr, y_ptr):
    i = tl.program_id(0)
    tl.store(y_ptr + i, tl.load(x_ptr + i) * 2)


@family("one element a program", vectors(2), {"tiny programs", "idle lanes"})
def _(x, y):
    one_element_kernel[(x.numel(),)](x, y)


@triton.jit
def scalar_loop_kernel(x_ptr, y_ptr, n_cols):
    row = tl.program_id(0)
    total = 0.0
    for i in range(n_cols):
        total += tl.load(x_ptr + row * n_cols + i)
    tl.store(y_ptr + row, total)


@family("a row sum that loads one element at a time", (Given((65536, 1024)), Given((65536,))),
        "idle lanes")
def _(x, y):
    scalar_loop_kernel[(65536,)](x, y, 1024, num_warps=4)


@triton.jit
def huge_block_kernel(X, Y, N, BS: tl.constexpr):
    i = tl.program_id(0) * BS + tl.arange(0, BS)
    x = tl.load(X + i, mask=i < N)
    y = tl.load(Y + i, mask=i < N)
    tl.store(Y + i, tl.where(x > y, x * y + tl.exp(x), tl.log(y + 1.0) - x), mask=i < N)


@family("a block of 16,384 elements for 4 warps", vectors(2, 1 << 26), "register spills",
        moves=3 * 4 * (1 << 26))
def _(x, y):
    huge_block_kernel[(triton.cdiv(x.numel(), 16384),)](x, y, x.numel(), BS=16384)


@triton.jit
def column_walk_kernel(a, b, c, R, C, BR: tl.constexpr):
    col = tl.program_id(1)
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    o = r * C + col
    tl.store(c + o, tl.load(a + o, mask=r < R) + tl.load(b + o, mask=r < R), mask=r < R)


@family("an addition that walks down columns", matrices(3, 8192, 8192), "strided access")
def _(a, b, c):
    column_walk_kernel[(8, 8192)](a, b, c, 8192, 8192, BR=1024)


@triton.jit
def view_kernel(x_ptr, out_ptr, sx0, sx1, so0, so1, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * sx0 + cols * sx1, mask=cols < n_cols)
        tl.store(out_ptr + row * so0 + cols * so1, x * 0.5, mask=cols < n_cols)


@family("rows of a transposed view", matrices(2, 8192, 8192), "strided access")
def _(x, out):
    view_kernel[(8192,)](x.t(), out, *x.t().stride(), *out.stride(), 8192, BLOCK=2048)


@family("rows of a narrower view", (Given((16384, 8192)), Given((16384, 4096))),
        moves=2 * 4 * 16384 * 4096)
def _(x, out):
    part = x[:, 1024:5120]
    view_kernel[(16384,)](part, out, *part.stride(), *out.stride(), 4096, BLOCK=2048)


@family("a sum by one program", (Given((1 << 24,)), Given((1,))), "too few programs")
def _(x, out):
    serial_sum_kernel[(1,)](x, out, x.numel(), BLOCK=4096)


@triton.jit
def serial_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, n, BLOCK):
        acc += tl.load(x_ptr + i + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(acc))


@triton.jit
def fill_kernel(out_ptr, n, value, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, value, mask=offs < n)


@family("a fill", vectors(1, 2 * MANY))
def _(out):
    fill_kernel[(triton.cdiv(out.numel(), 2048),)](out, out.numel(), 1.5, BLOCK=2048)


@triton.jit
def matvec_kernel(w_ptr, x_ptr, y_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        w = tl.load(w_ptr + n[:, None] * K + k[None, :])
        x = tl.load(x_ptr + k)
        acc += w.to(tl.float32) * x.to(tl.float32)[None, :]
    tl.store(y_ptr + n, tl.sum(acc, axis=1))


@family("a matrix times a vector", (Given((32768, 8192), "float16"), Given((8192,), "float16"),
                                    Given((32768,))))
def _(w, x, y):
    matvec_kernel[(32768 // 8,)](w, x, y, 32768, 8192, BN=8, BK=512)


@triton.jit
def bias_gelu_kernel(x_ptr, b_ptr, y_ptr, n, C, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    x = tl.load(x_ptr + offs, mask=m) + tl.load(b_ptr + offs % C, mask=m)
    u = 0.7978845608 * (x + 0.044715 * x * x * x)
    t = 2.0 / (1.0 + tl.exp(-2.0 * u)) - 1.0
    tl.store(y_ptr + offs, 0.5 * x * (1.0 + t), mask=m)


@family("bias and gelu over a flat grid", (Given((32768, 4096)), Given((4096,)),
                                          Given((32768, 4096))))
def _(x, b, y):
    bias_gelu_kernel[(x.numel() // 1024,)](x, b, y, x.numel(), 4096, BLOCK=1024)


@triton.jit
def batched_matmul_kernel(a, b, c, S: tl.constexpr):
    i = tl.arange(0, S)
    at = tl.program_id(0).to(tl.int64) * S * S + i[:, None] * S + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)).to(tl.float16))


@family("many products of 32 x 32", (Given((1 << 17, 32, 32), "float16"),) * 3,
        flops=2 * (1 << 17) * 32**3)
def _(a, b, c):
    batched_matmul_kernel[(1 << 17,)](a, b, c, S=32)


@triton.jit
def conv2d_kernel(x_ptr, w_ptr, y_ptr, H, W, C, OC, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):
    """3 x 3, channels last, one row of an image after the other."""
    row = tl.program_id(1)
    image, oy = row // (H - 2), row % (H - 2)
    ox = tl.program_id(0) * BM + tl.arange(0, BM)
    oc = tl.program_id(2) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for tap in range(9):
        dy, dx = tap // 3, tap % 3
        for c0 in range(0, C, BK):
            c = c0 + tl.arange(0, BK)
            at = ((image * H + oy + dy) * W + ox + dx)[:, None] * C + c[None, :]
            x = tl.load(x_ptr + at, mask=(ox + dx < W)[:, None], other=0.0)
            w = tl.load(w_ptr + (tap * C + c)[:, None] * OC + oc[None, :])
            acc = tl.dot(x, w, acc)
    out = ((image * (H - 2) + oy) * (W - 2) + ox)[:, None] * OC + oc[None, :]
    tl.store(y_ptr + out, acc.to(tl.float16), mask=(ox < W - 2)[:, None])


@family("a convolution of 3 x 3, channels last",
        (Given((16, 130, 130, 128), "float16"), Given((9, 128, 128), "float16"),
         Given((16, 128, 128, 128), "float16")), flops=2 * 16 * 128 * 128 * 9 * 128 * 128)
def _(x, w, y):
    conv2d_kernel[(1, 16 * 128, 1)](x, w, y, 130, 130, 128, 128, BM=128, BN=128, BK=64,
                                    num_warps=8, num_stages=3)


@triton.jit
def pool_kernel(x_ptr, y_ptr, W, OW, BLOCK: tl.constexpr):
    oy, ox = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    for dy in tl.static_range(2):
        for dx in tl.static_range(2):
            at = (2 * oy + dy) * W + 2 * ox + dx
            best = tl.maximum(best, tl.load(x_ptr + at, mask=ox < OW, other=-float("inf")))
    tl.store(y_ptr + oy * OW + ox, best, mask=ox < OW)


@family("maxima of 2 x 2", (Given((32768, 8192)), Given((16384, 4096))))
def _(x, y):
    pool_kernel[(4, 16384)](x, y, 8192, 4096, BLOCK=1024)


@triton.jit
def scan_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carry = 0.0
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols, other=0.0)
        tl.store(y_ptr + row * n_cols + offs, tl.cumsum(x, axis=0) + carry, mask=offs < n_cols)
        carry += tl.sum(x, axis=0)


@family("running sums of rows", matrices(2, 8192, 16384))
def _(x, y):
    scan_kernel[(8192,)](x, y, 16384, BLOCK=2048)


@triton.jit
def argmax_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols, other=-float("inf"))
    tl.store(y_ptr + row, tl.argmax(x, axis=0))


@family("argmax of rows of 1,000", (Given((262144, 1000)), Given((262144,), "int32")),
        "scalar access")
def _(x, y):
    argmax_kernel[(262144,)](x, y, 1000, BLOCK=1024)


@triton.jit
def dequant_kernel(q_ptr, s_ptr, y_ptr, n_cols, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + row * n_cols + offs).to(tl.float32)
    s = tl.load(s_ptr + row * (n_cols // GROUP) + offs // GROUP)
    tl.store(y_ptr + row * n_cols + offs, (q * s).to(tl.float16))


@family("int8 to fp16 with a scale for each 128", (Given((16384, 16384), "int8"),
                                                  Given((16384, 128)),
                                                  Given((16384, 16384), "float16")))
def _(q, s, y):
    dequant_kernel[(4, 16384)](q, s, y, 16384, GROUP=128, BLOCK=4096)


@triton.jit
def groupnorm_kernel(x_ptr, y_ptr, w_ptr, C_PER: tl.constexpr, HW: tl.constexpr, GROUPS):
    group = tl.program_id(0).to(tl.int64)
    c = (group % GROUPS) * C_PER + tl.arange(0, C_PER)
    at = group * C_PER * HW + tl.arange(0, C_PER)[:, None] * HW + tl.arange(0, HW)[None, :]
    x = tl.load(x_ptr + at)
    mean = tl.sum(x) / (C_PER * HW)
    x -= mean
    scale = tl.rsqrt(tl.sum(x * x) / (C_PER * HW) + 1e-5)
    tl.store(y_ptr + at, x * scale * tl.load(w_ptr + c)[:, None])


@family("group norm of images", (Given((4096, 256, 256)), Given((4096, 256, 256)), Given((256,))))
def _(x, y, w):
    groupnorm_kernel[(4096 * 32,)](x, y, w, C_PER=8, HW=256, GROUPS=32)


@triton.jit
def outer_kernel(x_ptr, y_ptr, out_ptr, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    x, y = tl.load(x_ptr + m), tl.load(y_ptr + n)
    tl.store(out_ptr + m[:, None] * N + n[None, :], x[:, None] * y[None, :])


@family("an outer product", (Given((16384,)), Given((16384,)), Given((16384, 16384))))
def _(x, y, out):
    outer_kernel[(16384 // 32, 16384 // 64)](x, y, out, 16384, BM=32, BN=64)


@triton.jit
def paged_kernel(table_ptr, pages_ptr, out_ptr, n_pages, PAGE: tl.constexpr, D: tl.constexpr):
    """Pages of a cache, wherever a table says that they lie."""
    sequence = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((PAGE, D), tl.float32)
    for i in range(n_pages):
        page = tl.load(table_ptr + sequence * n_pages + i).to(tl.int64)
        at = page * PAGE * D + tl.arange(0, PAGE)[:, None] * D + tl.arange(0, D)[None, :]
        acc += tl.load(pages_ptr + at).to(tl.float32)
    tl.store(out_ptr + sequence * D + tl.arange(0, D), tl.sum(acc, axis=0))


@family("pages of a cache by a table",
        (Given((2048, 64), "int32", below=65536), Given((65536, 16, 128), "float16"),
         Given((2048, 128))), moves=2048 * 64 * 16 * 128 * 2)
def _(table, pages, out):
    paged_kernel[(2048,)](table, pages, out, 64, PAGE=16, D=128)


@triton.jit
def wide_attention_kernel(q_ptr, k_ptr, o_ptr, S, D: tl.constexpr, BM: tl.constexpr,
                          BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    acc = tl.zeros((BM,), tl.float32)
    for n0 in range(0, S, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + n[None, :] * D + d[:, None])
        acc += tl.sum(tl.dot(q, k), axis=1)
    tl.store(o_ptr + m, acc)


@family("sums of products, 1 stage",
        (Given((32768, 128), "float16"), Given((32768, 128), "float16"), Given((32768,))),
        "no pipelining", flops=2 * 32768 * 32768 * 128)
def _(q, k, o):
    wide_attention_kernel[(256,)](q, k, o, 32768, D=128, BM=128, BN=64, num_warps=8, num_stages=1)


@triton.jit
def two_pass_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row * n_cols + start + tl.arange(0, BLOCK))
        total += tl.sum(x * x, axis=0)
    scale = tl.rsqrt(total / n_cols)
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        y = tl.load(x_ptr + row * n_cols + offs) * scale
        tl.store(y_ptr + row * n_cols + offs, y)


@family("rows of a megabyte scaled in two passes", matrices(2, 1024, 262144), "data read again")
def _(x, y):
    two_pass_kernel[(1024,)](x, y, 262144, BLOCK=4096, num_warps=8)
