"""Blocks of several programs at once, each with data of its own, some programs left out."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from . import dot, rearranging, reductions, scans, shapes
from .construct import UNTIL_3_6, UNTIL_3_8, Theme, equal, near
from .randomness import uniform, words
from .values import exact, floats, given, integers, launch, out

theme = Theme("many programs")

_PROGRAMS = 5
_IDLE = -7.0


@triton.jit
def each_kernel(KERNEL: tl.constexpr, CONSTANTS: tl.constexpr, x_ptr, out_ptr, x_size, out_size):
    """Every program but 1 and 4 calls a kernel of another theme on its own part."""
    pid = tl.program_id(0)
    x = x_ptr + pid * x_size
    y = out_ptr + pid * out_size
    if pid % 3 != 1:
        if len(CONSTANTS) == 1:
            KERNEL(x, y, CONSTANTS[0])
        elif len(CONSTANTS) == 2:
            KERNEL(x, y, CONSTANTS[0], CONSTANTS[1])
        else:
            KERNEL(x, y, CONSTANTS[0], CONSTANTS[1], CONSTANTS[2])


@triton.jit
def each_pair_kernel(KERNEL: tl.constexpr, CONSTANTS: tl.constexpr, x_ptr, y_ptr, out_ptr, x_size,
                     y_size, out_size, PRECISION: tl.constexpr = None):
    pid = tl.program_id(0)
    x = x_ptr + pid * x_size
    y = y_ptr + pid * y_size
    z = out_ptr + pid * out_size
    if pid % 3 != 1:
        if len(CONSTANTS) == 1:
            KERNEL(x, y, z, CONSTANTS[0])
        elif len(CONSTANTS) == 2:
            KERNEL(x, y, z, CONSTANTS[0], CONSTANTS[1])
        else:
            KERNEL(x, y, z, CONSTANTS[0], CONSTANTS[1], CONSTANTS[2], PRECISION)


def _each(device, kernel, constants, inputs, reference, check=equal, dtype=None, **options):
    """``inputs`` begin with an axis of programs; ``reference`` takes one program's arrays."""
    rows = [np.asarray(reference(*(exact(x)[p] for x in inputs))) for p in range(_PROGRAMS)]
    idle = [p % 3 == 1 for p in range(_PROGRAMS)]
    expected = np.stack([np.full(row.shape, _IDLE) if skipped else row
                         for row, skipped in zip(rows, idle, strict=True)])
    result = out(*expected.shape, dtype=dtype or inputs[0].dtype, fill=_IDLE)
    sizes = [x[0].numel() for x in inputs] + [rows[0].size]
    runner = each_kernel if len(inputs) == 1 else each_pair_kernel
    got = launch(runner, device, kernel, constants, *inputs, result, *sizes, grid=(_PROGRAMS,),
                 **options)
    return check(got, expected)


def _whole(*shape, seed=0, dtype=torch.int32, low=-50, high=50):
    return integers(_PROGRAMS, *shape, seed=seed, dtype=dtype, low=low, high=high)


@theme("many: keep_dims")
def _(device):
    return _each(device, reductions.keep_kernel, (4, 8), [_whole(4, 8)], lambda a: np.stack([
        a - a.max(1, keepdims=True), a - a.sum(0, keepdims=True), a - a.min()]))


@theme("many: argmax with keep_dims")
def _(device):
    x = floats(_PROGRAMS, 4, 8)
    return _each(device, reductions.keep_index_kernel, (4, 8), [x],
                 lambda a: a.argmax(1)[:, None] == np.arange(8), dtype=torch.int32)


