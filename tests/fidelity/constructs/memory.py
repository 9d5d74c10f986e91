"""Loads and stores: masks, strides, indices, conversions, cache hints."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal
from .values import exact, floats, given, integers, launch, out

theme = Theme("memory")


@triton.jit
def masked_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=-1.0)
    tl.store(out_ptr + offs, x * 2, mask=mask)


@theme("masked load and store over a 1-D grid")
def _(device):
    x = floats(100)
    got = launch(masked_kernel, device, x, out(100), grid=(4,), n=100, BLOCK=32)
    return equal(got, 2 * exact(x))


@triton.jit
def other_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask, other=7.5))
    tl.store(out_ptr + N + offs, tl.load(x_ptr + offs, mask=mask, other=-float("inf")))
    tl.store(out_ptr + 2 * N + offs, tl.load(x_ptr + offs, mask=mask, other=3))
    tl.store(out_ptr + 3 * N + offs, tl.load(x_ptr + offs, mask, offs.to(tl.float32)))
    tl.store(out_ptr + 4 * N + offs, tl.load(x_ptr + offs, mask, other=float("nan")))


@theme("other: a number, -inf, an int for floats, a block, NaN")
def _(device):
    x, places = floats(10), np.arange(16)
    got = launch(other_kernel, device, x, out(5, 16), n=10, N=16)
    padded = np.concatenate([exact(x), np.zeros(6)])
    others = (7.5, -np.inf, 3.0, places, np.nan)
    return equal(got, np.stack([np.where(places < 10, padded, other) for other in others]))


@triton.jit
def no_other_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.where(mask, x, 5.0))


@theme("masked load without other, its lanes not used")
def _(device):
    x = floats(10)
    got = launch(no_other_kernel, device, x, out(16), n=10, N=16)
    return equal(got, np.concatenate([exact(x), np.full(6, 5.0)]))


@triton.jit
def scalar_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, tl.load(x_ptr + n - 1 - pid) + 1)


@theme("scalar loads and stores")
def _(device):
    x = integers(9)
    got = launch(scalar_kernel, device, x, out(9, dtype=torch.int32), grid=(9,), n=9)
    return equal(got, exact(x)[::-1] + 1)


@triton.jit
def masked_scalar_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid, mask=pid < n, other=-7)
    tl.store(out_ptr + pid, x, mask=pid != 2)


@theme("scalar mask on scalar load and store")
def _(device):
    x = integers(4)
    got = launch(masked_scalar_kernel, device, x, out(6, dtype=torch.int32, fill=0), grid=(6,), n=4)
    return equal(got, np.where(np.arange(6) == 2, 0, np.r_[exact(x), -7, -7]))


@triton.jit
def tile_kernel(x_ptr, out_ptr, sxm, sxn, som, son, M, N, BM: tl.constexpr, BN: tl.constexpr):
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x = tl.load(x_ptr + offs_m[:, None] * sxm + offs_n[None, :] * sxn, mask=mask)
    tl.store(out_ptr + offs_m[:, None] * som + offs_n[None, :] * son, x, mask=mask)


def _tiles(device, x, result):
    (m, n), bm, bn = x.shape, 8, 16
    grid = (triton.cdiv(m, bm), triton.cdiv(n, bn))
    tile_kernel[grid](x, result, *x.stride(), *result.stride(), m, n, BM=bm, BN=bn)
    return equal(result, x.cpu())


@theme("2-D tiles with strides and a mask of two axes")
def _(device):
    return _tiles(device, floats(13, 21).to(device), torch.empty(13, 21, device=device))


@theme("a transposed view is read and written by its strides")
def _(device):
    x = floats(21, 13).to(device).T
    return _tiles(device, x, torch.empty(21, 13, device=device).T)


@theme("a view with an offset and a step")
def _(device):
    x = floats(30, 40).to(device)[3:30:2, 5::3]
    return _tiles(device, x, torch.empty(14, 12, device=device))


@theme("an expanded view, stride zero")
def _(device):
    x = floats(1, 20).to(device).expand(12, 20)
    return _tiles(device, x, torch.empty(12, 20, device=device))


@theme("a tensor that requires grad, and one of a wider buffer")
def _(device):
    x = floats(10, 20).to(device).requires_grad_()
    buffer = torch.zeros(10, 40, device=device)
    tiles = _tiles(device, x, buffer[:, 7:27])
    return [tiles, equal(buffer[:, :7], np.zeros((10, 7)))]


@triton.jit
def reverse_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + (n - 1 - offs), tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


@theme("negative steps in an index")
def _(device):
    x = integers(27)
    got = launch(reverse_kernel, device, x, out(27, dtype=torch.int32), n=27, N=32)
    return equal(got, exact(x)[::-1])


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + tl.load(index_ptr + offs)))


@theme("gather through loaded indices, 32 and 64 bits")
def _(device):
    x, index = floats(50), integers(64, low=0, high=49)
    wide = index.to(torch.int64)
    return [equal(launch(gather_kernel, device, x, i, out(64), N=64), exact(x)[exact(index)])
            for i in (index, wide)]


@triton.jit
def scatter_kernel(x_ptr, index_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + tl.load(index_ptr + offs), tl.load(x_ptr + offs))


@theme("scatter through loaded indices")
def _(device):
    x, index = floats(64), torch.from_numpy(np.random.default_rng(3).permutation(64))
    expected = np.empty(64)
    expected[index.numpy()] = exact(x)
    return equal(launch(scatter_kernel, device, x, index, out(64), N=64), expected)


@triton.jit
def one_address_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.zeros((N,), tl.int32))
    tl.store(out_ptr + tl.arange(0, N), x + tl.load(x_ptr + 1))


@theme("every lane loads one address")
def _(device):
    got = launch(one_address_kernel, device, given([2.0, 3.0]), out(16), N=16)
    return equal(got, np.full(16, 5.0))


@triton.jit
def broadcast_store_kernel(out_ptr, BM: tl.constexpr, BN: tl.constexpr):
    offs_m = tl.arange(0, BM)
    offs_n = tl.arange(0, BN)
    at = out_ptr + offs_m[:, None] * BN + offs_n[None, :]
    tl.store(at, 1.5)
    tl.store(at, offs_n[None, :].to(tl.float32), mask=offs_m[:, None] > 1)


@theme("a stored value and its mask broadcast to the pointers")
def _(device):
    got = launch(broadcast_store_kernel, device, out(4, 8), BM=4, BN=8)
    return equal(got, np.where(np.arange(4)[:, None] > 1, np.arange(8)[None, :], 1.5))


@triton.jit
def cache_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    a = tl.load(x_ptr + offs, cache_modifier=".ca")
    b = tl.load(x_ptr + offs, cache_modifier=".cg")
    c = tl.load(x_ptr + offs, volatile=True)
    d = tl.load(x_ptr + offs, mask=offs < N, other=0.0, cache_modifier=".cv")
    tl.store(out_ptr + offs, a + b, cache_modifier=".cg")
    tl.store(out_ptr + N + offs, c + d, cache_modifier=".wt")
    tl.store(out_ptr + 2 * N + offs, a, cache_modifier=".cs")
    tl.store(out_ptr + 3 * N + offs, b, cache_modifier=".wb")


@theme("cache modifiers and volatile loads")
def _(device):
    x = integers(16, dtype=torch.float32)
    got = launch(cache_kernel, device, x, out(4, 16), N=16)
    return equal(got, np.stack([2 * exact(x)] * 2 + [exact(x)] * 2))


@triton.jit
def eviction_kernel(x_ptr, out_ptr, N: tl.constexpr, MODIFIER: tl.constexpr):
    offs = tl.arange(0, N)
    a = tl.load(x_ptr + offs, eviction_policy="evict_first", cache_modifier=MODIFIER)
    b = tl.load(x_ptr + offs, mask=offs < N, eviction_policy="evict_last")
    tl.store(out_ptr + offs, a + b, eviction_policy="evict_first")


@theme("eviction policies")
def _(device):
    x = integers(16, dtype=torch.float32)
    return equal(launch(eviction_kernel, device, x, out(16), N=16, MODIFIER=""), 2 * x)


@theme("a cache modifier together with an eviction policy", rejects=EVERY,
       differs="only the assembler refuses the pair: the compile gate's job")
def _(device):
    launch(eviction_kernel, device, floats(16), out(16), N=16, MODIFIER=".ca")


@triton.jit
def unknown_hint_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, cache_modifier=".zz"))


@theme("an unknown cache modifier", rejects=EVERY)
def _(device):
    launch(unknown_hint_kernel, device, floats(16), out(16), N=16)


@triton.jit
def convert_kernel(x_ptr, half_ptr, brain_ptr, wide_ptr, int_ptr, byte_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(half_ptr + offs, x)
    tl.store(brain_ptr + offs, x)
    tl.store(wide_ptr + offs, x)
    tl.store(int_ptr + offs, x)
    tl.store(byte_ptr + offs, x)


@theme("a store converts to the pointer's type")
def _(device):
    x = floats(64, low=-100, high=100)
    types = (torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int8)
    got = launch(convert_kernel, device, x, *(out(64, dtype=t) for t in types), N=64)
    expected = [exact(x)] * 3 + [np.trunc(exact(x))] * 2
    return [equal(g, e) for g, e in zip(got, expected, strict=True)]


@triton.jit
def int_store_kernel(x_ptr, half_ptr, byte_ptr, flag_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(half_ptr + offs, x)
    tl.store(byte_ptr + offs, x)
    tl.store(flag_ptr + offs, x)


@theme("a store of integers to fp16, uint8 and bool")
def _(device):
    x = integers(64, low=-3, high=300)
    half, byte, flag = launch(int_store_kernel, device, x, out(64, dtype=torch.float16),
                              out(64, dtype=torch.uint8), out(64, dtype=torch.bool), N=64)
    return [equal(half, exact(x)), equal(byte, exact(x) % 256), equal(flag, exact(x) != 0)]


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


_TYPES = (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16,
          torch.uint32, torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
          torch.float8_e4m3fn, torch.float8_e5m2)


@theme("every element type is copied bit for bit")
def _(device):
    checks = []
    for dtype in _TYPES:
        raw = integers(40 * dtype.itemsize, low=0, high=1 if dtype is torch.bool else 0x3B)
        x = raw.to(torch.uint8).view(dtype)
        result = torch.zeros(40, dtype=torch.uint8, device=device).repeat(dtype.itemsize)
        copy_kernel[(1,)](x.to(device), result.view(dtype), 40, BLOCK=64)
        checks.append(equal(result, raw.to(torch.uint8)))
    return checks


@triton.jit
def bool_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, x & y)
    tl.store(out_ptr + N + offs, x | ~y)
    tl.store(out_ptr + 2 * N + offs, x ^ y)
    tl.store(out_ptr + 3 * N + offs, tl.load(x_ptr + offs, mask=x, other=True))


@theme("bool tensors")
def _(device):
    x, y = (integers(16, low=0, high=1, seed=s).to(torch.bool) for s in (1, 2))
    got = launch(bool_kernel, device, x, y, out(4, 16, dtype=torch.bool), N=16)
    return equal(got, torch.stack([x & y, x | ~y, x ^ y, torch.ones_like(x)]))


@triton.jit
def read_back_kernel(x_ptr, buffer_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(buffer_ptr + offs, tl.load(x_ptr + offs) * 2)
    tl.debug_barrier()
    tl.store(out_ptr + offs, tl.load(buffer_ptr + (N - 1 - offs)))


@theme("what other lanes stored is read after a barrier")
def _(device):
    x = integers(64)
    _, got = launch(read_back_kernel, device, x, out(64, dtype=torch.int32),
                    out(64, dtype=torch.int32), N=64)
    return equal(got, 2 * exact(x)[::-1])


@triton.jit
def in_place_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


@theme("in-place update")
def _(device):
    x = floats(50)
    result = x.clone().to(device)
    in_place_kernel[(4,)](result, 50, BLOCK=16)
    return equal(result, x + 1)


@triton.jit
def empty_mask_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N) + 1000000
    x = tl.load(x_ptr + offs, mask=offs < 0, other=4.0)
    tl.store(out_ptr + offs, x, mask=offs < 0)
    tl.store(out_ptr + tl.arange(0, N), x)


@theme("addresses far outside, all lanes masked")
def _(device):
    got = launch(empty_mask_kernel, device, floats(16), out(16), N=16)
    return equal(got, np.full(16, 4.0))


@triton.jit
def other_without_mask_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, other=0.0))


@theme("other without a mask", rejects=EVERY)
def _(device):
    launch(other_without_mask_kernel, device, floats(16), out(16), N=16)


@triton.jit
def integer_mask_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs), mask=offs)


@theme("a store whose mask is no bool", rejects=EVERY)
def _(device):
    launch(integer_mask_kernel, device, floats(16), out(16), N=16)
