"""Analyzes a kernel before it runs: the tensors it may store to, and the execution mode."""

import ast
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import triton.language as tl
from triton.runtime.jit import JITCallable

from grader.engine.interpreter.rewrite import definition, names_of, parameters
from grader.submission.dataflow import Piece, reached
from grader.submission.syntax import last_name

_STORES = ("store", "store_tensor_descriptor", "scatter", "reduce")
_PRINTS = {"print", "device_print", "static_print", "breakpoint", "set_trace"}
_LOCKS = {"atomic_cas", "atomic_xchg"}
# Triton's own functions by identity: a file may import them under any name.
_ORIGINALS = {id(value): name for name, value in vars(tl).items() if callable(value)}


@cache
def one_at_a_time(fn: Any) -> bool:
    """Whether a kernel prints, or takes turns by a lock.

    As a group its programs would only get in each other's way.
    """
    nodes = [node for each in _reachable(fn, set()) for node in ast.walk(definition(each.__code__))]
    called = {last_name(node.func) for node in nodes if isinstance(node, ast.Call)}
    loops = any(isinstance(node, ast.While) for node in nodes)
    return bool(called & _PRINTS or (loops and called & _LOCKS))


def _reachable(fn: Any, visited: set[int]) -> Iterator[Any]:
    """A function and the jit functions that it names, Triton's own library left out."""
    visited.add(id(fn))
    yield fn
    visible = names_of(fn)
    for node in ast.walk(definition(fn.__code__)):
        if isinstance(node, ast.Name | ast.Attribute):
            value = _resolved(node, visible)
            inner = getattr(value, "fn", None)
            if (isinstance(value, JITCallable) and id(inner) not in visited
                    and not value.__module__.startswith("triton.")):
                yield from _reachable(inner, visited)


@cache
def stored_into(fn: Any, callers: tuple[int, ...] = ()) -> frozenset[str] | None:
    """Parameters that the pointer of a store may come from; None: it may come from anywhere."""
    if id(fn) in callers:
        return None
    tree = definition(fn.__code__)
    visible = names_of(fn)
    given = frozenset(parameters(tree))
    flows = [Piece((frozenset(_names(target, visible)),), frozenset(_names(source, visible)))
             for node in ast.walk(tree) for target, source in _assignments(node)]
    local = given.union(*(piece.conditions[0] for piece in flows))
    stored: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        helper = _resolved(node.func, visible)
        name = last_name(node.func)
        if isinstance(node.func, ast.Name):
            if name in local:
                return None  # a function that was handed over, or got another name
            name = _ORIGINALS.get(id(helper), name)
        if name == "pointer_type":
            return None  # a pointer made of numbers
        if name in _STORES or name.startswith("atomic_") or name.endswith("_atomic"):
            where = [node.func, *node.args[:1], *(k.value for k in node.keywords)]
        elif isinstance(helper, JITCallable) and not _of_triton(helper):
            if (passed := _passed(node, helper, (*callers, id(fn)))) is None:
                return None
            where = passed
        elif _harmless(node.func, helper, visible):
            continue
        else:
            return None
        stored.update(*(_names(part, visible) for part in where))
    return reached(stored, flows)[0] & given  # from targets back to what is assigned to them


def _resolved(node: ast.AST, visible: dict[str, Any]) -> Any:
    """The object behind ``name`` or ``module.name``; None where that is not known."""
    if isinstance(node, ast.Attribute):
        owner = _resolved(node.value, visible)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return visible.get(node.id) if isinstance(node, ast.Name) else None


def _of_triton(function: Any) -> bool:
    return (getattr(function, "__module__", "") or "").startswith("triton.")


def _harmless(function: ast.expr, value: Any, visible: dict[str, Any]) -> bool:
    """Whether a call stores nothing: of Triton's language, of Python's own, or a block's method."""
    if value is not None:
        return _of_triton(value) or not isinstance(value, JITCallable)
    if isinstance(function, ast.Name):
        return function.id not in visible  # a builtin; a name of the kernel's was seen before
    if not isinstance(function, ast.Attribute):
        return False
    if hasattr(tl.tensor, function.attr):
        return True
    while isinstance(function := function.value, ast.Attribute):
        pass
    return isinstance(function, ast.Name) and function.id in visible


def _passed(call: ast.Call, helper: Any, callers: tuple[int, ...]) -> list[ast.expr] | None:
    """The arguments of a call that the called function may store into."""
    stored = stored_into(helper.fn, callers)
    if stored is None or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    names = parameters(definition(helper.fn.__code__))
    given = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
    return [value for name, value in given if name in stored]


def _assignments(node: Any) -> list[tuple[ast.AST, ast.AST]]:
    """Targets and what is assigned to them, by a statement, ``:=`` or a loop."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    source = getattr(node, "value", None) or getattr(node, "iter", None)
    return [(target, source) for target in targets if target and source]


def _names(node: ast.AST, visible: dict[str, Any]) -> set[str]:
    """Names in an expression, those left out that only say from where to load."""
    if isinstance(node, ast.Call) and _loads(node.func, visible):
        return set()
    own = {node.id} if isinstance(node, ast.Name) else set()
    return own.union(*(_names(child, visible) for child in ast.iter_child_nodes(node)))


def _loads(function: ast.expr, visible: dict[str, Any]) -> bool:
    if isinstance(function, ast.Name):
        return _ORIGINALS.get(id(visible.get(function.id))) == "load"
    return isinstance(function, ast.Attribute) and function.attr == "load"