@theme("many: softmax of rows")
def _(device):
    def softmax(a):
        e = np.exp(a - a.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return _each(device, reductions.softmax_kernel, (4, 16), [floats(_PROGRAMS, 4, 16)], softmax,
                 lambda got, expected: near(got, expected, ulps=16))


@theme("many: reductions as methods, one's own too")
def _(device):
    return _each(device, reductions.method_kernel, (4, 8), [_whole(4, 8, low=-3, high=3)],
                 lambda a: [a.sum(), a.max(1).min(), a.sum(0).argmax(), a.prod(1).sum()])


@theme("many: a tuple reduced")
def _(device):
    return _each(device, reductions.second_kernel, (32,), [floats(_PROGRAMS, 32)],
                 lambda a: np.sort(a)[:-3:-1])


@theme("many: cumsum and cumprod along both axes")
def _(device):
    return _each(device, scans.cumulative_kernel, (4, 8), [_whole(4, 8, low=-3, high=3)],
                 lambda a: np.stack([
                     a.cumsum(1), a.cumsum(0), a[:, ::-1].cumsum(1)[:, ::-1],
                     a[::-1].cumsum(0)[::-1], a.cumprod(1), a[:, ::-1].cumprod(1)[:, ::-1]]))


@theme("many: cumsum along the middle axis")
def _(device):
    return _each(device, scans.middle_axis_kernel, (2, 8, 4), [_whole(2, 8, 4)],
                 lambda a: a.cumsum(1))


@theme("many: running maximum")
def _(device):
    return _each(device, scans.running_max_kernel, (32,), [_whole(32)], lambda a: np.stack([
        np.maximum.accumulate(a), np.maximum.accumulate(a[::-1])[::-1]]))


@theme("many: sort and topk")
def _(device):
    x = _whole(4, 16)
    return [_each(device, scans.sort_kernel, (4, 16), [x],
                  lambda a: np.stack([np.sort(a, 1), np.sort(a, 1)[:, ::-1]])),
            _each(device, scans.top_kernel, (4, 16, 4), [x],
                  lambda a: np.sort(a, 1)[:, :-5:-1])]


@theme("many: histogram")
def _(device):
    return _each(device, scans.histogram_kernel, (64, 16), [_whole(64, low=0, high=15)],
                 lambda a: np.bincount(a, minlength=16))


@theme("many: reshape and ravel")
def _(device):
    def reference(a):
        square = a.reshape(8, 8)
        return np.concatenate([square.sum(0), square.sum(1), square.sum(0), a])

    return _each(device, shapes.reshape_kernel, (8,), [_whole(64)], reference)


@theme("many: transposes and permutations")
def _(device):
    orders = ((2, 0, 1), (1, 0, 2), (2, 1, 0), (0, 2, 1))
    return [_each(device, shapes.transpose_kernel, (8, 16), [floats(_PROGRAMS, 8, 16)],
                  lambda a: np.stack([a.T] * 4)),
            _each(device, shapes.permute_kernel, (2, 4, 8), [floats(_PROGRAMS, 2, 4, 8)],
                  lambda a: np.stack([a.transpose(order).reshape(-1) for order in orders]))]


@theme("many: None indices, expand_dims, slices, broadcast_to")
def _(device):
    def expanded(a):
        grid = (a[:, None] * 100 + a).reshape(-1)
        return np.concatenate([grid, grid, a, a])

    def rows(a):
        tiled = np.tile(a, (4, 1))
        return np.stack([tiled, tiled, tiled * 0 + a[0], tiled])

    return [_each(device, shapes.expand_kernel, (8,), [_whole(8)], expanded),
            _each(device, shapes.slice_kernel, (8,), [_whole(8, 8)], lambda a: a),
            _each(device, shapes.broadcast_to_kernel, (4, 8), [_whole(8)], rows)]


@theme("many: join, split, interleave")
def _(device):
    def reference(a, b):
        pairs = np.stack([a, b], axis=1).reshape(-1)
        return np.concatenate([pairs, a - b, pairs])

    return [_each(device, rearranging.join_kernel, (16,), [_whole(16), _whole(16, seed=1)],
                  reference),
            _each(device, rearranging.matrix_join_kernel, (8,), [_whole(8, 8)],
                  lambda a: np.stack([a[:, ::2], a[:, 1::2]]))]


@theme("many: cat", rejects=UNTIL_3_6)
def _(device):
    x, y = _whole(4, 4), _whole(4, 4, seed=1)
    return [_each(device, rearranging.ordered_cat_kernel, (16,),
                  [x.reshape(_PROGRAMS, 16), y.reshape(_PROGRAMS, 16)],
                  lambda a, b: np.concatenate([a, b])),
            _each(device, rearranging.cat_columns_kernel, (4,), [x, y],
                  lambda a, b: np.concatenate([a, b], axis=1))]


@theme("many: gather")
def _(device):
    x, index = _whole(4, 8), _whole(4, 8, low=0, high=7, seed=1)
    return _each(device, rearranging.gather_kernel, (4, 8), [x, index], lambda a, i: np.stack([
        np.take_along_axis(a, i, 1), np.take_along_axis(a, i % 4, 0)]))


@theme("many: flip", rejects=UNTIL_3_8)
def _(device):
    return _each(device, rearranging.flip_kernel, (4, 8), [_whole(4, 8)],
                 lambda a: np.stack([a[:, ::-1], a[::-1], a[:, ::-1]]))


@theme("many: dot of fp16, int8 and float32")
def _(device):
    cases = ((torch.float16, torch.float32, "tf32"), (torch.int8, torch.int32, "tf32"),
             (torch.float32, torch.float32, "ieee"))
    checks = []
    for dtype, result, precision in cases:
        a = _whole(16, 32, dtype=dtype, low=-8, high=8)
        b = _whole(32, 16, dtype=dtype, low=-8, high=8, seed=1)
        checks.append(_each(device, dot.dot_kernel, (16, 16, 32), [a, b], np.matmul,
                            dtype=result, PRECISION=precision))
    return checks


@theme("many: batches of products")
def _(device):
    a = _whole(4, 16, 16, dtype=torch.float16, low=-8, high=8)
    b = _whole(4, 16, 16, dtype=torch.float16, low=-8, high=8, seed=1)
    return _each(device, dot.batched_kernel, (4, 16), [a, b], np.matmul, dtype=torch.float32)


@triton.jit
def scalars_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + pid)
    block = tl.full((N,), x, tl.int32) + tl.zeros((N,), tl.int32)
    square = tl.broadcast_to(x, (N, N))
    pair = tl.join(x, pid)
    low, high = tl.split(pair)
    total = block + tl.sum(tl.sum(square, axis=0), axis=0) + low * 10 + high
    total = tl.where(pid < n, total, tl.minimum(total, x))
    tl.store(out_ptr + pid * N + offs, total)


