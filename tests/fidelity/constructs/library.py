"""libdevice, CUDA's library of mathematical functions, by every name and type."""

from __future__ import annotations

import math

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.extra.libdevice import tanh as imported_tanh

from .construct import EVERY, Theme, near
from .values import exact, floats, integers, launch, out

theme = Theme("libdevice")


@triton.jit
def names_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.tanh(x))
    tl.store(out_ptr + N + offs, cuda_libdevice.tanh(x))
    tl.store(out_ptr + 2 * N + offs, imported_tanh(x))
    tl.store(out_ptr + 3 * N + offs, tl.extra.libdevice.tanh(x))


@theme("tanh by four names")
def _(device):
    x = floats(64)
    got = launch(names_kernel, device, x, out(4, 64), N=64)
    return near(got, np.stack([np.tanh(exact(x))] * 4), ulps=4)


@triton.jit
def angles_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.sin(x))
    tl.store(out_ptr + N + offs, libdevice.cos(x))
    tl.store(out_ptr + 2 * N + offs, libdevice.tan(x))
    tl.store(out_ptr + 3 * N + offs, libdevice.asin(x))
    tl.store(out_ptr + 4 * N + offs, libdevice.acos(x))
    tl.store(out_ptr + 5 * N + offs, libdevice.atan(x))
    tl.store(out_ptr + 6 * N + offs, libdevice.sinpi(x))
    tl.store(out_ptr + 7 * N + offs, libdevice.cospi(x))


def _angles(x):
    return np.stack([np.sin(x), np.cos(x), np.tan(x), np.arcsin(x), np.arccos(x), np.arctan(x),
                     np.sin(np.pi * x), np.cos(np.pi * x)])


@theme("sin, cos, tan, asin, acos, atan, sinpi, cospi")
def _(device):
    x = floats(64, low=-1, high=1)
    got = launch(angles_kernel, device, x, out(8, 64), N=64)
    return near(got, _angles(exact(x)), ulps=8, absolute=3e-7)


@theme("sin, cos, tan, asin, acos, atan of float64")
def _(device):
    x = floats(64, low=-1, high=1, dtype=torch.float64)
    got = launch(angles_kernel, device, x, out(8, 64, dtype=torch.float64), N=64)
    return near(got, _angles(exact(x)), ulps=8, absolute=1e-15)


@triton.jit
def hyperbolic_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.sinh(x))
    tl.store(out_ptr + N + offs, libdevice.cosh(x))
    tl.store(out_ptr + 2 * N + offs, libdevice.asinh(x))
    tl.store(out_ptr + 3 * N + offs, libdevice.acosh(x + 5))
    tl.store(out_ptr + 4 * N + offs, libdevice.atanh(x / 5))


@theme("sinh, cosh, asinh, acosh, atanh")
def _(device):
    x = floats(64)
    a = exact(x)
    got = launch(hyperbolic_kernel, device, x, out(5, 64), N=64)
    return near(got, np.stack([np.sinh(a), np.cosh(a), np.arcsinh(a), np.arccosh(a + 5),
                               np.arctanh(a / 5)]), ulps=16, absolute=1e-6)


@triton.jit
def exponential_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.exp(x))
    tl.store(out_ptr + N + offs, libdevice.exp2(x))
    tl.store(out_ptr + 2 * N + offs, libdevice.exp10(x))
    tl.store(out_ptr + 3 * N + offs, libdevice.expm1(x))
    y = x * x + 0.5
    tl.store(out_ptr + 4 * N + offs, libdevice.log(y))
    tl.store(out_ptr + 5 * N + offs, libdevice.log2(y))
    tl.store(out_ptr + 6 * N + offs, libdevice.log10(y))
    tl.store(out_ptr + 7 * N + offs, libdevice.log1p(y))


@theme("exp, exp2, exp10, expm1, log, log2, log10, log1p")
def _(device):
    checks = []
    for dtype, slack in ((torch.float32, 1e-6), (torch.float64, 1e-14)):
        x = floats(64, dtype=dtype)
        a = exact(x)
        b = a * a + 0.5
        got = launch(exponential_kernel, device, x, out(8, 64, dtype=dtype), N=64)
        checks.append(near(got, np.stack([
            np.exp(a), np.exp2(a), 10.0**a, np.expm1(a), np.log(b), np.log2(b), np.log10(b),
            np.log1p(b)]), ulps=8, absolute=slack))
    return checks


