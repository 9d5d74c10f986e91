"""Digest of the code that a kernel is compiled from; comments and host functions are not in it."""

import ast
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from grader.submission import dataflow, syntax
from grader.submission.dataflow import KernelDefinition, Piece, kernel_definitions

_TUNERS = ("autotune", "heuristics")  # decorators that choose arguments of launches
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class KernelCode:
    """The code of one kernel.

    ``lines`` are those that the code stands on, in order. Two files with the same ``sha256`` have
    the same code, and a line of one has the same index in ``lines`` as its counterpart.
    """

    sha256: str
    lines: tuple[int, ...]
    constants: frozenset[str]  # parameters that are tl.constexpr


@dataclass(frozen=True)
class _Statement:
    """A statement of a file, read without docstrings and without decorators that tune.

    ``places`` are the first and the last line of each part of it. ``binds`` are the names that it
    binds, and ``reaches`` those in it, decorators included.
    """

    node: ast.stmt
    sha256: bytes
    places: tuple[tuple[int, int], ...]
    names: frozenset[str]
    binds: frozenset[str]
    reaches: frozenset[str]


@lru_cache(maxsize=32)  # asked for each launch of a grade
def kernel_code(text: str, key: str, functions: frozenset[str] = frozenset()) -> KernelCode | None:
    """Returns the code that a kernel of a file can depend on.

    It holds every statement of the file but the functions that no kernel names: of these, only
    the names that they bind for the others. None where kernels share a name, or the file is nested
    too deeply.

    Args:
        key: of the kernel, as in ``KernelDefinition``.
        functions: kernels that a launch passes as arguments.
    """
    try:
        kernels, statements = _read(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if any(one.node.name != name for name, one in kernels.items()) or \
            not kernels.keys() >= {key, *functions}:
        return None
    parts, hidden = _parts(statements, kernels, {key, *functions})
    lines = sorted({line for part in parts for place in part.places for line in place})
    index = {line: number for number, line in enumerate(lines)}
    code = [(part.sha256, [(index[first], index[last]) for first, last in part.places])
            for part in parts]
    sha256 = hashlib.sha256(repr((key, code, hidden)).encode("utf-8", "backslashreplace"))
    return KernelCode(sha256.hexdigest(), tuple(lines), _constants(kernels[key].node))


@lru_cache(maxsize=4)
def _read(text: str) -> tuple[Mapping[str, KernelDefinition], list[_Statement]]:
    """The kernels of a file by their keys, and its statements but docstrings.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``syntax.parse`` does.
    """
    tree = syntax.parse(text)  # not shared: it is changed
    kernels = {one.key: one for one in kernel_definitions(tree)}
    return kernels, [_statement(node) for node in tree.body if not (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]


def _statement(node: ast.stmt) -> _Statement:
    """Reads a statement, and removes what is not read from its tree."""
    reaches = frozenset(syntax.names([node]))
    for inner in ast.walk(node):
        if isinstance(inner, _Function):
            if ast.get_docstring(inner, clean=False) is not None:
                del inner.body[0]
            inner.decorator_list = [one for one in inner.decorator_list if syntax.last_name(
                one.func if isinstance(one, ast.Call) else one) not in _TUNERS]
    places = tuple((inner.lineno, inner.end_lineno or inner.lineno) for inner in ast.walk(node)
                   if isinstance(inner, ast.stmt | ast.expr | ast.arg))
    dump = ast.dump(node).encode("utf-8", "backslashreplace")
    return _Statement(node, hashlib.sha256(dump).digest(), places, frozenset(syntax.names([node])),
                      frozenset(syntax.names_bound_by(node)), reaches)


def _parts(statements: Sequence[_Statement], kernels: Mapping[str, KernelDefinition],
           roots: Collection[str]) -> tuple[list[_Statement], list[str]]:
    """The statements that a kernel can depend on, and names of theirs that other functions bind."""
    reached, _ = dataflow.reached(roots, [
        Piece((frozenset((one.node.name,)),), one.reaches)
        for one in statements if isinstance(one.node, _Function)])
    around = {scope for one in kernels.values() for scope in one.scopes}
    parts, bound = [], set[str]()
    for one in statements:
        if isinstance(one.node, _Function) and one.node.name not in reached and \
                one.node not in around:
            bound |= one.binds
        else:
            parts.append(one)
    needed = frozenset().union(*(part.names for part in parts)) | kernels.keys()
    return parts, sorted(bound & needed)


def _constants(kernel: ast.FunctionDef) -> frozenset[str]:
    """The parameters whose annotation may be ``tl.constexpr``."""
    arguments = kernel.args
    return frozenset(
        one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        if one.annotation is not None)
