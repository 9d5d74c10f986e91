"""Every test asserts something, directly or through a helper of the tests."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
FILES = sorted(path for path in HERE.rglob("test_*.py") if not {"fidelity", "benchmarks"} & set(
    path.relative_to(HERE).parts[:1]))
SHARED = [HERE / "conftest.py", *sorted((HERE / "support").rglob("*.py"))]
EXPECTS = frozenset(("raises", "warns", "assert_close"))  # of pytest and torch


class Function(NamedTuple):
    """What a function calls, and whether it has an `assert` of its own."""

    name: str
    calls: frozenset[str]
    asserts: bool

    @classmethod
    def of(cls, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
        nodes = list(ast.walk(node))
        called = [one.func for one in nodes if isinstance(one, ast.Call)]
        return cls(node.name, frozenset(
            one.id if isinstance(one, ast.Name) else one.attr for one in called
            if isinstance(one, ast.Name | ast.Attribute)),
            any(isinstance(one, ast.Assert) for one in nodes))


@cache  # shared helpers are read for every file of tests
def functions(path: Path) -> list[Function]:
    return [Function.of(node) for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def asserts(function: Function, helpers: set[str] | frozenset[str]) -> bool:
    return function.asserts or bool(function.calls & helpers)


def asserting(helpers: list[Function]) -> set[str]:
    """Helpers with an `assert`, their own or that of a helper that they call."""
    names: set[str] = set()
    while new := {one.name for one in helpers if asserts(one, names)} - names:
        names |= new
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_every_test_asserts(path):
    here = functions(path)
    shared = [function for other in SHARED for function in functions(other)]
    helpers = asserting([*shared, *(one for one in here if not one.name.startswith("test_"))])

    silent = [one.name for one in here
              if one.name.startswith("test_") and not asserts(one, helpers | EXPECTS)]

    assert silent == []


@pytest.mark.parametrize(("text", "expected"), [
    ("def test_it():\n    run()", False), ("def test_it():\n    assert run()", True),
    ("def test_it():\n    with pytest.raises(ValueError):\n        run()", True),
    ("def test_it():\n    shows('x')", True)])
def test_a_test_without_an_assertion_is_noticed(text, expected):
    [node] = ast.parse(text).body

    assert asserts(Function.of(node), {"raises", "shows"}) is expected
