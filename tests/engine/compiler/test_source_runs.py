"""Loops and branches cost what they run, with accesses to memory in them or without."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.engine.compiler.compile import address, build
from grader.engine.compiler.kernel_reader import binary_of
from grader.engine.compiler.sass import Code, code_of
from grader.engine.compiler.timing_model.control_flow import Work, flow_of
from grader.engine.compiler.timing_model.prediction import predict
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import BlockRuns, Prediction, Survey
from tests.support import loop_kernels
from tests.support.surveys import Recorded
from tests.support.timed import H200

PROGRAMS, BLOCK = 1 << 13, 1024
KERNELS = Path(loop_kernels.__file__)
compiled: dict[str, tuple[Binary, Code]] = {}


def survey(kernel: str, n: int, programs: int = PROGRAMS, elements: int = BLOCK) -> Survey:
    with Recorded(KERNELS) as to:
        to.launch(kernel, programs, x_ptr=to.virtual(programs * elements),
                  y_ptr=to.alloc(programs * BLOCK), n=n, BLOCK=BLOCK)
        return to.one()


def code(kernel: str, n: int) -> tuple[Binary, Code]:
    key = f"{kernel} {n % 16}"
    if key not in compiled:
        made = build(getattr(loop_kernels, kernel), {
            "x_ptr": address("float32", 0), "y_ptr": address("float32", 0), "n": n,
            "BLOCK": BLOCK}, {}, H200)
        compiled[key] = binary_of(made, H200, kernel, {}), code_of(made)
    return compiled[key]


def predicted(kernel: str, n: int, **more: int) -> Prediction:
    return predict(*code(kernel, n), survey(kernel, n, **more), H200)


@pytest.mark.parametrize("kernel", ["powers_kernel", "counting_kernel"])
def test_a_loop_without_accesses_costs_its_iterations(kernel):
    none, some, many = (predicted(kernel, n) for n in (0, 20, 2000))

    each = PROGRAMS * BLOCK / 16 / H200.multiprocessors / H200.clock  # 16 exponentials a cycle
    assert none.parts["compute"] < 2 * each
    assert some.parts["compute"] == pytest.approx(20 * each, rel=0.1)
    assert many.seconds == pytest.approx(2000 * each, rel=0.05)
    assert (none.bound, some.bound, many.bound) == ("dram", "compute", "compute")


def test_code_in_a_branch_costs_what_takes_it():
    none, half, all_of_them = (
        predicted("branching_kernel", n) for n in (0, PROGRAMS // 2, PROGRAMS))

    assert none.bound == "dram"
    assert half.parts["compute"] == pytest.approx(all_of_them.parts["compute"] / 2, rel=0.05)


def test_a_second_loop_that_never_runs_costs_nothing():
    columns = 16 * BLOCK

    twice, once = (predicted(kernel, columns, elements=columns)
                   for kernel in ("twice_kernel", "once_kernel"))

    assert twice.parts["compute"] == pytest.approx(once.parts["compute"], rel=0.05)
    assert twice.seconds == pytest.approx(once.seconds, rel=0.05)


def test_a_second_loop_over_the_rest_costs_one_iteration():
    columns = 16 * BLOCK

    whole, rest = (predicted("twice_kernel", n, elements=n)
                   for n in (columns, columns + BLOCK // 2))

    assert rest.parts["compute"] == pytest.approx(whole.parts["compute"] * 17 / 16, rel=0.1)


def test_iterations_that_depend_on_values_are_not_guessed():
    guessed = survey("converging_kernel", 1)

    assert guessed.guessed == next(
        number for number, line in enumerate(KERNELS.read_text().splitlines(), 1)
        if "while error" in line)
    assert not survey("powers_kernel", 20).guessed


def test_blocks_are_counted_by_the_statements_that_call_them():
    found = survey("twice_kernel", 4 * BLOCK + 1, elements=4 * BLOCK + 1)

    loops = {one.calls: one.runs for one in found.blocks if one.header}
    assert sorted(loops.values()) == [1.0, 4.0]


def test_the_program_with_the_most_iterations_is_noted():
    found = survey("branching_kernel", PROGRAMS // 4)

    loop, = (one for one in found.blocks if one.header)
    assert loop.runs == pytest.approx(250, rel=0.1)
    assert loop.most == 1000


def test_a_loop_that_nobody_counted_runs_once():
    _, made = code("powers_kernel", 20)

    unknown = flow_of(made, Work(), 128)
    other = flow_of(made, Work(blocks=(BlockRuns((), 1, 2, 1, 9.0, 9.0),)), 128)

    assert unknown.runs == other.runs
    assert {loop.times for loop in unknown.loops} == {1.0}
