"""Which calls may run what differs between two versions of a submission."""

from __future__ import annotations

import pytest

from grader.submission import reachability

KERNEL = '''\
"""Sums and products; `add` and `times` are the functions."""
import torch
from parts.helpers import halved as half

BLOCK = 64


def add_kernel(x):
    return x + BLOCK


def add(x):
    """x and more."""
    return add_kernel(half(x))


def times(x, factor=2):
    return shared(x) * factor


def shared(x):
    return x


if __name__ == "__main__":
    print(add(1))
'''
FILES = {
    "kernel.py": KERNEL,
    "parts/__init__.py": "",
    "parts/helpers.py": "def halved(x):\n    return x / 2\n\n\ndef unused(x):\n    return x\n",
    "parts/tests.py": "from parts.helpers import unused\n",
    "README.md": "add and times",
}
CHANGES = [
    ("kernel.py", "x + BLOCK", "x - BLOCK", "add"),
    ("kernel.py", "shared(x) * factor", "shared(x) + factor", "times"),
    ("kernel.py", "return x\n", "return 2 * x\n", "times"),
    ("kernel.py", "BLOCK = 64", "BLOCK = 32", "add times"),
    ("kernel.py", "BLOCK = 64", "BLOCK = -32", "add"),
    ("kernel.py", "BLOCK = 64", "BLOCK = 64 / 0", "add times"),
    ("kernel.py", "BLOCK = 64", "BLOCK = {[]: 64}", "add times"),
    ("kernel.py", "factor=2", "factor=1 / 0", "add times"),
    ("kernel.py", "def add_kernel", "@print\ndef add_kernel", "add times"),
    ("kernel.py", "import torch", "import torch, os", "add times"),
    ("kernel.py", "return x\n", "return (x\n", "add times"),  # no Python
    ("kernel.py", "return x\n", "return x  # as it came\n", ""),
    ("kernel.py", "x and more", "x and less", ""),
    ("parts/helpers.py", "x / 2", "x / 3", "add times"),  # `print(add(1))` stands there for all
    ("parts/helpers.py", "return x\n", "return -x\n", ""),
    ("parts/tests.py", "unused", "halved", ""),
    ("README.md", "times", "more", ""),
]


@pytest.mark.parametrize(("file", "find", "put", "reached"), CHANGES,
                         ids=[f"{file}: {put.strip()}" for file, _, put, _ in CHANGES])
def test_a_call_is_concerned_by_what_it_reaches(file, find, put, reached):
    without = {**FILES, "kernel.py": KERNEL.replace("    print(add(1))", "    pass")} \
        if reached != "add times" else FILES
    assert find in without[file]
    after = {**without, file: without[file].replace(find, put)}

    found = {entry for entry in ("add", "times")
             if reachability.changes(entry, without, after, ["kernel.py"])}

    assert found == set(reached.split())


@pytest.mark.parametrize("line", [
    'TEXT = """a text\n of lines"""; factor = 3', "other = 1; factor = 3", "factor = \\\n 3",
    'if True:\n    TEXT = """\n"""; factor = 3'])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r", "\n\f\n"])
def test_statements_are_told_apart_whatever_lines_they_share(line, ends):
    text = f"{line}\ndef add(x):\n    return x * factor\ndef times(x):\n    return x * other\n"
    before, after = ({"kernel.py": one.replace("\n", ends)} for one in (
        text, text.replace("3", "4")))

    assert reachability.changes("add", before, after, ["kernel.py"])


@pytest.mark.parametrize(("line", "file", "find"), [
    ("getattr(torch, 'shared')", "kernel.py", "return x\n"),
    ("open('notes')", "README.md", "add"),
    ("from parts.tests import *", "parts/helpers.py", "return x\n"),
    ("print(add.__doc__)", "kernel.py", "x and more"),
])
def test_what_is_looked_up_by_a_text_counts_as_reached(line, file, find):
    before = {**FILES, "kernel.py": KERNEL.replace("BLOCK = 64", line)}
    after = {**before, file: before[file].replace(find, f"{find} ")
             if not file.endswith(".py") else before[file].replace(find, find.replace("x", "xx"))}

    assert reachability.changes("add", before, after, ["kernel.py"])
    assert not reachability.changes("add", before, before, ["kernel.py"])


def test_a_function_that_comes_or_goes_is_a_change():
    after = {**FILES, "kernel.py": KERNEL.replace("def shared(", "def shares(")}

    assert reachability.changes("times", FILES, after, ["kernel.py"])
    assert reachability.changes("times", after, FILES, ["kernel.py"])
