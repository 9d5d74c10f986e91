"""The lines behind an access: where its addresses and its mask were made."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_STEPS = 2  # addresses and mask themselves, then what they are made of
_ACCESSES = {"load": 1, "store": 2}  # the position of the mask
_POINTERS = ("pointer", "ptr")


def lines_behind(text: str, line: int) -> tuple[int, ...]:
    """The lines that give a load or store of a kernel its addresses and its mask, in order.

    Nothing where the line has none, or where the text cannot be read.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.lineno <= line <= (
                function.end_lineno or function.lineno):
            wanted = {name for call in _accesses(function, line) for name in _places(call)}
            return tuple(sorted(_made(function, wanted, line)))
    return ()


def _accesses(function: ast.FunctionDef, line: int) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
                node.func.attr in _ACCESSES and node.lineno <= line <= (node.end_lineno or line)):
            yield node


def _places(call: ast.Call) -> set[str]:
    assert isinstance(call.func, ast.Attribute)
    mask = _ACCESSES[call.func.attr]
    parts = [*call.args[:1], *call.args[mask:mask + 1],
             *(one.value for one in call.keywords if one.arg in (*_POINTERS, "mask"))]
    return _names(parts)


def _made(function: ast.FunctionDef, names: set[str], line: int) -> Iterable[int]:
    """The lines of all assignments to these names, and to those that they are made of."""
    found: set[int] = set()
    for _ in range(_STEPS):
        behind: set[str] = set()
        for node in ast.walk(function):
            targets = node.targets if isinstance(node, ast.Assign) else \
                [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []
            if targets and names & _names(targets):
                assert isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
                found.add(node.lineno)
                behind |= _names([node.value] if node.value else [])
        names = behind
    return found - {line}


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}
