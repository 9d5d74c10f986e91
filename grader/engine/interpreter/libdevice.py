"""CUDA's math library on NumPy arrays: the functions behind ``libdevice.exp`` and its like.

Triton picks a symbol such as ``__nv_expf`` by the types of the arguments. float32 functions are
computed in float64 and rounded once, so they are at least as accurate as the GPU's (1 to 2 units in
the last place, CUDA C++ Programming Guide, section on mathematical functions).
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from triton.language.extra import cuda
from triton.language.extra import libdevice as names
from triton.language.extra.cuda import gdc
from triton.language.extra.cuda import libdevice as typed
from triton.language.extra.cuda import utils as utilities

from grader.engine.interpreter import directed, special
from grader.engine.interpreter.errors import NotInterpreted
from grader.engine.interpreter.numerics import upper_product

Array = NDArray[Any]


def _torch(function: Callable[..., torch.Tensor]) -> Callable[..., Array]:
    def on_arrays(*arrays: Array) -> Array:
        result: Array = function(*(torch.from_numpy(np.array(array)) for array in arrays)).numpy()
        return result

    return on_arrays


def _round_half_away(x: Array) -> Array:
    result: Array = np.trunc(x + np.copysign(0.5, x))
    return result


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
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
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
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "rcp": np.reciprocal,
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
    "norm4d": lambda x, y, z, w: np.sqrt(x * x + y * y + z * z + w * w),
    "rnorm3d": lambda x, y, z: 1.0 / np.sqrt(x * x + y * y + z * z),
    "rnorm4d": lambda x, y, z, w: 1.0 / np.sqrt(x * x + y * y + z * z + w * w),
    "erfcinv": lambda x: _torch(torch.special.ndtri)(1.0 - x / 2) / np.sqrt(2.0),
    "jn": lambda n, x: special.bessel(n, x, "j"), "yn": lambda n, x: special.bessel(n, x, "y"),
    "tgamma": lambda x: special.gamma(x),
    "nextafter": np.nextafter, "scalbn": np.ldexp,
    "logb": lambda x: np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, special.exponent(x))),
    "ilogb": lambda x: special.integer_exponent(x),
    "clz": lambda x: special.leading_zeros(x), "clzll": lambda x: special.leading_zeros(x),
    "popc": lambda x: np.bitwise_count(special.unsigned(x)),
    "popcll": lambda x: np.bitwise_count(special.unsigned(x)),
    "ffs": lambda x: special.first_set(x), "ffsll": lambda x: special.first_set(x),
    "brev": lambda x: special.reversed_bits(x), "brevll": lambda x: special.reversed_bits(x),
    "byte_perm": lambda x, y, selector: special.permuted_bytes(x, y, selector),
    "mulhi": lambda x, y: special.signed_upper_product(x, y), "umulhi": upper_product,
    "mul64hi": lambda x, y: special.signed_upper_product(x, y), "umul64hi": upper_product,
    "mul24": lambda x, y: special.low_24_bits(x) * special.low_24_bits(y),
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



def erf(x: Array) -> Array:
    return _torch(torch.special.erf)(x)


def rsqrt(x: Array) -> Array:
    wide = x.astype(np.float64)
    result: Array = (1.0 / np.sqrt(wide)).astype(x.dtype)
    return result


def call(symbol: str, arrays: list[Array], result: np.dtype[Any]) -> Array:
    """Apply the function behind a symbol of libdevice.

    Raises:
        NotInterpreted: there is no such function here.
    """
    rounded = directed.directed(symbol)
    if rounded is not None:
        return np.asarray(rounded(*arrays)).astype(result)
    function = _function(symbol)
    if _stem(symbol) in _OF_BITS:
        return np.asarray(function(*arrays)).astype(result)
    wide = [array.astype(np.float64) if array.dtype == np.float32 else array for array in arrays]
    made: Array = np.asarray(function(*wide)).astype(result)
    return made


def _stem(symbol: str) -> str:
    name = symbol.removeprefix("__nv_")
    return name if name in _FUNCTIONS else name.removesuffix("f")


def _function(symbol: str) -> Callable[..., Any]:
    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    # __nv_fadd_rn and __nv_dadd_rn are `add` rounded to nearest, which every operation here is.
    rounded = name.removesuffix("_rn")
    candidates = [name, name[:-1] if name[-1:] in ("f", "d") else name]
    if rounded != name:
        candidates += [rounded, rounded[1:], rounded.removesuffix("f")]
    for candidate in candidates:
        if candidate in _FUNCTIONS:
            return _FUNCTIONS[candidate]
    raise NotInterpreted(f"the function behind `{symbol}` of libdevice")


_OF_LAUNCHES = ("gdc_wait", "gdc_launch_dependents")
_MODULES = tuple(module.__name__ for module in (names, typed, utilities, gdc))


def _in_order() -> None:
    """How launches may overlap: here each begins when the one before has ended."""


def bound(semantic: Any) -> list[tuple[types.ModuleType, str, Callable[..., Any]]]:
    """(module, name, function) of all of libdevice, told in which semantics it is called."""

    def tell(function: Any) -> Callable[..., Any]:
        return lambda *args: function(*args, _semantic=semantic)

    found = []
    for name, function in vars(utilities).items():  # num_warps and its like
        if getattr(function, "__triton_builtin__", False):
            found += [(module, name, tell(function)) for module in (utilities, cuda)
                      if hasattr(module, name)]
    found += [(module, name, _in_order) for module in (gdc, cuda) for name in _OF_LAUNCHES
              if hasattr(module, name)]
    for name, function in vars(typed).items():
        if callable(function) and getattr(function, "__triton_builtin__", False):
            told = tell(function)
            found.append((typed, name, told))
            if hasattr(names, name):
                found.append((names, name, told))
    return found


def is_libdevice(function: Any) -> bool:
    """Whether this is one of the functions, imported by its name."""
    return getattr(function, "__module__", "") in _MODULES


def by_name(function: Any) -> Callable[..., Any]:
    """What a name imported from libdevice stands for while kernels are interpreted."""
    place = names if function.__module__ in (names.__name__, typed.__name__) else cuda
    replaced: Callable[..., Any] = getattr(place, function.__name__)
    return replaced
