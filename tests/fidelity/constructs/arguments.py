"""Everything that can be an argument or a constant, and assignments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, UNTIL_3_7, Theme, equal, near
from .functions import both
from .values import exact, floats, integers, launch, out

theme = Theme("arguments and assignments")


SCALE = tl.constexpr(3)
NAME = tl.constexpr("scale")
PAIR = tl.constexpr((4, 5))
KIND = tl.constexpr(tl.float16)
plain_global = 7


@triton.jit
def global_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs) * SCALE
    if NAME == "scale":
        x = x + PAIR[0] * PAIR[1]
    tl.store(out_ptr + offs, x.to(KIND))


@theme("global constants: a number, a string, a tuple, a type")
def _(device):
    x = integers(16)
    got = launch(global_kernel, device, x, out(16, dtype=torch.float16), N=16)
    return equal(got, 3 * exact(x) + 20)


@triton.jit
def plain_global_kernel(out_ptr):
    tl.store(out_ptr, plain_global)


@theme("a global that is no constant", rejects=EVERY)
def _(device):
    launch(plain_global_kernel, device, out(dtype=torch.int32))


@triton.jit
def constants_kernel(out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr,
                     E: tl.constexpr, F: tl.constexpr):
    if C == "yes" and D is None and E:
        tl.store(out_ptr, A + B)
    tl.store(out_ptr + 1, F[0] * 10 + F[1])
    tl.store(out_ptr + 2, len(F))
    both_: tl.constexpr = A * 2 + F[1]
    tl.store(out_ptr + 3, both_ % 5 + both_ // 4 - (both_ << 1) + 2**A)
    tl.store(out_ptr + 4, A if A > 2 else B)
    tl.store(out_ptr + 5, min(A, 2) + max(A, 7, 5))


@theme("constant arguments: int, float, string, None, bool, tuple")
def _(device):
    got = launch(constants_kernel, device, out(6), A=3, B=0.5, C="yes", D=None, E=True, F=(4, 6))
    return equal(got, [3.5, 46, 2, 12 % 5 + 3 - 24 + 8, 3, 9])


@triton.jit
def type_kernel(x_ptr, out_ptr, DTYPE: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    acc = tl.zeros((N,), DTYPE)
    acc += tl.load(x_ptr + offs).to(DTYPE)
    tl.store(out_ptr + offs, acc)


@theme("an element type as a constant argument")
def _(device):
    x = floats(16, low=0, high=99)
    return [equal(launch(type_kernel, device, x, out(16, dtype=dtype), DTYPE=kind, N=16), expected)
            for dtype, kind, expected in (
                (torch.float16, tl.float16, exact(x)), (torch.bfloat16, tl.bfloat16, exact(x)),
                (torch.int32, tl.int32, np.trunc(exact(x))))]


@triton.jit
def default_kernel(x_ptr, out_ptr, n=5, scale=2.0, N: tl.constexpr = 16, FLAG: tl.constexpr = True):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs) * scale + n
    if FLAG:
        x = -x
    tl.store(out_ptr + offs, x)


@theme("a kernel's default arguments")
def _(device):
    x = floats(16)
    plain = launch(default_kernel, device, x, out(16))
    changed = launch(default_kernel, device, x, out(16), 7, FLAG=False)
    return [near(plain, -(2 * exact(x) + 5), ulps=1, absolute=1e-6),
            near(changed, 2 * exact(x) + 7, ulps=1, absolute=1e-6)]


@triton.jit
def none_kernel(x_ptr, bias_ptr, out_ptr, scale, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    if bias_ptr is not None:
        x += tl.load(bias_ptr + offs)
    if scale is None:
        x += 100
    else:
        x *= scale
    tl.store(out_ptr + offs, x)


@theme("None for a pointer and for a number")
def _(device):
    x, bias = integers(16), integers(16, seed=1)
    result = out(16, dtype=torch.int32)
    without = launch(none_kernel, device, x, None, result, scale=None, N=16)
    given_ = launch(none_kernel, device, x, bias, result, scale=3, N=16)
    return [equal(without, exact(x) + 100), equal(given_, 3 * (exact(x) + exact(bias)))]


@triton.jit
def tuple_kernel(pointers, numbers, N: tl.constexpr):
    offs = tl.arange(0, N)
    x_ptr, y_ptr = pointers[0], pointers[1]
    x = tl.load(x_ptr + offs) * numbers[0] + numbers[1]
    tl.store(y_ptr + offs, x + len(numbers))
    for i in tl.static_range(2):
        tl.store(pointers[2] + i * N + offs, numbers[i + 1])


@theme("tuples of pointers and of numbers")
def _(device):
    x = floats(16).to(device)
    y, z = torch.empty(16, device=device), torch.empty(2, 16, device=device)
    tuple_kernel[(1,)]((x, y, z), (2, 0.5, 7), N=16)
    return [equal(y, 2 * exact(x.cpu()) + 3.5), equal(z, np.repeat([[0.5], [7]], 16, axis=1))]


class Matrix(NamedTuple):
    ptr: object
    stride: object
    rows: object


@triton.jit
def named_kernel(x, y, N: tl.constexpr):
    offs = tl.arange(0, N)
    row = tl.program_id(0)
    if row < x.rows:
        values = tl.load(x.ptr + row * x.stride + offs)
        tl.store(y.ptr + row * y.stride + offs, values + y.rows)


@theme("NamedTuple arguments")
def _(device):
    x = integers(6, 16).to(device)
    y = torch.zeros(6, 20, dtype=torch.int32, device=device)
    named_kernel[(6,)](Matrix(x, 16, 5), Matrix(y, 20, 1), N=16)
    expected = np.zeros((6, 20), int)
    expected[:5, :16] = exact(x.cpu())[:5] + 1
    return equal(y, expected)


@triton.jit
def add_all(values):
    total = values[0]
    for i in tl.static_range(1, len(values)):
        total += values[i]
    return total


@triton.jit
def nested_tuple_kernel(data, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(data[0][0] + offs)
    y = tl.load(data[0][1] + offs)
    a, b, c = data[1][0], data[1][1][0], data[1][1][1]
    parts = (x, y, x * y) + (offs,)  # noqa: RUF005
    tl.store(out_ptr + offs, add_all(parts) * a + b - c)
    tl.store(out_ptr + N + offs, add_all(parts[1:3]))


@theme("nested tuples, tuple sums, slices, tuples for helpers")
def _(device):
    x, y = integers(16), integers(16, seed=1)
    a, b = exact(x), exact(y)
    result = torch.empty(2, 16, dtype=torch.int32, device=device)
    nested_tuple_kernel[(1,)](((x.to(device), y.to(device)), (3, (10, 4))), result, N=16)
    return equal(result, np.stack([(a + b + a * b + np.arange(16)) * 3 + 6, b + a * b]))


@triton.jit
def star_kernel(pointers, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    pair = (tl.load(pointers[0] + offs), tl.load(pointers[1] + offs))
    total, difference = both(*pair)
    tl.store(out_ptr + offs, total * difference)


@theme("a call with *arguments")
def _(device):
    x, y = integers(16), integers(16, seed=1)
    result = torch.empty(16, dtype=torch.int32, device=device)
    star_kernel[(1,)]((x.to(device), y.to(device)), result, N=16)
    return equal(result, exact(x) ** 2 - exact(y) ** 2)


@triton.jit
def numbers_kernel(out_ptr, flag, small, big, huge, negative, real):
    if flag:
        tl.store(out_ptr, 1)
    else:
        tl.store(out_ptr, 0)
    tl.store(out_ptr + 1, small)
    tl.store(out_ptr + 2, big)
    tl.store(out_ptr + 3, (huge >> 40).to(tl.int64))
    tl.store(out_ptr + 4, negative)
    tl.store(out_ptr + 5, (real * 4).to(tl.int64))


@theme("numbers as arguments: bool, int32, int64, uint64, negative, float")
def _(device):
    checks = []
    for flag in (True, False):
        got = launch(numbers_kernel, device, out(6, dtype=torch.int64), flag, 77, 2**40, 2**63 + 5,
                     -(2**40), 2.25)
        checks.append(equal(got, [flag, 77, 2**40, 2**23, -(2**40), 9]))
    return checks


@triton.jit
def float_argument_kernel(out_ptr, eps, flag):
    tl.static_assert(eps.dtype == tl.float32)
    tl.store(out_ptr, eps.to(tl.float64))
    tl.store(out_ptr + 1, flag.to(tl.float64) + 1)


@theme("a float argument is float32, a bool has a type")
def _(device):
    got = launch(float_argument_kernel, device, out(2, dtype=torch.float64), 0.1, True)
    return equal(got, [float(np.float32(0.1)), 2.0])


@triton.jit
def cast_argument_kernel(out_ptr, n):
    tl.store(out_ptr, n.to(tl.int64) * 2)


@theme("an integer argument of 2 is converted")
def _(device):
    return equal(launch(cast_argument_kernel, device, out(dtype=torch.int64), n=2), 4)


@theme("an integer argument of 1 has no .to, being a constant", rejects=EVERY)
def _(device):
    launch(cast_argument_kernel, device, out(dtype=torch.int64), n=1)


@triton.jit(do_not_specialize=["n"])
def unspecialised_kernel(out_ptr, n):
    tl.store(out_ptr, n.to(tl.int64) * 2)


@theme("do_not_specialize: an argument of 1 is converted")
def _(device):
    return equal(launch(unspecialised_kernel, device, out(dtype=torch.int64), n=1), 2)


@triton.jit
def annotated_kernel(out_ptr, n: tl.int64, m: tl.uint32, x: tl.float32):
    tl.static_assert(n.dtype == tl.int64)
    tl.store(out_ptr, n * 3_000_000_000)
    tl.store(out_ptr + 1, (m >> 31).to(tl.int64))
    tl.store(out_ptr + 2, (x * 2).to(tl.int64))


@theme("annotated arguments get the annotated type")
def _(device):
    got = launch(annotated_kernel, device, out(3, dtype=torch.int64), n=2, m=2**31 + 5, x=1.5)
    return equal(got, [6_000_000_000, 1, 3])


@triton.jit
def numpy_scalar_kernel(out_ptr, n, m):
    tl.store(out_ptr, n + m)


@theme("numpy integers as arguments", rejects=EVERY)
def _(device):
    launch(numpy_scalar_kernel, device, out(dtype=torch.int32), np.int64(5), np.int32(7))


@theme("a numpy float64 is a Python float")
def _(device):
    got = launch(numpy_scalar_kernel, device, out(), np.float64(0.5), 2)
    return equal(got, 2.5)


@triton.jit
def text_kernel(out_ptr, text):
    tl.store(out_ptr, 1)


@theme("a string for a runtime argument", rejects=EVERY)
def _(device):
    launch(text_kernel, device, out(dtype=torch.int32), "text")


@triton.jit
def assigned_argument_kernel(out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    out_ptr += N
    n = n * 2
    n -= 1
    tl.store(out_ptr + offs, n)


@theme("arguments assigned to, augmented assignment")
def _(device):
    got = launch(assigned_argument_kernel, device, out(2, 8, dtype=torch.int32, fill=0), n=5, N=8)
    return equal(got, np.repeat([[0], [9]], 8, axis=1))


@triton.jit
def augmented_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    x += 3
    x *= 2
    x -= offs
    x //= 3
    x <<= 2
    x |= 1
    x ^= 5
    x &= 1023
    x >>= 1
    x %= 100
    tl.store(out_ptr + offs, x)


@theme("every augmented assignment")
def _(device):
    x = integers(16, low=50, high=90)
    a = ((exact(x) + 3) * 2 - np.arange(16)) // 3
    got = launch(augmented_kernel, device, x, out(16, dtype=torch.int32), N=16)
    return equal(got, (((((a << 2) | 1) ^ 5) & 1023) >> 1) % 100)


@triton.jit
def swap_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    a, b = tl.load(x_ptr + offs), tl.load(y_ptr + offs)
    a, b = b, a
    tl.store(out_ptr + offs, a - b)


@theme("tuple assignment swaps")
def _(device):
    x, y = integers(16), integers(16, seed=1)
    got = launch(swap_kernel, device, x, y, out(16, dtype=torch.int32), N=16)
    return equal(got, exact(y) - exact(x))


@triton.jit
def unpack_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    (a, b), c = (tl.load(x_ptr + offs), offs), 5
    tl.store(out_ptr + offs, a - b + c)


@theme("tuple assignment unpacks a tuple in a tuple", rejects=UNTIL_3_7)
def _(device):
    x = integers(16)
    got = launch(unpack_kernel, device, x, out(16, dtype=torch.int32), N=16)
    return equal(got, exact(x) - np.arange(16) + 5)


@triton.jit
def double_assignment_kernel(out_ptr):
    a = b = 3
    tl.store(out_ptr, a + b)


@theme("a = b = 3", rejects=EVERY)
def _(device):
    launch(double_assignment_kernel, device, out(dtype=torch.int32))


@triton.jit
def walrus_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, (y := tl.load(x_ptr + offs)) + y)


@theme("the walrus :=", rejects=UNTIL_3_7)
def _(device):
    x = integers(16)
    return equal(launch(walrus_kernel, device, x, out(16, dtype=torch.int32), N=16), 2 * exact(x))


@triton.jit
def text_constant_kernel(out_ptr, OPERATION: tl.constexpr, N: tl.constexpr):
    tl.static_assert(N > 0, f"{OPERATION} of {N} elements")
    name: tl.constexpr = f"{OPERATION}_{N}"
    if name == "double_8":
        tl.store(out_ptr, 2)
    else:
        tl.store(out_ptr, 1)


@theme("f-strings of constants")
def _(device):
    got = launch(text_constant_kernel, device, out(dtype=torch.int32), OPERATION="double", N=8)
    return equal(got, 2)
