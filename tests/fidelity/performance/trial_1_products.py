"""Products and attention, on which the timing model was tried before it was fitted to them."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .case import Case, Family, Given, matrices
from .unseen import OLD

attention = Family("attention, formerly held out")
products = Family("products, formerly held out")


# -- products ------------------------------------------------------------------------------------


@triton.jit
def linear_few_kernel(x_ptr, w_ptr, y_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr,
                      BK: tl.constexpr):
    """y = x @ w.T for as many rows of x as one block has."""
    m = tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        w = tl.load(w_ptr + n[:, None] * K + k[None, :])
        acc = tl.dot(x, tl.trans(w), acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


@products("16 tokens through a linear layer, bf16",
          (Given((16, 4096), "bfloat16"), Given((14336, 4096), "bfloat16"),
           Given((16, 14336), "bfloat16")), flops=2 * 16 * 14336 * 4096)
def _(x, w, y):
    linear_few_kernel[(14336 // 32,)](x, w, y, 14336, 4096, BM=16, BN=32, BK=256, num_stages=4)


@triton.jit
def weight_product_kernel(a_ptr, b_ptr, c_ptr, T, M, N, BM: tl.constexpr, BN: tl.constexpr,
                          BT: tl.constexpr):
    """c = a.T @ b, as for the gradient of a weight."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, T, BT):
        t = start + tl.arange(0, BT)
        a = tl.load(a_ptr + t[:, None] * M + m[None, :])
        b = tl.load(b_ptr + t[:, None] * N + n[None, :])
        acc = tl.dot(tl.trans(a), b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


@products("product fp16 with the first matrix transposed",
          (*matrices(2, 16384, 2048, "float16"), Given((2048, 2048))),
          flops=2 * 2048**2 * 16384)
def _(a, b, c):
    weight_product_kernel[(16, 16)](a, b, c, 16384, 2048, 2048, BM=128, BN=128, BT=32,
                                    num_stages=4)


@triton.jit
def linear_gelu_kernel(x_ptr, w_ptr, bias_ptr, y_ptr, M, N, K, BM: tl.constexpr,
                       BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        w = tl.load(w_ptr + k[:, None] * N + n[None, :])
        acc = tl.dot(x, w, acc)
    acc += tl.load(bias_ptr + n).to(tl.float32)[None, :]
    acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.70710678))
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


@products("product bf16 with bias and GELU",
          (Given((8192, 1536), "bfloat16"), Given((1536, 6144), "bfloat16"),
           Given((6144,), "bfloat16"), Given((8192, 6144), "bfloat16")),
          "few spills" if OLD else "register spills", flops=2 * 8192 * 6144 * 1536)
def _(x, w, bias, y):
    linear_gelu_kernel[(6144 // 256, 8192 // 64)](x, w, bias, y, 8192, 6144, 1536, BM=64, BN=256,
                                                  BK=64, num_stages=3)


@triton.jit
def odd_product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                       BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :],
                    mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :],
                    mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@products("product tf32 of 3001 x 1777 x 1250",
          (Given((3001, 1250)), Given((1250, 1777)), Given((3001, 1777))),
          {"narrow async copies", "small tiles"},
          flops=2 * 3001 * 1777 * 1250)
def _(a, b, c):
    odd_product_kernel[(triton.cdiv(3001, 64), triton.cdiv(1777, 64))](
        a, b, c, 3001, 1777, 1250, BM=64, BN=64, BK=32, num_stages=2)


@triton.jit
def stacked_product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                           BK: tl.constexpr):
    batch = tl.program_id(2)
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    a_ptr += batch * M * K
    b_ptr += batch * K * N
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + (batch * M + m)[:, None] * N + n[None, :], acc.to(tl.bfloat16))


@products("384 products of 256 x 256 x 512, bf16",
          (Given((384, 256, 512), "bfloat16"), Given((384, 512, 256), "bfloat16"),
           Given((384, 256, 256), "bfloat16")), flops=2 * 384 * 256 * 256 * 512)
