"""Results at their real size are judged whole, or rows by rows where that takes less memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grader import bulk
from grader.amplitudes import softmax
from grader.cases import Case
from grader.recording import Recording, View
from grader.report import Kind
from grader.suite import EXACT, Suite, Tolerance

ROWS, COLUMNS = 1_000, 33
CASE = Case("large", Kind.PERFORMANCE)
SOFTMAX = Suite(entry="softmax", parameters=("x",), reference=lambda x: x.double().softmax(1),
                tolerance=Tolerance(lambda x: softmax(x, 1)))
PRODUCT = Suite(entry="product", parameters=("a", "b"), tolerance=EXACT,
                reference=lambda a, b: a.double() @ b.double())


def recording(result: torch.Tensor) -> Recording:
    view = View(1, "float32", tuple(result.shape), result.stride(), 0)
    return Recording((), (), (view,))


@pytest.fixture(params=[1 << 30, 8 * bulk.ROOM * COLUMNS * 100], ids=["whole", "in parts"])
def room(request, monkeypatch):
    monkeypatch.setattr(bulk, "_room", lambda: request.param)
    monkeypatch.setattr(bulk, "device", lambda: "cpu")


@pytest.mark.parametrize("wrong", [None, 0, ROWS - 1])
def test_one_wrong_row_is_found(room, wrong):
    x = torch.randn(ROWS, COLUMNS)
    result = x.softmax(1)
    if wrong is not None:
        result[wrong] = result[wrong].flip(0)

    findings, difference = bulk.judged(SOFTMAX, CASE, recording(result), [result], [x])

    assert findings == []
    assert (difference is not None) == (wrong is not None)


def test_a_result_of_another_shape_breaks_the_contract(monkeypatch):
    monkeypatch.setattr(bulk, "device", lambda: "cpu")
    x = torch.randn(8, COLUMNS)
    result = x.softmax(1)[:, :-1].contiguous()

    findings, _ = bulk.judged(SOFTMAX, CASE, recording(result), [result], [x])

    assert findings[0].code == "S01"


def test_rows_that_depend_on_others_are_never_taken_apart(monkeypatch):
    monkeypatch.setattr(bulk, "device", lambda: "cpu")
    monkeypatch.setattr(bulk, "_room", lambda: 0)
    down = replace(SOFTMAX, reference=lambda x: x.double().softmax(0))
    x = torch.randn(ROWS, COLUMNS)
    square = torch.randn(256, 256)

    for suite, inputs in ((down, [x]), (PRODUCT, [square, square])):
        result = suite.reference(*inputs).float()
        with pytest.raises(MemoryError):
            bulk.judged(suite, CASE, recording(result), [result], inputs)


def test_strides_survive_the_way_to_the_processor():
    x = torch.randn(4, 6)[:, ::2]

    [moved] = bulk.on_cpu([x])

    assert moved.stride() == x.stride()


@pytest.mark.parametrize("wrong", [None, 0, 500, ROWS - 1])
def test_of_what_is_too_large_to_move_some_rows_are_judged(monkeypatch, wrong):
    monkeypatch.setattr(bulk, "device", lambda: "cpu")
    monkeypatch.setattr(bulk, "MOST_MOVED", 1_000)
    x = torch.randn(ROWS, COLUMNS)
    result = x.softmax(1)
    if wrong is not None:
        result[wrong] = result[wrong].flip(0)

    rows = bulk.windows(SOFTMAX, recording(result), [x])
    parts = [result[first:first + count].reshape(-1) for first, count in rows]
    found = bulk.judged_rows(SOFTMAX, rows, parts, recording(result), [x])

    seen = any(first <= (wrong or 0) < first + count for first, count in rows)
    assert (found is not None) == (wrong is not None and seen)
    assert (rows[0][0], sum(rows[-1])) == (0, ROWS)


def test_what_has_no_rows_of_its_own_is_moved_whole(monkeypatch):
    monkeypatch.setattr(bulk, "device", lambda: "cpu")
    monkeypatch.setattr(bulk, "MOST_MOVED", 1_000)
    square = torch.randn(256, 256)

    assert bulk.windows(PRODUCT, recording(square), [square, square]) == []