@theme("many: scalars of each program in blocks")
def _(device):
    x = integers(6)
    a, pid = exact(x), np.arange(6)
    total = a + 64 * a + 10 * a + pid
    got = launch(scalars_kernel, device, x, out(6, 8, dtype=torch.int32), n=3, N=8, grid=(6,))
    return equal(got, np.repeat(np.where(pid < 3, total, np.minimum(total, a))[:, None], 8, 1))


@triton.jit
def jagged_kernel(x_ptr, starts_ptr, out_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    start = tl.load(starts_ptr + pid)
    stop = tl.load(starts_ptr + pid + 1)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    for at in range(start, stop, BLOCK):
        offs = at + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(x_ptr + offs, mask=offs < stop, other=float("-inf")))
    tl.store(out_ptr + pid, tl.max(best, axis=0))


@theme("many: rows of different lengths, some empty")
def _(device):
    lengths = [0, 3, 17, 1, 40, 0, 8, 9]
    starts = torch.tensor(np.r_[0, np.cumsum(lengths)].astype(np.int32))
    x = floats(int(starts[-1]))
    parts = np.split(exact(x), np.cumsum(lengths)[:-1])
    got = launch(jagged_kernel, device, x, starts, out(8), BLOCK=8, grid=(8,))
    return equal(got, [max(part, default=-np.inf) for part in parts])


