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


def parse(text: str, name: str = "<unknown>") -> ast.Module:
    """The tree of a text; ``name`` is what errors call it.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse`` does; see
            ``UNREADABLE``.
    """
    with _PARSING:
        return ast.parse(text, name)
