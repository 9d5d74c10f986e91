"""Forms and fragments: what a disguise changes, and what it does not."""

import random

import pytest

from tests.classroom.similarity.disguises import DISGUISES
from tritonlab.classroom.similarity import canonical, fragments
from tritonlab.course import course

SOURCE = """\
import triton.language as tl

def f(x, rows):  # a comment
    '''A docstring.'''
    total = x + 1
    other = x * 2
    return g(total, other, rows=rows)

def g(total, other, rows):
    return f"{total} of {rows}", tl.sum(other, axis=0)
"""


@pytest.mark.parametrize(("old", "new"), [
    ("x + 1", "(x + 1)"), ("# a comment", "# another one"), ("'''A docstring.'''", '"""None."""'),
    ("x * 2", "x*2"), ("rows=rows", "rows=rows,")])
def test_formatting_leaves_the_formatted_source(old, new):
    changed = SOURCE.replace(old, new, 1)

    assert changed != SOURCE
    assert canonical.formatted(changed) == canonical.formatted(SOURCE) != ""
    assert fragments.read(changed).shape == fragments.read(SOURCE).shape


@pytest.mark.parametrize(("old", "new"), [
    ("total", "amount"), ("rows", "count"), ("    total = x + 1\n    other = x * 2\n",
                                             "    other = x * 2\n    total = x + 1\n")])
def test_names_and_order_leave_the_digest(old, new):
    changed = SOURCE.replace(old, new)

    assert canonical.formatted(changed) != canonical.formatted(SOURCE)
    assert fragments.read(changed).shape == fragments.read(SOURCE).shape
    assert canonical.unnamed(changed) == canonical.unnamed(SOURCE) != ""


@pytest.mark.parametrize(("old", "new"), [
    ("x + 1", "x + 2"), ("g(total, other", "g(other, total"), ("axis=0", "axis=1"),
    ("tl.sum", "tl.max"), ("x * 2", "total * 2"), ("f\"{total} of", "f\"{rows} of")])
def test_another_program_has_another_digest(old, new):
    changed = SOURCE.replace(old, new, 1)

    assert changed != SOURCE
    assert canonical.unnamed(changed) != canonical.unnamed(SOURCE)


@pytest.mark.parametrize("name", ["as it is", "renamed", "reordered", "reformatted",
                                  "comments rewritten"])
def test_a_disguise_leaves_the_digest_of_a_solution(name):
    source = course.load().find("track1/softmax").solution.read_text()

    changed = DISGUISES[name](source, random.Random(1))

    assert canonical.unnamed(changed) == canonical.unnamed(source) != ""


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguise_leaves_a_program_that_python_reads(name):
    source = course.load().find("track1/softmax").solution.read_text()

    assert compile(DISGUISES[name](source, random.Random(1)), name, "exec")


@pytest.mark.parametrize("text", ["x = (", "def f(:", "\0", "(" * 2_000, "x = " + "-" * 20_000])
def test_what_is_not_python_has_no_form(text):
    assert (canonical.formatted(text), canonical.unnamed(text)) == ("", "")
    fragments.read(text)


def test_names_are_those_that_a_text_chooses():
    assert fragments.read(SOURCE).names == {"f", "g", "x", "rows", "total", "other"}


def test_a_bracket_that_is_left_open_ends_before_the_next_definition():
    read = fragments.read("x = f((1, 2)\ndef g(y):\n    return y\n")

    assert len(read.code) == 3


def test_a_huge_file_is_read_up_to_a_limit():
    read = fragments.read("x = 1\n" * 100_000)

    assert len(read.code) <= fragments.MOST_TOKENS
