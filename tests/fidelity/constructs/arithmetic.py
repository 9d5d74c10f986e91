"""Operators on floats, mixed types, plain Python scalars; broadcasting and tl.where."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal, near, rounded
from .integers import compare_kernel, comparisons, sum_product_kernel
from .values import exact, floats, given, integers, launch, out, wrapped

theme = Theme("arithmetic")


@triton.jit
def remainder_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) % tl.load(y_ptr + offs))


@theme("% of floats takes the sign of the dividend")
def _(device):
    x, y = floats(64, low=-9, high=9), floats(64, low=0.5, high=3, seed=1)
    y = torch.where(torch.arange(64) % 2 == 0, y, -y)
    got = launch(remainder_kernel, device, x, y, out(64), N=64)
    return near(got, np.fmod(exact(x), exact(y)), ulps=0, absolute=2e-6)


@triton.jit
def floor_division_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) // 2.0)


@theme("// of floats", rejects=EVERY)
def _(device):
    launch(floor_division_kernel, device, floats(16), out(16), N=16)


@triton.jit
def true_division_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    quotient = tl.load(x_ptr + offs) / tl.load(y_ptr + offs)
    tl.static_assert(quotient.dtype == tl.float32)
    tl.store(out_ptr + offs, quotient)


@theme("/ of integers and of fp16 gives float32")
def _(device):
    checks = []
    for dtype in (torch.int32, torch.int8, torch.uint8, torch.float16, torch.float32):
        x = integers(64, low=0, high=100, dtype=dtype)
        y = integers(64, low=1, high=9, dtype=dtype, seed=1)
        got = launch(true_division_kernel, device, x, y, out(64), N=64)
        checks.append(near(got, exact(x) / exact(y), ulps=2))
    return checks


@theme("comparisons of floats with NaN, infinities and signed zeros")
def _(device):
    nan, inf = float("nan"), float("inf")
    x = given([nan, 1.0, nan, inf, -inf, 0.0, -0.0, 1e-40])
    y = given([nan, nan, 1.0, inf, inf, -0.0, 1e-45, 0.0])
    got = launch(compare_kernel, device, x, y, out(6, 8, dtype=torch.bool), N=8)
    return equal(got, comparisons(exact(x), exact(y)))


@triton.jit
def promote_kernel(x_ptr, y_ptr, out_ptr, KIND: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    total = tl.load(x_ptr + offs) + tl.load(y_ptr + offs)
    tl.static_assert(total.dtype == KIND)
    tl.store(out_ptr + offs, total)


@theme("two tensors of different types: the common type")
def _(device):
    cases = (
        (torch.int8, torch.int32, tl.int32, torch.int32),
        (torch.int32, torch.int64, tl.int64, torch.int64),
        (torch.int8, torch.uint8, tl.uint8, torch.uint8),
        (torch.int64, torch.uint32, tl.int64, torch.int64),
        (torch.float16, torch.bfloat16, tl.float16, torch.float16),
        (torch.float16, torch.float32, tl.float32, torch.float32),
        (torch.bfloat16, torch.float32, tl.float32, torch.float32),
        (torch.float32, torch.float64, tl.float64, torch.float64),
        (torch.int32, torch.float16, tl.float16, torch.float16),
        (torch.int64, torch.float32, tl.float32, torch.float32),
    )
    checks = []
    for left, right, kind, result in cases:
        x, y = integers(16, low=0, high=60, dtype=left), integers(16, low=0, high=60, dtype=right)
        got = launch(promote_kernel, device, x, y, out(16, dtype=result), KIND=kind, N=16)
        checks.append(equal(got, exact(x) + exact(y)))
    return checks


@triton.jit
def weak_kernel(h_ptr, i_ptr, b_ptr, half_ptr, byte_ptr, mixed_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    h = tl.load(h_ptr + offs)
    i = tl.load(i_ptr + offs)
    b = tl.load(b_ptr + offs)
    tl.static_assert((h * 1.5).dtype == tl.float16)
    tl.static_assert((h + 1).dtype == tl.float16)
    tl.static_assert((i + 1).dtype == tl.int8)
    tl.static_assert((i * 0.5).dtype == tl.float32)
    tl.static_assert((b + 1.0).dtype == tl.bfloat16)
    tl.store(half_ptr + offs, 1 - h * 1.5)
    tl.store(byte_ptr + offs, 100 + i)
    tl.store(mixed_ptr + offs, i * 0.5 + 2)


@theme("a Python scalar beside a tensor keeps the tensor's type")
def _(device):
    h = floats(16, dtype=torch.float16)
    i = integers(16, low=-128, high=127, dtype=torch.int8)
    b = floats(16, dtype=torch.bfloat16)
    half, byte, mixed = launch(
        weak_kernel, device, h, i, b, out(16, dtype=torch.float16), out(16, dtype=torch.int8),
        out(16), N=16)
    return [near(half, 1 - 1.5 * exact(h), ulps=1, absolute=2**-9),
            equal(byte, wrapped(100 + exact(i), torch.int8)),
            equal(mixed, exact(i) * 0.5 + 2)]


@triton.jit
def rounding_kernel(x_ptr, y_ptr, z_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    z = tl.load(z_ptr + offs)
    tl.store(out_ptr + offs, x + y)
    tl.store(out_ptr + N + offs, x - y)
    tl.store(out_ptr + 2 * N + offs, x * y)
    tl.store(out_ptr + 3 * N + offs, (x + y) + z)
    tl.store(out_ptr + 4 * N + offs, (x * y) * z)


def _rounded(device, dtype):
    x, y, z = (floats(128, seed=s, dtype=dtype) for s in (1, 2, 3))

    def round_once(values):
        return exact(rounded(torch.from_numpy(values), dtype))

    a, b, c = exact(x), exact(y), exact(z)
    got = launch(rounding_kernel, device, x, y, z, out(5, 128, dtype=dtype), N=128)
    return equal(got, np.stack([
        round_once(a + b), round_once(a - b), round_once(a * b),
        round_once(round_once(a + b) + c), round_once(round_once(a * b) * c)]))


@theme("fp16 + - * round after every operation")
def _(device):
    return _rounded(device, torch.float16)


@theme("bf16 + - * round after every operation")
def _(device):
    return _rounded(device, torch.bfloat16)


@theme("fp32 and fp64 + - * round after every operation")
def _(device):
    return [_rounded(device, torch.float32), _rounded_double(device)]


def _rounded_double(device):
    x, y, z = (floats(128, seed=s, dtype=torch.float64) for s in (1, 2, 3))
    a, b, c = x.numpy(), y.numpy(), z.numpy()
    got = launch(rounding_kernel, device, x, y, z, out(5, 128, dtype=torch.float64), N=128)
    return equal(got, np.stack([a + b, a - b, a * b, (a + b) + c, (a * b) * c]))


@theme("overflow, infinities, NaN and signed zeros in float arithmetic")
def _(device):
    nan, inf = float("nan"), float("inf")
    x = given([3e38, inf, inf, nan, -0.0, -0.0, 1e-30, -3e38])
    y = given([3e38, inf, -inf, 1.0, -0.0, 0.0, 1e-30, 1e38])
    with np.errstate(all="ignore"):
        a, b = x.numpy(), y.numpy()
        expected = np.stack([a + b, a - b, a * b, -a])
    got = launch(sum_product_kernel, device, x, y, out(4, 8), N=8)
    signs = np.signbit(np.where(np.isnan(expected), 0, expected))
    return [equal(got, expected),
            equal(torch.signbit(torch.nan_to_num(got.cpu(), nan=0.0)), signs)]


@theme("subnormal float32 is kept by + - *")
def _(device):
    x = given([1e-39, 1e-40, 2.0**-149, -1e-39, 2.0**-126, 1e-38, 3e-39, 1.5e-39])
    y = given([1e-39, -3e-41, 2.0**-149, 0.5, 0.5, 0.25, -3e-39, 2.0])
    got = launch(sum_product_kernel, device, x, y, out(4, 8), N=8)
    a, b = exact(x), exact(y)
    return equal(got, np.stack([a + b, a - b, a * b, -a]))


@triton.jit
def divide_by_zero_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) / tl.load(y_ptr + offs))


@theme("float division by zero")
def _(device):
    x, y = given([1.0, -1.0, 0.0, 5.0]), given([0.0, 0.0, 0.0, -0.0])
    got = launch(divide_by_zero_kernel, device, x, y, out(4), N=4)
    return equal(got, [np.inf, -np.inf, np.nan, -np.inf])


@triton.jit
def broadcast_kernel(out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a = tl.arange(0, A)
    b = tl.arange(0, B)
    c = tl.arange(0, C)
    block = a[:, None, None] * 100 + b[None, :, None] * 10
    total = block + c + 1  # one axis against three, then a scalar
    at = a[:, None, None] * B * C + b[None, :, None] * C + c[None, None, :]
    tl.store(out_ptr + at, total)
    flat = b[:, None] * 10 + c  # one axis against two
    tl.store(out_ptr + A * B * C + at, block + flat)


@theme("broadcasting across ranks 0 to 3")
def _(device):
    got = launch(broadcast_kernel, device, out(2, 2, 4, 8, dtype=torch.int32), A=2, B=4, C=8)
    a, b, c = np.ogrid[:2, :4, :8]
    return equal(got, np.stack([100 * a + 10 * b + c + 1, 100 * a + 20 * b + c]))


@triton.jit
def incompatible_kernel(out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), tl.arange(0, N) + tl.arange(0, 2 * N))


@theme("blocks of different lengths added", rejects=EVERY)
def _(device):
    launch(incompatible_kernel, device, out(16, dtype=torch.int32), N=16)


@triton.jit
def where_kernel(x_ptr, y_ptr, out_ptr, flag, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, tl.where(x > 1, 1.0, tl.where(x < -1, -1.0, x)))
    tl.store(out_ptr + N + offs, tl.where(x > y, x, y))
    tl.store(out_ptr + 2 * N + offs, tl.where(flag > 0, x, y))
    tl.store(out_ptr + 3 * N + offs, tl.where((x > 0) & (y > 0), 5, 6))
    tl.store(out_ptr + 4 * N + offs, tl.where(offs < 3, x, float("nan")))


@theme("tl.where: nested, with scalars, with a scalar condition")
def _(device):
    x, y = floats(32), floats(32, seed=1)
    a, b = exact(x), exact(y)
    got = launch(where_kernel, device, x, y, out(5, 32), flag=1, N=32)
    return equal(got, np.stack([
        np.clip(a, -1, 1), np.maximum(a, b), a, np.where((a > 0) & (b > 0), 5.0, 6.0),
        np.where(np.arange(32) < 3, a, np.nan)]))


@triton.jit
def where_broadcast_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + n)
    tl.store(out_ptr + m * N + n, tl.where(m >= n, x, -1.0))


@theme("tl.where broadcasts its three arguments")
def _(device):
    x = floats(8)
    got = launch(where_broadcast_kernel, device, x, out(4, 8), M=4, N=8)
    return equal(got, np.where(np.arange(4)[:, None] >= np.arange(8), exact(x), -1.0))


@triton.jit
def power_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) ** 2)


@theme("** of a tensor", rejects=EVERY)
def _(device):
    launch(power_kernel, device, floats(16), out(16), N=16)


@triton.jit
def plus_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, +tl.load(x_ptr + offs))


@theme("unary + of a tensor", rejects=EVERY)
def _(device):
    launch(plus_kernel, device, floats(16), out(16), N=16)


@triton.jit
def float_bits_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) & 1)


@theme("& of floats", rejects=EVERY)
def _(device):
    launch(float_bits_kernel, device, floats(16), out(16), N=16)


@triton.jit
def matrix_operator_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x @ x)


@theme("the operator @", rejects=EVERY)
def _(device):
    launch(matrix_operator_kernel, device, floats(16, 16), out(16, 16), N=16)
