"""Helpers: defaults, tuples given back, early returns, functions of constants, recursion."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, UNTIL_3_7, UNTIL_3_8, Theme, equal
from .values import exact, integers, launch, out

theme = Theme("functions")


@triton.jit
def scaled(x, factor=2, shift: tl.constexpr = 0):
    return x * factor + shift


@triton.jit
def helper_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, scaled(x))
    tl.store(out_ptr + N + offs, scaled(x, 3, shift=1))
    tl.store(out_ptr + 2 * N + offs, scaled(factor=offs, x=x))
    tl.store(out_ptr + 3 * N + offs, scaled(scaled(scaled(x)), shift=-1))


@theme("a helper with defaults and keywords")
def _(device):
    x = integers(16)
    a = exact(x)
    got = launch(helper_kernel, device, x, out(4, 16, dtype=torch.int32), N=16)
    return equal(got, np.stack([2 * a, 3 * a + 1, a * np.arange(16), 8 * a - 1]))


@triton.jit
def both(x, y):
    return x + y, x - y


@triton.jit
def tuple_return_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    total, difference = both(x, offs)
    pair = both(total, difference)
    tl.store(out_ptr + offs, total * difference)
    tl.store(out_ptr + N + offs, pair[0] * pair[1])


@theme("a helper that returns a tuple")
def _(device):
    x = integers(16)
    a, n = exact(x), np.arange(16)
    got = launch(tuple_return_kernel, device, x, out(2, 16, dtype=torch.int32), N=16)
    return equal(got, np.stack([a * a - n * n, 4 * a * n]))


@triton.jit
def three(x):
    a, b = both(x, 1)
    return a * b, (a, b)


@triton.jit
def nested_return_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    square, (up, down) = three(tl.load(x_ptr + offs))
    tl.store(out_ptr + offs, square + up - down)


@theme("a helper that returns a tuple in a tuple, unpacked at once", rejects=UNTIL_3_7)
def _(device):
    x = integers(16)
    got = launch(nested_return_kernel, device, x, out(16, dtype=torch.int32), N=16)
    return equal(got, exact(x) ** 2 - 1 + 2)


@triton.jit
def write(out_ptr, value, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), value)


@triton.jit
def write_twice(out_ptr, value, N: tl.constexpr):
    write(out_ptr, value, N)
    write(out_ptr + N, value * 2, N)


@triton.jit
def no_return_kernel(out_ptr, N: tl.constexpr):
    write_twice(out_ptr, tl.arange(0, N) + tl.program_id(0), N)


@theme("helpers that store and return nothing")
def _(device):
    got = launch(no_return_kernel, device, out(2, 8, dtype=torch.int32), N=8)
    return equal(got, np.stack([np.arange(8), 2 * np.arange(8)]))


@triton.jit
def sign_of(x):
    if x > 0:
        return 1
    if x < 0:
        return -1
    return 0


@triton.jit
def early_helper_kernel(x_ptr, out_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, sign_of(tl.load(x_ptr + pid)) * 10)


@theme("a helper with early returns, each program its own")
def _(device):
    x = integers(20, low=-2, high=2)
    got = launch(early_helper_kernel, device, x, out(20, dtype=torch.int32), grid=(20,))
    return equal(got, 10 * np.sign(exact(x)))


@triton.jit(noinline=True)
def not_inlined(x, y):
    return x * 3 + y


@triton.jit
def noinline_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, not_inlined(tl.load(x_ptr + pid), n))


@theme("a helper that is not inlined")
def _(device):
    x = integers(8)
    got = launch(noinline_kernel, device, x, out(8, dtype=torch.int32), grid=(8,), n=5)
    return equal(got, 3 * exact(x) + 5)


@triton.constexpr_function
def next_power(n):
    power = 1
    while power < n:
        power *= 2
    return power


@triton.jit
def constant_function_kernel(out_ptr, N: tl.constexpr):
    size: tl.constexpr = next_power(N)
    tl.store(out_ptr + tl.arange(0, size), tl.arange(0, size) + size, mask=tl.arange(0, size) < N)


@theme("constexpr_function")
def _(device):
    got = launch(constant_function_kernel, device, out(11, dtype=torch.int32), N=11)
    return equal(got, np.arange(11) + 16)


@triton.jit
def square(x):
    return x * x


@triton.jit
def increment(x):
    return x + 1


@triton.jit
def apply_kernel(x_ptr, out_ptr, FIRST: tl.constexpr, SECOND: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = FIRST(tl.load(x_ptr + offs))
    if SECOND is not None:
        x = SECOND(x)
    tl.store(out_ptr + offs, x)


@theme("jit functions as constants")
def _(device):
    x = integers(16)
    a = exact(x)
    both_ = launch(apply_kernel, device, x, out(16, dtype=torch.int32), FIRST=square,
                   SECOND=increment, N=16)
    one = launch(apply_kernel, device, x, out(16, dtype=torch.int32), FIRST=increment,
                 SECOND=None, N=16)
    return [equal(both_, a * a + 1), equal(one, a + 1)]


@triton.jit
def endless(n):
    return endless(n - 1) + 1


@triton.jit
def endless_kernel(out_ptr, n):
    tl.store(out_ptr, endless(n))


@theme("recursion without end", rejects=EVERY, refusals=("L05", "R01"))
def _(device):
    launch(endless_kernel, device, out(dtype=torch.int32), n=3)


@triton.jit
def countdown(n):
    result = 0
    if n > 0:
        result = countdown(n - 1) + 1
    return result


@triton.jit
def recursion_kernel(out_ptr, n):
    tl.store(out_ptr, countdown(n))


@theme("recursion that ends on a runtime value", rejects=EVERY,
       differs="it ends, and Python runs it: the compile gate's job")
def _(device):
    launch(recursion_kernel, device, out(dtype=torch.int32), n=3)


@triton.jit
def factorial(N: tl.constexpr):
    if N <= 1:
        return 1
    else:  # noqa: RET505
        return factorial(N - 1) * N


@triton.jit
def constant_recursion_kernel(out_ptr, N: tl.constexpr):
    tl.store(out_ptr, factorial(N))


@theme("recursion on a constant")
def _(device):
    return equal(launch(constant_recursion_kernel, device, out(dtype=torch.int32), N=5), 120)


@triton.jit
def keyword_only(x, *, factor):
    return x * factor


@triton.jit
def keyword_only_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, keyword_only(tl.load(x_ptr + offs), factor=3))


@theme("a helper with keyword-only arguments", rejects=UNTIL_3_8)
def _(device):
    x = integers(16)
    got = launch(keyword_only_kernel, device, x, out(16, dtype=torch.int32), N=16)
    return equal(got, 3 * exact(x))


@triton.jit
def many(*values):
    total = values[0]
    for i in tl.static_range(1, len(values)):
        total += values[i]
    return total


@triton.jit
def varargs_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, many(x, x, offs))


@theme("a helper with *arguments", rejects=UNTIL_3_7)
def _(device):
    x = integers(16)
    got = launch(varargs_kernel, device, x, out(16, dtype=torch.int32), N=16)
    return equal(got, 2 * exact(x) + np.arange(16))


@triton.jit
def wrong_count_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, scaled(tl.load(x_ptr + offs), 1, 2, 3, 4))


@theme("a helper called with too many arguments", rejects=EVERY)
def _(device):
    launch(wrong_count_kernel, device, integers(16), out(16, dtype=torch.int32), N=16)


@triton.jit
def mismatched(x):
    if x > 0:
        return x
    return 2.5


@triton.jit
def mismatched_kernel(out_ptr, n):
    tl.store(out_ptr, mismatched(n))


@theme("a helper that returns two types", rejects=EVERY,
       differs="one return is reached, and its type is used: the compile gate's job")
def _(device):
    launch(mismatched_kernel, device, out(), n=5)
