"""tl.math: elementary functions within a stated bound, exact ones exactly."""

from __future__ import annotations

import math

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, UNTIL_3_7, UNTIL_3_8, Theme, equal, near
from .values import exact, floats, given, integers, launch, out, whole

theme = Theme("mathematics")

_NAN = float("nan")
_INF = float("inf")


@triton.jit
def exponentials_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.exp(x))
    tl.store(out_ptr + N + offs, tl.exp2(x))
    tl.store(out_ptr + 2 * N + offs, tl.math.exp(x))


@theme("exp and exp2")
def _(device):
    x = floats(256, low=-20, high=20)
    got = launch(exponentials_kernel, device, x, out(3, 256), N=256)
    a = exact(x)
    return near(got, np.stack([np.exp(a), np.exp2(a), np.exp(a)]), ulps=24)


@theme("exp and exp2 of extremes")
def _(device):
    x = given([_INF, -_INF, _NAN, 0.0, 200.0, -200.0, -0.0, 1.0])
    got = launch(exponentials_kernel, device, x, out(3, 8), N=8)
    ends = [_INF, 0.0, _NAN, 1.0, _INF, 0.0, 1.0]
    return near(got, [[*ends, math.e], [*ends, 2.0], [*ends, math.e]], ulps=4)


@theme("exp and exp2 of float64")
def _(device):
    x = floats(64, low=-20, high=20, dtype=torch.float64)
    got = launch(exponentials_kernel, device, x, out(3, 64, dtype=torch.float64), N=64)
    a = exact(x)
    return near(got, np.stack([np.exp(a), np.exp2(a), np.exp(a)]), ulps=8)


@triton.jit
def logarithms_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.log(x))
    tl.store(out_ptr + N + offs, tl.log2(x))


@theme("log and log2")
def _(device):
    x = floats(256, low=1e-3, high=1e3)
    x[:6] = given([0.0, -1.0, _INF, 1.0, 2.0**-100, 1e30])
    got = launch(logarithms_kernel, device, x, out(2, 256), N=256)
    with np.errstate(all="ignore"):
        expected = np.stack([np.log(exact(x)), np.log2(exact(x))])
    return near(got, expected, ulps=4, absolute=2e-7)


@triton.jit
def circle_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.sin(x))
    tl.store(out_ptr + N + offs, tl.cos(x))


@theme("sin and cos")
def _(device):
    x = floats(256, low=-10, high=10)
    got = launch(circle_kernel, device, x, out(2, 256), N=256)
    return near(got, np.stack([np.sin(exact(x)), np.cos(exact(x))]), ulps=2, absolute=2e-6)


@triton.jit
def roots_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.sqrt(x))
    tl.store(out_ptr + N + offs, tl.rsqrt(x))


@theme("sqrt and rsqrt")
def _(device):
    x = floats(256, low=1e-3, high=1e3)
    x[:3] = given([0.0, -1.0, _INF])
    got = launch(roots_kernel, device, x, out(2, 256), N=256)
    with np.errstate(all="ignore"):
        expected = np.stack([np.sqrt(exact(x)), 1 / np.sqrt(exact(x))])
    return near(got, expected, ulps=4)


@triton.jit
def exact_functions_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, tl.sqrt_rn(x))
    tl.store(out_ptr + N + offs, tl.div_rn(x, y))
    tl.store(out_ptr + 2 * N + offs, tl.math.fdiv(x, y, ieee_rounding=True))


@theme("sqrt_rn, div_rn and fdiv with IEEE rounding are exact")
def _(device):
    x, y = floats(256, low=1e-3, high=1e3), floats(256, low=0.1, high=9, seed=1)
    got = launch(exact_functions_kernel, device, x, y, out(3, 256), N=256)
    a, b = exact(x), exact(y)
    return equal(got, np.stack([np.sqrt(a), a / b, a / b]))


@triton.jit
def quotient_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, x / y)
    tl.store(out_ptr + N + offs, tl.math.fdiv(x, y))
    tl.store(out_ptr + 2 * N + offs, 1 / y)


@theme("/ and fdiv of float32")
def _(device):
    x, y = floats(256), floats(256, low=0.1, high=9, seed=1)
    got = launch(quotient_kernel, device, x, y, out(3, 256), N=256)
    a, b = exact(x), exact(y)
    return near(got, np.stack([a / b, a / b, 1 / b]), ulps=2)


@triton.jit
def approximate_division_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.math.fdiv(x, tl.load(y_ptr + offs), approx=True))


@theme("fdiv with approx", rejects=UNTIL_3_8)
def _(device):
    x, y = floats(64), floats(64, low=0.1, high=9, seed=1)
    got = launch(approximate_division_kernel, device, x, y, out(64), N=64)
    return near(got, exact(x) / exact(y), ulps=3)


