"""`grader.trace`: one case of a submission, graded and traced."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import grader.trace
from grader.engine.interpreter import tracer
from grader.trace import NoSuchProgram, NotTraceable, TracedCase
from tritonlab.course import course
from tritonlab.grading.grade import suite_of
from tritonlab.trace import program_steps

SOFTMAX = course.load().find("track1/softmax")
RIGHT = SOFTMAX.solution.read_text()
CASE = "4 x 129 floats"


@pytest.fixture
def traced(sandbox, tmp_path: Path):
    """Traces a case of softmax whose solution was changed."""
    def trace(*changes: tuple[str, str], case: str | None = CASE, **options) -> TracedCase:
        text = RIGHT
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        kernel = tmp_path / "kernel.py"
        kernel.write_text(text)
        return grader.trace.trace(kernel, suite_of(SOFTMAX), sandbox=sandbox, case=case, **options)

    return trace


def test_a_right_kernel_is_traced_without_marks(traced) -> None:
    one = traced()

    assert one.report.exit_code == 0
    assert (one.names, one.results, one.marks) == (("x", "result"), (1,), ())
    after = one.trace.tensors[1].after
    assert after is not None
    rows = one.trace.numbers(after)[0]
    assert rows.shape == (4, 129)
    assert np.allclose(rows.sum(axis=1), 1, atol=1e-5)


def test_a_wrong_element_names_the_program_that_stored_it(traced) -> None:
    one = traced(("numerator * (1.0 / denominator)",
                  "tl.where(row == 2, 2.0, 1.0) * numerator * (1.0 / denominator)"))

    (mark,) = [mark for mark in one.marks if mark.code == "N01"]
    assert (mark.program, mark.tensor, mark.index) == (2, 1, (2, 0))
    assert mark.got and mark.expected


def test_an_access_outside_names_program_tensor_and_offset(traced) -> None:
    one = traced(("mask=mask, other=-float(\"inf\")", "mask=cols < n_cols + 1, other=0.0"))

    mark = next(mark for mark in one.marks if mark.code == "M01")
    assert (mark.program, mark.tensor, mark.offset) == (3, 0, 4 * 129)


def test_undefined_values_name_the_element_that_depends_on_them(traced) -> None:
    one = traced((", other=-float(\"inf\")", ""))

    (mark,) = one.marks
    assert (mark.code, mark.program, mark.tensor, mark.index) == ("M06", 0, 1, (0, 0))


@pytest.mark.parametrize(("module_id", "mutant_id", "case", "result"), [
    ("track2/two-phase-reduction", "a", "1000 x 16 floats, 3 groups", "result"),
    pytest.param("track4/training-kernels", "f", "backward: 300 x 40 floats", "dw",
                 marks=pytest.mark.course),
])
def test_another_order_names_the_element_that_it_changes(
        sandbox, tmp_path: Path, module_id, mutant_id, case, result) -> None:
    module = course.load().find(module_id)
    mutant = next(one for one in suite_of(module).mutants if one.id == mutant_id)
    kernel = tmp_path / "kernel.py"
    kernel.write_text(mutant.apply(module.solution.read_text()))

    one = grader.trace.trace(kernel, suite_of(module), sandbox=sandbox, case=case)

    (mark,) = one.marks
    assert mark.code == "M09"
    assert one.names[mark.tensor] == result
    assert len(mark.index) == len(one.trace.tensors[mark.tensor].shape)
    assert mark.program is not None


def test_expected_values_stay_in_the_grader(traced) -> None:
    """Only those that a report shows are in the data: the reference's bytes are not."""
    one = traced(("numerator * (1.0 / denominator)", "numerator * (2.0 / denominator)"))

    x = torch.from_numpy(one.trace.numbers(one.trace.tensors[0].before)[0].copy())
    expected = torch.softmax(x.double(), dim=1)
    shown = {mark.expected for mark in one.marks if mark.expected}
    data = json.dumps(one.to_dict())
    assert len(shown) == 1
    assert one.trace.data.count(expected.float().numpy()[0].tobytes()) == 0
    hidden = [f"{number:.7g}" for number in expected.flatten().tolist()]
    assert not [text for text in hidden if text in data and text not in shown]


