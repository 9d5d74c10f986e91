"""Python's parser, for one thread at a time.

CPython 3.11 counts how deep a tree is in one place for all threads: where two parse at the same
time and one of them stands deeper in calls, it raises SystemError ("AST constructor recursion depth
mismatch").
"""

from __future__ import annotations

import ast
import threading

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What ``parse`` raises for a text that is no Python, or nested too deeply for it."""

_PARSING = threading.Lock()

_DECIMAL_BITS = 14_000  # of the largest integers that ``repr`` writes: 4,300 digits


class _LongInteger(int):
    """Writes itself in hexadecimal, which Python allows for any length."""

    def __repr__(self) -> str:
        return hex(self)


def last_name(node: ast.AST) -> str:
    """``c`` of the expressions ``a.b.c`` and ``c``; empty for every other one."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def parse(text: str, name: str = "<unknown>") -> ast.Module:
    """Parses a text to a tree that ``ast.unparse`` can write, however long its integers are.

    ``name`` is what errors call the text. The tree is for reading: it cannot be compiled.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse`` does; see
            ``UNREADABLE``.
    """
    with _PARSING:
        tree = ast.parse(text, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and \
                node.value.bit_length() > _DECIMAL_BITS:
            node.value = _LongInteger(node.value)
    return tree
