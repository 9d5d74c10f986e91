"""Which accesses of a kernel go where loaded values say, as in a gather: told from its source."""

from __future__ import annotations

import ast
import textwrap

from grader import syntax

_READS = ("load", "gather", "atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg")
_ACCESSES = (*_READS, "store", "scatter", "atomic_and", "atomic_or", "atomic_xor")


def indexed_lines(source: str, first_line: int = 1) -> frozenset[int]:
    """Lines of the accesses whose pointer, or whose place in a descriptor, depends on a load.

    Args:
        source: of the kernel, decorators included or not.
        first_line: the line of the file that ``source`` begins with.

    A name holds a loaded value if any assignment to it does, wherever it stands: the order of
    statements is not followed, and neither are functions that the kernel calls.
    """
    tree = syntax.parse(textwrap.dedent(source))
    loaded: set[str] = set()
    while True:
        more = {name for names, value in _assignments(tree) if _depends(value, loaded)
                for name in names} - loaded
        if not more:
            break
        loaded |= more
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node) in _ACCESSES:
            where = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "pointer")]
            if any(_depends(part, loaded) for part in where):
                end = node.end_lineno or node.lineno
                found.update(range(node.lineno + first_line - 1, end + first_line))
    return frozenset(found)


def indexed_lines_of(source: str, kernel: str) -> frozenset[int]:
    """The same of one kernel at the top of a file; none where there is no such kernel."""
    for node in syntax.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == kernel:
            text = "\n".join(source.split("\n")[node.lineno - 1:node.end_lineno])
            return indexed_lines(text, node.lineno)
    return frozenset()


def _assignments(tree: ast.AST) -> list[tuple[set[str], ast.expr]]:
    made: list[tuple[set[str], ast.expr]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                made.append(({name for target in targets for name in _stored(target)}, value))
            case ast.AugAssign(target=target, value=value) | ast.For(target=target, iter=value):
                made.append((_stored(target), value))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                made.append((_stored(target), value))
    return made


def _stored(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def _depends(value: ast.expr, loaded: set[str]) -> bool:
    return any((isinstance(node, ast.Call) and _name(node) in _READS)
               or (isinstance(node, ast.Name) and node.id in loaded) for node in ast.walk(value))


def _name(call: ast.Call) -> str:
    function = call.func
    return syntax.last_name(function)
