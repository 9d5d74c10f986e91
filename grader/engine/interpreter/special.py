"""Functions of libdevice that NumPy lacks: of single bits, and the special functions."""

from __future__ import annotations

import math

import numpy as np
import torch

from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.numerics import upper_product


def unsigned(x: Array) -> Array:
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


def leading_zeros(x: Array) -> Array:
    bits, zeros = unsigned(x).astype(np.uint64), np.zeros(x.shape, np.int32)
    width = 8 * x.dtype.itemsize
    for step in (32, 16, 8, 4, 2, 1):
        if step < width:
            high = bits >> np.uint64(width - step) == 0
            zeros += np.where(high, step, 0).astype(np.int32)
            bits = np.where(high, bits << np.uint64(step), bits)
            if width < 64:
                bits = bits & np.uint64((1 << width) - 1)
    return np.where(unsigned(x) == 0, width, zeros)


def first_set(x: Array) -> Array:
    """The place of the lowest bit that is set, counted from 1; 0 where there is none."""
    bits = unsigned(x)
    lowest = bits & (~bits + bits.dtype.type(1))
    return np.where(bits == 0, 0, 8 * x.dtype.itemsize - leading_zeros(lowest.view(x.dtype)))


def reversed_bits(x: Array) -> Array:
    bits = np.unpackbits(unsigned(x)[..., None].view(np.uint8), axis=-1, bitorder="little")
    packed = np.packbits(bits[..., ::-1], axis=-1, bitorder="little")
    return np.ascontiguousarray(packed).view(x.dtype)[..., 0]


def permuted_bytes(x: Array, y: Array, selector: Array) -> Array:
    both = unsigned(x).astype(np.uint64) | (unsigned(y).astype(np.uint64) << np.uint64(32))
    chosen = np.zeros(both.shape, np.uint64)
    for place in range(4):
        which = (unsigned(selector).astype(np.uint64) >> np.uint64(4 * place)) & np.uint64(7)
        chosen |= (both >> which * np.uint64(8) & np.uint64(255)) << np.uint64(8 * place)
    return chosen.astype(np.uint32).view(x.dtype)


def signed_upper_product(x: Array, y: Array) -> Array:
    """The upper half of a product of signed integers, from that of their bits."""
    high = upper_product(x, y)
    return high - np.where(x < 0, y, 0) - np.where(y < 0, x, 0)


def low_24_bits(x: Array) -> Array:
    return x << 8 >> 8


def exponent(x: Array) -> Array:
    return np.frexp(x)[1] - 1.0


def integer_exponent(x: Array) -> Array:
    least = np.iinfo(np.int32).min
    usual = np.where(np.isfinite(x) & (x != 0), np.frexp(np.where(np.isfinite(x), x, 1))[1] - 1, 0)
    return np.where(np.isinf(x), np.iinfo(np.int32).max,
                    np.where((x == 0) | np.isnan(x), least, usual))


def gamma(x: Array) -> Array:
    size = np.exp(torch.lgamma(torch.from_numpy(np.array(x))).numpy())
    negative = (x < 0) & (np.floor(x) % 2 != 0)
    pole = np.where(x == 0, np.copysign(np.inf, x), np.nan)
    return np.where((x <= 0) & (x == np.floor(x)), pole, np.where(negative, -size, size))


def bessel(order: Array, x: Array, kind: str) -> Array:
    """Orders above 1: upward by the recurrence for Y, downward by Miller's algorithm for J."""
    results = np.frompyfunc(lambda n, value: _bessel_one(int(n), float(value), kind), 2, 1)
    return np.asarray(results(order, x)).astype(np.float64)


def _bessel_one(n: int, x: float, kind: str) -> float:
    value = torch.tensor(abs(x), dtype=torch.float64)
    if kind == "y":
        if x < 0 or n < 0:
            return math.nan
        low = float(torch.special.bessel_y0(value))
        high = float(torch.special.bessel_y1(value))
        for k in range(1, n):
            low, high = high, 2 * k / x * high - low
        return low if n == 0 else high
    if n < 0:
        return math.nan
    if x == 0:
        return float(n == 0)
    start = 2 * ((max(n, int(abs(x))) + 40) // 2)
    above, here, wanted, total = 0.0, 1e-300, 0.0, 0.0
    for k in range(start, 0, -1):
        above, here = here, 2 * k / abs(x) * here - above
        if abs(here) > 1e200:
            above, here, wanted, total = (v * 1e-200 for v in (above, here, wanted, total))
        if k - 1 == n:
            wanted = here
        if (k - 1) % 2 == 0:
            total += here * (1 if k == 1 else 2)
    return (wanted / total) * (-1 if x < 0 and n % 2 else 1)
