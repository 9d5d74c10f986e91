"""Blocks of a kernel's source, marked so that their executions can be counted.

A block is the body of a function, of a loop or of a branch, or what follows a branch that may
return.
"""

import ast
import functools
import linecache
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from grader.submission import syntax


class SourceBlock(NamedTuple):
    """Lines ``first`` to ``last``; ``header``: the line of the loop's ``for`` or ``while``, or 0.

    A loop that the compiler unrolls (tl.static_range) has no header.
    """

    first: int
    last: int
    header: int = 0


def mark(function: ast.FunctionDef, marker: str) -> tuple[SourceBlock, ...]:
    """Lets each block of a function begin with ``marker(number)``; returns the blocks.

    Block 0 is the body of the function.
    """
    blocks = [SourceBlock(function.lineno, function.end_lineno or function.lineno)]

    def marked(statements: list[ast.stmt], number: int) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for place, statement in enumerate(statements):
            for name, header in _bodies(statement):
                body = getattr(statement, name)
                blocks.append(_block(body, header))
                setattr(statement, name, marked(body, len(blocks) - 1))
            result.append(statement)
            if isinstance(statement, ast.If) and statements[place + 1:] and any(
                    isinstance(node, ast.Return) for node in ast.walk(statement)):
                blocks.append(_block(statements[place + 1:], 0))
                result += marked(statements[place + 1:], len(blocks) - 1)
                break
        call = ast.Call(ast.Name(marker, ast.Load()), [ast.Constant(number)], [])
        return [ast.copy_location(ast.Expr(call), statements[0]), *result]

    # A marker in the line of the docstring would be a step of a trace.
    docstring = [] if ast.get_docstring(function) is None else function.body[:1]
    rest = function.body[len(docstring):] or [ast.copy_location(ast.Pass(), function)]
    function.body = [*docstring, *marked(rest, 0)]
    return tuple(blocks)


def _bodies(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    """Names of a statement's lists of statements that are not empty, with the loop's header."""
    if isinstance(statement, ast.If | ast.For | ast.While):
        header = 0 if isinstance(statement, ast.If) or _is_unrolled(statement) \
            else statement.lineno
        yield "body", header
        if statement.orelse:
            yield "orelse", 0


def _is_unrolled(loop: ast.For | ast.While) -> bool:
    return isinstance(loop, ast.For) and any(
        getattr(node, "attr", getattr(node, "id", "")) == "static_range"
        for node in ast.walk(loop.iter))


def _block(statements: Sequence[ast.stmt], header: int) -> SourceBlock:
    last = statements[-1]
    return SourceBlock(statements[0].lineno, last.end_lineno or last.lineno, header)


def statement_of(file: str, line: int) -> tuple[int, int]:
    """First and last line of the statement of a file that a line belongs to.

    Of a statement that holds others, these are the lines before them.
    """
    return statements("".join(linecache.getlines(file))).get(line, (line, line))


@functools.lru_cache(maxsize=16)
def statements(text: str) -> dict[int, tuple[int, int]]:
    """First and last line of the statement that each line of a text belongs to."""
    places: dict[int, tuple[int, int]] = {}
    for node in ast.walk(syntax.tree_of(text)):  # outer ones first
        if isinstance(node, ast.stmt):
            inner = getattr(node, "body", None)
            last = inner[0].lineno - 1 if isinstance(inner, list) else node.end_lineno
            last = max(node.lineno, last or node.lineno)
            places |= dict.fromkeys(range(node.lineno, last + 1), (node.lineno, last))
    return places