def test_the_program_of_a_wrong_element_is_traced_where_all_are_too_many(
        sandbox, tmp_path: Path) -> None:
    module = course.load().find("track1/vector-add")
    kernel = tmp_path / "kernel.py"
    kernel.write_text(module.solution.read_text().replace(
        "total = x + y", "total = x + y + tl.where(pid == 100, 1.0, 0.0)"))

    one = grader.trace.trace(kernel, suite_of(module), sandbox=sandbox, case="262 144 floats")

    programs = {program for group in one.trace.launches[0].groups for program in group.programs}
    assert [mark.program for mark in one.marks if mark.code == "N01"] == [100]
    assert 100 in programs
    assert len(programs) < 20


def test_a_program_that_is_asked_for_is_traced(traced) -> None:
    one = traced(case="70 000 rows of one column", program=(12_345,))

    programs = {program for group in one.trace.launches[0].groups for program in group.programs}
    assert one.number_of((12_345,), 0) in programs


@pytest.mark.course
def test_an_endless_loop_is_shown_as_far_as_it_was_traced(traced) -> None:
    one = traced(("    mask = cols < n_cols", "    i = 0\n    while i < 10:\n"
                  "        i = (i + 1) % 5\n    mask = cols < n_cols"))

    assert one.report.exit_code == 1
    assert one.trace.cut
    assert len(one.trace.launches[0].groups[0].steps) > tracer.MAX_STEPS // 2


@pytest.mark.parametrize(("place", "launch", "message"), [
    pytest.param((4,), 0, r"no program 4: its size is 4", id="behind the last"),
    pytest.param((0, 1), 0, r"no program 0, 1: its size is 4", id="along another axis"),
    pytest.param((0,), 1, r"no launch 2: the function made 1", id="of no launch"),
])
def test_a_program_outside_the_grid_is_refused(traced, place, launch: int, message: str) -> None:
    with pytest.raises(NoSuchProgram, match=message):
        traced(program=place, launch=launch)


@pytest.mark.parametrize(("old", "new", "message"), [
    pytest.param("def softmax(", "def softmax((", "cannot parse line", id="a syntax error"),
    pytest.param("    n_rows, n_cols = x.shape", "    raise KeyError(x)", "KeyError",
                 id="host code that raises"),
])
def test_a_file_that_launches_nothing_is_refused(traced, old: str, new: str, message: str) -> None:
    if old not in RIGHT:
        old = next(line for line in RIGHT.splitlines() if "= x.shape" in line)
    with pytest.raises(NotTraceable, match=message):
        traced((old, new))


def test_a_case_without_launches_is_refused(traced) -> None:
    with pytest.raises(NotTraceable, match="nothing to trace"):
        traced(case="sizes drawn anew")


def test_without_a_case_the_first_that_launches_is_traced(traced) -> None:
    assert traced(case=None).case == suite_of(SOFTMAX).ordered()[0].name


def test_the_steps_of_a_program_are_words(traced, capsys) -> None:
    from tritonlab.render.screen import Screen

    one = traced(("mask=mask, other=-float(\"inf\")", "mask=mask"))

    program_steps.show(Screen(width=200), one, 1, 0)

    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == 'softmax_kernel, program 1 of 4 programs, case ' \
        '"4 x 129 floats, one more than a power of two"'
    assert "loads x[1, 0] … x[1, 128], 129 elements; 127 masked off and undefined" in lines
    assert "row_start = -> x[1, 0] pointer<fp32>" in lines
    assert "cols = [ 0 1 2 ... 253 254 255] int32[256]" in lines
    assert "stores result[1, 0] … result[1, 128], 129 elements; 127 masked off" in lines
