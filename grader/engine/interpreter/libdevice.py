"""CUDA's math library on NumPy arrays: the functions behind ``libdevice.exp`` and its like.

Triton picks a symbol such as ``__nv_expf`` by the types of the arguments. float32 functions are
computed in float64 and rounded once, so they are at least as accurate as the GPU's (1 to 2 units in
the last place, CUDA C++ Programming Guide, section on mathematical functions). NumPy rounds to
nearest only: for ``__nv_fadd_ru`` and its like the result is compared with the exact one, as
fractions, and moved to its neighbor if it lies on the wrong side.
"""

import ctypes
import math
import types
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import torch
from triton.language.extra import cuda
from triton.language.extra import libdevice as names
from triton.language.extra.cuda import gdc
from triton.language.extra.cuda import libdevice as typed
from triton.language.extra.cuda import utils as utilities

from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.errors import NotInterpreted
from grader.engine.interpreter.numerics import fused_multiply_add, to_integer, upper_product

_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1


def _torch(function: Callable[..., torch.Tensor]) -> Callable[..., Array]:
    return lambda *arrays: function(
        *(torch.from_numpy(np.array(array)) for array in arrays)).numpy()


erf = _torch(torch.special.erf)


def rsqrt(x: Array) -> Array:
    return np.asarray((1.0 / np.sqrt(x.astype(np.float64))).astype(x.dtype))


# -- functions of bits --------------------------------------------------------------------------


def _unsigned(x: Array) -> Array:
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


def _leading_zeros(x: Array) -> Array:
    bits = _unsigned(x)
    for step in (1, 2, 4, 8, 16, 32):  # sets every bit below the highest one
        bits = bits | bits >> bits.dtype.type(step)
    return np.asarray(8 * x.dtype.itemsize - np.bitwise_count(bits))


def _first_set(x: Array) -> Array:
    """The place of the lowest bit that is set, counted from 1; 0 where there is none."""
    bits = _unsigned(x)
    return np.where(bits == 0, 0, np.bitwise_count(bits ^ (bits - bits.dtype.type(1))))


def _reversed_bits(x: Array) -> Array:
    bits = np.unpackbits(_unsigned(x)[..., None].view(np.uint8), axis=-1, bitorder="little")
    packed = np.packbits(bits[..., ::-1], axis=-1, bitorder="little")
    return np.ascontiguousarray(packed).view(x.dtype)[..., 0]


def _permuted_bytes(x: Array, y: Array, selector: Array) -> Array:
    x, y, selector = np.broadcast_arrays(x, y, selector)
    places = selector[..., None] >> np.arange(0, 16, 4) & 7
    chosen = np.take_along_axis(np.stack([x, y], -1).view(np.uint8), places, -1)
    return chosen.view(x.dtype)[..., 0]


def _signed_upper_product(x: Array, y: Array) -> Array:
    """The upper half of a product of signed integers, from that of their bits."""
    high = upper_product(x, y)
    return high - np.where(x < 0, y, 0) - np.where(y < 0, x, 0)


# -- special functions --------------------------------------------------------------------------


def _round_half_away(x: Array) -> Array:
    return np.asarray(np.trunc(x + np.copysign(0.5, x)))


def _gamma(x: Array) -> Array:
    size = np.exp(_torch(torch.lgamma)(x))
    negative = (x < 0) & (np.floor(x) % 2 != 0)
    pole = np.where(x == 0, np.copysign(np.inf, x), np.nan)
    return np.where((x <= 0) & (x == np.floor(x)), pole, np.where(negative, -size, size))


def _bessel(name: str) -> Callable[[Array, Array], Array]:
    """A function of the C library, which knows negative orders too, unlike CUDA's."""
    function = getattr(ctypes.CDLL(None), name)
    function.argtypes, function.restype = (ctypes.c_int, ctypes.c_double), ctypes.c_double
    each = np.frompyfunc(lambda order, x: math.nan if order < 0 else function(order, x), 2, 1)
    return lambda order, x: np.asarray(each(order, x)).astype(np.float64)


