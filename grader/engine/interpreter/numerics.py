"""NumPy dtypes for Triton's, bfloat16 and float8 included, and arithmetic that rounds as a GPU."""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl
from numpy.typing import NDArray

Array = NDArray[Any]

_NUMPY: dict[str, np.dtype[Any]] = {
    "int1": np.dtype(np.bool_),
    **{name: np.dtype(name) for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "fp16": np.dtype(np.float16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "fp8e4b15": np.dtype(np.uint8),  # NumPy has no such type; loads and stores work, casts do not
}
BFLOAT16 = _NUMPY["bf16"]
FLOAT8 = frozenset(_NUMPY[name] for name in ("fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8"))

# torch's names for the element types that a kernel can point to
TRITON: dict[str, Any] = {
    "bool": tl.int1,
    **{name: getattr(tl, name) for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
        "bfloat16", "float32", "float64")},
    "float8_e5m2": tl.float8e5, "float8_e4m3fn": tl.float8e4nv,
    "float8_e5m2fnuz": tl.float8e5b16, "float8_e4m3fnuz": tl.float8e4b8,
}


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype of a Triton type: of its elements for a block, an address for a pointer."""
    scalar = dtype.scalar
    if scalar.is_ptr():
        return _NUMPY["int64"]  # the engine's addresses are far below 2**63
    return _NUMPY[scalar.name]


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype == BFLOAT16 or dtype in FLOAT8


def widened(data: Array) -> Array:
    """Types that NumPy does not know as float32, which holds each of their values exactly."""
    if data.dtype == BFLOAT16 or data.dtype in FLOAT8:
        return data.astype(np.float32)
    return data


# -- casts --------------------------------------------------------------------------------------


def cast(data: Array, dtype: Any) -> Array:
    """Convert as the GPU's ``cvt`` does: floats to nearest even, float8 and integers saturate.

    The rules are those of ``cvt`` in the PTX ISA: a float beyond an integer type becomes its
    nearest value, NaN becomes 0 (the least value for 64 bits and from float64).
    """
    target = numpy_dtype(dtype)
    if data.dtype == target:
        return data
    if target.kind in "iu" and is_float(data.dtype):
        return to_integer(widened(data), target)
    if target in FLOAT8 and is_float(data.dtype):
        limit = float(ml_dtypes.finfo(target).max)
        return np.clip(data.astype(np.float32), -limit, limit).astype(target)
    if target == np.bool_:
        return np.asarray(data != 0)
    if data.dtype in FLOAT8:
        data = data.astype(np.float32)
    return data.astype(target)


def to_integer(data: Array, target: np.dtype[Any]) -> Array:
    """Whole numbers nearest to zero; what does not fit becomes the nearest that does."""
    # There is no conversion to 8 bits: it goes through 16, and the upper half is cut off.
    wide = np.dtype(f"{target.kind}2") if target.itemsize == 1 else target
    limits = np.iinfo(wide)
    least, most = float(limits.min), float(limits.max)  # `most` may round up: it saturates too
    whole = np.trunc(data.astype(np.float64))
    result = np.where((whole >= least) & (whole < most), whole, 0).astype(wide)
    result = np.select([whole >= most, whole < least],
                       [wide.type(limits.max), wide.type(limits.min)], result)
    if wide.itemsize == 8 or data.dtype == np.float64:
        undefined = limits.min if wide.kind == "i" else 1 << (8 * wide.itemsize - 1)
        result = np.where(np.isnan(whole), wide.type(undefined), result)
    return np.asarray(result.astype(target))


def cast_toward_zero(data: Array, dtype: Any) -> Array:
    """The same with the magnitude rounded down, for ``fp_downcast_rounding="rtz"``."""
    target = numpy_dtype(dtype)
    wide = widened(data)
    near = cast(wide, dtype)
    back = near.astype(wide.dtype)
    over = np.abs(back) > np.abs(wide)
    bits = np.dtype(f"u{target.itemsize}")  # the next value toward zero has the next smaller bits
    fewer = (near.view(bits) - over.astype(bits)).view(target)
    return np.where(over, fewer, near)


# -- matrix products ----------------------------------------------------------------------------


def dot(a: Array, b: Array, accumulator: Array, precision: str = "IEEE") -> Array:
    """``a @ b + accumulator`` in the accumulator's dtype.

    float32 operands are rounded as ``precision`` asks: ``TF32`` keeps 10 of 23 bits of the
    mantissa, ``TF32x3`` adds the products with what was rounded off. A float16 accumulator is
    rounded after every 16 products, the depth of one ``mma`` instruction.
    """
    kind = accumulator.dtype
    if kind.kind in "iu":  # float64 holds the sums of 8-bit products exactly
        product = np.matmul(a.astype(np.float64), b.astype(np.float64))
        exact: Array = product.astype(np.int64).astype(kind) + accumulator
        return exact
    if kind == np.float16:
        return _half_dot(widened(a), widened(b), accumulator)
    wide = np.dtype(np.float64) if kind == np.float64 else np.dtype(np.float32)
    single = a.dtype == np.float32 and b.dtype == np.float32
    a, b = a.astype(wide, copy=False), b.astype(wide, copy=False)
    if single and precision == "TF32":
        product = np.matmul(tf32(a), tf32(b))
    elif single and precision in _SPLITS:
        product = _split_dot(a, b, *_SPLITS[precision])
    else:
        product = np.matmul(a, b)
    total: Array = product + accumulator
    return total.astype(kind, copy=False)


def tf32(data: Array) -> Array:
    """float32 cut to the 10 bits of mantissa that a tensor core reads."""
    bits = np.ascontiguousarray(data).view(np.uint32)
    return np.asarray((bits & np.uint32(0xFFFFE000)).view(np.float32))


def near_tf32(data: Array) -> Array:
    """float32 rounded to the nearest TF32, as a descriptor does on request."""
    bits = np.ascontiguousarray(data).view(np.uint32)
    return _biased_tf32(data, ((bits >> np.uint32(13)) & np.uint32(1)) + np.uint32(0xFFF))


def _biased_tf32(data: Array, bias: Any) -> Array:
    biased = (np.ascontiguousarray(data).view(np.uint32) + bias).view(np.float32)
    return np.where(np.isfinite(data), tf32(biased), data)


def _half_dot(a: Array, b: Array, accumulator: Array) -> Array:
    a, b = a.astype(np.float32, copy=False), b.astype(np.float32, copy=False)
    total = accumulator
    for start in range(0, a.shape[-1], 16):
        part = np.matmul(a[..., start:start + 16], b[..., start:start + 16, :])
        total = (total.astype(np.float32) + part).astype(np.float16)
    return total


def _split_dot(a: Array, b: Array, parts: Callable[[Array], list[Array]],
               small: Sequence[tuple[int, int]]) -> Array:
    """The product of float32 as sums of parts, smallest terms first.

    What infinities make NaN of in the smaller products counts as 0.
    """
    with np.errstate(invalid="ignore"):  # infinity less infinity
        parts_a, parts_b = parts(a), parts(b)
        rest = sum(np.matmul(parts_a[i], parts_b[j]) for i, j in small)
        total = np.where(np.isnan(rest), np.float32(0), rest)
        return np.asarray(total + np.matmul(parts_a[0], parts_b[0]))


def _tf32_parts(data: Array) -> list[Array]:
    """Two, the way Triton compiles ``tf32x3``.

    The larger one is rounded to the nearest, ties away from zero (``cvt.rna.tf32.f32``), the rest
    is cut.
    """
    upper = _biased_tf32(data, np.uint32(0x1000))
    return [upper, tf32(data - upper)]


def _bfloat16_parts(data: Array) -> list[Array]:
    parts = []
    for _ in range(3):
        parts.append(data.astype(BFLOAT16).astype(np.float32))
        data = data - parts[-1]
    return parts


_SPLITS: dict[str, tuple[Callable[[Array], list[Array]], Sequence[tuple[int, int]]]] = {
    "TF32x3": (_tf32_parts, ((1, 0), (0, 1))),
    "BF16x3": (_bfloat16_parts, ((1, 0), (0, 1))),
    "BF16x6": (_bfloat16_parts, ((2, 0), (1, 1), (0, 2), (1, 0), (0, 1))),
}


def unpacked_e2m1(data: Array, axis: int) -> Array:
    """Two 4-bit floats in each byte, the low half first, as float32. ``axis``: from the end."""
    halves = np.stack([data & 0xF, data >> 4], axis=axis)
    shape = list(data.shape)
    shape[axis] *= 2
    return np.asarray(halves.reshape(shape).view(ml_dtypes.float4_e2m1fn).astype(np.float32))


def from_e4b15(codes: Array) -> Array:
    """Bytes with a sign, 4 bits of exponent with a bias of 15 and 3 of mantissa, as float32."""
    bits = codes.view(np.uint8)  # those of a type with a bias of 11, but for the sign
    size = (bits & 127).view(ml_dtypes.float8_e4m3b11fnuz).astype(np.float32) / np.float32(16)
    return np.asarray(np.where(bits & 128, -size, size))


def scale_e8m0(codes: Array) -> Array:
    """Powers of two with a bias of 127; 255 is NaN (OCP Microscaling Formats, section 5.4)."""
    return np.asarray(codes.view(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32))


# -- functions that NumPy lacks -----------------------------------------------------------------


def truncated_quotient(a: Array, b: Array) -> Array:
    """Integer division toward zero, as in C; NumPy rounds down."""
    if a.dtype.kind == "u":
        return np.asarray(a // b)
    quotient = np.floor_divide(a, b)
    inexact = np.asarray(quotient * b != a)
    return np.asarray(quotient + (inexact & ((a < 0) != (b < 0))))


def fused_multiply_add(x: Array, y: Array, z: Array) -> Array:
    """``x * y + z`` rounded once (for float64: with the product's error added back)."""
    if x.dtype == np.float64:
        product, low = _two_product(x, y)
        total, lost = _two_sum(product, z)
        return np.where(np.isfinite(low), np.where(np.isfinite(lost), total + (lost + low),
                                                   total + low), total)
    exact = x.astype(np.float64) * y.astype(np.float64)  # float32 products fit float64
    return _odd_sum(exact, z.astype(np.float64)).astype(x.dtype)


def _two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """The product and its rounding error, after Dekker."""
    split = 134217729.0
    high_x, high_y = x * split, y * split
    high_x, high_y = high_x - (high_x - x), high_y - (high_y - y)
    low_x, low_y = x - high_x, y - high_y
    product = x * y
    error = ((high_x * high_y - product) + high_x * low_y + low_x * high_y) + low_x * low_y
    return product, error


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum and its rounding error, after Knuth."""
    total = np.asarray(a + b)
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _odd_sum(a: Array, b: Array) -> Array:
    """``a + b`` rounded to odd: rounding that to float32 then gives the correctly rounded sum."""
    total, lost = _two_sum(a, b)
    inexact = (lost != 0) & np.isfinite(lost) & np.isfinite(total)
    even = total.view(np.int64) & 1 == 0
    toward = np.where((lost > 0) == (total > 0), 1, -1)
    moved = (total.view(np.int64) + toward).view(np.float64)
    return np.where(inexact & even, moved, total)


def upper_product(a: Array, b: Array) -> Array:
    """The upper half of the product of two unsigned integers."""
    bits = 8 * a.dtype.itemsize
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    x, y = a.view(unsigned), b.view(unsigned)
    if bits < 64:
        wide = np.dtype(f"u{2 * a.dtype.itemsize}")
        upper = (x.astype(wide) * y.astype(wide)) >> wide.type(bits)
        return np.asarray(upper.astype(unsigned).view(a.dtype))
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + (x0 * y0 >> half)
    other = x0 * y1 + (middle & low)
    return np.asarray((x1 * y1 + (middle >> half) + (other >> half)).view(a.dtype))


def in_float32(function: Callable[..., Array]) -> Callable[..., Array]:
    """For elements that NumPy does not know: computed in float32, rounded to nearest even.

    float32 has more than twice the bits of bfloat16, so the sum, product or quotient is rounded as
    if it had been rounded once (Figueroa, "When is double rounding innocuous?", 1995).
    """
    def compute(*arrays: Array) -> Array:
        kind = arrays[0].dtype
        result = function(*(widened(array) for array in arrays))
        return result if result.dtype == np.bool_ else result.astype(kind)

    return compute
