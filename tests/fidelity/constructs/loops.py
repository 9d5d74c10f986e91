"""for and while: bounds, steps, carried values, programs that go round unequally often."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import Theme, equal
from .values import exact, integers, launch, out

theme = Theme("loops")


@triton.jit
def for_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offs, mask=offs < n, other=0)
    tl.store(out_ptr, tl.sum(total, axis=0))


@theme("for over a runtime range with a step")
def _(device):
    x = integers(100)
    got = launch(for_kernel, device, x, out(dtype=torch.int32), n=100, BLOCK=16)
    return equal(got, exact(x).sum())


@triton.jit
def bounds_kernel(out_ptr, a, b):
    count = 0
    total = 0
    for i in range(a, b, 3):
        count += 1
        total += i
    for i in range(b, a, -4):
        count += 100
        total += i * 1000
    for i in range(5):
        total += i * 1000000
    tl.store(out_ptr, count)
    tl.store(out_ptr + 1, total)


@theme("for with start, step and negative step")
def _(device):
    checks = []
    for a, b in ((2, 17), (-5, 4), (3, 3), (7, 2)):
        up, down = range(a, b, 3), range(b, a, -4)
        got = launch(bounds_kernel, device, out(2, dtype=torch.int32), a=a, b=b)
        checks.append(equal(got, [len(up) + 100 * len(down),
                                  sum(up) + 1000 * sum(down) + 10_000_000]))
    return checks


@triton.jit
def zero_trips_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    acc = tl.load(x_ptr + offs)
    flag = 5
    for i in range(0, n):  # noqa: PIE808
        acc = acc * 0
        flag = i
    while flag < n:
        flag += 1
    tl.store(out_ptr + offs, acc + flag)


@theme("loops of no turns keep what was there")
def _(device):
    x = integers(16)
    return [equal(launch(zero_trips_kernel, device, x, out(16, dtype=torch.int32), n=n, N=16),
                  exact(x) + 5) for n in (0, -3)]


@triton.jit
def unequal_kernel(x_ptr, out_ptr, counts_ptr):
    pid = tl.program_id(0)
    total = 0
    for i in range(tl.load(counts_ptr + pid)):
        total += tl.load(x_ptr + i) * (pid + 1)
    tl.store(out_ptr + pid, total)


@theme("for: programs go round unequally often")
def _(device):
    x, counts = integers(20), integers(33, low=0, high=20, seed=1)
    sums = np.r_[0, exact(x).cumsum()]
    got = launch(unequal_kernel, device, x, out(33, dtype=torch.int32), counts, grid=(33,))
    return equal(got, sums[exact(counts)] * np.arange(1, 34))


@triton.jit
def own_start_kernel(out_ptr, n, N: tl.constexpr):
    pid = tl.program_id(0)
    count = tl.zeros((N,), tl.int32)
    total = 0
    for tile in range(pid, n, tl.num_programs(0)):
        count += tile
        total += 1
    tl.store(out_ptr + pid * N + tl.arange(0, N), count * 10 + total)


@theme("for from the program id, strided by the grid")
def _(device):
    got = launch(own_start_kernel, device, out(7, 4, dtype=torch.int32), grid=(7,), n=23, N=4)
    tiles = [range(pid, 23, 7) for pid in range(7)]
    return equal(got, np.repeat([[sum(t) * 10 + len(t)] for t in tiles], 4, axis=1))


@triton.jit
def causal_kernel(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    row = pid * BLOCK + offs
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, (pid + 1) * BLOCK, BLOCK):
        column = start + offs
        x = tl.load(x_ptr + row[:, None] * N + column[None, :])
        acc += tl.sum(tl.where(column[None, :] <= row[:, None], x, 0.0), axis=1)
    tl.store(out_ptr + row, acc)


@theme("for: causal bounds that grow with the program id")
def _(device):
    x = integers(64, 64, dtype=torch.float32)
    got = launch(causal_kernel, device, x, out(64), grid=(8,), N=64, BLOCK=8)
    return equal(got, np.tril(exact(x)).sum(1))


@triton.jit
def while_kernel(x_ptr, out_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    steps = 0
    while x != 1:
        x = tl.where(x % 2 == 0, x // 2, 3 * x + 1)
        steps += 1
    tl.store(out_ptr + pid, steps)


@theme("while: programs go round unequally often")
def _(device):
    def steps(n):
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    x = integers(30, low=1, high=60)
    got = launch(while_kernel, device, x, out(30, dtype=torch.int32), grid=(30,))
    return equal(got, [steps(int(n)) for n in x])


@triton.jit
def while_logic_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    place = 0
    found = 0
    while place < n and found == 0:
        if tl.load(x_ptr + place) == pid:
            found = 1
        else:
            place += 1
    tl.store(out_ptr + pid, tl.where(found == 1, place, -1))


@theme("while with and: a search that stops")
def _(device):
    x = integers(40, low=0, high=15)
    places = [list(x).index(v) if v in list(x) else -1 for v in range(16)]
    got = launch(while_logic_kernel, device, x, out(16, dtype=torch.int32), grid=(16,), n=40)
    return equal(got, places)


@triton.jit
def bisect_kernel(x_ptr, key_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    key = tl.load(key_ptr + offs)
    low = tl.zeros((N,), tl.int32)
    high = tl.zeros((N,), tl.int32) + n
    while tl.max(high - low, axis=0) > 0:
        middle = (low + high) // 2
        below = tl.load(x_ptr + middle, mask=low < high, other=0) < key
        active = low < high
        low = tl.where(active & below, middle + 1, low)
        high = tl.where(active & ~below, middle, high)
    tl.store(out_ptr + offs, low)


@theme("while on a reduction: bisection of a block")
def _(device):
    x, keys = torch.sort(integers(50)).values.to(torch.int32), integers(32, seed=1)
    got = launch(bisect_kernel, device, x, keys, out(32, dtype=torch.int32), n=50, N=32)
    return equal(got, np.searchsorted(exact(x), exact(keys)))


@triton.jit
def nested_kernel(out_ptr, n):
    pid = tl.program_id(0)
    total = 0
    for i in range(n):
        for j in range(i, n):
            if (i + j) % 2 == 0:
                k = 0
                while k < pid:
                    total += i * j + k
                    k += 1
    tl.store(out_ptr + pid, total)


@theme("nested for, if and while, bounds that depend on each other")
def _(device):
    expected = [sum(i * j + k for i in range(6) for j in range(i, 6) if (i + j) % 2 == 0
                    for k in range(pid)) for pid in range(5)]
    got = launch(nested_kernel, device, out(5, dtype=torch.int32), grid=(5,), n=6)
    return equal(got, expected)


@triton.jit
def wide_bounds_kernel(out_ptr, start, stop):
    total = start * 0
    last = start
    for i in range(start, stop):
        total += i - start
        last = i
    tl.store(out_ptr, total)
    tl.store(out_ptr + 1, last)


@theme("for with 64-bit bounds")
def _(device):
    start = 2**40
    got = launch(wide_bounds_kernel, device, out(2, dtype=torch.int64), start=start,
                 stop=start + 5)
    return equal(got, [10, start + 4])


@triton.jit
def fibonacci_kernel(out_ptr, n):
    a = 0
    b = 1
    for i in range(n):
        tl.store(out_ptr + i, a)
        a, b = b, a + b


@theme("two carried values swapped in a tuple")
def _(device):
    got = launch(fibonacci_kernel, device, out(10, dtype=torch.int32), n=10)
    return equal(got, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])


@triton.jit
def carried_tuple_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    state = (tl.zeros((N,), tl.int32), tl.full((N,), -1000, tl.int32))
    for i in range(n):
        x = tl.load(x_ptr + i * N + offs)
        state = (state[0] + x, tl.maximum(state[1], x))
    tl.store(out_ptr + offs, state[0])
    tl.store(out_ptr + N + offs, state[1])


@theme("a tuple carried through a loop")
def _(device):
    x = integers(5, 16)
    got = launch(carried_tuple_kernel, device, x, out(2, 16, dtype=torch.int32), n=5, N=16)
    return equal(got, np.stack([exact(x).sum(0), exact(x).max(0)]))


@triton.jit
def advancing_kernel(x_ptr, out_ptr, n, stride, N: tl.constexpr):
    pointers = x_ptr + tl.arange(0, N)
    acc = tl.zeros((N,), tl.float32)
    for _ in range(n):
        acc += tl.load(pointers)
        pointers += stride
    tl.store(out_ptr + tl.arange(0, N), acc)


@theme("pointers that advance in a loop")
def _(device):
    x = integers(6, 16, dtype=torch.float32)
    got = launch(advancing_kernel, device, x, out(16), n=6, stride=16, N=16)
    return equal(got, exact(x).sum(0))
