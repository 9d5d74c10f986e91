"""Checks scopes of kernel variables, and that their types do not change.

Python sees the turns and branches that run; the compiler sees each once, with the variables that
were there before. What a branch on a runtime value or a turn of a loop assigns for the first time
ends with it, unless both branches assign it, and what was there before keeps its type and shape.
"""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import GeneratorType
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

from grader.engine.interpreter.errors import LoopChanges, NotInAKernel

Bound = tuple[tuple[str, int], ...]  # names that statements assign to, each with its last line
Kinds = Mapping[str, Any]
_CONSTANT = "a constant"
_OTHER = "something else"  # a descriptor, an aggregate: nothing is compared
_ABSENT = object()


# -- what the source says -----------------------------------------------------------------------


def bound(statements: Iterable[ast.AST]) -> dict[str, int]:
    """The names that statements may assign to, each with the last line that does."""
    return {name.id: name.lineno for statement in statements for name in _stored(statement)}


def _stored(node: ast.AST) -> Iterator[ast.Name]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node
    elif not isinstance(node, ast.comprehension | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _stored(child)


def numbers(statements: Iterable[ast.stmt]) -> tuple[tuple[str, Any, int], ...]:
    """The names that statements leave as a number of the source: name, number, line.

    Of a branch that does not run, these are the only types that are known.
    """
    values: dict[str, tuple[str, Any, int]] = {}
    for statement in statements:
        for name in bound([statement]):
            values.pop(name, None)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value, name = number(statement.value), statement.targets[0].id
            if value is not None:
                values[name] = (name, value, statement.lineno)
        if isinstance(statement, ast.Return):
            break
    return tuple(values.values())


def number(node: ast.expr) -> bool | int | float | None:
    """The value of a number that is written in the source."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    plain = isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float)
    return node.value if plain else None  # type: ignore[attr-defined]


# -- what rewritten code calls ------------------------------------------------------------------


def entered(decides: Any, names: tuple[str, ...]) -> Kinds | None:
    """The kinds of the variables before a branch or loop; None if the compiler unrolls it.

    Args:
        decides: the condition of an ``if``, the turns of a ``for``, or the word ``while``.
    """
    if not isinstance(decides, tl.tensor | GeneratorType) and decides != "while":
        return None
    variables = sys._getframe(1).f_locals
    return {name: kind(variables[name]) for name in names if name in variables}


def carried(before: Kinds | None, names: Bound) -> list[str]:
    """The end of a turn of a loop. Returns the names that end with it.

    Raises:
        LoopChanges: a variable that the loop carries has another type or shape now.
    """
    if before is None:
        return []
    variables, gone = sys._getframe(1).f_locals, []
    for name, line in names:
        value = variables.get(name, _ABSENT)
        if value is _ABSENT:
            continue
        if name not in before:
            gone.append(name)
        elif differ(before[name], now := kind(value)):
            raise LoopChanges(
                f"`{name}` is {word(before[name])} before the loop and {word(now)} after a turn of "
                "it; what a loop carries from turn to turn must keep its type and shape", line,
                shape(before[name]), shape(now))
    return gone


def merged(before: Kinds | None, names: Bound, others: tuple[str, ...],
           other_numbers: tuple[tuple[str, Any, int], ...]) -> list[str]:
    """The end of the branch that ran. Returns the names that end with it.

    Args:
        names: what this branch may assign to.
        others: what the other branch may assign to.
        other_numbers: what the other branch leaves as a number.

    Raises:
        NotInAKernel: a variable would have two types after the ``if``.
    """
    if before is None:
        return []
    variables, gone = sys._getframe(1).f_locals, []
    after = {name: kind(variables[name]) for name, _ in names if name in variables}
    for name, line in names:
        if name not in after:
            continue
        if name not in before:
            if name not in others:
                gone.append(name)
        elif before[name] is not None and differ(before[name], after[name]):
            _two_types(name, before[name], after[name], line)
    for name, value, line in other_numbers:
        expected = before.get(name, after.get(name))
        other = kind(interpreter.interpreter_semantic.to_tensor(value))
        if expected is not None and differ(expected, other):
            _two_types(name, expected, other, line)
    return gone


def _two_types(name: str, one: Any, other: Any, line: int) -> None:
    raise NotInAKernel(
        f"`{name}` is {word(one)} before the `if` or in one branch of it, and {word(other)} in "
        "another; it must have one type and shape where the condition is a runtime value", line)


def kind(value: Any) -> Any:
    """The type of a tensor, the kinds in a tuple, or one word for another value."""
    if isinstance(value, tl.tensor):
        return value.type
    if isinstance(value, tuple | tl.tuple):
        return tuple(map(kind, value))
    if value is None:
        return None
    return _CONSTANT if isinstance(value, bool | int | float | tl.constexpr) else _OTHER


def word(its_type: Any) -> str:
    """The words of a finding for a kind."""
    if isinstance(its_type, tl.block_type):
        return f"a block of {its_type.element_ty} of shape {list(its_type.shape)}"
    return f"a tuple of {len(its_type)}" if isinstance(its_type, tuple) else str(its_type)


def shape(its_type: Any) -> tuple[int, ...] | None:
    return tuple(its_type.shape) if isinstance(its_type, tl.block_type) else None


def differ(before: Any, now: Any) -> bool:
    """Whether a variable may not be of both kinds. Constants may change: they stay constants."""
    if before is now:
        return False
    if isinstance(before, tuple) and isinstance(now, tuple):  # constants in it may be scalars
        return len(before) != len(now) or any(
            isinstance(a, tl.dtype) and isinstance(b, tl.dtype) and a != b
            for a, b in zip(before, now, strict=True))
    if isinstance(before, tl.dtype) or isinstance(now, tl.dtype):
        return before is not _OTHER and now is not _OTHER and bool(before != now)
    return False
