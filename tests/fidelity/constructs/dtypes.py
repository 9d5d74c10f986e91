"""Element types: casts in every direction with their rounding, bit casts, types as values."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal
from .values import bits, exact, floats, given, integers, launch, out, whole, wrapped

theme = Theme("types and casts")

_E4M3_MAX, _E5M2_MAX = 448.0, 57344.0


@triton.jit
def cast_kernel(x_ptr, out_ptr, TO: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    y = tl.load(x_ptr + offs).to(TO)
    tl.static_assert(y.dtype == TO)
    tl.store(out_ptr + offs, y)


_TRITON = {
    torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32,
    torch.float64: tl.float64, torch.float8_e4m3fn: tl.float8e4nv, torch.float8_e5m2: tl.float8e5,
    torch.int8: tl.int8, torch.int16: tl.int16, torch.int32: tl.int32, torch.int64: tl.int64,
    torch.uint8: tl.uint8, torch.uint16: tl.uint16, torch.uint32: tl.uint32,
    torch.uint64: tl.uint64, torch.bool: tl.int1,
}


def _cast(device, x, to):
    return launch(cast_kernel, device, x, out(len(x), dtype=to), TO=_TRITON[to], N=len(x))


def _ties(dtype):
    """Values around and exactly between neighbours of a narrower type, and its extremes."""
    info = torch.finfo(dtype)
    steps = 1 + np.arange(-20, 21) * info.eps / 4
    near_ties = np.concatenate([2.0**power * steps for power in (-3, 0, 5)])
    small = info.smallest_normal * np.array([1, 0.75, 0.5, 0.3, 1e-3]) + 0
    values = np.concatenate([near_ties, -near_ties, small, floats(1024 - 251 - 5).numpy() * 10])
    return given(np.resize(values, 1024))


@theme("fp32 to fp16: nearest even, subnormals, overflow to infinity")
def _(device):
    x = _ties(torch.float16)
    x[:6] = given([65519.0, 65520.0, 1e6, -1e6, float("inf"), float("nan")])
    return equal(_cast(device, x, torch.float16), x)


@theme("fp32 to bf16: nearest even")
def _(device):
    x = _ties(torch.bfloat16)
    x[:4] = given([3.4e38, -3.4e38, float("inf"), float("nan")])
    return equal(_cast(device, x, torch.bfloat16), x)


@theme("fp64 to fp32, fp16 and bf16")
def _(device):
    x = floats(256, low=-1000, high=1000, dtype=torch.float64)
    return [equal(_cast(device, x, to), x) for to in (torch.float32, torch.float16, torch.bfloat16)]


@theme("every fp16 to fp32, fp64 and bf16")
def _(device):
    x = bits(torch.int16, torch.float16)
    return [equal(_cast(device, x, to), x) for to in (torch.float32, torch.float64, torch.bfloat16)]


@theme("every bf16 to fp32, fp64 and fp16")
def _(device):
    x = bits(torch.int16, torch.bfloat16)
    return [equal(_cast(device, x, to), x) for to in (torch.float32, torch.float64, torch.float16)]


@theme("every fp8 to fp32, fp16 and bf16")
def _(device):
    return [equal(_cast(device, x, to), x)
            for x in (bits(torch.int8, torch.float8_e4m3fn), bits(torch.int8, torch.float8_e5m2))
            for to in (torch.float32, torch.float16, torch.bfloat16)]


@theme("fp32, fp16 and bf16 to fp8: nearest even")
def _(device):
    checks = []
    for to in (torch.float8_e4m3fn, torch.float8_e5m2):
        ties = _ties(to)
        checks += [equal(_cast(device, ties.to(dtype), to), ties.to(dtype).float())
                   for dtype in (torch.float32, torch.float16, torch.bfloat16)]
    return checks


@theme("fp8 e4m3 saturates on overflow")
def _(device):
    x = given([447.0, 448.0, 460.0, 480.0, 1e4, -1e4, 464.0, float("-inf")])
    return equal(_cast(device, x, torch.float8_e4m3fn), x.clamp(-_E4M3_MAX, _E4M3_MAX))


@theme("fp8 e5m2 saturates on overflow")
def _(device):
    x = given([57344.0, 60000.0, 61440.0, 1e9, -1e9, float("inf"), -65000.0, 3e4])
    return equal(_cast(device, x, torch.float8_e5m2), x.clamp(-_E5M2_MAX, _E5M2_MAX))


@triton.jit
def toward_zero_kernel(x_ptr, half_ptr, brain_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(half_ptr + offs, x.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(brain_ptr + offs, tl.cast(x, tl.bfloat16, fp_downcast_rounding="rtz"))


@theme("fp32 to fp16 and bf16 rounded toward zero")
def _(device):
    x = floats(256, low=-100, high=100)
    half, brain = launch(toward_zero_kernel, device, x, out(256, dtype=torch.float16),
                         out(256, dtype=torch.bfloat16), N=256)
    return [equal(half, _cut(x, torch.float16)), equal(brain, _cut(x, torch.bfloat16))]


def _cut(x, dtype):
    """The neighbour of a narrower type on the side of zero."""
    nearest = x.to(dtype)
    beyond = nearest.double().abs() > x.double().abs()
    step = torch.finfo(dtype).eps * 2.0 ** torch.floor(torch.log2(nearest.double().abs()))
    lower = torch.sign(x.double()) * (nearest.double().abs() - step)
    at_power = torch.log2(nearest.double().abs()) % 1 == 0  # the step below is half as wide
    lower = torch.where(at_power, torch.sign(x.double()) * (nearest.double().abs() - step / 2),
                        lower)
    return torch.where(beyond, lower, nearest.double())


@triton.jit
def bad_rounding_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x.to(tl.float64, fp_downcast_rounding="rtz"))


@theme("a rounding mode for a widening cast", rejects=EVERY)
def _(device):
    launch(bad_rounding_kernel, device, floats(16), out(16, dtype=torch.float64), N=16)


@theme("int32 and int64 to floats: nearest even")
def _(device):
    x = integers(256, low=-(2**31), high=2**31 - 1)
    wide = integers(256, low=-(2**62), high=2**62, dtype=torch.int64)
    small = integers(256, low=-(2**15), high=2**15)
    return [equal(_cast(device, x, torch.float32), exact(x)),
            equal(_cast(device, x, torch.float64), exact(x)),
            equal(_cast(device, wide, torch.float32), wide),
            equal(_cast(device, wide, torch.float64), wide),
            equal(_cast(device, small, torch.float16), exact(small)),
            equal(_cast(device, small, torch.bfloat16), exact(small))]


@theme("unsigned integers and bools to floats")
def _(device):
    x = whole([0, 1, 2**31, 2**32 - 1, 2**31 + 129, 77, 2**24 + 1, 2**30], torch.uint32)
    wide = whole([0, 2**63, 2**64 - 1, 5, 2**40 + 1, 2**53 + 1, 1, 9], torch.uint64)
    flags = integers(8, low=0, high=1).to(torch.bool)
    return [equal(_cast(device, x, torch.float32), exact(x)),
            equal(_cast(device, wide, torch.float64), exact(wide).astype(np.float64)),
            equal(_cast(device, flags, torch.float32), exact(flags)),
            equal(_cast(device, flags, torch.int8), exact(flags))]


@theme("floats to integers truncate")
def _(device):
    x = floats(256, low=-100, high=100)
    checks = []
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        narrow = x.to(dtype)
        checks += [equal(_cast(device, narrow, to), np.trunc(exact(narrow)).astype(np.int64))
                   for to in (torch.int8, torch.int16, torch.int32, torch.int64)]
    positive = floats(256, low=0, high=200)
    checks += [equal(_cast(device, positive, to), np.trunc(exact(positive)).astype(np.int64))
               for to in (torch.uint8, torch.uint16, torch.uint32, torch.uint64)]
    return checks


@theme("fp32 to int32 saturates, and NaN gives 0")
def _(device):
    x = given([1e20, -1e20, float("inf"), float("-inf"), float("nan"), 2.0**31, -(2.0**31), 3.9])
    top, low = 2**31 - 1, -(2**31)
    return equal(_cast(device, x, torch.int32), [top, low, top, low, 0, top, low, 3])


@theme("fp32 to uint32 saturates")
def _(device):
    x = given([1e20, -5.0, float("inf"), float("-inf"), 2.0**32, 2.0**31, -0.5, 3.9])
    top = 2**32 - 1
    return equal(_cast(device, x, torch.uint32), [top, 0, top, 0, top, 2**31, 0, 3])


@theme("fp32 and fp64 to int64 saturate")
def _(device):
    x = given([1e30, -1e30, float("inf"), float("-inf"), 2.0**63, -(2.0**63), 2.0**40, -3.9])
    top, low = 2**63 - 1, -(2**63)
    expected = [top, low, top, low, top, low, 2**40, -3]
    return [equal(_cast(device, x.to(dtype), torch.int64), expected)
            for dtype in (torch.float32, torch.float64)]


@theme("wide integers to narrow ones drop the upper bits")
def _(device):
    x = integers(256, low=-(2**62), high=2**62, dtype=torch.int64)
    return [equal(_cast(device, x, to), wrapped(exact(x), to))
            for to in (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32,
                       torch.uint32, torch.uint64)]


@theme("narrow integers to wide ones extend the sign or zeros")
def _(device):
    signed, unsigned = bits(torch.int8, torch.int8), bits(torch.int8, torch.uint8)
    return [equal(_cast(device, x, to), wrapped(exact(x), to))
            for x in (signed, unsigned)
            for to in (torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
                       torch.uint64)]


@theme("numbers to bool: not zero")
def _(device):
    x = given([0.0, -0.0, 0.5, float("nan"), 1e-45, -3.0, float("inf"), 1.0])
    i = whole([0, 1, 2, 256, -1, 65536, -(2**31), 0])
    return [equal(_cast(device, x, torch.bool), exact(x) != 0),
            equal(_cast(device, i, torch.bool), exact(i) != 0)]


@triton.jit
def bitcast_kernel(x_ptr, out_ptr, TO: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs).to(TO, bitcast=True))


@theme("bit casts between floats and integers")
def _(device):
    pairs = ((torch.float32, torch.int32), (torch.float16, torch.int16),
             (torch.bfloat16, torch.int16), (torch.float64, torch.int64),
             (torch.float8_e4m3fn, torch.int8), (torch.float32, torch.uint32))
    checks = []
    for one, other in pairs:
        x = floats(64).to(one)
        checks.append(equal(
            launch(bitcast_kernel, device, x, out(64, dtype=other), TO=_TRITON[other], N=64),
            x.view(other)))
        y = x.view(other)
        checks.append(equal(
            launch(bitcast_kernel, device, y, out(64, dtype=one), TO=_TRITON[one], N=64), x))
    return checks


@theme("int32 and uint32 share their bits")
def _(device):
    x = whole([-1, 5, -(2**31), 2**31 - 1])
    got = launch(bitcast_kernel, device, x, out(4, dtype=torch.uint32), TO=tl.uint32, N=4)
    return equal(got, exact(x) % 2**32)


@theme("a bit cast to another width", rejects=EVERY)
def _(device):
    launch(bitcast_kernel, device, floats(16), out(16, dtype=torch.int16), TO=tl.int16, N=16)


@triton.jit
def bits_trick_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    i = tl.load(x_ptr + offs).to(tl.int32, bitcast=True)
    exponent = ((i >> 23) & 0xFF) - 127
    sign = (i >> 31) & 1
    tl.store(out_ptr + offs, exponent)
    tl.store(out_ptr + N + offs, sign)


@theme("exponent and sign by bit operations")
def _(device):
    x = floats(64)
    got = launch(bits_trick_kernel, device, x, out(2, 64, dtype=torch.int32), N=64)
    return equal(got, np.stack([np.floor(np.log2(np.abs(exact(x)))), exact(x) < 0]).astype(int))


@triton.jit
def brain_kernel(x_ptr, y_ptr, out_ptr, flag_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, -x)
    tl.store(out_ptr + N + offs, tl.where(x > y, x, y))
    tl.store(out_ptr + 2 * N + offs, tl.abs(x))
    tl.store(out_ptr + 3 * N + offs, tl.maximum(x, y))
    tl.store(out_ptr + 4 * N + offs, tl.minimum(x, 0.5))
    tl.store(flag_ptr + offs, x < y)
    tl.store(flag_ptr + N + offs, x == x)


@theme("bf16: compare, negate, where, abs, maximum")
def _(device):
    x, y = (floats(64, seed=s, dtype=torch.bfloat16) for s in (0, 1))
    a, b = exact(x), exact(y)
    got, flags = launch(brain_kernel, device, x, y, out(5, 64, dtype=torch.bfloat16),
                        out(2, 64, dtype=torch.bool), N=64)
    larger = np.maximum(a, b)
    return [equal(got, np.stack([-a, larger, np.abs(a), larger, np.minimum(a, 0.5)])),
            equal(flags, np.stack([a < b, a == a]))]


@triton.jit
def mixed_precision_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs).to(tl.float32)
    y = x * 1.5 + 0.25
    tl.store(out_ptr + offs, y.to(out_ptr.dtype.element_ty))


@theme("fp16 and bf16 in, float32 inside, fp16 and bf16 out")
def _(device):
    checks = []
    for dtype in (torch.float16, torch.bfloat16):
        x = floats(64, dtype=dtype)
        got = launch(mixed_precision_kernel, device, x, out(64, dtype=dtype), N=64)
        checks.append(equal(got, torch.from_numpy(exact(x) * 1.5 + 0.25).float()))
    return checks


@triton.jit
def fp8_scale_kernel(x_ptr, scale_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    scale = tl.max(tl.abs(x), axis=0) / 448.0
    tl.store(scale_ptr, scale)
    tl.store(out_ptr + offs, (x / scale).to(tl.float8e4nv))


@theme("quantising to fp8 with a scale")
def _(device):
    x = given([7.0, -3.5, 1.75, 0.875, -7.0, 0.0, 0.4375, 5.25])
    scale, got = launch(fp8_scale_kernel, device, x, out(), out(8, dtype=torch.float8_e4m3fn), N=8)
    return [equal(scale, 7.0 / 448), equal(got, exact(x) * 64)]


@triton.jit
def dtype_query_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    code = 0
    if x.dtype == tl.float16:
        code = 1
    elif x.dtype.is_fp32():
        code = 2
    elif x.dtype.is_int():
        code = 3
    width: tl.constexpr = x.dtype.primitive_bitwidth
    tl.store(out_ptr, code)
    tl.store(out_ptr + 1, width)
    tl.store(out_ptr + 2, x.type.scalar.primitive_bitwidth)
    tl.store(out_ptr + 3, x.numel + x.shape[0])
    if x_ptr.dtype.element_ty == x.dtype:
        tl.store(out_ptr + 4, 1)
    else:
        tl.store(out_ptr + 4, 0)


@theme("questions about a tensor's type and shape")
def _(device):
    cases = ((torch.float16, 1, 16), (torch.float32, 2, 32), (torch.int8, 3, 8))
    return [equal(launch(dtype_query_kernel, device, integers(16, dtype=dtype),
                         out(5, dtype=torch.int32), N=16), [code, width, width, 32, 1])
            for dtype, code, width in cases]


@triton.jit
def literal_kernel(out_ptr, double_ptr):
    big = 3_000_000_000
    huge = 1 << 40
    negative = -3_000_000_000
    tl.store(out_ptr, big)
    tl.store(out_ptr + 1, huge)
    tl.store(out_ptr + 2, negative)
    tl.store(out_ptr + 3, 2147483647)
    tl.store(double_ptr, 1e300)
    tl.store(double_ptr + 1, 0.1)


@theme("literals: 64 bits when they need it, 0.1 is float32")
def _(device):
    whole_, double = launch(literal_kernel, device, out(4, dtype=torch.int64),
                            out(2, dtype=torch.float64))
    return [equal(whole_, [3_000_000_000, 1 << 40, -3_000_000_000, 2147483647]),
            equal(double, [1e300, float(np.float32(0.1))])]


@triton.jit
def precision_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x * 0.1)
    tl.store(out_ptr + N + offs, x + 1e-9)


@theme("a Python float beside float64 keeps all its digits")
def _(device):
    x = floats(32, dtype=torch.float64)
    got = launch(precision_kernel, device, x, out(2, 32, dtype=torch.float64), N=32)
    return equal(got, np.stack([x.numpy() * 0.1, x.numpy() + 1e-9]))


@triton.jit
def unsupported_type_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs).to(tl.float8e4b8).to(tl.float32))


@theme("an AMD float8 type on an NVIDIA GPU", rejects=EVERY)
def _(device):
    launch(unsupported_type_kernel, device, floats(16), out(16), N=16)


@triton.jit
def custom_fp8_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs).to(tl.float8e4b15, bitcast=True)
    tl.store(out_ptr + offs, x.to(tl.float16))


@theme("every fp8 e4b15 to fp16")
def _(device):
    patterns = np.arange(256)
    sign, exponent, mantissa = patterns >> 7, (patterns >> 3) & 15, patterns & 7
    normal = (1 + mantissa / 8) * 2.0 ** (exponent - 15.0)
    value = np.where(exponent == 0, mantissa * 2.0**-17, normal)
    expected = np.where(sign == 1, -value, value)
    got = launch(custom_fp8_kernel, device, bits(torch.int8, torch.int8),
                 out(256, dtype=torch.float16), N=256)
    return equal(got, expected)


@triton.jit
def fp8_sum_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x + x)


@theme("arithmetic directly on fp8", rejects=EVERY)
def _(device):
    launch(fp8_sum_kernel, device, floats(16, dtype=torch.float8_e4m3fn), out(16), N=16)
