"""Blocks and their shapes: making them, reshaping, permuting, broadcasting, indexing."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, SINCE_3_9, UNTIL_3_6, Theme, equal
from .values import exact, floats, integers, launch, out

theme = Theme("shapes")


@triton.jit
def fill_kernel(out_ptr, value, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.full((N,), 2.5, tl.float32))
    tl.store(out_ptr + N + offs, tl.zeros((N,), dtype=tl.float32) + 1)
    tl.store(out_ptr + 2 * N + offs, tl.full([N], value, tl.float32))
    x = tl.zeros([N], tl.int8)
    tl.static_assert(tl.zeros_like(x).dtype == tl.int8)
    tl.store(out_ptr + 3 * N + offs, tl.zeros_like(x))
    tl.store(out_ptr + 4 * N + offs, tl.full((), 3, tl.float32))


@theme("full, zeros, zeros_like")
def _(device):
    got = launch(fill_kernel, device, out(5, 16), value=-7.0, N=16)
    return equal(got, np.repeat([[2.5], [1], [-7], [0], [3]], 16, axis=1))


@triton.jit
def arange_kernel(out_ptr):
    tl.store(out_ptr + tl.arange(0, 16), tl.arange(5, 21))
    tl.store(out_ptr + 16 + tl.arange(0, 16), tl.arange(16, 32) * tl.arange(0, 16))


@theme("arange from a start")
def _(device):
    got = launch(arange_kernel, device, out(2, 16, dtype=torch.int32))
    n = np.arange(16)
    return equal(got, np.stack([n + 5, (n + 16) * n]))


@triton.jit
def bad_arange_kernel(out_ptr):
    tl.store(out_ptr + tl.arange(0, 100), 1.0)


@theme("arange of 100 elements, no power of two", rejects=EVERY)
def _(device):
    launch(bad_arange_kernel, device, out(100))


@triton.jit
def bad_zeros_kernel(out_ptr):
    x = tl.zeros((100,), tl.float32)
    tl.store(out_ptr, tl.sum(x, axis=0))


@theme("zeros of 100 elements", rejects=EVERY)
def _(device):
    launch(bad_zeros_kernel, device, out())


@triton.jit
def runtime_arange_kernel(out_ptr, n):
    tl.store(out_ptr + tl.arange(0, n), 1.0)


@theme("arange up to a runtime argument", rejects=EVERY)
def _(device):
    launch(runtime_arange_kernel, device, out(16), n=16)


@triton.jit
def huge_kernel(out_ptr):
    offs = tl.arange(0, 2097152)
    tl.store(out_ptr + offs, offs, mask=offs < 4)


@theme("a block of 2**21 elements", rejects=EVERY)
def _(device):
    launch(huge_kernel, device, out(4))


@triton.jit
def reshape_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N * N))
    square = tl.reshape(x, (N, N))
    tl.store(out_ptr + tl.arange(0, N), tl.sum(square, axis=0))
    tl.store(out_ptr + N + tl.arange(0, N), tl.sum(x.reshape(N, N), axis=1))
    tl.store(out_ptr + 2 * N + tl.arange(0, N), tl.sum(square.reshape([2, N // 2, N]), axis=1)
             .reshape(2 * N).reshape(2, N).sum(axis=0))
    tl.store(out_ptr + 3 * N + tl.arange(0, N * N), tl.ravel(square))


@theme("reshape in row order, ravel")
def _(device):
    x = integers(64)
    a = exact(x).reshape(8, 8)
    got = launch(reshape_kernel, device, x, out(24 + 64, dtype=torch.int32), N=8)
    return equal(got, np.concatenate([a.sum(0), a.sum(1), a.sum(0), a.reshape(-1)]))


@triton.jit
def bad_reshape_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    tl.store(out_ptr + tl.arange(0, 32), x.reshape(32))


@theme("reshape to another number of elements", rejects=EVERY)
def _(device):
    launch(bad_reshape_kernel, device, floats(16), out(32))


@triton.jit
def view_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N * N))
    tl.store(out_ptr, tl.sum(tl.sum(tl.view(x, (N, N)), axis=0), axis=0))
    tl.store(out_ptr + 1, tl.max(tl.reshape(x, (2, N * N // 2), can_reorder=True)))


@theme("view and reshape that may reorder, then reduced")
def _(device):
    x = integers(64)
    got = launch(view_kernel, device, x, out(2, dtype=torch.int32), N=8)
    return equal(got, [exact(x).sum(), exact(x).max()])


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    at = n[:, None] * M + m[None, :]
    tl.store(out_ptr + at, tl.trans(x))
    tl.store(out_ptr + M * N + at, x.T)
    tl.store(out_ptr + 2 * M * N + at, tl.permute(x, (1, 0)))
    tl.store(out_ptr + 3 * M * N + at, x.trans(1, 0))


@theme("trans, T, permute of a matrix")
def _(device):
    x = floats(8, 16)
    got = launch(transpose_kernel, device, x, out(4, 16, 8), M=8, N=16)
    return equal(got, np.stack([exact(x).T] * 4))


@triton.jit
def permute_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, A * B * C)).reshape(A, B, C)
    size: tl.constexpr = A * B * C
    flat = tl.arange(0, size)
    tl.store(out_ptr + flat, tl.permute(x, (2, 0, 1)).reshape(size))
    tl.store(out_ptr + size + flat, tl.trans(x, (1, 0, 2)).reshape(size))
    tl.store(out_ptr + 2 * size + flat, x.permute(2, 1, 0).reshape(size))
    tl.store(out_ptr + 3 * size + flat, tl.trans(x).reshape(size))


@theme("permutations of a 3-D block")
def _(device):
    x = floats(2, 4, 8)
    a = exact(x)
    got = launch(permute_kernel, device, x, out(4, 64), A=2, B=4, C=8)
    return equal(got, np.stack([a.transpose(order).reshape(-1) for order in (
        (2, 0, 1), (1, 0, 2), (2, 1, 0), (0, 2, 1))]))


@triton.jit
def expand_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    offs = tl.arange(0, N)
    grid = x[:, None] * 100 + x[None, :]
    tl.store(out_ptr + offs[:, None] * N + offs[None, :], grid)
    grid = tl.expand_dims(x, 1) * 100 + tl.expand_dims(x, 0)
    tl.store(out_ptr + N * N + offs[:, None] * N + offs[None, :], grid)
    cube = tl.expand_dims(x, (0, -1))
    tl.static_assert(cube.shape[0] == 1 and cube.shape[1] == N and cube.shape[2] == 1)
    tl.store(out_ptr + 2 * N * N + offs[None, :, None], cube)
    tl.store(out_ptr + 2 * N * N + N + offs[None, None, :], x[None, None, :])


@theme("None indices and expand_dims")
def _(device):
    x = integers(8)
    a = exact(x)
    grid = (a[:, None] * 100 + a).reshape(-1)
    got = launch(expand_kernel, device, x, out(2 * 64 + 16, dtype=torch.int32), N=8)
    return equal(got, np.concatenate([grid, grid, a, a]))


@triton.jit
def slice_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + tl.arange(0, N)[:, None, None] * N + tl.arange(0, N)[None, None, :],
             x[:, None, :])


@theme("a slice beside None")
def _(device):
    x = integers(8, 8)
    return equal(launch(slice_kernel, device, x, out(8, 8, dtype=torch.int32), N=8), exact(x))


@triton.jit
def element_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, x[0])


@theme("one element of a block by its index", rejects=EVERY)
def _(device):
    launch(element_kernel, device, floats(16), out(), N=16)


@triton.jit
def part_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N // 2), x[0:8])


@theme("a part of a block by a slice", rejects=EVERY)
def _(device):
    launch(part_kernel, device, floats(16), out(8), N=16)


@triton.jit
def assign_element_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    x[0] = 1.0
    tl.store(out_ptr + tl.arange(0, N), x)


@theme("an assignment to one element", rejects=EVERY)
def _(device):
    launch(assign_element_kernel, device, floats(16), out(16), N=16)


@triton.jit
def broadcast_to_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + at, tl.broadcast_to(x[None, :], (M, N)))
    tl.store(out_ptr + M * N + at, x[None, :].broadcast_to(M, N))
    tl.store(out_ptr + 2 * M * N + at, tl.broadcast_to(tl.load(x_ptr), (M, N)))
    a, b = tl.broadcast(x[None, :], tl.zeros((M, 1), x.dtype))
    tl.store(out_ptr + 3 * M * N + at, a + b)


@theme("broadcast_to and broadcast")
def _(device):
    x = integers(8)
    rows = np.tile(exact(x), (4, 1))
    got = launch(broadcast_to_kernel, device, x, out(4, 4, 8, dtype=torch.int32), M=4, N=8)
    return equal(got, np.stack([rows, rows, rows * 0 + exact(x)[0], rows]))


@triton.jit
def bad_broadcast_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    tl.store(out_ptr + tl.arange(0, 32), tl.broadcast_to(x, (32,)))


@theme("broadcast_to of a length that does not fit", rejects=EVERY)
def _(device):
    launch(bad_broadcast_kernel, device, floats(16), out(32))


@triton.jit
def squeeze_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    row = tl.unsqueeze(x, 0)
    tl.static_assert(row.shape[0] == 1)
    tl.store(out_ptr + tl.arange(0, N), tl.squeeze(row, 0) * 2)


@theme("squeeze and unsqueeze", rejects=UNTIL_3_6)
def _(device):
    x = integers(16)
    got = launch(squeeze_kernel, device, x, out(16, dtype=torch.int32), N=16)
    return equal(got, 2 * exact(x))


@triton.jit
def four_axes_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 256)).reshape(2, 4, 8, 4)
    y = tl.sum(x, axis=2).permute(2, 0, 1)
    tl.store(out_ptr + tl.arange(0, 32), y.reshape(32))


@theme("4-D blocks")
def _(device):
    x = integers(2, 4, 8, 4)
    got = launch(four_axes_kernel, device, x, out(32, dtype=torch.int32))
    return equal(got, exact(x).sum(2).transpose(2, 0, 1).reshape(-1))


@triton.jit
def numbers_of_shape_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    rows: tl.constexpr = x.shape[0]
    tl.store(out_ptr, rows)
    tl.store(out_ptr + 1, x.shape[1])
    tl.store(out_ptr + 2, x.numel)
    tl.store(out_ptr + 3, len(x.shape))
    tl.store(out_ptr + 4 + tl.arange(0, rows), tl.sum(x, 1))


@theme("a block's shape in arithmetic")
def _(device):
    x = integers(4, 8)
    got = launch(numbers_of_shape_kernel, device, x, out(8, dtype=torch.int32), M=4, N=8)
    return equal(got, np.concatenate([[4, 8, 32, 2], exact(x).sum(1)]))


@triton.jit
def too_many_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N)[:, None], x[:, None, :])


@theme("more slices than axes, looked at since 3.9", rejects=SINCE_3_9)
def _(device):
    x = floats(16)
    return equal(launch(too_many_kernel, device, x, out(16), N=16), x)