@triton.jit
def power_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, libdevice.pow(x, y))
    tl.store(out_ptr + N + offs, libdevice.pow(x, 2.5))
    tl.store(out_ptr + 2 * N + offs, libdevice.pow(x, offs % 4))
    tl.store(out_ptr + 3 * N + offs, libdevice.sqrt(x))
    tl.store(out_ptr + 4 * N + offs, libdevice.rsqrt(x))
    tl.store(out_ptr + 5 * N + offs, libdevice.cbrt(x))
    tl.store(out_ptr + 6 * N + offs, libdevice.rcbrt(x))
    tl.store(out_ptr + 7 * N + offs, libdevice.hypot(x, y))
    tl.store(out_ptr + 8 * N + offs, libdevice.rhypot(x, y))


@theme("pow of floats and of integers, roots, hypot")
def _(device):
    x, y = floats(64, low=0.1, high=9), floats(64, seed=1)
    a, b = exact(x), exact(y)
    got = launch(power_kernel, device, x, y, out(9, 64), N=64)
    return near(got, np.stack([
        a**b, a**2.5, a ** (np.arange(64) % 4), np.sqrt(a), a**-0.5, np.cbrt(a), 1 / np.cbrt(a),
        np.hypot(a, b), 1 / np.hypot(a, b)]), ulps=16)


@triton.jit
def error_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.erf(x))
    tl.store(out_ptr + N + offs, libdevice.erfc(x))
    tl.store(out_ptr + 2 * N + offs, libdevice.erfinv(x / 5))
    tl.store(out_ptr + 3 * N + offs, libdevice.erfcinv(1 + x / 5))
    tl.store(out_ptr + 4 * N + offs, libdevice.erfcx(x / 2))
    tl.store(out_ptr + 5 * N + offs, libdevice.normcdf(x))
    tl.store(out_ptr + 6 * N + offs, libdevice.normcdfinv(0.5 + x / 10))


@theme("erf, erfc, erfinv, erfcinv, erfcx, normcdf, normcdfinv")
def _(device):
    x = floats(64)
    a = x.double()
    special = torch.special
    got = launch(error_kernel, device, x, out(7, 64), N=64)
    return near(got, torch.stack([
        special.erf(a), special.erfc(a), special.erfinv(a / 5), special.erfinv(-a / 5),
        special.erfcx(a / 2), special.ndtr(a), special.ndtri(0.5 + a / 10)]), ulps=16,
        absolute=1e-6)


@triton.jit
def bessel_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.j0(x))
    tl.store(out_ptr + N + offs, libdevice.j1(x))
    tl.store(out_ptr + 2 * N + offs, libdevice.y0(x))
    tl.store(out_ptr + 3 * N + offs, libdevice.y1(x))
    tl.store(out_ptr + 4 * N + offs, libdevice.cyl_bessel_i0(x))
    tl.store(out_ptr + 5 * N + offs, libdevice.cyl_bessel_i1(x))


@theme("Bessel functions of order 0 and 1")
def _(device):
    x = floats(64, low=0.5, high=6)
    a = x.double()
    special = torch.special
    got = launch(bessel_kernel, device, x, out(6, 64), N=64)
    return near(got, torch.stack([
        special.bessel_j0(a), special.bessel_j1(a), special.bessel_y0(a), special.bessel_y1(a),
        special.i0(a), special.i1(a)]), ulps=16, absolute=2e-6)


@triton.jit
def bessel_order_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    order = offs % 4
    tl.store(out_ptr + offs, libdevice.jn(order, x))
    tl.store(out_ptr + N + offs, libdevice.yn(order, x))


@theme("Bessel functions of any order")
def _(device):
    x = floats(16, low=1, high=6)
    a = x.double()
    first = [torch.special.bessel_j0(a), torch.special.bessel_j1(a)]
    second = [torch.special.bessel_y0(a), torch.special.bessel_y1(a)]
    for row in (first, second):
        for order in (1, 2):
            row.append(2 * order / a * row[order] - row[order - 1])
    place, lane = torch.arange(16) % 4, torch.arange(16)
    got = launch(bessel_order_kernel, device, x, out(2, 16), N=16)
    return near(got, torch.stack([torch.stack(first)[place, lane],
                                  torch.stack(second)[place, lane]]), ulps=16, absolute=1e-5)


@triton.jit
def gamma_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.lgamma(x))
    tl.store(out_ptr + N + offs, libdevice.tgamma(x))