# -- by symbol ----------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos",
        "tan", "sinh", "cosh", "tanh", "floor", "ceil", "trunc", "rint", "hypot", "copysign",
        "fmod", "isnan", "isinf", "ldexp", "signbit")},
    **{name: getattr(np, f"arc{name[1:]}") for name in (
        "asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2")},
    **{name: _torch(getattr(torch.special, name)) for name in ("erf", "erfc", "erfinv", "erfcx")},
    **{f"{kind}{order}": _torch(getattr(torch.special, f"bessel_{kind}{order}"))
       for kind in "jy" for order in (0, 1)},
    "cyl_bessel_i0": _torch(torch.special.i0),
    "cyl_bessel_i1": _torch(torch.special.i1),
    "lgamma": _torch(torch.lgamma),
    "normcdf": _torch(torch.special.ndtr),
    "normcdfinv": _torch(torch.special.ndtri),
    "abs": np.abs, "llabs": np.abs, "fabs": np.abs,
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1.0 / np.sqrt(x), "frsqrt_rn": lambda x: 1.0 / np.sqrt(x),
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "pow": np.power, "powi": np.power, "remainder": lambda x, y: x - y * np.rint(x / y),
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0)),
    "fdivide": np.divide, "nearbyint": np.rint, "round": _round_half_away,
    "llrint": np.rint, "llround": _round_half_away,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "saturate": lambda x: np.nan_to_num(np.clip(x, 0.0, 1.0), nan=0.0),
    "finite": np.isfinite, "isfinite": np.isfinite,
    "fma": lambda x, y, z: x * y + z,
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
    "norm4d": lambda x, y, z, w: np.sqrt(x * x + y * y + z * z + w * w),
    "rnorm3d": lambda x, y, z: 1.0 / np.sqrt(x * x + y * y + z * z),
    "rnorm4d": lambda x, y, z, w: 1.0 / np.sqrt(x * x + y * y + z * z + w * w),
    "erfcinv": lambda x: _torch(torch.special.ndtri)(1.0 - x / 2) / np.sqrt(2.0),
    "jn": _bessel("jn"), "yn": _bessel("yn"), "tgamma": _gamma,
    "nextafter": np.nextafter, "scalbn": np.ldexp,
    "logb": lambda x: np.select([x == 0, np.isinf(x)], [-np.inf, np.inf], np.frexp(x)[1] - 1.0),
    "ilogb": lambda x: np.select([np.isinf(x), (x == 0) | np.isnan(x)], [_INT_MAX, _INT_MIN],
                                 np.frexp(x)[1] - 1),
    "clz": _leading_zeros, "clzll": _leading_zeros, "ffs": _first_set, "ffsll": _first_set,
    "popc": lambda x: np.bitwise_count(_unsigned(x)),
    "popcll": lambda x: np.bitwise_count(_unsigned(x)),
    "brev": _reversed_bits, "brevll": _reversed_bits, "byte_perm": _permuted_bytes,
    "mulhi": _signed_upper_product, "umulhi": upper_product,
    "mul64hi": _signed_upper_product, "umul64hi": upper_product,
    "mul24": lambda x, y: (x << 8 >> 8) * (y << 8 >> 8),
    "umul24": lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF),
    "hadd": lambda x, y: (x & y) + ((x ^ y) >> 1), "uhadd": lambda x, y: (x & y) + ((x ^ y) >> 1),
    "rhadd": lambda x, y: (x | y) - ((x ^ y) >> 1), "urhadd": lambda x, y: (x | y) - ((x ^ y) >> 1),
    "sad": lambda x, y, z: np.abs(x.astype(np.int64) - y).astype(np.uint32) + z,
    "usad": lambda x, y, z: np.abs(x.astype(np.int64) - y).astype(np.uint32) + z,
    "float_as_int": lambda x: x.view(np.int32), "float_as_uint": lambda x: x.view(np.uint32),
    "int_as_float": lambda x: x.view(np.float32), "uint_as_float": lambda x: x.view(np.float32),
    "double_as_longlong": lambda x: x.view(np.int64),
    "longlong_as_double": lambda x: x.view(np.float64),
    "double2hiint": lambda x: (x.view(np.int64) >> 32).astype(np.int32),
    "double2loint": lambda x: x.view(np.int64).astype(np.int32),
    "hiloint2double": lambda high, low: (
        (high.astype(np.int64) << 32) | (low.astype(np.int64) & 0xFFFFFFFF)).view(np.float64),
}
# Functions of bits, which are not computed in a wider type first.
_OF_BITS = frozenset((
    "float_as_int", "float_as_uint", "int_as_float", "uint_as_float", "nextafter"))


