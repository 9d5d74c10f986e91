"""Globals of a file whose value cannot be determined from its text."""

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from grader.executor.extract import kernel_subset
from grader.submission.dataflow import Scope
from grader.submission.syntax import imported, names_bound_by, parameter_names

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
        for name in names_bound_by(statement):
            bound[name].append((statement, sure and statement in kept))
    for scope in scopes:
        if isinstance(scope, ast.ClassDef):
            for statement, _ in _statements(scope.body, (), sure=False):
                if isinstance(statement, ast.FunctionDef) and statement in kept:
                    bound[statement.name].append((statement, False))
        else:
            for name in parameter_names(scope):
                bound[name].append((scope, False))
    return {name: sorted({statement.lineno for statement, _ in places})
            for name, places in bound.items()
            if len(places) > 1 and not all(sure for _, sure in places)
            and not all(isinstance(statement, _IMPORTS) for statement, _ in places)}


def statements(tree: ast.Module, scopes: Collection[Scope]) -> Iterator[ast.stmt]:
    """Statements of the file's own scope and of functions around kernels, branches included."""
    return (statement for statement, _ in _statements(tree.body, scopes, sure=True))


def names_in(scope: Scope) -> set[str]:
    """Names that a function or class binds itself: parameters, and variables or attributes."""
    own = () if isinstance(scope, ast.ClassDef) else parameter_names(scope)
    return {*own, *(name for statement, _ in _statements(scope.body, (), sure=False)
                    for name in names_bound_by(statement))}


def _statements(body: Sequence[ast.stmt], scopes: Collection[Scope], *,
                sure: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of one scope, and whether each certainly runs exactly once."""
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
    return all(target.partition(".")[0] != "triton" or kernel_subset.resolved(target) is not None
               for _, target in imported(node))
