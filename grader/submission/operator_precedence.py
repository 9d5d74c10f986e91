"""Comparisons that `&` took apart: ``a & b < c`` compares ``a & b``, as `&` binds closer."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from grader.diagnosis import messages
from grader.finding import Fault, fault
from grader.report import Finding
from grader.submission import syntax
from grader.submission.dataflow import is_kernel

_CODES = frozenset(("M01", "M02", "M03", "M04", "M06", "N01", "N02", "N03"))  # of wrong masks
_LONGEST = 40  # characters of code that are quoted


@lru_cache(maxsize=1)  # every failing case asks, of the same file
def comparison_of_joined(text: str) -> Fault | None:
    """The first one in a kernel; None where there is none.

    Only what nobody means counts: `&` or `|` beside a comparison without being in its parentheses,
    so that a truth value is compared with a number, or two comparisons became one chain.
    """
    kernels = filter(is_kernel, syntax.functions(syntax.tree_of(text)))
    node = min((node for kernel in kernels for node in ast.walk(kernel)
                if isinstance(node, ast.Compare) and _is_taken_apart(node)),
               key=lambda one: one.lineno, default=None)
    if node is None:
        return None
    sides = [node.left, *node.comparators]
    joined = next(side for side in sides if _joins(side))
    return fault("joined comparison", line=node.lineno, joined=_quoted(joined),
                 others=tuple(_quoted(side) for side in sides if side is not joined))


def explained_by_precedence(findings: Sequence[Finding], text: str) -> list[Finding]:
    """The findings; where the first is one of those that wrong masks have, with this meaning."""
    comparison = findings and findings[0].code in _CODES and comparison_of_joined(text)
    if not comparison:
        return list(findings)
    first = findings[0]
    return [replace(first, line=first.line or comparison.value("line"),
                    means=messages.text(comparison)), *findings[1:]]


def _is_taken_apart(node: ast.Compare) -> bool:
    joined = [side for side in (node.left, *node.comparators) if _joins(side)]
    return bool(joined) and (len(node.ops) > 1 or any(
        isinstance(part, ast.Compare) for side in joined for part in _parts(side)))


def _joins(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """Returns the operands that `&` and `|` join."""
    if isinstance(node, ast.BinOp) and _joins(node):
        yield from _parts(node.left)
        yield from _parts(node.right)
    else:
        yield node


def _quoted(node: ast.expr) -> str:
    words = ast.unparse(node)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST - 1]}…"
