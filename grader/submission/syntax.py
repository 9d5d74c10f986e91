"""Python's parser, and questions about the trees that it returns."""

import ast
import re
import threading
from collections.abc import Iterable, Mapping
from functools import lru_cache

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_DECIMAL_BITS = 14_000  # of the largest integers that ``repr`` writes: 4,300 digits
_LONG_WORD = re.compile(rf"\w{{{_DECIMAL_BITS // 4}}}")  # an integer above may stand in

# CPython 3.11 counts how deep a tree is in one place for all threads. Where two threads parse at
# the same time, and one of them stands deeper in calls, it raises SystemError ("AST constructor
# recursion depth mismatch").
_PARSING = threading.Lock()


class _LongInteger(int):
    """Writes itself in hexadecimal, which Python allows for any length."""

    def __repr__(self) -> str:
        return hex(self)


def parse(text: str) -> ast.Module:
    """Parses a text to a tree that ``ast.unparse`` can write, however long its integers are.

    The tree is for reading: it cannot be compiled.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse`` does.
    """
    with _PARSING:
        tree = ast.parse(text)
    for node in ast.walk(tree) if _LONG_WORD.search(text) else ():
        if isinstance(node, ast.Constant) and type(node.value) is int and \
                node.value.bit_length() > _DECIMAL_BITS:
            node.value = _LongInteger(node.value)
    return tree


@lru_cache(maxsize=8)  # every finding of a grade asks, of the same files
def shared(text: str) -> ast.Module:
    """Parses a text to a tree that is shared: callers leave it as it is.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse`` does.
    """
    return parse(text)


def tree_of(text: str) -> ast.Module:
    """Parses a text, or returns an empty tree where it is not Python, or is nested too deeply.

    The tree is shared: callers leave it as it is.
    """
    try:
        return shared(text)
    except _UNREADABLE:
        return ast.Module([], [])


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions at the top of a file."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


# -- lines --------------------------------------------------------------------------------------


def first_line(node: ast.stmt) -> int:
    """The first line of a statement, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def last_line(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def lines_of(node: ast.stmt | ast.expr) -> range:
    """The lines of a statement or an expression, without decorators."""
    return range(node.lineno, last_line(node) + 1)


# -- names --------------------------------------------------------------------------------------


def names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names in these nodes, at any depth; attributes and keywords are none."""
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def last_name(node: ast.AST) -> str:
    """``c`` of the expressions ``a.b.c`` and ``c``; empty for every other one."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def dotted(node: ast.AST, imports: Mapping[str, str],
           local: set[str] | frozenset[str] = frozenset()) -> str | None:
    """``tl.math.exp`` as ``triton.language.math.exp``; None where no import binds the first name.

    Args:
        node: a name or an attribute.
        imports: imported names -> what each stands for, dotted.
        local: names that hide the imported ones.
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id in local or node.id not in imports:
        return None
    return ".".join([imports[node.id], *reversed(parts)])


def imported(node: ast.stmt) -> list[tuple[str, str]]:
    """The names that an import binds, and what it imports for each, dotted.

    ``import a.b`` binds ``a``. Every other statement, and ``from . import a``, has none.
    """
    if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
        return [(alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names]
    if isinstance(node, ast.Import):
        return [(bound_name(alias), alias.name) for alias in node.names]
    return []


def bound_name(alias: ast.alias) -> str:
    """The name that one part of an import binds."""
    return alias.asname or alias.name.partition(".")[0]


def names_bound_by(statement: ast.stmt) -> set[str]:
    """The names that a statement binds itself, or, of a function or class, by ``global``."""
    match statement:
        case ast.Import(aliases) | ast.ImportFrom(names=aliases):
            return {bound_name(alias) for alias in aliases}
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return {name, *(declared for node in ast.walk(statement)
                            if isinstance(node, ast.Global) for declared in node.names)}
        case ast.AnnAssign(value=None):
            return set()
    return _names_stored(statement)


def _names_stored(statement: ast.stmt) -> set[str]:
    """The names that a statement gives values, those of inner statements and scopes left out."""
    stored: set[str] = set()
    pending: list[ast.AST] = [statement]  # no recursion: expressions may be nested at any depth
    while pending:
        for child in ast.iter_child_nodes(pending.pop()):
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case
                          | ast.comprehension | ast.Lambda):
                continue
            if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
                stored.add(child.id)
            pending.append(child)
    return stored


def parameter_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """All parameters of a function, those of lambdas in their defaults included."""
    return [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]