def _(a, b, c):
    stacked_product_kernel[(2, 4, 384)](a, b, c, 256, 256, 512, BM=64, BN=128, BK=64,
                                        num_stages=3)


@triton.jit
def scaled_fp8_kernel(a_ptr, b_ptr, row_ptr, col_ptr, c_ptr, M, N, K, BM: tl.constexpr,
                      BN: tl.constexpr, BK: tl.constexpr):
    """c = (a * row scales) @ (b * column scales).T by programs that take many tiles."""
    n_n = N // BN
    for tile in range(tl.program_id(0), M // BM * n_n, tl.num_programs(0)):
        m = tile // n_n * BM + tl.arange(0, BM)
        n = tile % n_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            a = tl.load(a_ptr + m[:, None] * K + k[None, :])
            b = tl.load(b_ptr + n[None, :] * K + k[:, None])
            acc = tl.dot(a, b, acc)
        acc *= tl.load(row_ptr + m)[:, None] * tl.load(col_ptr + n)[None, :]
        tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


@products("product fp8 with scales by 264 programs that take many tiles",
          (Given((4096, 4096), "float8_e4m3fn"), Given((6144, 4096), "float8_e4m3fn"),
           Given((4096,)), Given((6144,)), Given((4096, 6144), "bfloat16")),
          flops=2 * 4096 * 6144 * 4096)
def _(a, b, row, col, c):
    scaled_fp8_kernel[(264,)](a, b, row, col, c, 4096, 6144, 4096, BM=128, BN=128, BK=128,
                              num_stages=3)


@triton.jit
def narrow_int8_kernel(a_ptr, b_ptr, c_ptr, scale, K: tl.constexpr, BM: tl.constexpr,
                       BN: tl.constexpr):
    """Rows of a times a small matrix b.T, brought back to int8."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + n[None, :] * K + k[:, None])
    acc = tl.dot(a, b, out_dtype=tl.int32).to(tl.float32) * scale
    acc = tl.minimum(tl.maximum(acc, -128.0), 127.0)
    tl.store(c_ptr + m[:, None] * BN + n[None, :], acc.to(tl.int8))


@products("tall product int8 with 64 columns, back to int8",
          (Given((1 << 19, 256), "int8", below=127), Given((64, 256), "int8", below=127),
           Given((1 << 19, 64), "int8")), flops=2 * (1 << 19) * 64 * 256)
def _(a, b, c):
    narrow_int8_kernel[((1 << 19) // 128,)](a, b, c, 0.001, K=256, BM=128, BN=64)


@triton.jit
def described_linear_kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([m, k]), tl.trans(b.load([n, k])), acc)
    c.store([m, n], acc.to(tl.bfloat16))


@products("product bf16 through descriptors, second matrix transposed",
          (Given((3072, 8192), "bfloat16"), Given((5120, 8192), "bfloat16"),
           Given((3072, 5120), "bfloat16")), flops=2 * 3072 * 5120 * 8192)
def _(a, b, c):
    described_linear_kernel[(3072 // 128, 5120 // 128)](
        TensorDescriptor.from_tensor(a, [128, 64]), TensorDescriptor.from_tensor(b, [128, 64]),
        TensorDescriptor.from_tensor(c, [128, 128]), 8192, BM=128, BN=128, BK=64, num_stages=4)


@triton.jit
def low_rank_kernel(x_ptr, a_ptr, b_ptr, y_ptr, N, K, R: tl.constexpr, BM: tl.constexpr,
                    BK: tl.constexpr, BN: tl.constexpr):
    """y = (x @ a) @ b; the inner result stays on chip."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    r = tl.arange(0, R)
    inner = tl.zeros((BM, R), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        a = tl.load(a_ptr + k[:, None] * R + r[None, :])
        inner = tl.dot(x, a, inner)
    h = inner.to(tl.float16)
    for start in range(0, N, BN):
        n = start + tl.arange(0, BN)
        b = tl.load(b_ptr + r[:, None] * N + n[None, :])
        tl.store(y_ptr + m[:, None] * N + n[None, :], tl.dot(h, b).to(tl.float16))


@products("two products through rank 16, fp16",
          (Given((32768, 2048), "float16"), Given((2048, 16), "float16"),
           Given((16, 2048), "float16"), Given((32768, 2048), "float16")),
          flops=2 * 32768 * 16 * (2048 + 2048))
def _(x, a, b, y):
    low_rank_kernel[(32768 // 64,)](x, a, b, y, 2048, 2048, R=16, BM=64, BK=128, BN=128,
                                    num_stages=3)


# -- attention -----------------------------------------------------------------------------------


@triton.jit
def split_decode_kernel(q_ptr, k_ptr, v_ptr, part_ptr, lse_ptr, length, scale,
                        GROUP: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr,
                        D: tl.constexpr):
    """The queries of one group of heads over one part of its keys."""
    head = tl.program_id(0)
    split = tl.program_id(1)
    g = tl.arange(0, 16)
    d = tl.arange(0, D)
    own = g < GROUP
    q = tl.load(q_ptr + (head * GROUP + g)[:, None] * D + d[None, :], mask=own[:, None],
                other=0.0)
    m_i = tl.full((16,), -1.0e6, tl.float32)
    l_i = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    each = length // SPLITS
    for start in range(split * each, split * each + each, BLOCK):
        n = head * length + start + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + n[None, :] * D + d[:, None])
        s = tl.dot(q, k) * scale
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v = tl.load(v_ptr + n[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.bfloat16), v, acc * alpha[:, None])
        m_i = m_new
    at = (head * SPLITS + split) * GROUP + g
    tl.store(part_ptr + at[:, None] * D + d[None, :], acc / l_i[:, None], mask=own[:, None])
    tl.store(lse_ptr + at, m_i + tl.log(l_i), mask=own)


@triton.jit
def merge_decode_kernel(part_ptr, lse_ptr, o_ptr, GROUP: tl.constexpr, SPLITS: tl.constexpr,
                        D: tl.constexpr):
    query = tl.program_id(0)
    d = tl.arange(0, D)
    at = (query // GROUP * SPLITS + tl.arange(0, SPLITS)) * GROUP + query % GROUP
    lse = tl.load(lse_ptr + at)
    weight = tl.exp(lse - tl.max(lse, axis=0))
    part = tl.load(part_ptr + at[:, None] * D + d[None, :])
    out = tl.sum(part * weight[:, None], axis=0) / tl.sum(weight, axis=0)
    tl.store(o_ptr + query * D + d, out.to(tl.bfloat16))


@attention("one query over caches of 16,384 keys in 8 parts, grouped heads, bf16",
           (Given((16 * 32, 128), "bfloat16"), *(Given((16 * 8, 16384, 128), "bfloat16"),) * 2,
            Given((16 * 8, 8, 4, 128)), Given((16 * 8, 8, 4)),
            Given((16 * 32, 128), "bfloat16")),
           flops=4 * 16 * 32 * 16384 * 128)
def _(q, k, v, part, lse, o):
    split_decode_kernel[(16 * 8, 8)](q, k, v, part, lse, 16384, 128**-0.5, GROUP=4, SPLITS=8,
                                     BLOCK=64, D=128, num_stages=3)
    merge_decode_kernel[(16 * 32,)](part, lse, o, GROUP=4, SPLITS=8, D=128)


@triton.jit
def window_attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, length, window, scale,
                            BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Each query sees itself and the keys less than a window before it."""
    base = tl.program_id(1) * length
    first = tl.program_id(0) * BM
    m = first + tl.arange(0, BM)
    d = tl.arange(0, D)
    at = (base + m)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at)
    m_i = tl.full((BM,), -1.0e6, tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(tl.maximum(first - window, 0), first + BM, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + (base + n)[:, None] * D + d[None, :])
        v = tl.load(v_ptr + (base + n)[:, None] * D + d[None, :])
        s = tl.dot(q, tl.trans(k)) * scale
        back = m[:, None] - n[None, :]
        s = tl.where((back >= 0) & (back < window), s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(tl.bfloat16), v, acc * alpha[:, None])
        m_i = m_new
    tl.store(o_ptr + at, (acc / l_i[:, None]).to(tl.bfloat16))


@attention("attention to a window of 1,024 of 16,384 keys, bf16",
           (Given((16, 16384, 64), "bfloat16"),) * 4, flops=4 * 16 * 16384 * 1024 * 64)
def _(q, k, v, o):
    window_attention_kernel[(16384 // 128, 16)](q, k, v, o, 16384, 1024, 64**-0.5, BM=128, BN=64,
                                                D=64, num_stages=2)


@triton.jit
def biased_attention_kernel(q_ptr, k_ptr, v_ptr, bias_ptr, o_ptr, length, heads, scale,
                            BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    base = tl.program_id(1) * length
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    at = (base + m)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at)
    bias_row = (tl.program_id(1) % heads * length + m)[:, None] * length
    m_i = tl.full((BM,), -1.0e6, tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + (base + n)[None, :] * D + d[:, None])
        s = tl.dot(q, k) * scale
        s += tl.load(bias_ptr + bias_row + n[None, :]).to(tl.float32)
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v = tl.load(v_ptr + (base + n)[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * alpha[:, None])
        m_i = m_new
    tl.store(o_ptr + at, (acc / l_i[:, None]).to(tl.float16))


@attention("attention with a bias for each pair, 64 wide, 2048 long",
           (*(Given((64, 2048, 64), "float16"),) * 3, Given((16, 2048, 2048), "float16"),
            Given((64, 2048, 64), "float16")), "data read again",
           flops=4 * 64 * 2048**2 * 64)
def _(q, k, v, bias, o):
    biased_attention_kernel[(2048 // 64, 64)](q, k, v, bias, o, 2048, 16, 64**-0.5, BM=64,
                                              BN=128, D=64, num_stages=2)


@triton.jit
def _keys(acc, l_i, m_i, q, k_ptr, v_ptr, m, first, last, scale, BN: tl.constexpr,
          D: tl.constexpr, CUT: tl.constexpr):
    d = tl.arange(0, D)
    for start in range(first, last, BN):
        n = start + tl.arange(0, BN)
        s = tl.dot(q, tl.trans(tl.load(k_ptr + n[:, None] * D + d[None, :]))) * scale
        if CUT:
            s = tl.where(m[:, None] >= n[None, :], s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v = tl.load(v_ptr + n[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * alpha[:, None])
        m_i = m_new
    return acc, l_i, m_i


@triton.jit
def grouped_attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, length, scale, GROUP: tl.constexpr,
                             BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Causal; the blocks with the most keys start first."""
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BM
    head = tl.program_id(1)
    m = first + tl.arange(0, BM)
    at = (head * length + m)[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + at)
    k_ptr += head // GROUP * length * D
    v_ptr += head // GROUP * length * D
    m_i = tl.full((BM,), -1.0e6, tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    acc, l_i, m_i = _keys(acc, l_i, m_i, q, k_ptr, v_ptr, m, 0, first, scale, BN, D, False)
    acc, l_i, m_i = _keys(acc, l_i, m_i, q, k_ptr, v_ptr, m, first, first + BM, scale, BN, D,
                          True)
    tl.store(o_ptr + at, (acc / l_i[:, None]).to(tl.float16))


@attention("causal attention, 4 heads to a head of keys, 128 wide",
           (Given((64, 4096, 128), "float16"), *(Given((16, 4096, 128), "float16"),) * 2,
            Given((64, 4096, 128), "float16")), flops=2 * 64 * 4096**2 * 128)
def _(q, k, v, o):
    grouped_attention_kernel[(4096 // 128, 64)](q, k, v, o, 4096, 128**-0.5 * 1.44269504,
                                                GROUP=4, BM=128, BN=128, D=128, num_warps=8,
                                                num_stages=2)


@triton.jit
def short_attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, length, scale, BLOCK: tl.constexpr,
                           D: tl.constexpr):
    """A whole sequence in one block."""
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * length * D + i[:, None] * D + tl.arange(0, D)[None, :]
    inside = (i < length)[:, None]
    q = tl.load(q_ptr + at, mask=inside, other=0.0)
    k = tl.load(k_ptr + at, mask=inside, other=0.0)
    v = tl.load(v_ptr + at, mask=inside, other=0.0)
    s = tl.dot(q, tl.trans(k)) * scale
    s = tl.where((i < length)[None, :], s, -float("inf"))
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    p = p / tl.sum(p, axis=1)[:, None]
    tl.store(o_ptr + at, tl.dot(p.to(tl.float16), v).to(tl.float16), mask=inside)


@attention("attention of 12,288 sequences of 77, 64 wide",
           (Given((12288, 77, 64), "float16"),) * 4, flops=4 * 12288 * 77**2 * 64)
def _(q, k, v, o):
    short_attention_kernel[(12288,)](q, k, v, o, 77, 64**-0.5, BLOCK=128, D=64, num_warps=8)


@triton.jit
def linear_attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, length, CHUNK: tl.constexpr,
                            D: tl.constexpr, BV: tl.constexpr):
    """Causal, without softmax: a chunk sees itself and the state that earlier chunks left."""
    i = tl.arange(0, CHUNK)
    d = tl.arange(0, D)
    e = tl.program_id(0) * BV + tl.arange(0, BV)
    base = tl.program_id(1) * length
    state = tl.zeros((D, BV), tl.float32)
    for start in range(0, length, CHUNK):
        t = base + start + i
        q = tl.load(q_ptr + t[:, None] * D + d[None, :])
        k = tl.load(k_ptr + t[:, None] * D + d[None, :])
        v = tl.load(v_ptr + t[:, None] * D + e[None, :])
        s = tl.where(i[:, None] >= i[None, :], tl.dot(q, tl.trans(k)), 0.0)
        out = tl.dot(s.to(tl.bfloat16), v)
        out = tl.dot(q, state.to(tl.bfloat16), out)
        state = tl.dot(tl.trans(k), v, state)
        tl.store(o_ptr + t[:, None] * D + e[None, :], out.to(tl.bfloat16))


@attention("linear attention in chunks of 64, 128 wide, bf16",
           (Given((128, 4096, 128), "bfloat16"),) * 4,
           flops=128 * 4096 * (4 * 128 * 128 + 2 * 64 * 128))
def _(q, k, v, o):
    linear_attention_kernel[(2, 128)](q, k, v, o, 4096, CHUNK=64, D=128, BV=64, num_stages=2)


@triton.jit
def attention_weights_kernel(q_ptr, k_ptr, p_ptr, length, scale, BM: tl.constexpr,
                             BN: tl.constexpr, D: tl.constexpr):
    """softmax(q @ k.T): maxima and sums first, then the products again."""
    base = tl.program_id(1) * length
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (base + m)[:, None] * D + d[None, :])
    m_i = tl.full((BM,), -1.0e6, tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    for start in range(0, length, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + (base + n)[:, None] * D + d[None, :])
        s = tl.dot(q, tl.trans(k)) * scale
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        l_i = l_i * tl.exp(m_i - m_new) + tl.sum(tl.exp(s - m_new[:, None]), axis=1)
        m_i = m_new
    for start in range(0, length, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + (base + n)[:, None] * D + d[None, :])
        s = tl.dot(q, tl.trans(k)) * scale
        p = tl.exp(s - m_i[:, None]) / l_i[:, None]
        tl.store(p_ptr + (base + m)[:, None] * length + n[None, :], p.to(tl.float16))


@attention("weights of attention, 16 heads of 128, 2048 long",
           (*(Given((16, 2048, 128), "float16"),) * 2, Given((16, 2048, 2048), "float16")),
           flops=2 * 16 * 2048**2 * 128)
def _(q, k, p):
    attention_weights_kernel[(2048 // 64, 16)](q, k, p, 2048, 128**-0.5, BM=64, BN=64, D=128,
                                               num_stages=3)


CASES: tuple[Case, ...] = (*attention.cases, *products.cases)
