"""Arithmetic and conversions of libdevice that round up, down, toward zero or to nearest.

NumPy rounds to nearest only. Where another rounding is asked for, the result is compared with the
exact one, as fractions, and moved to its neighbour if it lies on the wrong side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.numerics import fused_multiply_add, to_integer

# The four roundings, by the end of a symbol: to nearest, toward zero, up and down.
_ROUNDINGS = ("rn", "rz", "ru", "rd")
_DIRECTED = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
             "sqrt": np.sqrt}
_OPERATIONS = frozenset((*_DIRECTED, "fma", "rcp"))
_CONVERTED = {"float": np.float32, "double": np.float64, "int": np.int32, "uint": np.uint32,
              "ll": np.int64, "ull": np.uint64}

def directed(symbol: str) -> Callable[..., Array] | None:
    """The function behind a symbol that ends with a rounding, such as ``__nv_fadd_rd``."""
    name, _, rounding = symbol.removeprefix("__nv_").rpartition("_")
    if rounding not in _ROUNDINGS or name.startswith("fast_"):
        return None
    if "2" in name:
        source, target = name.split("2")
        return lambda x: _converted(x.astype(_CONVERTED[source], copy=False),
                                    np.dtype(_CONVERTED[target]), rounding)
    stem = {"fmaf": "fma"}.get(name, name if name in _OPERATIONS else name[1:])
    if stem not in _OPERATIONS:
        return None
    return lambda *operands: _rounded_operation(stem, operands, rounding)


def _rounded_operation(stem: str, operands: Sequence[Array], rounding: str) -> Array:
    """Compute exactly as fractions where a rounding other than to nearest is asked for."""
    kind = operands[0].dtype
    exact = np.frompyfunc(lambda *values: _one(stem, values, kind.type, rounding), len(operands), 1)
    return np.asarray(exact(*operands)).astype(kind)


def _one(stem: str, values: Sequence[Any], kind: Any, rounding: str) -> Any:
    numbers = [float(value) for value in values]
    near = _nearest(stem, [kind(number) for number in numbers], kind)
    if rounding == "rn" or not np.isfinite(near) or not all(map(math.isfinite, numbers)):
        return near
    exact = _sign_of_error(stem, [Fraction(number) for number in numbers], Fraction(float(near)))
    return _moved(near, exact, rounding, kind)


def _nearest(stem: str, values: Sequence[Any], kind: Any) -> Any:
    match stem:
        case "fma":
            arrays = [np.array([value]) for value in values]
            return fused_multiply_add(*arrays)[0]
        case "rcp":
            return kind(1) / values[0]
    return _DIRECTED[stem](*values)


def _sign_of_error(stem: str, values: Sequence[Fraction], near: Fraction) -> int:
    """The sign of what is exact less ``near``."""
    match stem:
        case "add":
            exact = values[0] + values[1]
        case "sub":
            exact = values[0] - values[1]
        case "mul":
            exact = values[0] * values[1]
        case "fma":
            exact = values[0] * values[1] + values[2]
        case "div":
            exact = values[0] / values[1]
        case "rcp":
            exact = 1 / values[0]
        case _:  # a root: the squares are compared
            exact, near = values[0], near * near
    return (exact > near) - (exact < near)


def _moved(near: Any, error: int, rounding: str, kind: Any) -> Any:
    """The neighbour on the other side where the nearest one lies on the wrong side."""
    upward = rounding == "ru" or (rounding == "rz" and near < 0)
    if error > 0 and upward:
        return np.nextafter(near, kind(np.inf))
    if error < 0 and not upward:
        return np.nextafter(near, kind(-np.inf))
    return near


def _converted(data: Array, target: np.dtype[Any], rounding: str) -> Array:
    if target.kind in "iu":
        step = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}[rounding]
        return to_integer(step(data), target)
    near = data.astype(target)
    if rounding == "rn":
        return near
    signs = np.frompyfunc(lambda exact, n: _error(exact, n), 2, 1)(data, near)
    move = np.frompyfunc(lambda n, e: _moved(n, e, rounding, target.type), 2, 1)
    return np.asarray(move(near, signs)).astype(target)


def _error(exact: Any, near: Any) -> int:
    if not np.isfinite(exact) or not np.isfinite(near):
        return 0
    number = Fraction(exact.item() if hasattr(exact, "item") else exact)
    rounded = Fraction(float(near))
    return (number > rounded) - (number < rounded)
