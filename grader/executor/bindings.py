"""Which globals of a file have no one value that can be read off its text."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

_IMPORTS = (ast.Import, ast.ImportFrom)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def scattered(tree: ast.Module, kept: Collection[ast.stmt]) -> dict[str, list[int]]:
    """Names that several statements bind, one of which was not ``kept``: the lines of all.

    Where two branches bind a name, only Python knows which of them it takes. A name that is always
    imported is none of these: whichever import works, it stands for the same.
    """
    bound: defaultdict[str, list[tuple[ast.stmt, bool]]] = defaultdict(list)
    for statement, sure in _statements(tree.body, sure=True):
        for name in set(_names(statement)):
            bound[name].append((statement, sure and statement in kept))
    return {name: [statement.lineno for statement, _ in found] for name, found in bound.items()
            if len(found) > 1 and not all(sure for _, sure in found)
            and not all(isinstance(statement, _IMPORTS) for statement, _ in found)}


def _statements(body: Sequence[ast.stmt], *, sure: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """All that run in the file's own scope, and whether they certainly do, once."""
    for node in body:
        yield node, sure
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, ast.Try | ast.TryStar):
            imports = all(isinstance(one, _IMPORTS) for one in node.body)
            yield from _statements(node.body, sure=sure)
            if imports:  # they work, or the file would be refused: nothing is left to handle
                continue
            rest = [*node.orelse, *node.finalbody,
                    *(one for handler in node.handlers for one in handler.body)]
            yield from _statements(rest, sure=False)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                yield from _statements(case.body, sure=False)
        else:
            yield from _statements([*getattr(node, "body", ()), *getattr(node, "orelse", ())],
                                   sure=False)


def _names(statement: ast.stmt) -> Iterator[str]:
    """What a statement by itself binds, or a function by `global`."""
    match statement:
        case ast.Import(aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            yield name
            for node in ast.walk(statement):
                if isinstance(node, ast.Global):
                    yield from node.names
        case _:
            yield from _stored(statement)


def _stored(node: ast.AST) -> Iterator[str]:
    """Names that are given a value in a statement, those of the statements in it left out.

    Expressions may be nested more deeply than Python's recursion limit.
    """
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return
    pending = [node]
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case, ast.comprehension,
                                  *_SCOPES)):
                continue
            if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
                yield child.id
            pending.append(child)
