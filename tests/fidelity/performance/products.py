"""Matrix products: tiles large and small, pipelined or not, on tensor cores or beside them."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .case import Family, Given, matrices

family = Family("products")
SIDE = 4096
FLOPS = 2 * SIDE**3


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,  # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
):
    pid = tl.program_id(0)
    n_m, n_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP_M * n_n)
    first = group * GROUP_M
    rows = min(n_m - first, GROUP_M)
    pid_m = first + (pid % (GROUP_M * n_n)) % rows
    pid_n = (pid % (GROUP_M * n_n)) // rows
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_at = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_at = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_at, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_at, mask=offs_k[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_at += BLOCK_K * stride_ak
        b_at += BLOCK_K * stride_bk

    rows_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_at = c_ptr + rows_m[:, None] * stride_cm + columns_n[None, :] * stride_cn
    tl.store(c_at, acc.to(c_ptr.dtype.element_ty),
             mask=(rows_m[:, None] < M) & (columns_n[None, :] < N))


def _matmul(a, b, c, tile, *, warps=4, stages=3, group=8, precision="tf32"):
    (M, K), N = a.shape, b.shape[1]
    block_m, block_n, block_k = tile
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    matmul_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(),
                        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group,
                        PRECISION=precision, num_warps=warps, num_stages=stages)


HALVES = matrices(3, SIDE, SIDE, "float16")
FLOATS = matrices(3, SIDE, SIDE)


@family("product fp16, 128x256x64, 8 warps, 3 stages", HALVES, flops=FLOPS)
def _(a, b, c):
    _matmul(a, b, c, (128, 256, 64), warps=8)


@family("product fp16, 128x128x64, 3 stages", HALVES, flops=FLOPS)
def _(a, b, c):
    _matmul(a, b, c, (128, 128, 64), warps=8)


@family("product fp16, tiles in plain order", HALVES, flops=FLOPS)
def _(a, b, c):
    _matmul(a, b, c, (128, 128, 64), warps=8, group=1)


@family("product bf16 with the second matrix transposed", matrices(3, SIDE, SIDE, "bfloat16"),
        flops=FLOPS)
def _(a, b, c):
    _matmul(a, b.t(), c, (128, 256, 64), warps=8)


@family("product fp16, 64x64x32", HALVES, "small tiles", flops=FLOPS)
def _(a, b, c):
    _matmul(a, b, c, (64, 64, 32))


@family("product fp16, 16x16x16", HALVES, "small tiles", flops=FLOPS)
def _(a, b, c):
    _matmul(a, b, c, (16, 16, 16))


@family("product fp16, 1 stage", HALVES, "no pipelining", flops=FLOPS)
def _(a, b, c):
    _matmul(a, b, c, (128, 128, 64), warps=8, stages=1)


@family("product fp16, 128x256x64, 4 warps", HALVES, "register spills", flops=FLOPS)
def _(a, b, c):
    _matmul(a, b, c, (128, 256, 64), warps=4)


@family("product fp32 in ieee precision", FLOATS, "no tensor cores", flops=FLOPS)
def _(a, b, c):
    _matmul(a, b, c, (64, 64, 16), precision="ieee")


@family("product tf32, rows of the second matrix copied in words", FLOATS, "narrow async copies",
        flops=FLOPS)
def _(a, b, c):
    _matmul(a, b, c, (128, 128, 32), warps=8)


@family("product tf32 with the second matrix transposed", FLOATS, flops=FLOPS)
def _(a, b, c):
    _matmul(a, b.t(), c, (128, 128, 32), warps=8)


def _tall(tiles):
    rows = tiles * 128
    return (Given((rows, SIDE), "float16"), Given((SIDE, 256), "float16"),
            Given((rows, 256), "float16"))


@family("product fp16 of 133 tiles", _tall(133), "wave tail", flops=2 * 133 * 128 * 256 * SIDE)
def _(a, b, c):
    _matmul(a, b, c, (128, 256, 64), warps=8)


@family("product fp16 of 132 tiles", _tall(132), flops=2 * 132 * 128 * 256 * SIDE)
def _(a, b, c):
    _matmul(a, b, c, (128, 256, 64), warps=8)


@triton.jit
def described_matmul_kernel(a, b, c, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                            BLOCK_K: tl.constexpr):
    first_m = tl.program_id(0) * BLOCK_M
    first_n = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a.load([first_m, k]), b.load([k, first_n]), acc)
    c.store([first_m, first_n], acc.to(tl.float16))


@family("product fp16 through descriptors", HALVES, flops=FLOPS)
def _(a, b, c):
    block_m, block_n, block_k = 128, 256, 64
    described_matmul_kernel[(SIDE // block_m, SIDE // block_n)](
        TensorDescriptor.from_tensor(a, [block_m, block_k]),
        TensorDescriptor.from_tensor(b, [block_k, block_n]),
        TensorDescriptor.from_tensor(c, [block_m, block_n]),
        SIDE, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=8, num_stages=3)


@triton.jit
def persistent_matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr,
                             BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    n_n = tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * n_n, tl.num_programs(0)):
        offs_m = tile // n_n * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = tile % n_n * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            offs_k = k + tl.arange(0, BLOCK_K)
            a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
            b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16))


@family("product fp16, programs that take many tiles", HALVES, flops=FLOPS)
def _(a, b, c):
    persistent_matmul_kernel[(132,)](a, b, c, SIDE, SIDE, SIDE, BLOCK_M=128, BLOCK_N=128,
                                     BLOCK_K=64, num_warps=8, num_stages=3)


@triton.jit
def split_matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, SPLIT: tl.constexpr, BLOCK_M: tl.constexpr,
                        BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(2) * BLOCK_K
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(first, K, BLOCK_K * SPLIT):
        offs_k = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
        acc = tl.dot(a, b, acc)
    tl.atomic_add(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc)


@family("product fp16, K split among programs that add atomically",
        (Given((512, 32768), "float16"), Given((32768, 512), "float16"), Given((512, 512))),
        flops=2 * 512 * 512 * 32768)
def _(a, b, c):
    split_matmul_kernel[(4, 4, 16)](a, b, c, 512, 512, 32768, SPLIT=16, BLOCK_M=128, BLOCK_N=128,
                                    BLOCK_K=64, num_warps=8, num_stages=3)