@theme("lgamma and tgamma")
def _(device):
    x = floats(64, low=0.1, high=9)
    got = launch(gamma_kernel, device, x, out(2, 64), N=64)
    a = exact(x)
    return near(got, [[math.lgamma(v) for v in a], [math.gamma(v) for v in a]], ulps=16,
                absolute=1e-6)


@triton.jit
def fast_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.fast_sinf(x))
    tl.store(out_ptr + N + offs, libdevice.fast_cosf(x))
    tl.store(out_ptr + 2 * N + offs, libdevice.fast_expf(x))
    tl.store(out_ptr + 3 * N + offs, libdevice.fast_exp10f(x))
    tl.store(out_ptr + 4 * N + offs, libdevice.fast_logf(x + 5))
    tl.store(out_ptr + 5 * N + offs, libdevice.fast_log2f(x + 5))
    tl.store(out_ptr + 6 * N + offs, libdevice.fast_log10f(x + 5))
    tl.store(out_ptr + 7 * N + offs, libdevice.fast_powf(x + 5, 1.5))
    tl.store(out_ptr + 8 * N + offs, libdevice.fast_dividef(x, x * x + 1))
    tl.store(out_ptr + 9 * N + offs, libdevice.saturatef(x))


@theme("the fast approximations")
def _(device):
    x = floats(64, low=-3, high=3)
    a = exact(x)
    got = launch(fast_kernel, device, x, out(10, 64), N=64)
    return near(got, np.stack([
        np.sin(a), np.cos(a), np.exp(a), 10.0**a, np.log(a + 5), np.log2(a + 5), np.log10(a + 5),
        (a + 5) ** 1.5, a / (a * a + 1), np.clip(a, 0, 1)]), ulps=64, absolute=3e-6)


@triton.jit
def norms_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, libdevice.atan2(x, y))
    tl.store(out_ptr + N + offs, libdevice.norm3d(x, y, x))
    tl.store(out_ptr + 2 * N + offs, libdevice.rnorm3d(x, y, x))
    tl.store(out_ptr + 3 * N + offs, libdevice.norm4d(x, y, x, y))
    tl.store(out_ptr + 4 * N + offs, libdevice.rnorm4d(x, y, x, y))


@theme("atan2, norm3d, norm4d and their reciprocals")
def _(device):
    x, y = floats(64), floats(64, seed=1)
    a, b = exact(x), exact(y)
    three, four = np.sqrt(2 * a * a + b * b), np.sqrt(2 * a * a + 2 * b * b)
    got = launch(norms_kernel, device, x, y, out(5, 64), N=64)
    return near(got, np.stack([np.arctan2(a, b), three, 1 / three, four, 1 / four]), ulps=8)


@triton.jit
def scalar_kernel(out_ptr, x):
    tl.store(out_ptr, libdevice.tanh(x))
    tl.store(out_ptr + 1, libdevice.pow(x, 3.0))


@theme("functions of a scalar")
def _(device):
    got = launch(scalar_kernel, device, out(2), x=0.75)
    return near(got, [math.tanh(0.75), 0.75**3])


@triton.jit
def broadcast_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + m)[:, None]
    y = tl.load(x_ptr + n)[None, :]
    tl.store(out_ptr + m[:, None] * N + n[None, :], libdevice.hypot(x, y))


@theme("arguments of a function broadcast")
def _(device):
    x = floats(16)
    a = exact(x)
    got = launch(broadcast_kernel, device, x, out(8, 16), M=8, N=16)
    return near(got, np.hypot(a[:8, None], a[None, :]))


@theme("tanh of fp16, which libdevice has not", rejects=EVERY)
def _(device):
    launch(names_kernel, device, floats(16, dtype=torch.float16), out(4, 16), N=16)


@theme("tanh of int32", rejects=EVERY)
def _(device):
    launch(names_kernel, device, integers(16), out(4, 16), N=16)


@triton.jit
def missing_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, libdevice.there_is_none(tl.load(x_ptr + offs)))


@theme("a function that libdevice has not", rejects=EVERY)
def _(device):
    launch(missing_kernel, device, floats(16), out(16), N=16)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    inner = 0.7978845608 * (x + 0.044715 * x * x * x)
    tl.store(out_ptr + offs, 0.5 * x * (1 + libdevice.tanh(inner)))


@theme("GELU by tanh")
def _(device):
    x = floats(64)
    a = exact(x)
    got = launch(gelu_kernel, device, x, out(64), N=64)
    return near(got, 0.5 * a * (1 + np.tanh(0.7978845608 * (a + 0.044715 * a**3))), ulps=4,
                absolute=1e-6)