@triton.jit
def grouped_kernel(a_table, b_table, c_table, sizes_ptr, B: tl.constexpr):
    pid = tl.program_id(0)
    a_ptr = tl.load(a_table + pid).to(tl.pointer_type(tl.float16))
    b_ptr = tl.load(b_table + pid).to(tl.pointer_type(tl.float16))
    c_ptr = tl.load(c_table + pid).to(tl.pointer_type(tl.float32))
    m = tl.load(sizes_ptr + pid * 2)
    k = tl.load(sizes_ptr + pid * 2 + 1)
    column = tl.arange(0, B)
    for row in range(0, m, B):
        rows = row + tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for start in range(0, k, B):
            inner = start + tl.arange(0, B)
            a = tl.load(a_ptr + rows[:, None] * k + inner[None, :],
                        mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0)
            b = tl.load(b_ptr + inner[:, None] * B + column[None, :], mask=inner[:, None] < k,
                        other=0.0)
            acc += tl.dot(a, b)
        tl.store(c_ptr + rows[:, None] * B + column[None, :], acc, mask=rows[:, None] < m)


@theme("many: products of different sizes through tables of addresses")
def _(device):
    sizes = [(5, 20), (33, 16), (16, 7), (1, 1)]
    left = [integers(m, k, low=-9, high=9, dtype=torch.float16).to(device) for m, k in sizes]
    right = [integers(k, 16, low=-9, high=9, dtype=torch.float16, seed=1).to(device)
             for _, k in sizes]
    results = [torch.zeros(m, 16, device=device) for m, _ in sizes]
    tables = [torch.tensor([t.data_ptr() for t in tensors], dtype=torch.int64, device=device)
              for tensors in (left, right, results)]
    grouped_kernel[(4,)](*tables, torch.tensor(sizes, dtype=torch.int32, device=device), B=16)
    return [equal(c, exact(a.cpu()) @ exact(b.cpu()))
            for a, b, c in zip(left, right, results, strict=True)]


@triton.jit
def own_descriptor_kernel(x_ptr, rows_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    rows = tl.load(rows_ptr + pid)
    x = tl.make_tensor_descriptor(x_ptr + pid * N * N, [rows, N], [N, 1], [N, N])
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + pid * N * N + at, x.load([0, 0]))


@theme("many: a descriptor of each program, of different heights")
def _(device):
    triton.set_allocator(lambda size, alignment, stream: torch.empty(
        size, dtype=torch.int8, device=device))
    x, rows = floats(4, 8, 8), torch.tensor([8, 3, 1, 5], dtype=torch.int32)
    got = launch(own_descriptor_kernel, device, x, rows, out(4, 8, 8), N=8, grid=(4,))
    inside = np.arange(8)[None, :, None] < rows.numpy()[:, None, None]
    return equal(got, np.where(inside, exact(x), 0))


@triton.jit
def mixed_ways_kernel(x_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + pid * N + offs)
    if pid % 4 == 0:
        x = tl.cumsum(x, axis=0)
    elif pid % 4 == 1:
        x = tl.sort(x)
    elif pid % 4 == 2:
        return
    else:
        for i in range(pid):
            if i % 2 == 0:  # noqa: SIM108
                x = x + i
            else:
                x = x * 2 - tl.max(x, axis=0)
    tl.store(out_ptr + pid * N + offs, x)


@theme("many: programs that do quite different things")
def _(device):
    x = integers(9, 16, low=-5, high=5)
    expected = exact(x).copy()
    for pid, row in enumerate(expected):
        if pid % 4 == 0:
            row[:] = row.cumsum()
        elif pid % 4 == 1:
            row.sort()
        elif pid % 4 == 2:
            row[:] = 0
        else:
            for i in range(pid):
                row[:] = row + i if i % 2 == 0 else row * 2 - row.max()
    got = launch(mixed_ways_kernel, device, x, out(9, 16, dtype=torch.int32, fill=0), N=16,
                 grid=(9,))
    return equal(got, expected)


