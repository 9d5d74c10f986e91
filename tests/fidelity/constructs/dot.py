"""tl.dot: every type, every precision, accumulators, batches, loops."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, UNTIL_3_7, Theme, equal, near
from .values import bits, exact, floats, given, integers, launch, out

theme = Theme("dot")


@triton.jit
def dot_kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
               PRECISION: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + m * K + tl.arange(0, K)[None, :])
    b = tl.load(b_ptr + tl.arange(0, K)[:, None] * N + n)
    tl.store(out_ptr + m * N + n, tl.dot(a, b, input_precision=PRECISION))


def _product(device, a, b, dtype=torch.float32, precision=None):
    (m, k), n = a.shape, b.shape[1]
    return launch(dot_kernel, device, a, b, out(m, n, dtype=dtype), M=m, N=n, K=k,
                  PRECISION=precision)


@theme("fp16 times fp16 gives float32")
def _(device):
    a, b = floats(32, 64, dtype=torch.float16), floats(64, 32, dtype=torch.float16, seed=1)
    return near(_product(device, a, b), exact(a) @ exact(b), absolute=1e-3)


@theme("fp16 products of whole numbers are exact")
def _(device):
    a = integers(16, 32, low=-8, high=8, dtype=torch.float16)
    b = integers(32, 16, low=-8, high=8, dtype=torch.float16, seed=1)
    return equal(_product(device, a, b), exact(a) @ exact(b))


@theme("bf16 times bf16 gives float32")
def _(device):
    a, b = floats(32, 64, dtype=torch.bfloat16), floats(64, 32, dtype=torch.bfloat16, seed=1)
    return near(_product(device, a, b), exact(a) @ exact(b), absolute=1e-3)


@theme("fp8 e4m3 times fp8 e4m3")
def _(device):
    a = floats(32, 64, dtype=torch.float8_e4m3fn)
    b = floats(64, 32, dtype=torch.float8_e4m3fn, seed=1)
    return near(_product(device, a, b), exact(a) @ exact(b), absolute=0.2)


@theme("fp8 e5m2 times fp8 e5m2")
def _(device):
    a = floats(32, 64, dtype=torch.float8_e5m2)
    b = floats(64, 32, dtype=torch.float8_e5m2, seed=1)
    return near(_product(device, a, b), exact(a) @ exact(b), absolute=0.2)


@theme("fp8 e4m3 times fp8 e5m2")
def _(device):
    a = floats(32, 64, dtype=torch.float8_e4m3fn)
    b = floats(64, 32, dtype=torch.float8_e5m2, seed=1)
    return near(_product(device, a, b), exact(a) @ exact(b), absolute=0.2)


@theme("int8 times int8 gives int32")
def _(device):
    a = integers(32, 64, low=-128, high=127, dtype=torch.int8)
    b = integers(64, 32, low=-128, high=127, dtype=torch.int8, seed=1)
    return equal(_product(device, a, b, torch.int32), exact(a) @ exact(b))


@theme("float32 in ieee precision")
def _(device):
    a, b = floats(32, 32), floats(32, 32, seed=1)
    return near(_product(device, a, b, precision="ieee"), exact(a) @ exact(b), absolute=1e-4)


@theme("float32 in tf32 loses the lower 13 bits, and that is the default")
def _(device):
    a = torch.full((16, 32), 1 + 2.0**-12)
    b = torch.full((32, 16), 1 - 2.0**-14)
    b[:, ::2] = 1.0
    expected = np.where(np.arange(16) % 2 == 0, 32.0, 32.0 * (1 - 2.0**-11))
    return [near(_product(device, a, b, precision=precision), np.tile(expected, (16, 1)),
                 ulps=0, absolute=0.0157)  # the odd columns are cut or rounded
            for precision in ("tf32", None)] + [
        equal(_product(device, a, b, precision=precision)[:, ::2], np.full((16, 8), 32.0))
        for precision in ("tf32", None)]


@theme("float32 in tf32x3 is nearly float32")
def _(device):
    a, b = floats(32, 32), floats(32, 32, seed=1)
    return near(_product(device, a, b, precision="tf32x3"), exact(a) @ exact(b), absolute=2e-4)


@theme("float32 in bf16x6 and bf16x3")
def _(device):
    a, b = floats(32, 32), floats(32, 32, seed=1)
    wide = exact(a) @ exact(b)
    return [near(_product(device, a, b, precision="bf16x6"), wide, absolute=5e-4),
            near(_product(device, a, b, precision="bf16x3"), wide, absolute=2e-2)]


@triton.jit
def allow_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), allow_tf32=False))


@theme("allow_tf32=False")
def _(device):
    a, b = floats(16, 16), floats(16, 16, seed=1)
    got = launch(allow_kernel, device, a, b, out(16, 16), N=16)
    return near(got, exact(a) @ exact(b), absolute=1e-4)


@theme("float64 times float64")
def _(device):
    a, b = floats(16, 16, dtype=torch.float64), floats(16, 16, dtype=torch.float64, seed=1)
    return near(_product(device, a, b, torch.float64), exact(a) @ exact(b), ulps=0, absolute=1e-12)


@triton.jit
def accumulate_kernel(a_ptr, b_ptr, c_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + at)
    b = tl.load(b_ptr + at)
    c = tl.load(c_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, b, c))
    tl.store(out_ptr + N * N + at, tl.dot(a, b, acc=c * 2))
    c += tl.dot(a, b)
    tl.store(out_ptr + 2 * N * N + at, c)


@theme("acc is added")
def _(device):
    a = integers(16, 16, low=-9, high=9, dtype=torch.float16)
    b = integers(16, 16, low=-9, high=9, dtype=torch.float16, seed=1)
    c = integers(16, 16, dtype=torch.float32, seed=2)
    got = launch(accumulate_kernel, device, a, b, c, out(3, 16, 16), N=16)
    product = exact(a) @ exact(b)
    return equal(got, np.stack([product + exact(c), product + 2 * exact(c), product + exact(c)]))


@theme("an int32 acc is added", rejects=UNTIL_3_7)
def _(device):
    a = integers(32, 32, dtype=torch.int8)
    b = integers(32, 32, dtype=torch.int8, seed=1)
    c = integers(32, 32, seed=2)
    got = launch(accumulate_kernel, device, a, b, c, out(3, 32, 32, dtype=torch.int32), N=32)
    product = exact(a) @ exact(b)
    return equal(got, np.stack([product + exact(c), product + 2 * exact(c), product + exact(c)]))


@triton.jit
def int_out_kernel(a_ptr, b_ptr, c_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    acc = tl.load(c_ptr + at)
    for _ in range(3):
        acc = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), acc, out_dtype=tl.int32)
    tl.store(out_ptr + at, acc)


@theme("an int32 acc in a loop, out_dtype=int32")
def _(device):
    a, b = (integers(32, 32, dtype=torch.int8, seed=s) for s in (0, 1))
    c = integers(32, 32, seed=2)
    got = launch(int_out_kernel, device, a, b, c, out(32, 32, dtype=torch.int32), N=32)
    return equal(got, 3 * (exact(a) @ exact(b)) + exact(c))


@triton.jit
def half_out_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    c = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), out_dtype=tl.float16)
    tl.static_assert(c.dtype == tl.float16)
    tl.store(out_ptr + at, c)


@theme("out_dtype=fp16")
def _(device):
    a, b = (floats(16, 16, low=-1, high=1, dtype=torch.float16, seed=s) for s in (0, 1))
    got = launch(half_out_kernel, device, a, b, out(16, 16, dtype=torch.float16), N=16)
    return near(got, exact(a) @ exact(b), ulps=0, absolute=0.02)


@triton.jit
def brain_out_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), out_dtype=tl.bfloat16))


@theme("out_dtype=bf16", rejects=EVERY)
def _(device):
    a, b = (floats(16, 16, dtype=torch.bfloat16, seed=s) for s in (0, 1))
    launch(brain_out_kernel, device, a, b, out(16, 16), N=16)


@triton.jit
def batched_kernel(a_ptr, b_ptr, out_ptr, B: tl.constexpr, N: tl.constexpr):
    at = (tl.arange(0, B)[:, None, None] * N * N + tl.arange(0, N)[None, :, None] * N
          + tl.arange(0, N)[None, None, :])
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


@theme("a batch of products, 3-D blocks")
def _(device):
    a, b = (floats(4, 16, 16, dtype=torch.float16, seed=s) for s in (0, 1))
    got = launch(batched_kernel, device, a, b, out(4, 16, 16), B=4, N=16)
    return near(got, exact(a) @ exact(b), absolute=1e-3)


@triton.jit
def batched_twice_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    at = tl.reshape(tl.arange(0, 4 * N * N), (2, 2, N, N))
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


@theme("a batch of products, 4-D blocks")
def _(device):
    a, b = (floats(2, 2, 16, 16, dtype=torch.float16, seed=s) for s in (0, 1))
    got = launch(batched_twice_kernel, device, a, b, out(2, 2, 16, 16), N=16)
    return near(got, exact(a) @ exact(b), absolute=1e-3)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr,
                  BN: tl.constexpr, BK: tl.constexpr):
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * sam + offs_k[None, :] * sak
    b_ptrs = b_ptr + offs_k[:, None] * sbk + offs_n[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask)


def _matmul(device, a, b, dtype=torch.float32):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=dtype, device=device)
    grid = (triton.cdiv(m, 16), triton.cdiv(n, 32))
    matmul_kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), BM=16, BN=32, BK=16)
    return c


@theme("a loop over K with masks on every edge")
def _(device):
    a, b = floats(37, 53, dtype=torch.float16), floats(53, 41, dtype=torch.float16, seed=1)
    got = _matmul(device, a.to(device), b.to(device))
    return near(got, exact(a) @ exact(b), absolute=2e-3)


@theme("a loop over K of transposed operands, stored as fp16")
def _(device):
    a, b = floats(48, 20, dtype=torch.float16), floats(30, 48, dtype=torch.float16, seed=1)
    got = _matmul(device, a.to(device).T, b.to(device).T, torch.float16)
    return near(got, exact(a).T @ exact(b).T, ulps=2, absolute=2e-3)


@triton.jit
def transposed_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + at)
    b = tl.load(b_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, b.T))
    tl.store(out_ptr + N * N + at, tl.dot(tl.trans(a), b))


@theme("dot of transposed blocks")
def _(device):
    a, b = (integers(16, 16, low=-9, high=9, dtype=torch.float16, seed=s) for s in (0, 1))
    got = launch(transposed_kernel, device, a, b, out(2, 16, 16), N=16)
    return equal(got, np.stack([exact(a) @ exact(b).T, exact(a).T @ exact(b)]))


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    q = tl.load(q_ptr + at)
    k = tl.load(k_ptr + at)
    v = tl.load(v_ptr + at)
    scores = tl.dot(q, k.T) * 0.25
    scores -= tl.max(scores, axis=1)[:, None]
    p = tl.exp(scores)
    p = p / tl.sum(p, axis=1)[:, None]
    tl.store(out_ptr + at, tl.dot(p.to(v.dtype), v))


@theme("two products with a softmax between")
def _(device):
    q, k, v = (floats(16, 16, low=-1, high=1, dtype=torch.float16, seed=s) for s in (0, 1, 2))
    got = launch(attention_kernel, device, q, k, v, out(16, 16), N=16)
    p = np.exp(exact(q) @ exact(k).T * 0.25)
    return near(got, p / p.sum(1, keepdims=True) @ exact(v), ulps=0, absolute=2e-3)


@theme("small M and N: 2 x 16 times 16 x 4")
def _(device):
    a = integers(2, 16, low=-9, high=9, dtype=torch.float16)
    b = integers(16, 4, low=-9, high=9, dtype=torch.float16, seed=1)
    return equal(_product(device, a, b), exact(a) @ exact(b))


@theme("K of 8 with fp16, below the least", rejects=EVERY)
def _(device):
    _product(device, floats(16, 8, dtype=torch.float16), floats(8, 16, dtype=torch.float16))


@theme("K of 16 with int8, below the least", rejects=EVERY)
def _(device):
    _product(device, integers(16, 16, dtype=torch.int8), integers(16, 16, dtype=torch.int8),
             torch.int32)


@theme("fp16 times bf16", rejects=EVERY)
def _(device):
    _product(device, floats(16, 16, dtype=torch.float16), floats(16, 16, dtype=torch.bfloat16))


@theme("int32 times int32", rejects=EVERY)
def _(device):
    _product(device, integers(16, 16), integers(16, 16), torch.int32)


@theme("uint8 times uint8", rejects=EVERY)
def _(device):
    _product(device, integers(32, 32, low=0, dtype=torch.uint8),
             integers(32, 32, low=0, dtype=torch.uint8), torch.int32)


@triton.jit
def mismatch_kernel(a_ptr, out_ptr, N: tl.constexpr):
    a = tl.load(a_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :])
    b = tl.load(a_ptr + tl.arange(0, 2 * N)[:, None] + tl.arange(0, N)[None, :])
    tl.store(out_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :], tl.dot(a, b))


@theme("inner dimensions that do not fit", rejects=EVERY)
def _(device):
    launch(mismatch_kernel, device, floats(16, 16, dtype=torch.float16), out(16, 16), N=16)


@triton.jit
def acc_type_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    acc = tl.zeros((N, N), tl.float32)
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), acc,
                                  out_dtype=tl.float16))


@theme("a float32 acc for out_dtype=fp16", rejects=EVERY)
def _(device):
    a, b = (floats(16, 16, dtype=torch.float16, seed=s) for s in (0, 1))
    launch(acc_type_kernel, device, a, b, out(16, 16), N=16)


@triton.jit
def imprecise_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at),
                                  max_num_imprecise_acc=16))


@theme("max_num_imprecise_acc of fp8")
def _(device):
    a, b = (floats(32, 32, dtype=torch.float8_e5m2, seed=s) for s in (0, 1))
    got = launch(imprecise_kernel, device, a, b, out(32, 32), N=32)
    return near(got, exact(a) @ exact(b), absolute=0.2)


@triton.jit
def scaled_kernel(a_ptr, as_ptr, b_ptr, bs_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr,
                  K: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    s = tl.arange(0, K // 32)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    a_scale = tl.load(as_ptr + m[:, None] * (K // 32) + s[None, :])
    b_scale = tl.load(bs_ptr + n[:, None] * (K // 32) + s[None, :])
    c = tl.dot_scaled(a, a_scale, "e4m3", b, b_scale, "e4m3")
    tl.store(out_ptr + m[:, None] * N + n[None, :], c)


@theme("dot_scaled of e4m3 with block scales")
def _(device):
    a = integers(32, 64, low=-4, high=4).to(torch.float8_e4m3fn)
    b = integers(64, 32, low=-4, high=4, seed=1).to(torch.float8_e4m3fn)
    a_scale = integers(32, 2, low=125, high=129, dtype=torch.uint8)
    b_scale = integers(32, 2, low=125, high=129, dtype=torch.uint8, seed=1)
    got = launch(scaled_kernel, device, a.view(torch.uint8), a_scale, b.view(torch.uint8), b_scale,
                 out(32, 32), M=32, N=32, K=64)
    left = exact(a) * np.repeat(2.0 ** (exact(a_scale) - 127), 32, axis=1)
    right = exact(b) * np.repeat(2.0 ** (exact(b_scale) - 127), 32, axis=1).T
    return equal(got, left @ right)


@triton.jit
def scaled_fp4_kernel(a_ptr, as_ptr, b_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    n = tl.arange(0, N)
    a = tl.load(a_ptr + n[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    b = tl.load(b_ptr + tl.arange(0, K)[:, None] * N + n[None, :])
    a_scale = tl.load(as_ptr + n[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    c = tl.dot_scaled(a, a_scale, "e2m1", b, None, "bf16")
    tl.store(out_ptr + n[:, None] * N + n[None, :], c)


@theme("dot_scaled of packed fp4 and bf16")
def _(device):
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = np.concatenate([values, -values])
    packed = bits(torch.int8, torch.uint8).reshape(8, 32).repeat(4, 1)
    low, high = values[packed.numpy() & 15], values[packed.numpy() >> 4]
    b = integers(64, 32, low=-4, high=4).to(torch.bfloat16)
    scale = integers(32, 2, low=126, high=128, dtype=torch.uint8)
    got = launch(scaled_fp4_kernel, device, packed, scale, b, out(32, 32), N=32, K=64)
    left = np.stack([low, high], axis=-1).reshape(32, 64)
    left = left * np.repeat(2.0 ** (exact(scale) - 127), 32, axis=1)
    return equal(got, left @ exact(b))


@triton.jit
def vector_kernel(a_ptr, out_ptr, N: tl.constexpr):
    a = tl.load(a_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.dot(a, a))


@theme("dot of vectors", rejects=EVERY)
def _(device):
    launch(vector_kernel, device, floats(16, dtype=torch.float16), out(), N=16)


@triton.jit
def scalar_tile_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :])
    total = tl.sum(tl.sum(tl.dot(x, x), axis=1), axis=0)
    tl.store(out_ptr, total)


@theme("infinities and zeros through fp16 dot")
def _(device):
    a = torch.zeros(16, 16)
    a[0, 0], a[1, 1] = float("inf"), 2.0
    b = torch.eye(16)
    expected = np.zeros((16, 16))
    expected[0] = np.nan
    expected[0, 0], expected[1, 1] = np.inf, 2.0
    got = _product(device, a.half(), b.half())
    checks = [equal(got, expected)]
    total = launch(scalar_tile_kernel, device, given(np.eye(16).tolist(), torch.float16), out(),
                   N=16)
    return [*checks, equal(total, 16.0)]