def call(symbol: str, arrays: list[Array], result: np.dtype[Any]) -> Array:
    """Applies the function behind a symbol of libdevice.

    Raises:
        NotInterpreted: the function is not implemented here.
    """
    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    if name not in _FUNCTIONS and name[-1] in "fd":
        name = name[:-1]
    function: Any = _rounded(symbol) or _FUNCTIONS.get(name)
    if function is None:
        raise NotInterpreted(f"the function behind `{symbol}` of libdevice")
    if function is _FUNCTIONS.get(name) and name not in _OF_BITS:
        arrays = [array.astype(np.float64) if array.dtype == np.float32 else array
                  for array in arrays]
    return np.asarray(function(*arrays)).astype(result)


# -- symbols that end with a rounding: to nearest, toward zero, up or down ----------------------

_STEPS = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}
# The value rounded to nearest, and what the exact one has more (of a root: their squares).
_OPERATIONS: dict[str, tuple[Callable[..., Array], Callable[..., Any]]] = {
    "add": (np.add, lambda near, x, y: x + y - near),
    "sub": (np.subtract, lambda near, x, y: x - y - near),
    "mul": (np.multiply, lambda near, x, y: x * y - near),
    "div": (np.divide, lambda near, x, y: x / y - near),
    "fma": (fused_multiply_add, lambda near, x, y, z: x * y + z - near),
    "rcp": (lambda x: 1 / x, lambda near, x: 1 / x - near),
    "sqrt": (np.sqrt, lambda near, x: x - near * near),
}
_CONVERTED = {"float": np.float32, "double": np.float64, "int": np.int32, "uint": np.uint32,
              "ll": np.int64, "ull": np.uint64}


def _rounded(symbol: str) -> Callable[..., Array] | None:
    """The function behind a symbol that ends with a rounding, such as ``__nv_fadd_rd``."""
    name, _, rounding = symbol.removeprefix("__nv_").rpartition("_")
    if rounding not in _STEPS or name.startswith("fast_"):
        return None
    if "2" in name:
        source, target = (np.dtype(_CONVERTED[kind]) for kind in name.split("2"))
        return lambda x: _converted(x.astype(source, copy=False), target, rounding)
    stem = {"fma": "fma", "fmaf": "fma"}.get(name, name[1:])
    if stem not in _OPERATIONS:
        return None
    nearest, error = _OPERATIONS[stem]
    return lambda *operands: _moved(nearest(*operands), error, operands, rounding)


def _converted(data: Array, target: np.dtype[Any], rounding: str) -> Array:
    if target.kind in "iu":
        return to_integer(_STEPS[rounding](data), target)
    return _moved(data.astype(target), lambda near, x: x - near, (data,), rounding)


def _moved(near: Array, error: Callable[..., Any], operands: tuple[Array, ...],
           rounding: str) -> Array:
    """The neighbors of ``near`` where it lies on the wrong side of the exact values."""
    if rounding == "rn":
        return near

    def side(*values: float) -> int:
        if not all(map(math.isfinite, values)):
            return 0
        exact = error(*map(Fraction, values))
        return int(exact > 0) - int(exact < 0)

    sides = np.asarray(np.frompyfunc(side, 1 + len(operands), 1)(near, *operands))
    upward = (rounding == "ru") | ((rounding == "rz") & (near < 0))
    toward = np.where(upward, near.dtype.type(np.inf), near.dtype.type(-np.inf))
    return np.where(sides == np.where(upward, 1, -1), np.nextafter(near, toward), near)


# -- by name ------------------------------------------------------------------------------------

_MODULES = tuple(module.__name__ for module in (names, typed, utilities, gdc))


def bound(semantic: Any) -> list[tuple[types.ModuleType, str, Callable[..., Any]]]:
    """(module, name, function) of all of libdevice, each bound to the semantics of its calls."""
    replaced: list[tuple[types.ModuleType, str, Callable[..., Any]]] = [
        (place, name, partial(function, _semantic=semantic))
        for module, places in ((utilities, (utilities, cuda)), (typed, (typed, names)))
        for name, function in vars(module).items()
        if getattr(function, "__triton_builtin__", False)
        for place in places if hasattr(place, name)]
    # How launches may overlap: here each begins when the one before has ended.
    return replaced + [(module, name, lambda: None) for module in (gdc, cuda)
                       for name in ("gdc_wait", "gdc_launch_dependents") if hasattr(module, name)]


def by_name(function: Any) -> Callable[..., Any] | None:
    """Returns the interpreter's replacement for a name imported from libdevice.

    None for any other function.
    """
    module = getattr(function, "__module__", "")
    if module not in _MODULES:
        return None
    place = names if module in (names.__name__, typed.__name__) else cuda
    return getattr(place, function.__name__)  # type: ignore[no-any-return]