@triton.jit
def late_split_kernel(x_ptr, counter_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    tl.store(out_ptr + pid * N + offs, tl.load(x_ptr + pid * N + offs))
    old = tl.atomic_add(counter_ptr, 1)
    tl.atomic_add(counter_ptr + 1, tl.sum(tl.load(x_ptr + pid * N + offs), axis=0))
    if tl.load(x_ptr + pid * N) > 0:  # the programs part only here, after atomics
        tl.atomic_add(counter_ptr + 2, 1)
        tl.store(out_ptr + pid * N + offs, offs)
    tl.atomic_max(counter_ptr + 3, old)


@theme("many: programs that part after atomics and stores")
def _(device):
    x = integers(20, 8)
    counters = torch.zeros(4, dtype=torch.int32, device=device)
    result = torch.empty(20, 8, dtype=torch.int32, device=device)
    late_split_kernel[(20,)](x.to(device), counters, result, N=8)
    positive = exact(x)[:, 0] > 0
    return [equal(counters, [20, exact(x).sum(), positive.sum(), 19]),
            equal(result, np.where(positive[:, None], np.arange(8), exact(x)))]


@triton.jit
def philox_each_kernel(out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    keep = tl.rand(pid + 10, offs) > 0.5
    tl.store(out_ptr + pid * N + offs, tl.where(keep, 1.0, 0.0))
    if pid == 2:
        tl.store(out_ptr + pid * N + offs, tl.rand(12, offs))


@theme("many: a seed of each program")
def _(device):
    rows = np.stack([uniform(words(pid + 10, range(16))[0]) for pid in range(4)])
    expected = np.where(rows > 0.5, 1.0, 0.0)
    expected[2] = rows[2]
    return equal(launch(philox_each_kernel, device, out(4, 16), N=16, grid=(4,)), expected)


@triton.jit
def grid_2d_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1)
    x = tl.load(x_ptr + (i * tl.num_programs(1) + j) * N + tl.arange(0, N))
    total = tl.sum(x, axis=0)
    while total < n:
        total += i * 10 + j + 1
    tl.store(out_ptr + j * tl.num_programs(0) + i, total)


@theme("many: while over a 2-D grid")
def _(device):
    x = integers(3, 4, 8)
    totals = exact(x).sum(2)
    expected = np.zeros((4, 3), int)
    for i in range(3):
        for j in range(4):
            total = totals[i, j]
            while total < 100:
                total += i * 10 + j + 1
            expected[j, i] = total
    got = launch(grid_2d_kernel, device, x, out(4, 3, dtype=torch.int32), n=100, N=8, grid=(3, 4))
    return equal(got, expected)


@triton.jit
def constants_and_own_kernel(x_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    shared = tl.cumsum(offs * 2, axis=0)  # the same in all programs
    own = tl.load(x_ptr + pid * N + offs)
    both = tl.where(own > 0, shared, own)
    grid = shared[:, None] * 100 + own[None, :]
    tl.store(out_ptr + pid * N + offs, both + tl.max(grid, axis=0) + tl.sum(grid, axis=1))


@theme("many: blocks that all programs share beside their own")
def _(device):
    x = integers(6, 8)
    a, shared = exact(x), np.cumsum(np.arange(8) * 2)
    grid = shared[None, :, None] * 100 + a[:, None, :]
    got = launch(constants_and_own_kernel, device, x, out(6, 8, dtype=torch.int32), N=8, grid=(6,))
    return equal(got, np.where(a > 0, shared, a) + grid.max(1) + grid.sum(2))


@triton.jit
def nan_each_kernel(x_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * N + tl.arange(0, N))
    tl.store(out_ptr + pid * 3, tl.max(x, axis=0))
    tl.store(out_ptr + pid * 3 + 1, tl.min(x, axis=0))
    tl.store(out_ptr + pid * 3 + 2, tl.sum(x, axis=0))


@theme("many: NaN in some programs only")
def _(device):
    x = given([[1.0, 2.0], [float("nan"), 3.0], [float("nan")] * 2, [float("inf"), -1.0]])
    got = launch(nan_each_kernel, device, x, out(4, 3), N=2, grid=(4,))
    nan, inf = np.nan, np.inf
    return equal(got, [[2, 1, 3], [3, 3, nan], [nan, nan, nan], [inf, -1, inf]])
