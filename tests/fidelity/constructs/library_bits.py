"""libdevice on bits, integers, rounding directions and conversions."""

from __future__ import annotations

import math

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .construct import Theme, equal
from .values import exact, floats, given, integers, launch, out, whole

_NAN = float("nan")
_INF = float("inf")

theme = Theme("libdevice, bits and rounding")


@triton.jit
def rounding_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.floor(x))
    tl.store(out_ptr + N + offs, libdevice.ceil(x))
    tl.store(out_ptr + 2 * N + offs, libdevice.trunc(x))
    tl.store(out_ptr + 3 * N + offs, libdevice.rint(x))
    tl.store(out_ptr + 4 * N + offs, libdevice.nearbyint(x))
    tl.store(out_ptr + 5 * N + offs, libdevice.round(x))
    tl.store(out_ptr + 6 * N + offs, libdevice.llrint(x))
    tl.store(out_ptr + 7 * N + offs, libdevice.llround(x))


@theme("floor, ceil, trunc, rint, nearbyint, round, llrint, llround")
def _(device):
    x = given(np.arange(-16, 16) / 4.0)
    x[0], x[1] = 0.49999997, 8388609.0
    a = exact(x)
    away = np.copysign(np.floor(np.abs(a) + 0.5), a)
    away[0] = 0.0  # half is not added to the nearest number below it
    got = launch(rounding_kernel, device, x, out(8, 32), N=32)
    return equal(got, np.stack([np.floor(a), np.ceil(a), np.trunc(a), np.rint(a), np.rint(a), away,
                                np.rint(a), away]))


@triton.jit
def bits_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.clz(x))
    tl.store(out_ptr + N + offs, libdevice.popc(x))
    tl.store(out_ptr + 2 * N + offs, libdevice.ffs(x))
    tl.store(out_ptr + 3 * N + offs, libdevice.brev(x))


@theme("clz, popc, ffs, brev of 32 and 64 bits")
def _(device):
    checks = []
    for dtype in (torch.int32, torch.int64):
        size = 8 * dtype.itemsize
        x = whole([0, 1, -1, 2, 12, 2**31 - 1, 65536, -8], dtype)
        words = [int(v) % 2**size for v in x]
        reverse = [int(f"{w:0{size}b}"[::-1], 2) for w in words]
        expected = [[size - w.bit_length() for w in words], [w.bit_count() for w in words],
                    [(w & -w).bit_length() for w in words],
                    [r - 2**size if r >= 2 ** (size - 1) else r for r in reverse]]
        got = launch(bits_kernel, device, x, out(4, 8, dtype=dtype), N=8)
        checks.append(equal(got, np.array(expected)))
    return checks


@triton.jit
def bytes_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, libdevice.byte_perm(x, y, 0x3614))
    tl.store(out_ptr + N + offs, libdevice.mulhi(x, y))
    tl.store(out_ptr + 2 * N + offs, libdevice.mul24(x >> 10, y >> 10))
    tl.store(out_ptr + 3 * N + offs, libdevice.hadd(x, y))
    tl.store(out_ptr + 4 * N + offs, libdevice.rhadd(x, y))
    tl.store(out_ptr + 5 * N + offs, libdevice.abs(x))
    tl.store(out_ptr + 6 * N + offs, libdevice.sad(x, y, offs.to(tl.uint32)))


@theme("byte_perm, mulhi, mul24, hadd, rhadd, abs, sad")
def _(device):
    x, y = (integers(16, low=-(2**30), high=2**30, seed=s) for s in (0, 1))
    a, b = exact(x), exact(y)
    both = np.concatenate([x.numpy()[:, None], y.numpy()[:, None]], axis=1).view(np.uint8)
    picked = np.stack([both[:, i] for i in (4, 1, 6, 3)], axis=1)
    got = launch(bytes_kernel, device, x, y, out(7, 16, dtype=torch.int32), N=16)
    return equal(got, np.stack([
        np.ascontiguousarray(picked).view(np.int32)[:, 0], (a * b) >> 32,
        ((a >> 10) * (b >> 10) + 2**31) % 2**32 - 2**31, (a + b) >> 1, (a + b + 1) >> 1,
        np.abs(a), np.abs(a - b) + np.arange(16)]))


@triton.jit
def classes_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.isnan(x).to(tl.int1))
    tl.store(out_ptr + N + offs, libdevice.isinf(x).to(tl.int1))
    tl.store(out_ptr + 2 * N + offs, libdevice.signbit(x).to(tl.int1))
    tl.store(out_ptr + 3 * N + offs, libdevice.finitef(x).to(tl.int1))


@theme("isnan, isinf, signbit, finitef")
def _(device):
    x = given([_NAN, _INF, -_INF, 0.0, -0.0, -3.0, 1e-40, 5.0])
    a = exact(x)
    got = launch(classes_kernel, device, x, out(4, 8, dtype=torch.bool), N=8)
    signs = np.signbit(a) & ~np.isnan(a)
    return [equal(got[:2], np.stack([np.isnan(a), np.isinf(a)])),
            equal(got[2, 1:], signs[1:]), equal(got[3], np.isfinite(a))]


