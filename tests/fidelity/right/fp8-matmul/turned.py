"""Right but different: the transposed product, sums of 32; maxima compared as integers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

PREDICT = {
    "scale": 2, "step_near_400": 32, "operand_bytes": 134_217_728,
    "multiplications_by_scales": 2, "where_a_sum_stops": 16_384, "accumulators": 128,
}
FP8 = torch.float8_e4m3fn


@triton.jit
def largest(x_ptr, bits_ptr, sm, sk, K, OWN: tl.constexpr, B: tl.constexpr):
    """Sizes are compared as integers: for numbers that are not negative the order is the same."""
    row = tl.program_id(1).to(tl.int64)
    at = (tl.program_id(0) * B + tl.arange(0, B)).to(tl.int64)
    x = tl.abs(tl.load(x_ptr + row * sm + at * sk, mask=at < K, other=0.0).to(tl.float32))
    bits = tl.max(tl.where(x == x, x, 0.0)).to(tl.int32, bitcast=True)
    tl.atomic_max(bits_ptr + row * OWN, bits)


@triton.jit
def shrink(x_ptr, bits_ptr, q_ptr, scale_ptr, sm, sk, K, OWN: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    at = (tl.program_id(0) * B + tl.arange(0, B)).to(tl.int64)
    top = tl.load(bits_ptr + row * OWN).to(tl.float32, bitcast=True)
    scale = tl.where(top > 0.0, top * (1.0 / 448.0), 1.0)
    x = tl.load(x_ptr + row * sm + at * sk, mask=at < K, other=0.0).to(tl.float32)
    q = tl.clamp(x / scale, -448.0, 448.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(q_ptr + row * K + at, q.to(tl.float8e4nv), mask=at < K)
    if tl.program_id(0) == 0 and (OWN or row == 0):
        tl.store(scale_ptr + row * OWN, scale)


def quantize_fp8(x, *, per_row=False):
    check_x(x)
    M, K = x.shape
    q = torch.empty(M, K, dtype=FP8, device=x.device)
    shape = (M, 1) if per_row else ()
    if q.numel() == 0:
        return q, torch.full(shape, 1.0, device=x.device)
    bits = torch.zeros(M if per_row else 1, dtype=torch.int32, device=x.device)
    scale = torch.empty(shape, device=x.device)
    grid = (triton.cdiv(K, 2048), M)
    largest[grid](x, bits, *x.stride(), K, OWN=int(per_row), B=2048, num_warps=8)
    shrink[grid](x, bits, q, scale, *x.stride(), K, OWN=int(per_row), B=2048, num_warps=8)
    return q, scale


@triton.jit
def multiply(a_ptr, b_ptr, c_ptr, sa_ptr, sb_ptr, am, bn, sm, sn, M, N, K,
             BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    n = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BM), tl.float32)  # the result, transposed
    for step in range(tl.cdiv(K, BK)):
        k = step * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + (m[None, :] * am + k[:, None]), other=0.0,
                    mask=(m < M)[None, :] & (k < K)[:, None])
        b = tl.load(b_ptr + (n[:, None] * bn + k[None, :]), other=0.0,
                    mask=(n < N)[:, None] & (k < K)[None, :])
        acc = tl.dot(b, a, acc, max_num_imprecise_acc=32)
    acc = acc * tl.load(sb_ptr + n * sn, mask=n < N, other=0.0)[:, None]
    acc = acc * tl.load(sa_ptr + m * sm, mask=m < M, other=0.0)[None, :]
    tl.store(c_ptr + (m[:, None] * N + n[None, :]), acc.T.to(c_ptr.dtype.element_ty),
             mask=(m < M)[:, None] & (n < N)[None, :])


def matmul_fp8(a_q, b_q_t, scale_a, scale_b, out_dtype=torch.float16):
    check(a_q, b_q_t, scale_a, scale_b, out_dtype)
    (M, K), N = a_q.shape, len(b_q_t)
    c = a_q.new_empty((M, N), dtype=out_dtype)
    if M and N:
        multiply[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
            a_q, b_q_t, c, scale_a, scale_b, a_q.stride(0), b_q_t.stride(0),
            step_of(scale_a), step_of(scale_b), M, N, K, BM=64, BN=64, BK=128, num_stages=4)
    return c


@dataclass(frozen=True)
class FormatRow:
    name: str
    ms: float
    tflops: float
    error: float


def format_report(m, n, k):
    if min(m, n, k) < 1:
        raise ValueError(f"m, n and k are {m}, {n} and {k}: each has to be above 0")
    device = the_gpu()
    a, b_t = torch.randn(m, k, device=device), torch.randn(n, k, device=device)
    exact = a.double().mm(b_t.double().t())
    found = []
    for name in ("fp32", "tf32", "fp16", "bf16", "fp8"):
        if name == "fp8":
            if (capability() or (9, 0)) < (8, 9):
                continue
            left, right = quantize_fp8(a), quantize_fp8(b_t, per_row=True)
            def work(left=left, right=right):
                return matmul_fp8(left[0], right[0], left[1], right[1], torch.float32)
        else:
            dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(name, torch.float32)
            left, right = a.to(dtype), b_t.to(dtype).t()
            def work(left=left, right=right):
                return left.mm(right)
        with tf32(name == "tf32"):
            ms = time_ms(work, 30)
            error = (work().double() - exact).norm().div(exact.norm()).item()
        found.append(FormatRow(name, ms, 2e-9 * m * n * k / ms, error))
    return found


@contextlib.contextmanager
def tf32(on):
    old, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, on
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = old


def capability():
    if torch.cuda.is_available():
        return torch.cuda.get_device_capability()
    return None


def the_gpu():
    if not torch.cuda.is_available():
        raise RuntimeError("a GPU is needed to time formats, and there is no GPU")
    return torch.device("cuda")


def time_ms(work, repeats=20):
    return triton.testing.do_bench(work, rep=repeats, return_mode="median")


def check_x(x):
    look("x", x, torch.float16, torch.bfloat16, torch.float32)
    flat("x", x)


def check(a, b, sa, sb, out_dtype):
    for name, t in (("a_q", a), ("b_q_t", b)):
        look(name, t, FP8)
        flat(name, t)
        if t.stride(1) != 1 and t.shape[1] != 1:
            raise ValueError(f"{name} has strides {t.stride()} for {tuple(t.shape)}: K is apart")
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"b_q_t is {tuple(b.shape)} beside {a.shape[1]} columns of a_q")
    for name, t, rows in (("scale_a", sa, len(a)), ("scale_b", sb, len(b))):
        look(name, t, torch.float32)
        if t.shape not in (torch.Size(()), torch.Size((rows, 1))):
            raise ValueError(f"{name} is {tuple(t.shape)}; () or {(rows, 1)} fit")
    if {t.device for t in (b, sa, sb)} != {a.device}:
        raise ValueError(f"a_q is on device {a.device}, b_q_t on {b.device}")
    if out_dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise TypeError(f"out_dtype is {out_dtype}")
    here = capability()
    if here and here < (8, 9):
        raise RuntimeError(f"float8 needs capability 8.9; this GPU has {here[0]}.{here[1]}")


def look(name, t, *dtypes):
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"{name} is a {type(t).__name__}")
    if t.dtype not in dtypes:
        raise TypeError(f"{name} is {t.dtype}")


def flat(name, t):
    if t.dim() != 2:
        raise ValueError(f"{name} has {t.dim()} dimensions, not 2")


def step_of(scale):
    return scale.stride(0) if scale.dim() else 0