@triton.jit
def rounding_functions_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.floor(x))
    tl.store(out_ptr + N + offs, tl.ceil(x))
    tl.store(out_ptr + 2 * N + offs, tl.abs(x))


@theme("floor, ceil and abs")
def _(device):
    x = floats(64)
    x[:8] = given([-0.5, 0.5, 2.0, -2.0, _INF, -_INF, _NAN, -0.0])
    a = exact(x)
    return [equal(launch(rounding_functions_kernel, device, x.to(dtype), out(3, 64, dtype=dtype),
                         N=64), np.stack([np.floor(a), np.ceil(a), np.abs(a)]))
            for dtype in (torch.float32, torch.float64)]


@triton.jit
def absolute_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.abs(tl.load(x_ptr + offs)))


@theme("abs of integers and of fp16")
def _(device):
    checks = []
    for dtype in (torch.int8, torch.int32, torch.int64, torch.float16, torch.uint8):
        x = integers(64, low=0 if dtype is torch.uint8 else -100, dtype=dtype)
        got = launch(absolute_kernel, device, x, out(64, dtype=dtype), N=64)
        checks.append(equal(got, np.abs(exact(x))))
    return checks


@triton.jit
def error_function_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.erf(tl.load(x_ptr + offs)))


@theme("erf")
def _(device):
    x = floats(256)
    got = launch(error_function_kernel, device, x, out(256), N=256)
    return near(got, [math.erf(v) for v in exact(x)], ulps=4)


@triton.jit
def fused_kernel(x_ptr, y_ptr, z_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    z = tl.load(z_ptr + offs)
    tl.store(out_ptr + offs, tl.fma(x, y, z))


@theme("fma rounds once")
def _(device):
    x = given([1 + 2.0**-12, 1 - 2.0**-12, 3.0, 1e20] * 8)
    y = given([1 + 2.0**-12, 1 + 2.0**-12, 1 / 3, 1e-20] * 8)
    z = given([-1.0, -1.0, -1.0, -1.0] * 8)
    got = launch(fused_kernel, device, x, y, z, out(32), N=32)
    return equal(got, exact(x) * exact(y) + exact(z))


@theme("fma of fp16 rounds once")
def _(device):
    x = given([1 + 2.0**-6, 1 - 2.0**-6, 3.0, 100.0], torch.float16)
    y = given([1 + 2.0**-6, 1 + 2.0**-6, 1 / 3, 0.01], torch.float16)
    z = given([-1.0] * 4, torch.float16)
    got = launch(fused_kernel, device, x, y, z, out(4, dtype=torch.float16), N=4)
    return equal(got, exact(x) * exact(y) + exact(z))


@triton.jit
def high_product_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.umulhi(tl.load(x_ptr + offs), tl.load(y_ptr + offs)))


@theme("umulhi of 32 and 64 bits")
def _(device):
    checks = []
    for dtype in (torch.uint32, torch.uint64):
        size = 8 * dtype.itemsize
        x = whole([2**size - 1, 2 ** (size - 1), 12345, 0xD2511F53], dtype)
        y = whole([2**size - 1, 3, 2 ** (size - 2), 0xCD9E8D57], dtype)
        got = launch(high_product_kernel, device, x, y, out(4, dtype=dtype), N=4)
        pairs = zip(x.tolist(), y.tolist(), strict=True)
        checks.append(equal(got, whole([a * b >> size for a, b in pairs], dtype)))
    return checks


@triton.jit
def extremes_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, tl.maximum(x, y))
    tl.store(out_ptr + N + offs, tl.minimum(x, y))
    tl.store(out_ptr + 2 * N + offs, tl.maximum(x, 0))
    tl.store(out_ptr + 3 * N + offs, tl.minimum(3, y))


@theme("maximum and minimum of integers, signed and unsigned")
def _(device):
    checks = []
    for dtype in (torch.int32, torch.int8, torch.int64, torch.uint8, torch.uint32):
        x, y = (integers(32, low=-100, high=100, dtype=dtype, seed=s) for s in (0, 1))
        a, b = exact(x), exact(y)
        got = launch(extremes_kernel, device, x, y, out(4, 32, dtype=dtype), N=32)
        checks.append(equal(got, np.stack([np.maximum(a, b), np.minimum(a, b), np.maximum(a, 0),
                                           np.minimum(3, b)])))
    return checks


@triton.jit
def nan_extremes_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, tl.maximum(x, y))
    tl.store(out_ptr + N + offs, tl.minimum(x, y))
    tl.store(out_ptr + 2 * N + offs, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out_ptr + 3 * N + offs, tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL))