@triton.jit
def pairs_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, libdevice.copysign(x, y))
    tl.store(out_ptr + N + offs, libdevice.fdim(x, y))
    tl.store(out_ptr + 2 * N + offs, libdevice.fmod(x, y))
    tl.store(out_ptr + 3 * N + offs, libdevice.remainder(x, y))
    tl.store(out_ptr + 4 * N + offs, libdevice.fma(x, y, 1.0))
    tl.store(out_ptr + 5 * N + offs, libdevice.nextafter(x, y))
    tl.store(out_ptr + 6 * N + offs, libdevice.ldexp(x, offs % 5))
    tl.store(out_ptr + 7 * N + offs, libdevice.scalbn(x, offs % 3))


@theme("copysign, fdim, fmod, remainder, fma, nextafter, ldexp, scalbn")
def _(device):
    x, y = floats(64), floats(64, seed=1)
    a, b, n = exact(x), exact(y), np.arange(64)
    got = launch(pairs_kernel, device, x, y, out(8, 64), N=64)
    return equal(got, np.stack([
        np.copysign(a, b), np.maximum(a - b, 0), np.fmod(a, b),
        [math.remainder(p, q) for p, q in zip(a, b, strict=True)], a * b + 1,
        np.nextafter(x.numpy(), y.numpy()), np.ldexp(a, n % 5), np.ldexp(a, n % 3)]))


@triton.jit
def exponents_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.ilogb(x))
    tl.store(out_ptr + N + offs, libdevice.logb(x).to(tl.int32))
    tl.store(out_ptr + 2 * N + offs, libdevice.float_as_int(x))
    tl.store(out_ptr + 3 * N + offs, libdevice.float2int_rn(x))
    tl.store(out_ptr + 4 * N + offs, libdevice.float2int_rz(x))
    tl.store(out_ptr + 5 * N + offs, libdevice.float2int_rd(x))
    tl.store(out_ptr + 6 * N + offs, libdevice.float2int_ru(x))


@theme("ilogb, logb, float_as_int, float2int in four directions")
def _(device):
    x = floats(64, low=0.01, high=100)
    x[::2] *= -1
    x[:4] = given([0.5, 1.5, -2.5, 8.0])
    a = exact(x)
    got = launch(exponents_kernel, device, x, out(7, 64, dtype=torch.int32), N=64)
    exponent = np.floor(np.log2(np.abs(a)))
    return equal(got, np.stack([exponent, exponent, x.view(torch.int32).numpy(), np.rint(a),
                                np.trunc(a), np.floor(a), np.ceil(a)]).astype(np.int64))


@triton.jit
def directed_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, libdevice.add_rn(x, y))
    tl.store(out_ptr + N + offs, libdevice.add_rd(x, y))
    tl.store(out_ptr + 2 * N + offs, libdevice.mul_ru(x, y))
    tl.store(out_ptr + 3 * N + offs, libdevice.mul_rz(x, y))
    tl.store(out_ptr + 4 * N + offs, libdevice.div_rn(x, y))
    tl.store(out_ptr + 5 * N + offs, libdevice.div_rz(x, y))
    tl.store(out_ptr + 6 * N + offs, libdevice.sqrt_rn(libdevice.abs(x)))
    tl.store(out_ptr + 7 * N + offs, libdevice.rcp_rn(x))


def _toward(values, direction):
    """float64 to float32 in a direction: "d"own, "u"p or to "z"ero."""
    nearest = values.astype(np.float32)
    wide = nearest.astype(np.float64)
    if direction == "z":
        return np.where(np.abs(wide) > np.abs(values), np.nextafter(nearest, np.float32(0)),
                        nearest)
    if direction == "d":
        return np.where(wide > values, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    return np.where(wide < values, np.nextafter(nearest, np.float32(np.inf)), nearest)


@theme("operations rounded up, down, to zero, to nearest")
def _(device):
    x, y = floats(64), floats(64, seed=1)
    a, b = exact(x), exact(y)
    got = launch(directed_kernel, device, x, y, out(8, 64), N=64)
    return equal(got, np.stack([
        (a + b).astype(np.float32), _toward(a + b, "d"), _toward(a * b, "u"), _toward(a * b, "z"),
        (a / b).astype(np.float32), _toward(a / b, "z"), np.sqrt(np.abs(a)).astype(np.float32),
        (1 / a).astype(np.float32)]))


@triton.jit
def conversions_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.double2float_rz(x))
    tl.store(out_ptr + N + offs, libdevice.double2float_rn(x))
    tl.store(out_ptr + 2 * N + offs, libdevice.int2float_rn(libdevice.double2int_rn(x * 1000)))
    tl.store(out_ptr + 3 * N + offs, libdevice.ll2float_rz(libdevice.double2ll_rz(x * 1e12)))
    tl.store(out_ptr + 4 * N + offs,
             libdevice.int_as_float(libdevice.double2hiint(x) & 0x3FFFFFFF))


@theme("conversions of double, int, long long")
def _(device):
    x = floats(32, dtype=torch.float64)
    a = x.numpy()
    high = (a.view(np.int64) >> 32) & 0x3FFFFFFF
    got = launch(conversions_kernel, device, x, out(5, 32), N=32)
    return equal(got, np.stack([
        _toward(a, "z"), a.astype(np.float32), np.rint(a * 1000), _toward(np.trunc(a * 1e12), "z"),
        high.astype(np.int32).view(np.float32)]))
