"""Which globals of a file have no one value that can be read off its text."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from grader.definitions import Scope
from grader.executor import allowed

_IMPORTS = (ast.Import, ast.ImportFrom)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def scattered(tree: ast.Module, kept: Collection[ast.stmt],
              scopes: Collection[Scope]) -> dict[str, list[int]]:
    """Names that several statements bind, one of which was not ``kept``: the lines of all.

    Where two branches bind a name, only Python knows which of them it takes. A name that is always
    imported is none of these: whichever import works, it stands for the same. ``scopes`` are the
    functions and classes around kernels: names of such a function count as the file's own, and so
    do kernels that lie in a class.
    """
    bound: defaultdict[str, list[tuple[ast.stmt, bool]]] = defaultdict(list)
    for statement, sure in _statements(tree.body, scopes, sure=True):
        for name in set(_names(statement)):
            bound[name].append((statement, sure and statement in kept))
    for scope in scopes:
        if isinstance(scope, ast.ClassDef):
            for statement, _ in _statements(scope.body, (), sure=False):
                if isinstance(statement, ast.FunctionDef) and statement in kept:
                    bound[statement.name].append((statement, False))
        else:
            for name in parameters(scope):
                bound[name].append((scope, False))
    return {name: sorted({statement.lineno for statement, _ in found})
            for name, found in bound.items()
            if len(found) > 1 and not all(sure for _, sure in found)
            and not all(isinstance(statement, _IMPORTS) for statement, _ in found)}


def statements(tree: ast.Module, scopes: Collection[Scope]) -> Iterator[ast.stmt]:
    """Statements of the file's own scope and of functions around kernels, branches included."""
    return (statement for statement, _ in _statements(tree.body, scopes, sure=True))


def names_in(scope: Scope) -> set[str]:
    """Names that a function or class binds itself: parameters, and variables or attributes."""
    own = () if isinstance(scope, ast.ClassDef) else parameters(scope)
    return {*own, *(name for statement, _ in _statements(scope.body, (), sure=False)
                    for name in _names(statement))}


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]


def _statements(body: Sequence[ast.stmt], scopes: Collection[Scope], *,
                sure: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """All that run in one scope, and whether they certainly do, once."""
    for node in body:
        yield node, sure
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node in scopes:
            yield from _statements(node.body, scopes, sure=False)
        if isinstance(node, ast.ClassDef) and node in scopes:
            for inner in node.body:  # a method may have kernels in it
                if isinstance(inner, _SCOPES) and inner in scopes:
                    yield from islice(_statements([inner], scopes, sure=False), 1, None)
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, ast.Try | ast.TryStar):
            imports = all(isinstance(one, _IMPORTS) and _works(one) for one in node.body)
            yield from _statements(node.body, scopes, sure=sure)
            if imports:  # nothing is left to handle
                continue
            rest = [*node.orelse, *node.finalbody,
                    *(one for handler in node.handlers for one in handler.body)]
            yield from _statements(sorted(rest, key=lambda one: one.lineno), scopes, sure=False)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                yield from _statements(case.body, scopes, sure=False)
        else:
            yield from _statements([*getattr(node, "body", ()), *getattr(node, "orelse", ())],
                                   scopes, sure=False)


def _works(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether Triton has all that is imported from it; other packages are taken to be there."""
    module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    targets = [module + alias.name for alias in node.names]
    return all(target.partition(".")[0] != "triton" or allowed.resolved(target) is not None
               for target in targets)


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