@theme("maximum and minimum with NaN, ignored or propagated")
def _(device):
    checks = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = given([_NAN, 1.0, _NAN, _INF, -_INF, 3.0, -5.0, 0.5], dtype)
        y = given([2.0, _NAN, _NAN, 7.0, -7.0, 4.0, -4.0, 0.5], dtype)
        a, b = exact(x), exact(y)
        got = launch(nan_extremes_kernel, device, x, y, out(4, 8, dtype=dtype), N=8)
        checks.append(equal(got, np.stack([np.fmax(a, b), np.fmin(a, b), np.maximum(a, b),
                                           np.minimum(a, b)])))
    return checks


@triton.jit
def clamp_kernel(x_ptr, out_ptr, low, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.clamp(x, -1.0, 1.0))
    tl.store(out_ptr + N + offs, tl.clamp(x, low, x.to(tl.float32) * 0 + 2.0))


@theme("clamp with numbers, an argument and a block")
def _(device):
    x = floats(64)
    a = exact(x)
    got = launch(clamp_kernel, device, x, out(2, 64), low=-2.5, N=64)
    return equal(got, np.stack([np.clip(a, -1, 1), np.clip(a, -2.5, 2)]))


@triton.jit
def clamp_nan_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.clamp(x, -1.0, 2.0))
    tl.store(out_ptr + N + offs, tl.clamp(x, -1.0, 2.0, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out_ptr + 2 * N + offs, tl.clamp(x, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL))


@theme("clamp of NaN, ignored or propagated")
def _(device):
    x = given([_NAN, 3.0, -_INF, 0.5])
    got = launch(clamp_nan_kernel, device, x, out(3, 4), N=4)
    return equal(got, [[-1.0, 2.0, -1.0, 0.5], [_NAN, 2.0, -1.0, 0.5], [_NAN, 1.0, -1.0, 0.5]])


@triton.jit
def clamp_integers_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.clamp(tl.load(x_ptr + offs), -10, 20))


@theme("clamp of integers", rejects=UNTIL_3_8)
def _(device):
    x = integers(64)
    got = launch(clamp_integers_kernel, device, x, out(64, dtype=torch.int32), N=64)
    return equal(got, np.clip(exact(x), -10, 20))


@triton.jit
def method_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x.exp())
    tl.store(out_ptr + N + offs, x.abs().sqrt())
    tl.store(out_ptr + 2 * N + offs, x.sin())
    tl.store(out_ptr + 3 * N + offs, x.sigmoid())
    tl.store(out_ptr + 4 * N + offs, x.floor())


@theme("functions as methods of a tensor")
def _(device):
    x = floats(64)
    a = exact(x)
    got = launch(method_kernel, device, x, out(5, 64), N=64)
    return near(got, np.stack([np.exp(a), np.sqrt(np.abs(a)), np.sin(a), 1 / (1 + np.exp(-a)),
                               np.floor(a)]), ulps=16, absolute=1e-6)


@triton.jit
def scalar_functions_kernel(out_ptr, x):
    tl.store(out_ptr, tl.exp(x))
    tl.store(out_ptr + 1, tl.sqrt(x))
    tl.store(out_ptr + 2, tl.maximum(x, 3.0))
    tl.store(out_ptr + 3, tl.sigmoid(x))
    tl.store(out_ptr + 4, tl.log2(x))


@theme("functions of a scalar argument")
def _(device):
    got = launch(scalar_functions_kernel, device, out(5), x=2.25)
    return near(got, [math.exp(2.25), 1.5, 3.0, 1 / (1 + math.exp(-2.25)), math.log2(2.25)])


@triton.jit
def half_function_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.exp(tl.load(x_ptr + offs)))


@theme("exp of fp16 without a cast", rejects=EVERY)
def _(device):
    launch(half_function_kernel, device, floats(16, dtype=torch.float16), out(16), N=16)


@theme("exp of int32", rejects=EVERY)
def _(device):
    launch(half_function_kernel, device, integers(16), out(16), N=16)


@triton.jit
def tanh_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.math.tanh(tl.load(x_ptr + offs)))


@theme("tl.math.tanh, which does not exist", rejects=EVERY)
def _(device):
    launch(tanh_kernel, device, floats(16), out(16), N=16)


@triton.jit
def float_high_product_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.umulhi(x, x))


@theme("umulhi of floats", rejects=EVERY)
def _(device):
    launch(float_high_product_kernel, device, floats(16), out(16), N=16)


@triton.jit
def underflow_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.expect_zero(tl.exp(x), x < -200.0))


@theme("expect_zero leaves values as they are", rejects=UNTIL_3_7)
def _(device):
    x = given([0.0, -300.0, 1.0, -1000.0])
    got = launch(underflow_kernel, device, x, out(4), N=4)
    return near(got, np.exp(exact(x)), absolute=1e-38)


