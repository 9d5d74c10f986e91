"""Digest of the code that a kernel is compiled from; comments and host functions are not in it."""

import ast
import hashlib
from collections.abc import Collection, Mapping
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
        tree = syntax.parse(text)  # not shared: it is changed below
        kernels = {one.key: one for one in kernel_definitions(tree)}
        if any(one.node.name != name for name, one in kernels.items()) or \
                not kernels.keys() >= {key, *functions}:
            return None
        parts, hidden = _parts(tree, kernels, {key, *functions})
        dumps = [ast.dump(part) for part in parts]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    places = [(node.lineno, node.end_lineno) for part in parts for node in ast.walk(part)
              if isinstance(node, ast.stmt | ast.expr | ast.arg)]
    lines = sorted({line for place in places for line in place if line})
    index = {line: number for number, line in enumerate(lines)}
    layout = [(index[first], index.get(last or first)) for first, last in places]
    sha256 = hashlib.sha256(repr((key, dumps, hidden, layout)).encode("utf-8", "backslashreplace"))
    return KernelCode(sha256.hexdigest(), tuple(lines), _constants(kernels[key].node))


def _parts(tree: ast.Module, kernels: Mapping[str, KernelDefinition],
           roots: Collection[str]) -> tuple[list[ast.stmt], list[str]]:
    """The statements that a kernel can depend on, and names of theirs that other functions bind."""
    reached, _ = dataflow.reached(roots, [
        Piece((frozenset((node.name,)),), frozenset(syntax.names([node])))
        for node in tree.body if isinstance(node, _Function)])
    around = {scope for one in kernels.values() for scope in one.scopes}
    parts, bound = [], set[str]()
    for statement in tree.body:
        if isinstance(statement, _Function) and statement.name not in reached and \
                statement not in around:
            bound |= syntax.names_bound_by(statement)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            parts.append(statement)
    for node in (node for part in parts for node in ast.walk(part) if isinstance(node, _Function)):
        if ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        node.decorator_list = [one for one in node.decorator_list if syntax.last_name(
            one.func if isinstance(one, ast.Call) else one) not in _TUNERS]
    return parts, sorted(bound & (syntax.names(parts) | kernels.keys()))


def _constants(kernel: ast.FunctionDef) -> frozenset[str]:
    """The parameters whose annotation may be ``tl.constexpr``."""
    arguments = kernel.args
    return frozenset(
        one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        if one.annotation is not None)
