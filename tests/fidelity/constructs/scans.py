"""Scans, sorting, selection, histograms."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, SINCE_3_9, UNTIL_3_7, Theme, equal, near
from .values import exact, floats, integers, launch, out

theme = Theme("scans and sorting")


@triton.jit
def cumulative_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.cumsum(x, axis=1))
    tl.store(out_ptr + M * N + at, tl.cumsum(x, axis=0))
    tl.store(out_ptr + 2 * M * N + at, tl.cumsum(x, axis=1, reverse=True))
    tl.store(out_ptr + 3 * M * N + at, tl.cumsum(x, 0, reverse=True))
    tl.store(out_ptr + 4 * M * N + at, tl.cumprod(x, axis=1))
    tl.store(out_ptr + 5 * M * N + at, tl.cumprod(x, axis=-1, reverse=True))


@theme("cumsum and cumprod along both axes, forward and back")
def _(device):
    checks = []
    for dtype in (torch.int32, torch.float32, torch.int64):
        x = integers(4, 8, low=-3, high=3, dtype=dtype)
        a = exact(x)
        got = launch(cumulative_kernel, device, x, out(6, 4, 8, dtype=dtype), M=4, N=8)
        checks.append(equal(got, np.stack([
            a.cumsum(1), a.cumsum(0), a[:, ::-1].cumsum(1)[:, ::-1], a[::-1].cumsum(0)[::-1],
            a.cumprod(1), a[:, ::-1].cumprod(1)[:, ::-1]])))
    return checks


@triton.jit
def narrow_cumsum_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.cumsum(tl.load(x_ptr + offs), axis=0))
    tl.store(out_ptr + N + offs, tl.cumsum((tl.load(x_ptr + offs) > 110).to(tl.int32), axis=0))


@theme("cumsum of int8 and uint8 is 32 bits wide")
def _(device):
    checks = []
    for dtype in (torch.int8, torch.uint8):
        x = integers(64, low=100, high=127, dtype=dtype)
        got = launch(narrow_cumsum_kernel, device, x, out(2, 64, dtype=torch.int32), N=64)
        checks.append(equal(got, np.stack([exact(x), exact(x) > 110]).cumsum(1)))
    return checks


@triton.jit
def wide_cumsum_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.cumsum(tl.load(x_ptr + offs), axis=0, dtype=tl.float32))


@theme("cumsum with a wider dtype")
def _(device):
    x = integers(128, low=500, high=2000, dtype=torch.float16)
    got = launch(wide_cumsum_kernel, device, x, out(128), N=128)
    return equal(got, exact(x).cumsum())


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def running_max_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.associative_scan(x, 0, larger))
    tl.store(out_ptr + N + offs, tl.associative_scan(x, 0, larger, reverse=True))


@theme("associative_scan: running maximum, forward and back")
def _(device):
    x = floats(64)
    a = exact(x)
    got = launch(running_max_kernel, device, x, out(2, 64), N=64)
    return equal(got, np.stack([np.maximum.accumulate(a), np.maximum.accumulate(a[::-1])[::-1]]))


@triton.jit
def compose(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def recurrence_kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr,
                      REVERSE: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    pair = (tl.load(a_ptr + at), tl.load(b_ptr + at))
    _, y = tl.associative_scan(pair, 1, compose, reverse=REVERSE)
    tl.store(out_ptr + at, y)


@theme("associative_scan of a tuple: a linear recurrence")
def _(device):
    checks = []
    for reverse in (False, True):
        a, b = floats(4, 16, low=-1, high=1), floats(4, 16, seed=1)
        got = launch(recurrence_kernel, device, a, b, out(4, 16), M=4, N=16, REVERSE=reverse)
        expected, y = np.zeros((4, 16)), np.zeros(4)
        for i in range(15, -1, -1) if reverse else range(16):
            y = exact(a)[:, i] * y + exact(b)[:, i]
            expected[:, i] = y
        checks.append(near(got, expected, absolute=1e-5))
    return checks


@triton.jit
def last_nonzero(value1, flag1, value2, flag2):
    return tl.where(flag2 > 0, value2, value1), flag1 | flag2


@triton.jit
def segment_kernel(x_ptr, flag_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    filled, _ = tl.associative_scan((tl.load(x_ptr + offs), tl.load(flag_ptr + offs)), 0,
                                    last_nonzero)
    tl.store(out_ptr + offs, filled)


@theme("associative_scan whose function does not commute")
def _(device):
    x, flags = integers(64), integers(64, low=0, high=1, seed=1)
    flags[0] = 1
    got = launch(segment_kernel, device, x, flags, out(64, dtype=torch.int32), N=64)
    at = np.maximum.accumulate(np.where(exact(flags) > 0, np.arange(64), 0))
    return equal(got, exact(x)[at])


@triton.jit
def middle_axis_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    at = (tl.arange(0, A)[:, None, None] * B * C + tl.arange(0, B)[None, :, None] * C
          + tl.arange(0, C)[None, None, :])
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis=1))


@theme("cumsum along the middle axis of a 3-D block")
def _(device):
    x = integers(2, 8, 4)
    got = launch(middle_axis_kernel, device, x, out(2, 8, 4, dtype=torch.int32), A=2, B=8, C=4)
    return equal(got, exact(x).cumsum(1))


@triton.jit
def sort_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.sort(x))
    tl.store(out_ptr + M * N + at, tl.sort(x, dim=1, descending=True))


@theme("sort rows, ascending and descending")
def _(device):
    checks = []
    for dtype in (torch.float32, torch.int32, torch.int8, torch.float16):
        x = integers(4, 32, dtype=dtype)
        a = np.sort(exact(x), 1)
        got = launch(sort_kernel, device, x, out(2, 4, 32, dtype=dtype), M=4, N=32)
        checks.append(equal(got, np.stack([a, a[:, ::-1]])))
    return checks


@triton.jit
def sort_vector_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.sort(tl.load(x_ptr + offs), 0))


@theme("sort of a vector with infinities")
def _(device):
    x = floats(32)
    x[5], x[9] = float("inf"), float("-inf")
    got = launch(sort_vector_kernel, device, x, out(32), N=32)
    return equal(got, np.sort(exact(x)))


@triton.jit
def sort_method_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs).sort())


@theme("sort as a method, which is only announced", rejects=EVERY)
def _(device):
    launch(sort_method_kernel, device, floats(32), out(32), N=32)


@triton.jit
def sort_columns_kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at), dim=0))


@theme("sort along the first axis", rejects=EVERY)
def _(device):
    launch(sort_columns_kernel, device, floats(8, 8), out(8, 8), N=8)


@triton.jit
def top_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    x = tl.load(x_ptr + m * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + m * K + tl.arange(0, K)[None, :], tl.topk(x, K))


@theme("topk")
def _(device):
    x = floats(4, 32)
    got = launch(top_kernel, device, x, out(4, 4), M=4, N=32, K=4)
    return equal(got, np.sort(exact(x), 1)[:, :-5:-1])


@triton.jit
def bottom_kernel(x_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, K), tl.topk(x, K, descending=False))


@theme("topk of the smallest", rejects=UNTIL_3_7)
def _(device):
    x = floats(32)
    got = launch(bottom_kernel, device, x, out(4), N=32, K=4)
    return equal(got, np.sort(exact(x))[:4])


@triton.jit
def odd_top_kernel(x_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.topk(tl.load(x_ptr + tl.arange(0, N)), K), axis=0))


@theme("topk with a k that is no power of two, looked at since 3.9", rejects=SINCE_3_9)
def _(device):
    x = integers(32, dtype=torch.float32)
    got = launch(odd_top_kernel, device, x, out(), N=32, K=3)
    return equal(got, np.sort(exact(x))[-2:].sum())


@triton.jit
def rank_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    before = (x[None, :] < x[:, None]).to(tl.int32)
    tl.store(out_ptr + tl.sum(before, axis=1), x)


@theme("sorting by rank, all pairs compared")
def _(device):
    x = torch.from_numpy(np.random.default_rng(2).permutation(32).astype(np.float32))
    got = launch(rank_kernel, device, x, out(32), N=32)
    return equal(got, np.arange(32))


@triton.jit
def histogram_kernel(x_ptr, out_ptr, N: tl.constexpr, BINS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))


@theme("histogram")
def _(device):
    x = integers(256, low=0, high=15)
    got = launch(histogram_kernel, device, x, out(16, dtype=torch.int32), N=256, BINS=16)
    return equal(got, np.bincount(exact(x), minlength=16))


@triton.jit
def masked_histogram_kernel(x_ptr, out_ptr, n, N: tl.constexpr, BINS: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    tl.store(out_ptr + tl.arange(0, BINS), tl.histogram(x, BINS, mask=offs < n))


@theme("histogram with a mask")
def _(device):
    x = integers(100, low=0, high=7)
    got = launch(masked_histogram_kernel, device, x, out(8, dtype=torch.int32), n=100, N=128,
                 BINS=8)
    return equal(got, np.bincount(exact(x), minlength=8))


@theme("histogram of int64", rejects=EVERY)
def _(device):
    launch(histogram_kernel, device, integers(64, low=0, high=7, dtype=torch.int64),
           out(8, dtype=torch.int32), N=64, BINS=8)


@theme("histogram of floats", rejects=EVERY)
def _(device):
    launch(histogram_kernel, device, floats(64, low=0), out(8, dtype=torch.int32), N=64, BINS=8)


@triton.jit
def method_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x.cumsum(axis=0))
    tl.store(out_ptr + N + offs, x.associative_scan(0, larger))


@theme("scans as methods")
def _(device):
    x = integers(32)
    a = exact(x)
    got = launch(method_kernel, device, x, out(2, 32, dtype=torch.int32), N=32)
    return equal(got, np.stack([a.cumsum(), np.maximum.accumulate(a)]))


@triton.jit
def compact_kernel(x_ptr, out_ptr, count_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    keep = x > 0
    place = tl.cumsum(keep.to(tl.int32), axis=0) - 1
    tl.store(out_ptr + place, x, mask=keep)
    tl.store(count_ptr, tl.sum(keep.to(tl.int32), axis=0))


@theme("compaction: the kept elements side by side")
def _(device):
    x = integers(64)
    got, count = launch(compact_kernel, device, x, out(64, dtype=torch.int32, fill=-1),
                        out(dtype=torch.int32), N=64)
    kept = exact(x)[exact(x) > 0]
    return [equal(count, len(kept)), equal(got[:len(kept)], kept)]


