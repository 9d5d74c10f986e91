"""Products and attention, timed before the timing model was fitted to them."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Case, Family, Given, matrices

attention = Family("attention, unseen")
products = Family("products, unseen")


@triton.jit
def _block(acc, l_i, m_i, q, k_ptr, v_ptr, offs_m, first, last, length, scale,
           BLOCK_N: tl.constexpr, D: tl.constexpr, MASKED: tl.constexpr):
    offs_d = tl.arange(0, D)
    for start in range(first, last, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        inside = offs_n[:, None] < length
        k = tl.load(k_ptr + offs_n[:, None] * D + offs_d[None, :], mask=inside, other=0.0)
        v = tl.load(v_ptr + offs_n[:, None] * D + offs_d[None, :], mask=inside, other=0.0)
        qk = tl.dot(q, tl.trans(k)) * scale
        if MASKED:
            qk = tl.where(offs_m[:, None] >= offs_n[None, :], qk, -1.0e6)
        qk = tl.where(offs_n[None, :] < length, qk, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(qk, axis=1))
        p = tl.exp(qk - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    return acc, l_i, m_i


@triton.jit
def flash_kernel(q_ptr, k_ptr, v_ptr, o_ptr, length, scale, BLOCK_M: tl.constexpr,
                 BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    """Full blocks of keys first, then those that the diagonal cuts."""
    base = tl.program_id(1).to(tl.int64) * length * D
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    at = base + offs_m[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + at, mask=offs_m[:, None] < length, other=0.0)
    m_i = tl.full((BLOCK_M,), -1.0e6, tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    k_ptr += base
    v_ptr += base
    if CAUSAL:
        diagonal = tl.program_id(0) * BLOCK_M
        acc, l_i, m_i = _block(acc, l_i, m_i, q, k_ptr, v_ptr, offs_m, 0, diagonal, length, scale,
                               BLOCK_N, D, False)
        acc, l_i, m_i = _block(acc, l_i, m_i, q, k_ptr, v_ptr, offs_m, diagonal,
                               min(diagonal + BLOCK_M, length), length, scale, BLOCK_N, D, True)
    else:
        acc, l_i, m_i = _block(acc, l_i, m_i, q, k_ptr, v_ptr, offs_m, 0, length, length, scale,
                               BLOCK_N, D, False)
    out = (acc / l_i[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + at, out, mask=offs_m[:, None] < length)


def _flash(q, k, v, o, tile, *, warps=4, stages=2, causal=False):
    heads, length, d = q.shape
    flash_kernel[(triton.cdiv(length, tile[0]), heads)](
        q, k, v, o, length, d**-0.5, BLOCK_M=tile[0], BLOCK_N=tile[1], D=d, CAUSAL=causal,
        num_warps=warps, num_stages=stages)


def _heads(heads, length, d, dtype="float16"):
    return (Given((heads, length, d), dtype),) * 4


@attention("flash attention, heads of 64, 4096 long", _heads(96, 4096, 64),
           flops=4 * 96 * 4096**2 * 64)
def _(q, k, v, o):
    _flash(q, k, v, o, (64, 64))


@attention("causal flash attention, heads of 128, bf16", _heads(64, 4096, 128, "bfloat16"),
           flops=2 * 64 * 4096**2 * 128)
def _(q, k, v, o):
    _flash(q, k, v, o, (128, 64), warps=8, causal=True)


@attention("causal flash attention, 8 heads of 64, 2048 long", _heads(8, 2048, 64),
           flops=2 * 8 * 2048**2 * 64)
def _(q, k, v, o):
    _flash(q, k, v, o, (64, 64), causal=True)


@attention("flash attention, 16 heads of 128, 1000 long", _heads(16, 1000, 128),
           flops=4 * 16 * 1000**2 * 128)
def _(q, k, v, o):
    _flash(q, k, v, o, (128, 64), warps=8)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        offs_k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :],
                    mask=(offs_m < M)[:, None] & (offs_k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :],
                    mask=(offs_k < K)[:, None] & (offs_n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty),
             mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])


def _matmul(a, b, c, tile, *, warps=4, stages=3):
    (M, K), N = a.shape, b.shape[1]
    matmul_kernel[(triton.cdiv(M, tile[0]), triton.cdiv(N, tile[1]))](
        a, b, c, M, N, K, BM=tile[0], BN=tile[1], BK=tile[2], num_warps=warps, num_stages=stages)


def _operands(m, n, k, dtype, out=None):
    return Given((m, k), dtype), Given((k, n), dtype), Given((m, n), out or dtype)


@products("product fp16 with an inner size of 64", _operands(16384, 8192, 64, "float16"))
def _(a, b, c):
    _matmul(a, b, c, (128, 128, 64), warps=8)


@products("product bf16 with an inner size of 256", _operands(8192, 8192, 256, "bfloat16"),
          flops=2 * 8192**2 * 256)
def _(a, b, c):
    _matmul(a, b, c, (128, 128, 32), stages=4)


@products("product fp8 with an inner size of 512",
          _operands(8192, 8192, 512, "float8_e4m3fn", "float16"), flops=2 * 8192**2 * 512)
def _(a, b, c):
    _matmul(a, b, c, (128, 128, 128), warps=8)


@products("product fp16 of 2047 x 2047 x 2047", _operands(2047, 2047, 2047, "float16"),
          {"scalar access", "small tiles"}, flops=2 * 2047**3)
def _(a, b, c):
    _matmul(a, b, c, (64, 64, 32))


@products("product fp16 of 16 tiles", _operands(512, 512, 8192, "float16"),
          "too few programs", flops=2 * 512**2 * 8192)
def _(a, b, c):
    _matmul(a, b, c, (128, 128, 64), warps=8)


@triton.jit
def batched_kernel(a_ptr, b_ptr, c_ptr, S: tl.constexpr):
    i = tl.arange(0, S)
    at = tl.program_id(0).to(tl.int64) * S * S + i[:, None] * S + i[None, :]
    acc = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at))
    tl.store(c_ptr + at, acc.to(c_ptr.dtype.element_ty))


@products("many products of 64 x 64, bf16", (Given((16384, 64, 64), "bfloat16"),) * 3)
def _(a, b, c):
    batched_kernel[(16384,)](a, b, c, S=64)


@products("many products of 16 x 16, fp32, 1 warp", (Given((1 << 17, 16, 16)),) * 3)
def _(a, b, c):
    batched_kernel[(1 << 17,)](a, b, c, S=16, num_warps=1)


@triton.jit
def split_k_kernel(a_ptr, b_ptr, part_ptr, M, N, K, SPLIT: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr):
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    each = K // SPLIT
    first = tl.program_id(2) * each
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(first, first + each, BK):
        offs_k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
        acc = tl.dot(a, b, acc)
    at = (tl.program_id(2) * M + offs_m)[:, None] * N + offs_n[None, :]
    tl.store(part_ptr + at, acc)


@triton.jit
def add_parts_kernel(part_ptr, c_ptr, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for part in range(SPLIT):
        acc += tl.load(part_ptr + part * n + offs)
    tl.store(c_ptr + offs, acc.to(c_ptr.dtype.element_ty))


@products("product fp16 in 8 parts of K, added by a second kernel",
          (*matrices(1, 1024, 16384, "float16"), *matrices(1, 16384, 1024, "float16"),
           Given((8, 1024, 1024)), Given((1024, 1024), "float16")),
          "narrow async copies", flops=2 * 1024**2 * 16384)
def _(a, b, part, c):
    split_k_kernel[(8, 8, 8)](a, b, part, 1024, 1024, 16384, SPLIT=8, BM=128, BN=128, BK=64,
                              num_warps=8, num_stages=3)
    add_parts_kernel[(1024 * 1024 // 1024,)](part, c, 1024 * 1024, SPLIT=8, BLOCK=1024)


@triton.jit
def grouped_kernel(a_ptr, b_ptr, c_ptr, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr):
    """One program an SM; tiles in groups of rows, so that operands stay in L2."""
    n_m, n_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), n_m * n_n, tl.num_programs(0)):
        group = tile // (GROUP * n_n)
        pid_m = group * GROUP + tile % GROUP
        pid_n = tile % (GROUP * n_n) // GROUP
        offs_m = pid_m * BM + tl.arange(0, BM)
        offs_n = pid_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            offs_k = start + tl.arange(0, BK)
            a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
            b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty))


@products("product bf16 by one program an SM, tiles in groups", matrices(3, 8192, 8192, "bfloat16"),
          flops=2 * 8192**3)
def _(a, b, c):
    grouped_kernel[(132,)](a, b, c, 8192, 8192, 8192, GROUP=8, BM=128, BN=256, BK=64,
                           num_warps=8, num_stages=3)


@triton.jit
def dequantized_kernel(x_ptr, w_ptr, scale_ptr, y_ptr, M, N, K, BM: tl.constexpr,
                       BN: tl.constexpr, BK: tl.constexpr):
    """y = x @ (w * scale) with int8 weights [K, N] and a scale for each column."""
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        offs_k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + offs_m[:, None] * K + offs_k[None, :])
        w = tl.load(w_ptr + offs_k[:, None] * N + offs_n[None, :])
        acc = tl.dot(x, w.to(tl.float16), acc)
    y = acc * tl.load(scale_ptr + offs_n)[None, :]
    tl.store(y_ptr + offs_m[:, None] * N + offs_n[None, :], y.to(tl.float16))


@products("int8 weights dequantized for a product of 1024 tokens",
          (Given((1024, 4096), "float16"), Given((4096, 8192), "int8", below=127),
           Given((8192,)), Given((1024, 8192), "float16")), flops=2 * 1024 * 8192 * 4096)
def _(x, w, scale, y):
    dequantized_kernel[(8, 64)](x, w, scale, y, 1024, 8192, 4096, BM=128, BN=128, BK=64,
                                num_warps=8, num_stages=3)


@triton.jit
def int8_matvec_kernel(w_ptr, x_ptr, scale_ptr, y_ptr, K, BN: tl.constexpr, BK: tl.constexpr):
    offs_n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), tl.float32)
    for start in range(0, K, BK):
        offs_k = start + tl.arange(0, BK)
        w = tl.load(w_ptr + offs_n[:, None] * K + offs_k[None, :])
        x = tl.load(x_ptr + offs_k)
        acc += w.to(tl.float32) * x.to(tl.float32)[None, :]
    y = tl.sum(acc, axis=1) * tl.load(scale_ptr + offs_n)
    tl.store(y_ptr + offs_n, y.to(tl.float16))


@products("a matrix of int8 times a vector",
          (Given((32768, 8192), "int8", below=127), Given((8192,), "float16"), Given((32768,)),
           Given((32768,), "float16")))
def _(w, x, scale, y):
    int8_matvec_kernel[(32768 // 16,)](w, x, scale, y, 8192, BN=16, BK=512)


@triton.jit
def int8_kernel(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32)
    for start in range(0, K, BK):
        offs_k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
        b = tl.load(b_ptr + offs_n[None, :] * K + offs_k[:, None])
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc)


@products("product int8", (Given((4096, 4096), "int8", below=127),
                           Given((4096, 4096), "int8", below=127),
                           Given((4096, 4096), "int32")), flops=2 * 4096**3)
def _(a, b, c):
    int8_kernel[(4096 // 128, 4096 // 128)](a, b, c, 4096, 4096, BM=128, BN=128, BK=128,
                                            num_warps=8, num_stages=3)


CASES: tuple[Case, ...] = (*attention.cases, *products.cases)
