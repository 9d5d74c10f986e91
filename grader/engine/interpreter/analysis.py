"""What is known of a kernel before it runs: what it may store into, and how it has to be run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from triton.runtime.jit import JITCallable

from grader.engine.interpreter.rewrite import definition

_STORES = ("store", "store_tensor_descriptor", "scatter", "reduce")
_PRINTS = ("print", "device_print", "static_print", "breakpoint", "set_trace")
_LOCKS = ("atomic_cas", "atomic_xchg")
_known: dict[int, tuple[Any, Facts]] = {}


@dataclass(frozen=True)
class Facts:
    """``stored``: parameters whose tensors may be stored into; None: any of them.

    ``one_at_a_time``: the kernel prints, or takes turns by a lock: as a group its programs would
    only get in each other's way.
    """

    stored: frozenset[str] | None
    one_at_a_time: bool


def facts(kernel: Any) -> Facts:
    """Of a ``JITFunction``, with all that it calls."""
    known = _known.get(id(kernel))
    if known is None or known[0] is not kernel:
        known = (kernel, _facts(kernel))
        _known[id(kernel)] = known
    return known[1]


def _facts(kernel: Any) -> Facts:
    trees = [definition(fn.__code__) for fn in _reachable(kernel.fn, set())]
    called = [_name(node.func) for tree in trees for node in ast.walk(tree)
              if isinstance(node, ast.Call)]
    loops = any(isinstance(node, ast.While) for tree in trees for node in ast.walk(tree))
    locks = loops and any(name in _LOCKS for name in called)
    prints = any(name in _PRINTS for name in called)
    return Facts(_stored(trees[0], kernel.fn.__globals__), prints or locks)


def _reachable(fn: Any, seen: set[int]) -> Iterator[Any]:
    """A function and the jit functions that it names, Triton's own library left out."""
    seen.add(id(fn))
    yield fn
    for node in ast.walk(definition(fn.__code__)):
        if isinstance(node, ast.Name):
            value = fn.__globals__.get(node.id)
            inner = getattr(value, "fn", None)
            if (isinstance(value, JITCallable) and id(inner) not in seen
                    and not value.__module__.startswith("triton.")):
                yield from _reachable(inner, seen)


def _stored(tree: ast.FunctionDef, visible: dict[str, Any]) -> frozenset[str] | None:
    """Parameters that a store's pointer may come from; helpers may store into all they get."""
    arguments = tree.args
    flows: dict[str, set[str]] = {
        a.arg: {a.arg} for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    parameters = frozenset(flows)
    nodes = list(ast.walk(tree))
    changed = True
    while changed:
        changed = False
        for node in nodes:
            for targets, source in _assignments(node):
                came = set().union(*(flows.get(name, set()) for name in _names(source)), set())
                for name in _names(targets):
                    before = flows.setdefault(name, set())
                    if not came <= before:
                        before |= came
                        changed = True
    stored: set[str] = set()
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        if name == "pointer_type":
            return None  # a pointer made of numbers may lead anywhere
        if name in _STORES or name.startswith("atomic_") or name.endswith("_atomic"):
            where = [node.func, *node.args[:1], *(k.value for k in node.keywords)]
        elif isinstance(node.func, ast.Name) and isinstance(
                visible.get(node.func.id), JITCallable):
            where = [*node.args, *(k.value for k in node.keywords)]
        elif isinstance(node.func, ast.Name) and node.func.id in parameters:
            return None  # a function that was handed over
        else:
            continue
        for part in where:
            for used in _names(part):
                stored |= flows.get(used, set())
    return frozenset(stored)


def _assignments(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    match node:
        case ast.Assign(targets, value):
            for target in targets:
                yield target, value
        case ast.AugAssign(target, _, value):
            yield target, value
        case ast.AnnAssign(target, _, value) if value is not None:
            yield target, value
        case ast.NamedExpr(target, value):
            yield target, value
        case ast.For(target, source):
            yield target, source


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
