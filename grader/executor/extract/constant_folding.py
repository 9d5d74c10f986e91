"""Folds arithmetic of numbers at the top of a file, without running the file."""

import ast
import math
import operator
from collections.abc import Mapping
from typing import Any

from grader.submission import syntax

Number = int | float

_FUNCTIONS = frozenset(("log", "log2", "log10", "exp", "exp2", "sqrt", "ceil", "floor"))
_VALUES = frozenset(("e", "pi", "tau", "inf", "nan"))
_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}
MOST_BITS = 4096  # of an integer; Python writes at most 4,300 decimal digits, about 14,000 bits


def math_names(tree: ast.Module) -> dict[str, str]:
    """Names of the file that stand for ``math`` or for something of it, dotted."""
    return {name: target for node in tree.body for name, target in syntax.imported(node)
            if target.split(".")[0] == "math"}


def folded(node: ast.expr, names: Mapping[str, str], constants: Mapping[str, ast.expr]) -> ast.expr:
    """Replaces arithmetic by its result, in calls such as ``tl.constexpr(...)`` and tuples too.

    An expression stays as it is where it has no result, or an integer of over ``MOST_BITS`` bits.

    Args:
        node: the value of an assignment.
        names: of ``math``, from ``math_names``.
        constants: literals that were assigned before.
    """
    value = _value(node, names, constants)
    if value is not None:
        return _literal(value)
    match node:
        case ast.Call(function, [argument], []):
            return ast.Call(function, [folded(argument, names, constants)], [])
        case ast.Tuple(items):
            return ast.Tuple([folded(item, names, constants) for item in items], ast.Load())
    return node


def _literal(value: Number) -> ast.expr:
    if isinstance(value, float) and not math.isfinite(value):
        return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(value))], [])
    return ast.Constant(value)


def _value(node: ast.expr, names: Mapping[str, str],
           constants: Mapping[str, ast.expr]) -> Number | None:
    """The value of a number or of arithmetic of numbers; None for every other expression."""
    def value(inner: ast.expr) -> Number | None:
        return _value(inner, names, constants)

    match node:
        case ast.Constant(int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.Name(name) if name in constants:
            return value(constants[name])
        case ast.UnaryOp(ast.USub() | ast.UAdd() as sign, operand):
            size = value(operand)
            return None if size is None else -size if isinstance(sign, ast.USub) else size
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATORS:
            return _computed(type(operation), value(left), value(right))
        case ast.Call(ast.Name("float"), [ast.Constant(str(word))], []):
            return _called(float, word)
        case ast.Call(function, [argument], []):
            target, given = _of_math(function, names), value(argument)
            if target in _FUNCTIONS and given is not None:
                return _called(getattr(math, target, None), given)
        case ast.Attribute() | ast.Name():
            target = _of_math(node, names)
            return getattr(math, target) if target in _VALUES else None
    return None


def _of_math(node: ast.expr, names: Mapping[str, str]) -> str:
    """``log2`` for ``math.log2``, however the file calls it; not of ``math`` for anything else."""
    return (syntax.dotted(node, names) or "").removeprefix("math.")


def _computed(operation: type[ast.operator], left: Number | None,
              right: Number | None) -> Number | None:
    if left is None or right is None:
        return None
    if isinstance(left, int) and isinstance(right, int):
        bits = {ast.Pow: left.bit_length() * right, ast.LShift: left.bit_length() + right}
        if bits.get(operation, 0) > MOST_BITS:  # checked first: the result may exceed any memory
            return None
    return _called(_OPERATORS[operation], left, right)


def _called(function: Any, *arguments: Any) -> Number | None:
    try:
        result = function(*arguments)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return _bounded(result) if isinstance(result, int | float) else None


def _bounded(number: Number) -> Number | None:
    return None if isinstance(number, int) and number.bit_length() > MOST_BITS else number
