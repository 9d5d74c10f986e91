"""static_range, the options of tl.range, and loops that Triton has not."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal
from .values import exact, floats, integers, launch, out

theme = Theme("forms of loops")


@triton.jit
def static_kernel(x_ptr, out_ptr, N: tl.constexpr, TIMES: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    for i in tl.static_range(TIMES):
        if i == 2:
            x = x + 100
        x = x + i
    for i in tl.static_range(1, 10, 4):
        x = x + i * 2
    for i in tl.static_range(3, 0, -1):
        x = x * i
    tl.store(out_ptr + offs, x)


@theme("static_range: the variable is a constant")
def _(device):
    x = integers(16)
    got = launch(static_kernel, device, x, out(16, dtype=torch.int32), N=16, TIMES=4)
    return equal(got, (exact(x) + 106 + 2 * (1 + 5 + 9)) * 6)


@triton.jit
def twice_constant_kernel(out_ptr):
    for i in tl.static_range(2):
        half: tl.constexpr = i * 2
        tl.store(out_ptr + i, half)


@theme("a constant declared in every turn of static_range", rejects=EVERY,
       differs="declaring a constant again is an assignment to Python: the compile gate's job")
def _(device):
    launch(twice_constant_kernel, device, out(2, dtype=torch.int32))


@triton.jit
def static_shapes_kernel(x_ptr, out_ptr, N: tl.constexpr, LOG: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    for i in tl.static_range(LOG):
        x = tl.sum(tl.reshape(x, (N >> (i + 1), 2)), axis=1)
    tl.store(out_ptr + tl.arange(0, 1), x)


@theme("static_range: a block that halves at every turn")
def _(device):
    x = integers(32)
    got = launch(static_shapes_kernel, device, x, out(1, dtype=torch.int32), N=32, LOG=5)
    return equal(got, [exact(x).sum()])


@triton.jit
def runtime_static_kernel(out_ptr, n):
    total = 0
    for i in tl.static_range(n):
        total += i
    tl.store(out_ptr, total)


@theme("static_range up to a runtime argument", rejects=EVERY)
def _(device):
    launch(runtime_static_kernel, device, out(dtype=torch.int32), n=5)


@triton.jit
def options_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    acc = tl.zeros((N,), tl.int32)
    for i in tl.range(n, num_stages=2):
        acc += tl.load(x_ptr + i * N + offs)
    for i in tl.range(0, n, 2, loop_unroll_factor=2):
        acc += tl.load(x_ptr + i * N + offs) * 10
    for i in tl.range(0, n, disallow_acc_multi_buffer=True, flatten=True):
        for j in tl.range(0, 2):
            acc += j * i
    tl.store(out_ptr + offs, acc)


@theme("tl.range with num_stages, unrolling, flatten")
def _(device):
    x = integers(7, 16)
    a = exact(x)
    got = launch(options_kernel, device, x, out(16, dtype=torch.int32), n=7, N=16)
    return equal(got, a.sum(0) + 10 * a[::2].sum(0) + sum(range(7)))


@triton.jit
def specialised_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    acc = tl.zeros((N,), tl.int32)
    for i in tl.range(0, n, warp_specialize=True):
        acc += tl.load(x_ptr + i * N + offs)
    tl.store(out_ptr + offs, acc)


@theme("tl.range with warp_specialize")
def _(device):
    x = integers(7, 16)
    got = launch(specialised_kernel, device, x, out(16, dtype=torch.int32), n=7, N=16)
    return equal(got, exact(x).sum(0))


@triton.jit
def invariant_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    acc = tl.zeros((N,), tl.int32)
    for i in tl.range(0, n, disable_licm=True):
        acc += tl.load(x_ptr + offs) + i
    tl.store(out_ptr + offs, acc)


@theme("tl.range with disable_licm")
def _(device):
    x = integers(16)
    got = launch(invariant_kernel, device, x, out(16, dtype=torch.int32), n=4, N=16)
    return equal(got, 4 * exact(x) + 6)


@triton.jit
def condition_kernel(x_ptr, out_ptr, n):
    i = 0
    total = 0
    while tl.condition(i < n, disable_licm=True):
        total += tl.load(x_ptr + i)
        i += 1
    tl.store(out_ptr, total)


@theme("while with tl.condition")
def _(device):
    x = integers(9)
    got = launch(condition_kernel, device, x, out(dtype=torch.int32), n=9)
    return equal(got, exact(x).sum())


@triton.jit
def break_kernel(out_ptr, n):
    total = 0
    for i in range(n):
        if i == 3:
            break
        total += i
    tl.store(out_ptr, total)


@theme("break", rejects=EVERY)
def _(device):
    launch(break_kernel, device, out(dtype=torch.int32), n=7)


@triton.jit
def continue_kernel(out_ptr, n):
    total = 0
    for i in range(n):
        if i == 3:
            continue
        total += i
    tl.store(out_ptr, total)


@theme("continue", rejects=EVERY)
def _(device):
    launch(continue_kernel, device, out(dtype=torch.int32), n=7)


@triton.jit
def return_in_loop_kernel(out_ptr, n):
    for i in range(n):
        if i == n - 1:
            return
        tl.store(out_ptr + i, i)


@theme("return inside a loop", rejects=EVERY)
def _(device):
    launch(return_in_loop_kernel, device, out(8, dtype=torch.int32, fill=0), n=4)


@triton.jit
def retyped_kernel(x_ptr, out_ptr, n):
    total = 0
    for i in range(n):
        total += tl.load(x_ptr + i)
    tl.store(out_ptr, total)


@theme("an int that a loop makes a float", rejects=EVERY)
def _(device):
    launch(retyped_kernel, device, floats(4), out(), n=4)


@triton.jit
def reshaped_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    total = 0.0
    for i in range(n):
        total += tl.load(x_ptr + i * N + offs)
    tl.store(out_ptr + offs, total)


@theme("a scalar that a loop makes a block", rejects=EVERY)
def _(device):
    launch(reshaped_kernel, device, floats(4, 16), out(16), n=4, N=16)


@triton.jit
def constant_in_loop_kernel(out_ptr, n, START: tl.constexpr):
    total: tl.constexpr = START
    for i in range(n):
        total = total + i
    tl.store(out_ptr, total)


@theme("a constant assigned to in a loop", rejects=EVERY)
def _(device):
    launch(constant_in_loop_kernel, device, out(dtype=torch.int32), n=3, START=5)


@triton.jit
def float_range_kernel(out_ptr, n):
    total = 0
    for i in range(0, n):  # noqa: PIE808
        total += i
    tl.store(out_ptr, total)


@theme("for up to a float", rejects=EVERY)
def _(device):
    launch(float_range_kernel, device, out(dtype=torch.int32), n=4.5)


@theme("for up to a block", rejects=EVERY)
def _(device):
    launch(block_range_kernel, device, out(dtype=torch.int32), N=4)


@triton.jit
def block_range_kernel(out_ptr, N: tl.constexpr):
    total = 0
    for _ in range(tl.arange(0, N)):
        total += 1
    tl.store(out_ptr, total)


@triton.jit
def over_tuple_kernel(out_ptr, n):
    total = 0
    for i in (1, 2, n):
        total += i
    tl.store(out_ptr, total)


@theme("for over a tuple", rejects=EVERY)
def _(device):
    launch(over_tuple_kernel, device, out(dtype=torch.int32), n=4)


@triton.jit
def else_kernel(out_ptr, n):
    total = 0
    for i in range(n):
        total += i
    else:
        total += 100
    tl.store(out_ptr, total)


@theme("for with else", rejects=EVERY)
def _(device):
    launch(else_kernel, device, out(dtype=torch.int32), n=4)


@triton.jit
def loop_variable_kernel(out_ptr, n):
    total = 0
    for i in range(n):
        i = i * 2
        total += i
    tl.store(out_ptr, total)


@theme("the loop variable changed inside the loop")
def _(device):
    return equal(launch(loop_variable_kernel, device, out(dtype=torch.int32), n=5), 20)


@triton.jit
def negative_runtime_kernel(out_ptr, n, step):
    total = 0
    for i in range(n, 0, step):
        total += i
    tl.store(out_ptr, total)


@theme("a loop whose runtime step is positive")
def _(device):
    got = launch(negative_runtime_kernel, device, out(dtype=torch.int32), n=-7, step=3)
    return equal(got, sum(range(-7, 0, 3)))


@theme("a loop whose runtime step is negative", fails="R01",
       not_on_gpu="Triton leaves open what it does")
def _(device):
    launch(negative_runtime_kernel, device, out(dtype=torch.int32), n=7, step=-3)


@triton.jit
def wide_range_kernel(out_ptr, n: tl.uint32):
    for i in tl.range(n - 1, n):
        tl.store(out_ptr, (i // 2).to(tl.int64))
        tl.store(out_ptr + 1, i.to(tl.int64) * 2)


@theme("a loop over unsigned bounds")
def _(device):
    got = launch(wide_range_kernel, device, out(2, dtype=torch.int64), n=2**31 + 4)
    return equal(got, [(2**31 + 3) // 2, 2 * (2**31 + 3)])


@triton.jit
def comprehension_kernel(out_ptr):
    values = [i * 2 for i in (1, 2, 3)]
    tl.store(out_ptr, values[0] + values[1] + values[2])


@theme("a list comprehension over a tuple")
def _(device):
    return equal(launch(comprehension_kernel, device, out(dtype=torch.int32)), 12)


@triton.jit
def carried_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    total, count = 0.0, 0
    block = tl.zeros((N,), tl.float32)
    x_ptrs = x_ptr + offs
    width: tl.constexpr = N
    for i in range(n):
        x = tl.load(x_ptrs)
        for j in range(2):
            x = x * 2 + j
        if i > 0:  # noqa: SIM108
            shift = 1.0
        else:
            shift = 0.0
        total += tl.sum(x) + shift
        block += x
        count += 1
        x_ptrs += width
    for x in range(3):
        count += x
    tl.store(out_ptr + offs, block + total + count)


@theme("scalars, blocks and pointers that a loop carries")
def _(device):
    x = integers(3, 16, dtype=torch.float32)
    y = 4 * exact(x) + 1
    got = launch(carried_kernel, device, x, out(16), n=3, N=16)
    return equal(got, y.sum(0) + y.sum() + 2 + 6)


@triton.jit
def own_types_kernel(x_ptr, out_ptr, n):
    total = 0.0
    for i in range(n):
        if i % 2 == 0:
            y = 5
            total += y
        y = tl.load(x_ptr + i)
        total += y
    tl.store(out_ptr, total)


@theme("a name of a turn's own, of two types")
def _(device):
    x = integers(4, dtype=torch.float32)
    return equal(launch(own_types_kernel, device, x, out(), n=4), exact(x).sum() + 10)


@triton.jit
def there_and_back_kernel(x_ptr, out_ptr, n):
    total = 0
    for i in range(n):
        total = total + tl.load(x_ptr + i)
        total = total.to(tl.int32)
    tl.store(out_ptr, total)


@theme("another type within a turn, and the first one at its end")
def _(device):
    x = integers(4, dtype=torch.float32)
    return equal(launch(there_and_back_kernel, device, x, out(dtype=torch.int32), n=4),
                 exact(x).sum())


@triton.jit
def annotated_kernel(out_ptr, n):
    total: tl.int32 = 0
    for i in range(n):
        total += i
    tl.store(out_ptr, total)


@theme("a loop that carries an annotated number")
def _(device):
    return equal(launch(annotated_kernel, device, out(dtype=torch.int32), n=5), 10)


@triton.jit
def retyped_while_kernel(x_ptr, out_ptr, n):
    i, total = 0, 0
    while i < n:
        total += tl.load(x_ptr + i)
        i += 1
    tl.store(out_ptr, total)


@theme("an int that a while loop makes a float", rejects=EVERY)
def _(device):
    launch(retyped_while_kernel, device, floats(4), out(), n=4)


@triton.jit
def counted_constant_kernel(out_ptr, n, N: tl.constexpr):
    for _ in range(n):
        N += 1
    tl.store(out_ptr, N)


@theme("a constexpr parameter that a loop counts up", rejects=EVERY)
def _(device):
    launch(counted_constant_kernel, device, out(dtype=torch.int32), n=3, N=5)


@triton.jit
def after_loop_kernel(out_ptr, n):
    for i in range(n):
        y = i * 2
    tl.store(out_ptr, y)


@theme("a variable defined inside a loop only", rejects=EVERY)
def _(device):
    launch(after_loop_kernel, device, out(dtype=torch.int32), n=3)


@triton.jit
def previous_kernel(out_ptr, n):
    total = 0
    for i in range(n):
        if i > 0:
            total += previous  # noqa: F821
        previous = i  # noqa: F841
    tl.store(out_ptr, total)


@theme("what the turn before defined", rejects=EVERY)
def _(device):
    launch(previous_kernel, device, out(dtype=torch.int32), n=3)
