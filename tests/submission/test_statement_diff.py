"""Statements in which two files differ, and the file with some of them replaced."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from grader.submission.statement_diff import edits, patched

RIGHT = '''
import triton

BLOCK = 64


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    """Doubles."""
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    for step in range(2):
        x = tl.load(x_ptr + offs, mask=mask)
        tl.store(x_ptr + offs, 2 * x, mask=mask)


def double(x):
    kernel[(1,)](x, x.numel(), BLOCK=BLOCK)
    return x
'''


def _edits(wrong: str) -> list[tuple[int, bool, bool]]:
    return [(one.line, one.mine is None, one.theirs is None)
            for one in edits(ast.parse(wrong), ast.parse(RIGHT))]


@pytest.mark.parametrize(("old", "new", "expected"), [
    ("offs < n", "offs <= n", [(11, False, False)]),
    ("2 * x", "x", [(14, False, False)]),
    ("    mask = offs < n\n", "", [(10, True, False)]),
    ("    return x\n", "    x = x\n    return x\n", [(19, False, True)]),
    ("range(2)", "range(3)", [(12, False, False)]),
    ("BLOCK = 64", "BLOCK = 32", [(4, False, False)]),
    ("x_ptr, n, BLOCK: tl.constexpr", "n, x_ptr, BLOCK: tl.constexpr", [(7, False, False)]),
    ('    """Doubles."""\n', "    # another comment\n", []),
    ("import triton\n", "import triton, torch\n", []),
    ("def double", "def helper(x):\n    return x\n\n\ndef double", []),
])
def test_the_statements_that_differ_are_found_in_both_files(old, new, expected):
    assert old in RIGHT

    assert _edits(RIGHT.replace(old, new)) == expected


@pytest.mark.parametrize(("old", "new"), [
    ("offs < n", "offs <= n"), ("    mask = offs < n\n", ""), ("range(2)", "range(3)"),
    ("    return x\n", "    x = x\n    return x\n"), ("n, BLOCK:", "m, BLOCK:"),
    ("        x = tl.load(x_ptr + offs, mask=mask)\n", "        pass\n"),
    ("    mask = offs < n\n    for step in range(2):\n",
     "    for step in range(2):\n        pass\n    mask = offs <= n\n    for step in range(2):\n"),
    ("    offs = tl.arange(0, BLOCK)\n    mask = offs < n\n",
     "    mask = n > 0\n    offs = tl.arange(0, BLOCK)\n"),
])
def test_a_file_with_all_edits_is_the_other_one(old, new):
    tree = ast.parse(RIGHT.replace(old, new).replace("import triton\n", ""))

    text = patched(tree, edits(tree, ast.parse(RIGHT)))

    assert edits(ast.parse(text), ast.parse(RIGHT)) == []


def test_methods_and_handlers_are_looked_into():
    right = """
class A:
    def f(self, x):
        try:
            y = x + 1
        except ValueError:
            y = 0
        return y
"""
    wrong = right.replace("y = 0", "y = 1").replace("x + 1", "x + 2")
    tree = ast.parse(wrong)
    differing = edits(tree, ast.parse(right))

    assert [one.line for one in differing] == [5, 7]
    assert ast.dump(ast.parse(patched(tree, differing))) == ast.dump(ast.parse(right))
    assert [one.line for one in edits(ast.parse(right.replace("ValueError", "KeyError")),
                                      ast.parse(right))] == [6]


def test_functions_of_one_name_are_compared_one_by_one():
    right = "@a\ndef _(x):\n    y = 1\n\n\n@b\ndef _(x):\n    y = 2\n"

    differing = edits(ast.parse(right.replace("y = 1", "y = 3")), ast.parse(right))

    assert [one.line for one in differing] == [3]


def test_a_missing_statement_follows_the_last_line_of_the_one_before_it():
    right = "def f(x):\n    if x:\n        y = 1\n    z = 2\n"

    differing = edits(ast.parse(right.replace("    z = 2\n", "")), ast.parse(right))

    assert [one.line for one in differing] == [3]


def test_other_names_are_many_edits():
    renamed = dedent(RIGHT).replace("offs", "indices").replace("mask", "inside")

    assert len(_edits(renamed)) > 2
