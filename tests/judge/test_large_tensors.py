"""Results at their real size are judged whole, or rows by rows where that takes less memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grader.judge import large_tensors
from grader.recording.model import Recording, View
from grader.report import Kind
from grader.suite import EXACT, Suite, Tolerance
from grader.suite.cases import Case
from grader.suite.error_bounds import softmax

ROWS, COLUMNS = 1_000, 33
CASE = Case("large", Kind.PERFORMANCE)
SOFTMAX = Suite(entry="softmax", parameters=("x",), reference=lambda x: x.double().softmax(1),
                tolerance=Tolerance(lambda x: softmax(x, 1)))
PRODUCT = Suite(entry="product", parameters=("a", "b"), tolerance=EXACT,
                reference=lambda a, b: a.double() @ b.double())


def recording(result: torch.Tensor) -> Recording:
    view = View(1, "float32", tuple(result.shape), result.stride(), 0)
    return Recording((), (), (view,))


@pytest.fixture(params=[1 << 30, 8 * large_tensors.ROOM * COLUMNS * 100], ids=["whole", "in parts"])
def room(request, monkeypatch):
    monkeypatch.setattr(large_tensors, "_room", lambda: request.param)
    monkeypatch.setattr(large_tensors, "device", lambda: "cpu")


@pytest.mark.parametrize("wrong", [None, 0, ROWS - 1])
def test_one_wrong_row_is_found(room, wrong):
    x = torch.randn(ROWS, COLUMNS)
    result = x.softmax(1)
    if wrong is not None:
        result[wrong] = result[wrong].flip(0)

    findings, difference = large_tensors.check(SOFTMAX, CASE, recording(result), [result], [x])

    assert findings == []
    assert (difference is not None) == (wrong is not None)


def test_a_result_of_another_shape_breaks_the_contract(monkeypatch):
    monkeypatch.setattr(large_tensors, "device", lambda: "cpu")
    x = torch.randn(8, COLUMNS)
    result = x.softmax(1)[:, :-1].contiguous()

    findings, _ = large_tensors.check(SOFTMAX, CASE, recording(result), [result], [x])

    assert findings[0].code == "S01"


def test_rows_that_depend_on_others_are_never_taken_apart(monkeypatch):
    monkeypatch.setattr(large_tensors, "device", lambda: "cpu")
    monkeypatch.setattr(large_tensors, "_room", lambda: 0)
    down = replace(SOFTMAX, reference=lambda x: x.double().softmax(0))
    x = torch.randn(ROWS, COLUMNS)
    square = torch.randn(256, 256)

    for suite, inputs in ((down, [x]), (PRODUCT, [square, square])):
        result = suite.reference(*inputs).float()
        with pytest.raises(MemoryError):
            large_tensors.check(suite, CASE, recording(result), [result], inputs)


@pytest.mark.parametrize("wrong", [None, 0, 500, ROWS - 1])
def test_of_what_is_too_large_to_move_some_rows_are_judged(monkeypatch, wrong):
    monkeypatch.setattr(large_tensors, "device", lambda: "cpu")
    monkeypatch.setattr(large_tensors, "MOST_MOVED", 1_000)
    x = torch.randn(ROWS, COLUMNS)
    result = x.softmax(1)
    if wrong is not None:
        result[wrong] = result[wrong].flip(0)

    rows = large_tensors.windows(SOFTMAX, recording(result), [x])
    parts = [result[first:first + count].reshape(-1) for first, count in rows]
    found = large_tensors.compare_rows(SOFTMAX, rows, parts, recording(result), [x])

    seen = any(first <= (wrong or 0) < first + count for first, count in rows)
    assert (found is not None) == (wrong is not None and seen)
    assert (rows[0][0], sum(rows[-1])) == (0, ROWS)


def test_what_has_no_rows_of_its_own_is_moved_whole(monkeypatch):
    monkeypatch.setattr(large_tensors, "device", lambda: "cpu")
    monkeypatch.setattr(large_tensors, "MOST_MOVED", 1_000)
    square = torch.randn(256, 256)

    assert large_tensors.windows(PRODUCT, recording(square), [square, square]) == []
