"""Blocks rearranged: joined, split, gathered, flipped, mapped."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import UNTIL_3_6, UNTIL_3_8, Theme, equal
from .values import exact, floats, integers, launch, out

theme = Theme("rearranging")


@triton.jit
def join_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    joined = tl.join(x, y)
    tl.static_assert(joined.shape[1] == 2)
    tl.store(out_ptr + offs[:, None] * 2 + tl.arange(0, 2)[None, :], joined)
    left, right = tl.split(joined)
    tl.store(out_ptr + 2 * N + offs, left - right)
    tl.store(out_ptr + 3 * N + tl.arange(0, 2 * N), tl.interleave(x, y))


@theme("join, split, interleave")
def _(device):
    x, y = integers(16), integers(16, seed=1)
    pairs = np.stack([exact(x), exact(y)], axis=1).reshape(-1)
    got = launch(join_kernel, device, x, y, out(80, dtype=torch.int32), N=16)
    return equal(got, np.concatenate([pairs, exact(x) - exact(y), pairs]))


@triton.jit
def join_scalars_kernel(out_ptr, a, b):
    pair = tl.join(a, b)
    tl.store(out_ptr + tl.arange(0, 2), pair)
    first, second = tl.split(pair)
    tl.store(out_ptr + 2, first * 10 + second)


@theme("two scalars joined and split again")
def _(device):
    got = launch(join_scalars_kernel, device, out(3, dtype=torch.int32), a=7, b=5)
    return equal(got, [7, 5, 75])


@triton.jit
def matrix_join_kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    even, odd = tl.split(tl.reshape(x, (N, N // 2, 2)))
    half = tl.arange(0, N)[:, None] * (N // 2) + tl.arange(0, N // 2)[None, :]
    tl.store(out_ptr + half, even)
    tl.store(out_ptr + N * N // 2 + half, odd)


@theme("even and odd columns of a matrix")
def _(device):
    x = integers(8, 8)
    got = launch(matrix_join_kernel, device, x, out(2, 8, 4, dtype=torch.int32), N=8)
    return equal(got, np.stack([exact(x)[:, ::2], exact(x)[:, 1::2]]))


@triton.jit
def cat_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    both = tl.cat(tl.load(x_ptr + offs), tl.load(y_ptr + offs), can_reorder=True)
    tl.store(out_ptr, tl.sum(both, axis=0))
    tl.store(out_ptr + 1, tl.max(both, axis=0))
    tl.store(out_ptr + 2, both.shape[0])


@theme("cat that may reorder")
def _(device):
    x, y = integers(16), integers(16, seed=1)
    both = np.concatenate([exact(x), exact(y)])
    got = launch(cat_kernel, device, x, y, out(3, dtype=torch.int32), N=16)
    return equal(got, [both.sum(), both.max(), 32])


@triton.jit
def ordered_cat_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    both = tl.cat(tl.load(x_ptr + offs), tl.load(y_ptr + offs))
    tl.store(out_ptr + tl.arange(0, 2 * N), both)


@theme("cat keeps the order", rejects=UNTIL_3_6)
def _(device):
    x, y = integers(16), integers(16, seed=1)
    got = launch(ordered_cat_kernel, device, x, y, out(32, dtype=torch.int32), N=16)
    return equal(got, np.concatenate([exact(x), exact(y)]))


@triton.jit
def cat_columns_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    both = tl.cat(tl.load(x_ptr + at), tl.load(y_ptr + at), dim=1)
    wide = tl.arange(0, N)[:, None] * 2 * N + tl.arange(0, 2 * N)[None, :]
    tl.store(out_ptr + wide, both)


@theme("cat along the last axis", rejects=UNTIL_3_6)
def _(device):
    x, y = integers(4, 4), integers(4, 4, seed=1)
    got = launch(cat_columns_kernel, device, x, y, out(4, 8, dtype=torch.int32), N=4)
    return equal(got, np.concatenate([exact(x), exact(y)], axis=1))


@triton.jit
def gather_kernel(x_ptr, i_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    index = tl.load(i_ptr + at)
    tl.store(out_ptr + at, tl.gather(x, index, axis=1))
    tl.store(out_ptr + M * N + at, tl.gather(x, index % M, 0))


@theme("gather along both axes of a block")
def _(device):
    x, index = floats(4, 8), integers(4, 8, low=0, high=7)
    a, i = exact(x), exact(index)
    got = launch(gather_kernel, device, x, index, out(2, 4, 8), M=4, N=8)
    return equal(got, np.stack([np.take_along_axis(a, i, 1), np.take_along_axis(a, i % 4, 0)]))


@triton.jit
def gather_vector_kernel(x_ptr, i_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    index = tl.load(i_ptr + tl.arange(0, 2 * N))
    tl.store(out_ptr + tl.arange(0, 2 * N), x.gather(index, 0))


@theme("gather more elements than there are")
def _(device):
    x, index = floats(16), integers(32, low=0, high=15)
    got = launch(gather_vector_kernel, device, x, index, out(32), N=16)
    return equal(got, exact(x)[exact(index)])


@triton.jit
def flip_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.flip(x, 1))
    tl.store(out_ptr + M * N + at, tl.flip(x, 0))
    tl.store(out_ptr + 2 * M * N + at, tl.flip(x))


@theme("flip of a matrix", rejects=UNTIL_3_8)
def _(device):
    x = integers(4, 8)
    a = exact(x)
    got = launch(flip_kernel, device, x, out(3, 4, 8, dtype=torch.int32), M=4, N=8)
    return equal(got, np.stack([a[:, ::-1], a[::-1], a[:, ::-1]]))


@triton.jit
def swizzle_kernel(out_ptr, m, n, group, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    new_i, new_j = tl.swizzle2d(i, j, m, n, group)
    tl.store(out_ptr + i * N + j, new_i * 10 + new_j)


@theme("swizzle2d")
def _(device):
    got = launch(swizzle_kernel, device, out(4, 4, dtype=torch.int32), m=4, n=4, group=2, M=4, N=4)
    expected = np.zeros((4, 4), int)
    for place in range(16):
        start = place // 8 * 2
        expected[place // 4, place % 4] = (start + place % 2) * 10 + place % 8 // 2
    return equal(got, expected)


@triton.jit
def select(x, y):
    if x > y:
        return x * 2
    else:  # noqa: RET505
        return y + 1


@triton.jit
def map_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, tl.map_elementwise(select, x, y))


@theme("map_elementwise with a branch for every element")
def _(device):
    x, y = integers(32), integers(32, seed=1)
    a, b = exact(x), exact(y)
    got = launch(map_kernel, device, x, y, out(32, dtype=torch.int32), N=32)
    return equal(got, np.where(a > b, 2 * a, b + 1))
