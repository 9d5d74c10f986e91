"""The kernels of a file: functions under `@triton.jit` or given to `triton.jit`, at any depth."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from grader import syntax

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Definition:
    """One kernel.

    ``key`` is its name. Of several kernels with one name this is the last; the others have keys
    such as "add_kernel (line 12)". ``jit`` is the decorator, or the call of ``triton.jit`` that has
    its options. ``scopes`` are the functions and classes around the kernel, from the outside in.
    """

    key: str
    node: ast.FunctionDef
    jit: ast.expr
    scopes: tuple[Scope, ...]

    @property
    def first_line(self) -> int:
        """``co_firstlineno`` of the function's code."""
        decorators = self.node.decorator_list
        return decorators[0].lineno if decorators else self.node.lineno

    def sees(self, other: Definition) -> bool:
        """Whether this kernel finds the other one under its name: not inside of a class."""
        if not other.scopes:
            return True
        return not isinstance(other.scopes[-1], ast.ClassDef) and \
            self.scopes[:len(other.scopes)] == other.scopes


def definitions(tree: ast.Module) -> list[Definition]:
    """All kernels of a file, in the order of its lines."""
    functions: list[tuple[ast.FunctionDef, tuple[Scope, ...]]] = []
    calls: list[tuple[ast.Call, tuple[Scope, ...]]] = []
    for node, scopes in _with_scopes(tree):
        if isinstance(node, ast.FunctionDef):
            functions.append((node, scopes))
        elif isinstance(node, ast.Call):
            calls.append((node, scopes))
    jits: dict[ast.FunctionDef, tuple[ast.expr, tuple[Scope, ...]]] = {
        node: (decorator, scopes) for node, scopes in functions
        for decorator in node.decorator_list if is_jit(decorator)}
    for call, around in calls:
        name = given_to_jit(call)
        named = [(len(scopes), node.lineno, node, scopes) for node, scopes in functions
                 if node.name == name and around[:len(scopes)] == scopes] if name else []
        if named:
            *_, node, scopes = max(named, key=lambda one: one[:2])
            has_options = call.func if isinstance(call.func, ast.Call) else call
            jits.setdefault(node, (has_options, scopes))
    kernels = [Definition(node.name, node, jit, scopes) for node, (jit, scopes) in
               sorted(jits.items(), key=lambda one: one[0].lineno)]
    last = {one.node.name: one for one in kernels}
    return [one if last[one.node.name] is one else
            replace(one, key=f"{one.key} (line {one.node.lineno})") for one in kernels]


def is_kernel(function: ast.FunctionDef) -> bool:
    """Whether one of the decorators is Triton's ``jit``, called or not."""
    return any(is_jit(decorator) for decorator in function.decorator_list)


def is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return syntax.last_name(target) == "jit"


def given_to_jit(node: ast.AST) -> str:
    """``add`` of ``triton.jit(add)``, ``triton.jit(fn=add)`` and ``triton.jit(debug=True)(add)``.

    Empty for every other expression.
    """
    match node:
        case ast.Call(function, [ast.Name(name)]) if is_jit(function):
            return name
        case ast.Call(function, [], keywords) if is_jit(function):
            return next((word.value.id for word in keywords
                         if word.arg == "fn" and isinstance(word.value, ast.Name)), "")
    return ""


def scopes_of(kernels: Iterable[Definition]) -> set[Scope]:
    """All functions and classes around kernels."""
    return {scope for kernel in kernels for scope in kernel.scopes}


def _with_scopes(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[Scope, ...]]]:
    """All nodes with the scopes around them, without recursion, so at any depth."""
    pending: list[tuple[ast.AST, tuple[Scope, ...]]] = [(tree, ())]
    while pending:
        node, scopes = pending.pop()
        yield node, scopes
        inner = (*scopes, node) if isinstance(node, Scope) else scopes
        pending += [(child, inner) for child in ast.iter_child_nodes(node)]
