"""Reductions: every axis, every type, indices and ties, functions of one's own."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal, near
from .values import exact, floats, given, integers, launch, out, whole

theme = Theme("reductions")

_NAN = float("nan")
_INF = float("inf")


@triton.jit
def axes_kernel(x_ptr, row_ptr, column_ptr, all_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(row_ptr + m, tl.sum(x, axis=1))
    tl.store(column_ptr + n, tl.sum(x, axis=0))
    tl.store(all_ptr, tl.sum(x))
    tl.store(all_ptr + 1, tl.sum(tl.sum(x, axis=1), axis=0))
    tl.store(all_ptr + 2, tl.sum(x, axis=None))


@theme("sum along rows, columns and everything")
def _(device):
    checks = []
    for dtype in (torch.int32, torch.int64, torch.float32, torch.float64, torch.uint32):
        x = integers(8, 16, low=0, dtype=dtype)
        a = exact(x)
        rows, columns, total = launch(axes_kernel, device, x, out(8, dtype=dtype),
                                      out(16, dtype=dtype), out(3, dtype=dtype), M=8, N=16)
        checks += [equal(rows, a.sum(1)), equal(columns, a.sum(0)), equal(total, [a.sum()] * 3)]
    return checks


@theme("sum of float32 in any order")
def _(device):
    x = floats(64, 128)
    a = exact(x)
    rows, columns, total = launch(axes_kernel, device, x, out(64), out(128), out(3), M=64, N=128)
    return [near(rows, a.sum(1), absolute=1e-4), near(columns, a.sum(0), absolute=1e-4),
            near(total, [a.sum()] * 3, absolute=2e-3)]


@triton.jit
def three_axes_kernel(x_ptr, first_ptr, second_ptr, third_ptr, A: tl.constexpr, B: tl.constexpr,
                      C: tl.constexpr):
    a = tl.arange(0, A)
    b = tl.arange(0, B)
    c = tl.arange(0, C)
    x = tl.load(x_ptr + a[:, None, None] * B * C + b[None, :, None] * C + c[None, None, :])
    tl.store(first_ptr + b[:, None] * C + c[None, :], tl.sum(x, axis=0))
    tl.store(second_ptr + a[:, None] * C + c[None, :], tl.max(x, axis=1))
    tl.store(third_ptr + a[:, None] * B + b[None, :], tl.min(x, axis=-1))


@theme("the three axes of a 3-D block")
def _(device):
    x = integers(4, 8, 2)
    a = exact(x)
    first, second, third = launch(
        three_axes_kernel, device, x, out(8, 2, dtype=torch.int32), out(4, 2, dtype=torch.int32),
        out(4, 8, dtype=torch.int32), A=4, B=8, C=2)
    return [equal(first, a.sum(0)), equal(second, a.max(1)), equal(third, a.min(2))]


@triton.jit
def keep_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x - tl.max(x, axis=1, keep_dims=True))
    tl.store(out_ptr + M * N + at, x - tl.sum(x, axis=0, keep_dims=True))
    tl.store(out_ptr + 2 * M * N + at, x - tl.min(x, keep_dims=True))


@theme("keep_dims")
def _(device):
    x = integers(4, 8)
    a = exact(x)
    got = launch(keep_kernel, device, x, out(3, 4, 8, dtype=torch.int32), M=4, N=8)
    return equal(got, np.stack([a - a.max(1, keepdims=True), a - a.sum(0, keepdims=True),
                                a - a.min()]))


@triton.jit
def narrow_sum_kernel(x_ptr, out_ptr, KIND: tl.constexpr, N: tl.constexpr):
    total = tl.sum(tl.load(x_ptr + tl.arange(0, N)), axis=0)
    tl.static_assert(total.dtype == KIND)
    tl.store(out_ptr, total)


@theme("sum of int8, uint8, int16 and uint16 is 32 bits wide")
def _(device):
    cases = ((torch.int8, tl.int32, torch.int32), (torch.uint8, tl.uint32, torch.uint32),
             (torch.int16, tl.int32, torch.int32), (torch.uint16, tl.uint32, torch.uint32))
    checks = []
    for dtype, kind, result in cases:
        x = integers(64, low=100, high=127, dtype=dtype)
        got = launch(narrow_sum_kernel, device, x, out(dtype=result), KIND=kind, N=64)
        checks.append(equal(got, exact(x).sum()))
    return checks


@theme("sum of fp16 stays fp16")
def _(device):
    x = integers(64, low=-16, high=16, dtype=torch.float16)
    got = launch(narrow_sum_kernel, device, x, out(dtype=torch.float16), KIND=tl.float16, N=64)
    return equal(got, exact(x).sum())


@triton.jit
def wide_sum_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, N)), axis=0, dtype=tl.float32))


@theme("sum with a wider dtype")
def _(device):
    x = integers(256, low=500, high=2000, dtype=torch.float16)
    got = launch(wide_sum_kernel, device, x, out(), N=256)
    return equal(got, exact(x).sum())


@triton.jit
def flag_sum_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.sum((x > 0).to(tl.int32), axis=0))
    tl.store(out_ptr + 1, tl.sum(x > 1, axis=0))
    tl.store(out_ptr + 2, tl.max((x > 3.9).to(tl.int32), axis=0))
    tl.store(out_ptr + 3, tl.min((x > -9).to(tl.int32), axis=0))


@theme("counting: the sum of a comparison")
def _(device):
    x = floats(64)
    a = exact(x)
    got = launch(flag_sum_kernel, device, x, out(4, dtype=torch.int32), N=64)
    return equal(got, [(a > 0).sum(), (a > 1).sum(), (a > 3.9).any(), True])


@theme("sum of bf16")
def _(device):
    x = integers(64, low=-2, high=2, dtype=torch.bfloat16)
    got = launch(wide_sum_kernel, device, x, out(), N=64)
    return equal(got, exact(x).sum())


@triton.jit
def extremes_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.max(x, axis=0))
    tl.store(out_ptr + 1, tl.min(x, axis=0))


@theme("max and min of every type")
def _(device):
    checks = []
    for dtype in (torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
                  torch.float32, torch.float64, torch.uint8, torch.uint32):
        x = integers(64, low=0 if "uint" in str(dtype) else -100, high=120, dtype=dtype)
        got = launch(extremes_kernel, device, x, out(2, dtype=dtype), N=64)
        checks.append(equal(got, [exact(x).max(), exact(x).min()]))
    return checks


@theme("max and min of uint32 above 2**31")
def _(device):
    x = whole([1, 2**31, 2**32 - 1, 7, 2**31 - 1, 9, 3, 4], torch.uint32)
    got = launch(extremes_kernel, device, x, out(2, dtype=torch.uint32), N=8)
    return equal(got, [2**32 - 1, 1])


@theme("max and min ignore NaN")
def _(device):
    x = given([_NAN, 1.0, -3.0, _NAN, 7.0, _NAN, 2.0, _NAN])
    only = given([_NAN] * 8)
    return [equal(launch(extremes_kernel, device, x, out(2), N=8), [7.0, -3.0]),
            equal(launch(extremes_kernel, device, only, out(2), N=8), [_NAN, _NAN])]


@theme("max and min with infinities")
def _(device):
    x = given([-_INF, 1.0, -3.0, _INF])
    low = given([-_INF] * 4)
    return [equal(launch(extremes_kernel, device, x, out(2), N=4), [_INF, -_INF]),
            equal(launch(extremes_kernel, device, low, out(2), N=4), [-_INF, -_INF])]


@triton.jit
def arg_kernel(x_ptr, row_ptr, column_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(row_ptr + m, tl.argmax(x, axis=1))
    tl.store(row_ptr + M + m, tl.argmin(x, axis=1))
    tl.store(column_ptr + n, tl.argmax(x, axis=0))
    tl.store(column_ptr + N + n, tl.argmin(x, axis=0))


@theme("argmax and argmin; of ties the first")
def _(device):
    checks = []
    for dtype in (torch.int32, torch.float32, torch.int64):
        x = integers(8, 16, low=-2, high=2, dtype=dtype)
        a = exact(x)
        rows, columns = launch(arg_kernel, device, x, out(2, 8, dtype=torch.int32),
                               out(2, 16, dtype=torch.int32), M=8, N=16)
        checks += [equal(rows, np.stack([a.argmax(1), a.argmin(1)])),
                   equal(columns, np.stack([a.argmax(0), a.argmin(0)]))]
    return checks


@triton.jit
def fast_ties_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.argmax(x, axis=0, tie_break_left=False))
    tl.store(out_ptr + 1, tl.argmin(x, axis=0, tie_break_left=False))


@theme("argmax and argmin without a rule for ties")
def _(device):
    x = torch.from_numpy(np.random.default_rng(5).permutation(64).astype(np.float32))
    got = launch(fast_ties_kernel, device, x, out(2, dtype=torch.int32), N=64)
    return equal(got, [int(x.argmax()), int(x.argmin())])


@triton.jit
def with_indices_kernel(x_ptr, value_ptr, index_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    x = tl.load(x_ptr + m[:, None] * N + tl.arange(0, N)[None, :])
    value, index = tl.max(x, axis=1, return_indices=True)
    tl.store(value_ptr + m, value)
    tl.store(index_ptr + m, index)
    value, index = tl.min(x, axis=1, return_indices=True, return_indices_tie_break_left=True)
    tl.store(value_ptr + M + m, value)
    tl.store(index_ptr + M + m, index)


@theme("max and min with their indices")
def _(device):
    x = integers(8, 16, low=-3, high=3, dtype=torch.float32)
    a = exact(x)
    values, indices = launch(with_indices_kernel, device, x, out(2, 8),
                             out(2, 8, dtype=torch.int32), M=8, N=16)
    return [equal(values, np.stack([a.max(1), a.min(1)])),
            equal(indices, np.stack([a.argmax(1), a.argmin(1)]))]


@triton.jit
def keep_index_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    best = tl.argmax(x, axis=1, keep_dims=True)
    tl.store(out_ptr + at, tl.where(best == tl.arange(0, N)[None, :], 1, 0))


@theme("argmax with keep_dims")
def _(device):
    x = floats(4, 8)
    got = launch(keep_index_kernel, device, x, out(4, 8, dtype=torch.int32), M=4, N=8)
    return equal(got, exact(x).argmax(1)[:, None] == np.arange(8))


@triton.jit
def xor_kernel(x_ptr, row_ptr, all_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    x = tl.load(x_ptr + m[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(row_ptr + m, tl.xor_sum(x, axis=1))
    tl.store(all_ptr, tl.xor_sum(x))


@theme("xor_sum")
def _(device):
    x = integers(8, 16, low=-(2**31), high=2**31 - 1)
    rows, total = launch(xor_kernel, device, x, out(8, dtype=torch.int32),
                         out(dtype=torch.int32), M=8, N=16)
    a = exact(x)
    return [equal(rows, np.bitwise_xor.reduce(a, 1)),
            equal(total, np.bitwise_xor.reduce(a, None))]


@theme("xor_sum of floats", rejects=EVERY)
def _(device):
    launch(xor_kernel, device, floats(8, 16), out(8), out(), M=8, N=16)


@triton.jit
def or_kernel(x_ptr, row_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    x = tl.load(x_ptr + m[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(row_ptr + m, tl.reduce_or(x, axis=1))
    tl.store(row_ptr + M + m, tl.reduce_or(x > 3, axis=1).to(tl.int32))


@theme("reduce_or of integers and of bools")
def _(device):
    x = integers(8, 4, low=0, high=5)
    a = exact(x)
    got = launch(or_kernel, device, x, out(2, 8, dtype=torch.int32), M=8, N=4)
    return equal(got, np.stack([np.bitwise_or.reduce(a, 1), (a > 3).any(1)]))


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def larger_magnitude(a, b):
    return tl.where(tl.abs(a) >= tl.abs(b), a, b)


@triton.jit
def own_kernel(x_ptr, row_ptr, all_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(row_ptr + m, tl.reduce(x, 1, product))
    tl.store(all_ptr, tl.reduce(x, None, larger_magnitude))
    kept = tl.reduce(x, axis=0, combine_fn=product, keep_dims=True)
    tl.store(all_ptr + 1 + n[None, :], kept)


@theme("reduce with functions of one's own")
def _(device):
    x = integers(4, 8, low=1, high=3)
    x[2, 3] = -77
    a = exact(x)
    rows, total = launch(own_kernel, device, x, out(4, dtype=torch.int32),
                         out(9, dtype=torch.int32), M=4, N=8)
    return [equal(rows, a.prod(1)), equal(total, np.r_[-77, a.prod(0)])]


@triton.jit
def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    share = tl.where(count == 0.0, 0.0, count_b / count)
    return (mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count)


@triton.jit
def welford_kernel(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    offs = tl.arange(0, N)
    mask = offs[None, :] < n
    x = tl.load(x_ptr + m[:, None] * n + offs[None, :], mask=mask, other=0.0)
    count = tl.where(mask, 1.0, 0.0) + tl.zeros_like(x)
    mean, m2, total = tl.reduce((x, tl.zeros_like(x), count), 1, welford)
    tl.store(out_ptr + m, mean)
    tl.store(out_ptr + M + m, m2 / total)


@theme("reduce of a tuple: Welford's mean and variance")
def _(device):
    x = floats(8, 50)
    got = launch(welford_kernel, device, x, out(2, 8), n=50, M=8, N=64)
    a = exact(x)
    return near(got, np.stack([a.mean(1), a.var(1)]), absolute=1e-5)


@triton.jit
def second_largest(a1, a2, b1, b2):
    return tl.maximum(a1, b1), tl.maximum(tl.minimum(a1, b1), tl.maximum(a2, b2))


@triton.jit
def second_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    first, second = tl.reduce((x, tl.full((N,), float("-inf"), tl.float32)), 0, second_largest)
    tl.store(out_ptr, first)
    tl.store(out_ptr + 1, second)


@theme("reduce of a tuple: the two largest")
def _(device):
    x = floats(64)
    got = launch(second_kernel, device, x, out(2), N=64)
    return equal(got, np.sort(exact(x))[:-3:-1])


@triton.jit
def method_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr, x.sum())
    tl.store(out_ptr + 1, x.max(axis=1).min(axis=0))
    tl.store(out_ptr + 2, x.sum(axis=0).argmax(axis=0))
    tl.store(out_ptr + 3, x.reduce(1, product).sum(0))


@theme("reductions as methods")
def _(device):
    x = integers(4, 8, low=-3, high=3)
    a = exact(x)
    got = launch(method_kernel, device, x, out(4, dtype=torch.int32), M=4, N=8)
    return equal(got, [a.sum(), a.max(1).min(), a.sum(0).argmax(), a.prod(1).sum()])


@triton.jit
def softmax_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.softmax(x, dim=1, keep_dims=True))


@triton.jit
def softmax_vector_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.softmax(tl.load(x_ptr + offs)))


def _softmax(a, axis):
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@theme("softmax along rows and of a vector")
def _(device):
    x, v = floats(8, 16), floats(32)
    return [near(launch(softmax_kernel, device, x, out(8, 16), M=8, N=16), _softmax(exact(x), 1),
                 ulps=16),
            near(launch(softmax_vector_kernel, device, v, out(32), N=32), _softmax(exact(v), 0),
                 ulps=16)]


@triton.jit
def log_sum_exp_kernel(x_ptr, out_ptr, stride, n, N: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + row * stride + offs, mask=offs < n, other=-float("inf"))
    top = tl.max(x, axis=0)
    tl.store(out_ptr + row, tl.log(tl.sum(tl.exp(x - top), axis=0)) + top)


@theme("log-sum-exp of masked rows")
def _(device):
    x = floats(6, 50)
    got = launch(log_sum_exp_kernel, device, x, out(6), grid=(6,), stride=50, n=50, N=64)
    return near(got, np.log(np.exp(exact(x)).sum(1)), ulps=16)


@triton.jit
def scalar_sum_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr), axis=0))


@theme("sum of a scalar", rejects=EVERY)
def _(device):
    launch(scalar_sum_kernel, device, floats(4), out())


@triton.jit
def bad_axis_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, N)), axis=1))


@theme("sum along an axis that is not there", rejects=EVERY)
def _(device):
    launch(bad_axis_kernel, device, floats(16), out(), N=16)


@triton.jit
def one_element_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 1))
    tl.store(out_ptr, tl.sum(x, axis=0))
    tl.store(out_ptr + 1, tl.max(x, axis=0))


@theme("reductions of one element")
def _(device):
    got = launch(one_element_kernel, device, given([2.5]), out(2))
    return equal(got, [2.5, 2.5])


@triton.jit
def item_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 1))
    tl.store(out_ptr, x.item())


@theme("item of a block of one element")
def _(device):
    return equal(launch(item_kernel, device, given([2.5]), out()), 2.5)
