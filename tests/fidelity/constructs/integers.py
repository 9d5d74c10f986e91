"""Operators on integers, which are C's: widths, signs, division, shifts."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal
from .values import exact, floats, integers, launch, out, whole, wrapped

theme = Theme("integers")


_INT32 = (2**31 - 1, -(2**31), 2**31 - 5, -7, 7, 0, 123456789, -987654321)


@triton.jit
def sum_product_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, x + y)
    tl.store(out_ptr + N + offs, x - y)
    tl.store(out_ptr + 2 * N + offs, x * y)
    tl.store(out_ptr + 3 * N + offs, -x)


def _sums(x, y):
    a, b = (np.array(exact(v).tolist(), dtype=object) for v in (x, y))
    return np.stack([a + b, a - b, a * b, -a])


@theme("int32 + - * and minus wrap around")
def _(device):
    x, y = whole(_INT32), whole(_INT32[::-1])
    got = launch(sum_product_kernel, device, x, y, out(4, 8, dtype=torch.int32), N=8)
    return equal(got, wrapped(_sums(x, y), torch.int32))


@theme("int64 + - * wrap around")
def _(device):
    x = whole([2**63 - 1, -(2**63), 2**62, 5, -3, 2**40, -(2**40), 0], torch.int64)
    y = whole([1, -1, 4, 2**62, 7, 2**30, 2**33, -9], torch.int64)
    got = launch(sum_product_kernel, device, x, y, out(4, 8, dtype=torch.int64), N=8)
    return equal(got, wrapped(_sums(x, y), torch.int64))


@theme("int8, int16, uint8 and uint16 wrap around in their own width")
def _(device):
    checks = []
    for dtype in (torch.int8, torch.int16, torch.uint8, torch.uint16):
        info = torch.iinfo(dtype)
        x = integers(32, low=info.min, high=info.max, dtype=dtype)
        y = integers(32, low=info.min, high=info.max, dtype=dtype, seed=1)
        got = launch(sum_product_kernel, device, x, y, out(4, 32, dtype=dtype), N=32)
        checks.append(equal(got, wrapped(_sums(x, y), dtype)))
    return checks


@theme("uint32 and uint64 wrap around")
def _(device):
    checks = []
    for dtype in (torch.uint32, torch.uint64):
        top = 2 ** (8 * dtype.itemsize)
        x = whole([0, 1, top - 1, top // 2, 7, 9, top - 3, 12345], dtype)
        y = whole([1, 2, top - 1, top // 2, 9, 7, 5, 99999], dtype)
        got = launch(sum_product_kernel, device, x, y, out(4, 8, dtype=dtype), N=8)
        checks.append(equal(got, wrapped(_sums(x, y), dtype)))
    return checks


@triton.jit
def division_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, x // y)
    tl.store(out_ptr + N + offs, x % y)


def _truncated(x, y):
    a, b = exact(x), exact(y)
    quotient = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return np.stack([quotient, a - quotient * b])


@theme("// and % of negative integers truncate as in C")
def _(device):
    checks = []
    for dtype in (torch.int32, torch.int64, torch.int8):
        x = integers(64, low=-100, high=100, dtype=dtype)
        y = torch.where(integers(64, seed=1, low=0, high=1) > 0, 7, -5).to(dtype)
        got = launch(division_kernel, device, x, y, out(2, 64, dtype=dtype), N=64)
        checks.append(equal(got, _truncated(x, y)))
    return checks


@theme("// and % of unsigned integers")
def _(device):
    x = whole([2**32 - 1, 2**31, 7, 0, 2**32 - 7, 100, 3, 2**31 + 1], torch.uint32)
    y = whole([2, 3, 2**31, 9, 2**32 - 8, 7, 3, 10], torch.uint32)
    got = launch(division_kernel, device, x, y, out(2, 8, dtype=torch.uint32), N=8)
    return equal(got, np.stack([exact(x) // exact(y), exact(x) % exact(y)]))


@triton.jit
def mixed_sign_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) // tl.load(y_ptr + offs))


@theme("// of int32 by uint32", rejects=EVERY)
def _(device):
    launch(mixed_sign_kernel, device, integers(8), whole([3] * 8, torch.uint32),
           out(8, dtype=torch.int32), N=8)


@triton.jit
def bitwise_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, x & y)
    tl.store(out_ptr + N + offs, x | y)
    tl.store(out_ptr + 2 * N + offs, x ^ y)
    tl.store(out_ptr + 3 * N + offs, ~x)
    tl.store(out_ptr + 4 * N + offs, (x & 0x0F) | (3 ^ y))


@theme("& | ^ ~ of every integer type")
def _(device):
    checks = []
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint32):
        x, y = (integers(32, low=0, high=2**31 - 1, dtype=dtype, seed=s) for s in (0, 1))
        a, b = exact(x), exact(y)
        got = launch(bitwise_kernel, device, x, y, out(5, 32, dtype=dtype), N=32)
        checks.append(equal(got, wrapped(np.stack([a & b, a | b, a ^ b, ~a, (a & 15) | (3 ^ b)]),
                                         dtype)))
    return checks


@triton.jit
def shift_kernel(x_ptr, by_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    by = tl.load(by_ptr + offs)
    tl.store(out_ptr + offs, x << by)
    tl.store(out_ptr + N + offs, x >> by)
    tl.store(out_ptr + 2 * N + offs, x >> 3)


@theme("shifts: arithmetic for signed, logical for unsigned")
def _(device):
    checks = []
    for dtype in (torch.int32, torch.int64, torch.uint32, torch.int8, torch.uint8):
        x = integers(32, low=-(2**31), high=2**31 - 1, dtype=dtype)
        by = integers(32, low=0, high=7, dtype=dtype, seed=1)
        a, b = exact(x), exact(by)
        got = launch(shift_kernel, device, x, by, out(3, 32, dtype=dtype), N=32)
        checks.append(equal(got, wrapped(np.stack([a << b, a >> b, a >> 3]), dtype)))
    return checks


@triton.jit
def compare_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, x < y)
    tl.store(out_ptr + N + offs, x <= y)
    tl.store(out_ptr + 2 * N + offs, x > y)
    tl.store(out_ptr + 3 * N + offs, x >= y)
    tl.store(out_ptr + 4 * N + offs, x == y)
    tl.store(out_ptr + 5 * N + offs, x != y)


def comparisons(a, b):
    return np.stack([a < b, a <= b, a > b, a >= b, a == b, a != b])


@theme("comparisons of unsigned integers")
def _(device):
    checks = []
    for dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        top = 2 ** (8 * dtype.itemsize)
        x = whole([0, top - 1, top // 2, 5, 5, top - 2, 1, top // 2 - 1], dtype)
        y = whole([top - 1, 0, 1, 5, top // 2, top - 2, 0, top // 2], dtype)
        got = launch(compare_kernel, device, x, y, out(6, 8, dtype=torch.bool), N=8)
        checks.append(equal(got, comparisons(exact(x), exact(y))))
    return checks


@theme("int32 beside uint32 compares as unsigned, beside int64 as signed")
def _(device):
    x = whole([-1, 5, -3, 7, 0, 1, -(2**31), 2], torch.int32)
    y = whole([1, 5, 2**32 - 3, 3, 0, 2**31, 2**31, 1], torch.uint32)
    z = whole([1, 5, -3, 2**40, 0, -(2**40), -(2**31), 1], torch.int64)
    mixed = launch(compare_kernel, device, x, y, out(6, 8, dtype=torch.bool), N=8)
    wide = launch(compare_kernel, device, x, z, out(6, 8, dtype=torch.bool), N=8)
    return [equal(mixed, comparisons(exact(x) % 2**32, exact(y))),
            equal(wide, comparisons(exact(x), exact(z)))]


@triton.jit
def out_of_range_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) + 300)


@theme("a Python scalar that the tensor's type cannot hold", rejects=EVERY)
def _(device):
    launch(out_of_range_kernel, device, integers(16, dtype=torch.int8),
           out(16, dtype=torch.int8), N=16)


@triton.jit
def reflected_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, 10 - x)
    tl.store(out_ptr + N + offs, 100 // x)
    tl.store(out_ptr + 2 * N + offs, 100 % x)
    tl.store(out_ptr + 3 * N + offs, 1 << x)
    tl.store(out_ptr + 4 * N + offs, 5 & x)
    tl.store(out_ptr + 5 * N + offs, 3 * x + 2)
    tl.store(out_ptr + 6 * N + offs, -64 >> x)


@theme("operators with the scalar on the left")
def _(device):
    x = integers(16, low=1, high=9)
    a = exact(x)
    got = launch(reflected_kernel, device, x, out(7, 16, dtype=torch.int32), N=16)
    return equal(got, np.stack([10 - a, 100 // a, 100 % a, 1 << a, 5 & a, 3 * a + 2, -64 >> a]))


@triton.jit
def flag_arithmetic_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    positive = tl.load(x_ptr + offs) > 0
    tl.store(out_ptr + offs, positive + offs)
    tl.store(out_ptr + N + offs, positive.to(tl.int32) * 3)
    tl.store(out_ptr + 2 * N + offs, (positive * 2.5).to(tl.int32))
    tl.store(out_ptr + 3 * N + offs, (positive == (offs < 8)).to(tl.int32))


@theme("arithmetic on bools")
def _(device):
    x = floats(16)
    flag = (exact(x) > 0).astype(np.int64)
    got = launch(flag_arithmetic_kernel, device, x, out(4, 16, dtype=torch.int32), N=16)
    return equal(got, np.stack([flag + np.arange(16), 3 * flag, 2 * flag,
                                flag == (np.arange(16) < 8)]))


@triton.jit
def one_bit_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, ((x > 0) + (x > 1)).to(tl.int32))


@theme("two bools added wrap around in one bit")
def _(device):
    x = floats(32)
    a = exact(x)
    got = launch(one_bit_kernel, device, x, out(32, dtype=torch.int32), N=32)
    return equal(got, (a > 0) ^ (a > 1))


@triton.jit
def function_form_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, tl.add(x, y))
    tl.store(out_ptr + N + offs, tl.sub(x, y, sanitize_overflow=False))
    tl.store(out_ptr + 2 * N + offs, tl.mul(x, y, sanitize_overflow=False))
    tl.store(out_ptr + 3 * N + offs, tl.cdiv(x, 7))


@theme("tl.add, tl.sub, tl.mul, tl.cdiv")
def _(device):
    x, y = integers(16, low=0), integers(16, seed=1)
    a, b = exact(x), exact(y)
    got = launch(function_form_kernel, device, x, y, out(4, 16, dtype=torch.int32), N=16)
    return equal(got, np.stack([a + b, a - b, a * b, -(-a // 7)]))


@triton.jit
def scalar_arithmetic_kernel(out_ptr, n, m, scale):
    a = n * m + 1
    b = (n - m) // 3
    c = n % m
    tl.store(out_ptr, a)
    tl.store(out_ptr + 1, b)
    tl.store(out_ptr + 2, c)
    tl.store(out_ptr + 3, (n * scale).to(tl.int32))
    tl.store(out_ptr + 4, n << 2)
    tl.store(out_ptr + 5, min(n, m) * 100 + max(n, m))


@theme("arithmetic on scalar arguments")
def _(device):
    got = launch(scalar_arithmetic_kernel, device, out(6, dtype=torch.int32), n=13, m=5, scale=2.5)
    return equal(got, [66, 2, 3, 32, 52, 513])


@triton.jit
def scalar_overflow_kernel(out_ptr, n, count):
    total = n
    for _ in range(count):
        total += n
    tl.store(out_ptr, total)
    tl.store(out_ptr + 1, n * n)


@theme("scalar int32 wraps around in a loop")
def _(device):
    n = 2_000_000_000
    got = launch(scalar_overflow_kernel, device, out(2, dtype=torch.int32), n=n, count=5)
    return equal(got, wrapped(np.array([6 * n, n * n], dtype=object), torch.int32))
