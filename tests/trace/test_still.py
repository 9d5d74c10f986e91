"""Stills of launches, and the pictures of the lessons that are made of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from grader.recording.trace import Group, TracedAccess, TracedStep
from tests.evidence import lesson_pictures
from tritonlab.course import course
from tritonlab.trace import still
from tritonlab.trace.still import StillTensor

OFFSETS = np.array([[0, 1, 2, 3], [4, 5, 6, 7]])
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
ARRAYS = {0: OFFSETS, 1: MASK}.__getitem__
COPY = [Group([0, 1], [TracedStep(1, "copy", accesses=[
    TracedAccess("load", 0, 0, 1, None), TracedAccess("store", 1, 0, 1, None)])])]
ROW = StillTensor("x", (6,), (1,)), StillTensor("out", (6,), (1,))


def fills(svg: str) -> list[tuple[str, str]]:
    """Width and color of the drawn runs."""
    return re.findall(r'<rect x="[\d.]+" y="[\d.]+" width="([\d.]+)" height="[\d.]+" '
                      r'fill="(#\w+)"/>', svg)


def test_the_elements_of_one_program_are_colored() -> None:
    svg = still.svg(ROW, COPY, ARRAYS, 1, "A copy.")

    assert fills(svg) == [("72", "#C9CED6"), ("36", "#56B4E9"),
                          ("72", "#C9CED6"), ("36", "#E69F00")]
    assert "program 1 loads" in svg and "program 1 stores" in svg and "other programs" in svg


def test_a_transposed_tensor_is_drawn_by_its_strides() -> None:
    columns = StillTensor("x", (2, 3), (1, 2)), StillTensor("out", (6,), (1,))

    svg = still.svg(columns, COPY, ARRAYS, 1, "A copy.")

    assert fills(svg)[:4] == [("36", "#C9CED6"), ("18", "#56B4E9")] * 2


def test_the_picture_is_described_in_a_sentence() -> None:
    assert still.described(ROW, COPY, ARRAYS, 1, 2) == \
        "Program 1 of 2 loads 2 of 6 elements of x and stores 2 of 6 elements of out."


@pytest.mark.course
@pytest.mark.parametrize("module", [*course.load().modules], ids=lambda module: module.id)
def test_the_picture_of_a_lesson_is_what_its_trace_gives(module) -> None:
    assert (module.folder / "picture.svg").read_text() == lesson_pictures.picture(module)
