"""Atomic operations: every kind and type, what they give back, masks, duplicates."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, UNTIL_3_8, Theme, equal
from .values import exact, floats, given, integers, launch, out, whole

theme = Theme("atomics")


@triton.jit
def rmw_kernel(target_ptr, x_ptr, old_ptr, N: tl.constexpr, KIND: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    at = target_ptr + offs
    if KIND == "add":
        old = tl.atomic_add(at, x)
    elif KIND == "max":
        old = tl.atomic_max(at, x)
    elif KIND == "min":
        old = tl.atomic_min(at, x)
    elif KIND == "and":
        old = tl.atomic_and(at, x)
    elif KIND == "or":
        old = tl.atomic_or(at, x)
    elif KIND == "xor":
        old = tl.atomic_xor(at, x)
    else:
        old = tl.atomic_xchg(at, x)
    tl.store(old_ptr + offs, old)


def _changed(device, start, x, kind):
    """The memory afterwards and what the operation gave back."""
    target = start.to(device, copy=True)
    old = torch.empty_like(target)
    rmw_kernel[(1,)](target, x.to(device), old, N=len(x), KIND=kind)
    return [target, old]


def _checked(device, start, x, kind, expected):
    target, old = _changed(device, start, x, kind)
    return [equal(target, expected), equal(old, start)]


_OPERATIONS = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
               "or": np.bitwise_or, "xor": np.bitwise_xor, "xchg": lambda old, new: new}


def _every(device, kinds, dtypes, low=-100, high=100):
    checks = []
    for dtype in dtypes:
        start, x = (integers(32, low=low, high=high, dtype=dtype, seed=s) for s in (0, 1))
        for kind in kinds:
            expected = _OPERATIONS[kind](exact(start), exact(x))
            checks += _checked(device, start, x, kind, expected)
    return checks


@theme("add of int32, int64, uint32, with the old values")
def _(device):
    return (_every(device, ["add"], [torch.int32, torch.int64])
            + _every(device, ["add"], [torch.uint32, torch.uint64], low=0))


@theme("add of float32 and float64")
def _(device):
    return _every(device, ["add"], [torch.float32, torch.float64])


@theme("add of fp16")
def _(device):
    return _every(device, ["add"], [torch.float16])


@theme("add of bf16")
def _(device):
    return _every(device, ["add"], [torch.bfloat16])


@theme("max and min of int32 and int64")
def _(device):
    return _every(device, ["max", "min"], [torch.int32, torch.int64])


@theme("atomic max and min of uint32 above 2**31")
def _(device):
    start, x = whole([1, 2**32 - 1, 5, 2**31], torch.uint32), whole([2**31, 3, 5, 7], torch.uint32)
    return [*_checked(device, start, x, "max", np.maximum(exact(start), exact(x))),
            *_checked(device, start, x, "min", np.minimum(exact(start), exact(x)))]


@theme("max and min of float32, negative numbers too")
def _(device):
    start = given([1.5, -2.5, -1.0, 0.0, -3.0, 4.0, float("-inf"), float("inf")])
    x = given([2.5, -3.5, 1.0, -5.0, -2.0, 3.0, -1e30, 1e30])
    return [*_checked(device, start, x, "max", np.maximum(exact(start), exact(x))),
            *_checked(device, start, x, "min", np.minimum(exact(start), exact(x)))]


@theme("max and min of float64")
def _(device):
    start, x = floats(16, dtype=torch.float64), floats(16, dtype=torch.float64, seed=1)
    return [*_checked(device, start, x, "max", np.maximum(exact(start), exact(x))),
            *_checked(device, start, x, "min", np.minimum(exact(start), exact(x)))]


@theme("and, or, xor of int32 and int64")
def _(device):
    return _every(device, ["and", "or", "xor"], [torch.int32, torch.int64], low=0, high=2**31 - 1)


@theme("xchg of int32, int64 and float32")
def _(device):
    return _every(device, ["xchg"], [torch.int32, torch.int64, torch.float32])


@theme("max of fp16", rejects=EVERY)
def _(device):
    x = floats(16, dtype=torch.float16)
    _changed(device, x, x, "max")


@theme("add of int8", rejects=EVERY)
def _(device):
    x = integers(16, dtype=torch.int8)
    _changed(device, x, x, "add")


@triton.jit
def cas_kernel(target_ptr, compare_ptr, x_ptr, old_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    old = tl.atomic_cas(target_ptr + offs, tl.load(compare_ptr + offs), tl.load(x_ptr + offs))
    tl.store(old_ptr + offs, old)


@theme("cas of blocks, int32 and int64")
def _(device):
    checks = []
    for dtype in (torch.int32, torch.int64):
        start, x = integers(32, low=0, high=3, dtype=dtype), integers(32, dtype=dtype, seed=1)
        compare = integers(32, low=0, high=3, dtype=dtype, seed=2)
        target, old = start.to(device, copy=True), torch.empty(32, dtype=dtype, device=device)
        cas_kernel[(1,)](target, compare.to(device), x.to(device), old, N=32)
        checks += [equal(target, torch.where(start == compare, x, start)), equal(old, start)]
    return checks


@triton.jit
def scalar_cas_kernel(target_ptr, old_ptr):
    pid = tl.program_id(0)
    tl.store(old_ptr + pid, tl.atomic_cas(target_ptr + pid, pid % 3, 100 + pid))


@theme("cas of a scalar")
def _(device):
    start = integers(12, low=0, high=2)
    target, old = start.to(device, copy=True), torch.empty(12, dtype=torch.int32, device=device)
    scalar_cas_kernel[(12,)](target, old)
    pid = np.arange(12)
    return [equal(target, np.where(exact(start) == pid % 3, 100 + pid, exact(start))),
            equal(old, start)]


@triton.jit
def broadcast_cas_kernel(target_ptr, N: tl.constexpr):
    tl.atomic_cas(target_ptr + tl.arange(0, N), 0, 7)


@theme("cas of a block of pointers with scalar values", rejects=EVERY)
def _(device):
    broadcast_cas_kernel[(1,)](torch.zeros(16, dtype=torch.int32, device=device), N=16)


@triton.jit
def masked_kernel(target_ptr, x_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs, mask=offs < n, other=1000)
    tl.atomic_add(target_ptr + offs, x, mask=offs < n)
    tl.atomic_max(target_ptr + N + offs, x, mask=offs < n - 5)
    tl.atomic_xchg(target_ptr + 2 * N + offs, x, mask=offs % 2 == 0)


@theme("masked atomics")
def _(device):
    x, n = integers(20), np.arange(32)
    padded = np.concatenate([exact(x), np.full(12, 1000)])
    target = torch.zeros(3, 32, dtype=torch.int32, device=device)
    masked_kernel[(1,)](target, x.to(device), 20, N=32)
    return equal(target, np.stack([np.where(n < 20, padded, 0),
                                   np.where(n < 15, np.maximum(padded, 0), 0),
                                   np.where(n % 2 == 0, padded, 0)]))


@triton.jit
def duplicates_kernel(x_ptr, target_ptr, old_ptr, BINS: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    bin_ = tl.load(x_ptr + offs)
    tl.store(old_ptr + offs, tl.atomic_add(target_ptr + bin_, 1))
    tl.atomic_max(target_ptr + BINS + bin_, offs)
    tl.atomic_add(target_ptr + 2 * BINS + tl.zeros_like(offs), offs)


@theme("many lanes of a block on one address")
def _(device):
    x = integers(64, low=0, high=7)
    counts = np.bincount(exact(x), minlength=8)
    target = torch.zeros(3, 8, dtype=torch.int32, device=device)
    old = torch.empty(64, dtype=torch.int32, device=device)
    duplicates_kernel[(1,)](x.to(device), target, old, BINS=8, N=64)
    last = [max(np.flatnonzero(exact(x) == b), default=0) for b in range(8)]
    tickets = old.cpu().numpy()
    each = [sorted(tickets[exact(x) == b].tolist()) == list(range(counts[b])) for b in range(8)]
    return [equal(target, np.stack([counts, last, np.r_[64 * 63 // 2, [0] * 7]])),
            equal(int(all(each)), 1)]


@triton.jit
def scalar_kernel(target_ptr, x_ptr):
    pid = tl.program_id(0)
    tl.atomic_add(target_ptr, tl.load(x_ptr + pid))
    tl.atomic_max(target_ptr + 1, tl.load(x_ptr + pid))
    tl.atomic_min(target_ptr + 2, pid - 5)
    tl.atomic_or(target_ptr + 3, 1 << (pid % 20))
    tl.atomic_xor(target_ptr + 4, pid)


@theme("scalar atomics of many programs")
def _(device):
    x = integers(40)
    target = torch.zeros(5, dtype=torch.int32, device=device)
    scalar_kernel[(40,)](target, x.to(device))
    a = exact(x)
    return equal(target, [a.sum(), max(a.max(), 0), -5, 2**20 - 1,
                          np.bitwise_xor.reduce(np.arange(40))])


@triton.jit
def order_kernel(target_ptr, x_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.atomic_add(target_ptr + offs, x, sem="relaxed")
    tl.atomic_add(target_ptr + offs, x, sem="acquire", scope="cta")
    tl.atomic_add(target_ptr + offs, x, sem="release", scope="gpu")
    tl.atomic_add(target_ptr + offs, x, sem="acq_rel", scope="sys")


@theme("orders and scopes of an atomic")
def _(device):
    x = integers(16)
    target = torch.zeros(16, dtype=torch.int32, device=device)
    order_kernel[(3,)](target, x.to(device), N=16)
    return equal(target, 12 * x)


@triton.jit
def unknown_order_kernel(target_ptr):
    tl.atomic_add(target_ptr, 1, sem="later")


@theme("an unknown order", rejects=EVERY)
def _(device):
    unknown_order_kernel[(1,)](torch.zeros(1, dtype=torch.int32, device=device))


@triton.jit
def rows_kernel(x_ptr, target_ptr, M: tl.constexpr, N: tl.constexpr):
    pid = tl.program_id(0)
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + pid * M * N + m * N + n)
    tl.atomic_add(target_ptr + n + tl.zeros((M, N), tl.int32), x)
    tl.atomic_add(target_ptr + N + m * N + n, x, mask=(m < 2) & (n > 3))


@theme("2-D blocks of atomics, with broadcast pointers and masks")
def _(device):
    x = integers(5, 4, 8)
    target = torch.zeros(5, 8, dtype=torch.int32, device=device)
    rows_kernel[(5,)](x.to(device), target, M=4, N=8)
    a = exact(x)
    kept = np.where((np.arange(4)[:, None] < 2) & (np.arange(8) > 3), a.sum(0), 0)
    return equal(target, np.concatenate([a.sum((0, 1))[None], kept]))


@triton.jit
def count_kernel(x_ptr, target_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    tl.atomic_add(target_ptr + x, 1, mask=offs < n)


@theme("a histogram by atomics of many programs")
def _(device):
    x = integers(500, low=0, high=15)
    target = torch.zeros(16, dtype=torch.int32, device=device)
    count_kernel[(8,)](x.to(device), target, 500, BLOCK=64)
    return equal(target, np.bincount(exact(x), minlength=16))


@triton.jit
def split_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + tl.program_id(0) * N * N + at)
    b = tl.load(b_ptr + tl.program_id(0) * N * N + at)
    tl.atomic_add(c_ptr + at, tl.dot(a, b))


@theme("split-K: products of several programs added")
def _(device):
    a, b = (integers(4, 16, 16, low=-4, high=4, dtype=torch.float16, seed=s) for s in (0, 1))
    target = torch.zeros(16, 16, device=device)
    split_kernel[(4,)](a.to(device), b.to(device), target, N=16)
    return equal(target, (exact(a) @ exact(b)).sum(0))


@triton.jit
def method_kernel(target_ptr):
    (target_ptr + tl.program_id(0)).atomic_add(5)
    (target_ptr + 8 + tl.arange(0, 4)).atomic_max(tl.arange(0, 4))


@theme("atomics as methods of the pointers")
def _(device):
    target = torch.zeros(12, dtype=torch.int32, device=device)
    method_kernel[(3,)](target)
    return equal(target, [5, 5, 5, 0, 0, 0, 0, 0, 0, 1, 2, 3])


@triton.jit
def load_store_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.atomic_load(x_ptr + offs, sem="relaxed")
    tl.atomic_store(out_ptr + offs, x + 1, mask=offs < N - 2)


@theme("atomic_load and atomic_store", rejects=UNTIL_3_8)
def _(device):
    x = integers(16)
    got = launch(load_store_kernel, device, x, out(16, dtype=torch.int32, fill=0), N=16)
    return equal(got, np.where(np.arange(16) < 14, exact(x) + 1, 0))


@triton.jit
def scalar_value_kernel(target_ptr, N: tl.constexpr):
    tl.atomic_add(target_ptr + tl.arange(0, N), 3)


@theme("a scalar added to a block of addresses")
def _(device):
    target = torch.zeros(16, dtype=torch.int32, device=device)
    scalar_value_kernel[(2,)](target, N=16)
    return equal(target, np.full(16, 6))
