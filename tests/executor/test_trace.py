"""The executor's traces: steps, variables, accesses and groups of programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.engine.interpreter import tracer
from grader.recording import model
from grader.recording.model import Recording, View
from grader.recording.trace import Trace, TracedStep, decode, encode
from tests.executor.test_executor import Session

HEAD = "import triton\nimport triton.language as tl\n\n\n"
COPY = HEAD + '''@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=7.0)
    tl.store(out_ptr + offs, x, mask=mask)
'''


def traced(session: Session, *results: View, programs: tuple[int, ...] = ()) -> tuple[Trace, Any]:
    """The trace of what was recorded by hand, and the codes of its findings."""
    recording = Recording(session.inputs, tuple(session.events), results)
    output = os.memfd_create("trace")
    try:
        reply = session.handler.handle(
            {"op": "trace", "recording": model.to_json(recording),
             "layout": session.packed.layout(), "programs": list(programs)},
            [session.packed.fd, output])
        assert reply["status"] == "done", reply
        data = os.pread(output, 1 << 26, 0)
    finally:
        os.close(output)
        session.packed.close()
    return decode(data), [finding["code"] for finding in reply["findings"]]


def copied(folder: Path, source: str = COPY) -> tuple[Session, View]:
    """A launch of two programs that copies six elements by blocks of four, and its result."""
    session = Session(folder, source, torch.arange(6.0))
    out = session.alloc(6)
    session.launch("copy_kernel", 2, x_ptr=session.inputs[0], out_ptr=out, n=6, BLOCK=4)
    return session, out


def steps(trace: Trace, program: int = 0, launch: int = 0) -> tuple[int, list[TracedStep]]:
    """The row of a program in the arrays of its group, and its steps."""
    for group in trace.launches[launch].groups:
        if program in group.programs:
            return group.programs.index(program), group.steps
    raise AssertionError(f"program {program} is not traced")


def row(trace: Trace, array: int | None, at: int) -> list[Any]:
    assert array is not None
    numbers = trace.numbers(array)
    values: list[Any] = numbers[at if len(numbers) > 1 else 0].tolist()
    return values


def test_each_line_has_its_variables_and_accesses(tmp_path: Path) -> None:
    session, out = copied(tmp_path)

    trace, codes = traced(session, out)

    at, ran = steps(trace, program=1)
    assert codes == []
    assert [step.line for step in ran] == [7, 8, 9, 10]
    assert [sorted(step.values) for step in ran] == [["offs"], ["mask"], ["x"], []]
    assert row(trace, ran[0].values["offs"].array, at) == [4, 5, 6, 7]
    assert row(trace, ran[2].values["x"].array, at) == [4.0, 5.0, 7.0, 7.0]
    (load,), (store,) = ran[2].accesses, ran[3].accesses
    assert (load.kind, load.filled, store.kind) == ("load", True, "store")
    assert row(trace, load.offset, at) == [4, 5, 6, 7]
    assert row(trace, load.mask, at) == [1, 1, 0, 0]
    assert [tensor.names for tensor in trace.tensors] == [["x_ptr"], ["out_ptr"]]
    assert [tensor.undefined for tensor in trace.tensors] == [False, True]
    assert row(trace, trace.tensors[1].after, 0) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert row(trace, trace.tensors[1].writers, 0) == [0, 0, 0, 0, 1, 1]
    assert trace.launches[0].arguments["n"].text == "6"


def test_pointers_name_the_tensor_and_the_element(tmp_path: Path) -> None:
    source = COPY.replace("    x = tl.load(x_ptr + offs", "    places = x_ptr + offs\n"
                          "    x = tl.load(places")
    session, out = copied(tmp_path, source)

    trace, _ = traced(session, out)

    at, ran = steps(trace, program=1)
    places = ran[2].values["places"]
    assert (places.tensor, places.shape) == (0, (4,))
    assert row(trace, places.array, at) == [4, 5, 6, 7]


def test_programs_that_go_different_ways_are_different_groups(tmp_path: Path) -> None:
    source = HEAD + '''@triton.jit
def parted_kernel(out_ptr):
    pid = tl.program_id(0)
    if pid == 1:
        tl.store(out_ptr + pid, 5.0)
    else:
        tl.store(out_ptr + pid, 3.0)
'''
    session = Session(tmp_path, source, torch.zeros(1))
    out = session.alloc(3)
    session.launch("parted_kernel", 3, out_ptr=out)

    trace, _ = traced(session, out)

    ways = {tuple(group.programs): [step.line for step in group.steps]
            for group in trace.launches[0].groups}
    assert ways == {(0, 2): [7, 8, 11], (1,): [7, 8, 9]}


def test_a_loop_counts_its_iterations_and_a_helper_its_depth(tmp_path: Path) -> None:
    source = HEAD + '''@triton.jit
def twice(x):
    y = x + x
    return y


@triton.jit
def loop_kernel(out_ptr, N: tl.constexpr):
    acc = 0.0
    for i in range(N):
        acc += twice(1.0 + i)
    tl.store(out_ptr, acc)
'''
    session = Session(tmp_path, source, torch.zeros(1))
    out = session.alloc(1)
    session.launch("loop_kernel", 1, out_ptr=out, N=3)

    trace, _ = traced(session, out)

    _, ran = steps(trace)
    assert [step.turn for step in ran if step.line == 15] == [0, 1, 2]
    assert {(step.function, step.depth) for step in ran} == {("loop_kernel", 0), ("twice", 1)}
    assert row(trace, trace.tensors[0].after, 0) == [12.0]


def test_a_statement_over_several_lines_is_one_step(tmp_path: Path) -> None:
    source = COPY.replace("tl.load(x_ptr + offs, mask=mask, other=7.0)", """tl.load(
        x_ptr + tl.where(
            offs < n, offs, 0),
        mask=mask, other=7.0)""").replace("    mask = offs < n\n", """    mask = offs < n
    for _ in range(
            2):
        mask = (offs
                < n)
""")
    session, out = copied(tmp_path, source)

    trace, codes = traced(session, out)

    _, ran = steps(trace)
    assert codes == []
    assert [(step.line, step.end, step.turn) for step in ran] == [
        (7, 0, 0), (8, 0, 0), (9, 10, 0), (11, 12, 0), (9, 10, 1), (11, 12, 1), (9, 10, 2),
        (13, 16, 0), (17, 0, 0)]
    assert [access.kind for step in ran for access in step.accesses] == ["load", "store"]


def test_a_helper_begins_with_its_parameters(tmp_path: Path) -> None:
    source = HEAD + '''@triton.jit
def scaled(place, x, FACTOR: tl.constexpr):
    y = x * FACTOR
    return y + tl.load(place)


@triton.jit
def scale_kernel(x_ptr, out_ptr):
    offs = tl.arange(0, 4)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, scaled(x_ptr + 1, x, 3))
'''
    session = Session(tmp_path, source, torch.arange(4.0))
    out = session.alloc(4)
    session.launch("scale_kernel", 1, x_ptr=session.inputs[0], out_ptr=out)

    trace, _ = traced(session, out)

    at, ran = steps(trace)
    first, second = (step for step in ran if step.function == "scaled")
    assert sorted(first.values) == ["FACTOR", "place", "x", "y"]
    assert row(trace, first.values["x"].array, at) == [0.0, 1.0, 2.0, 3.0]
    assert (first.values["place"].tensor, first.values["FACTOR"].text) == (0, "3")
    assert not second.values
    assert all("x_ptr" not in step.values for step in ran)


def test_a_kernel_that_fails_is_traced_up_to_its_last_line(tmp_path: Path) -> None:
    source = COPY.replace("    tl.store(out_ptr + offs, x, mask=mask)",
                          "    y = x + tl.arange(0, 2)\n    tl.store(out_ptr + offs, y)")
    session, out = copied(tmp_path, source)

    trace, codes = traced(session, out)

    (group,) = trace.launches[0].groups
    assert codes and group.failed
    assert [step.line for step in group.steps] == [7, 8, 9, 10]


def test_a_load_of_what_nobody_stored_is_marked(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.arange(4.0))
    fresh, out = session.alloc(4), session.alloc(4)
    session.launch("copy_kernel", 1, x_ptr=fresh, out_ptr=out, n=3, BLOCK=4)

    trace, codes = traced(session, out)

    at, ran = steps(trace)
    assert "M09" in codes or "M06" in codes
    assert row(trace, ran[2].accesses[0].undefined, at) == [1, 1, 1, 0]


def test_offsets_outside_a_tensor_stay_visible(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.arange(6.0))
    out = session.alloc(8)
    session.launch("copy_kernel", 2, x_ptr=session.inputs[0], out_ptr=out, n=8, BLOCK=4)

    trace, codes = traced(session, out)

    at, ran = steps(trace, program=1)
    assert codes == ["M01"]
    assert max(row(trace, ran[2].accesses[0].offset, at)) == 7 >= trace.tensors[0].elements


def test_descriptors_block_by_block(tmp_path: Path) -> None:
    source = HEAD + '''@triton.jit
def tile_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    tile = x.load([0, tl.program_id(0) * BLOCK])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    out.store([0, tl.program_id(0) * BLOCK], tile)
'''
    session = Session(tmp_path, source, torch.arange(32.0).reshape(4, 8))
    out = session.alloc(4, 8)
    session.launch("tile_kernel", 2, x_ptr=session.inputs[0], out_ptr=out, M=4, N=8, BLOCK=4)

    trace, codes = traced(session, out)

    at, ran = steps(trace, program=1)
    assert codes == []
    assert (ran[0].values["x"].tensor, ran[0].values["x"].text) == (0, "4 x 4 block")
    assert row(trace, ran[1].accesses[0].offset, at)[0] == [4, 5, 6, 7]


def test_atomics_are_traced(tmp_path: Path) -> None:
    source = HEAD + '''@triton.jit
def count_kernel(out_ptr):
    tl.atomic_add(out_ptr, 1.0)
'''
    session = Session(tmp_path, source, torch.zeros(1))
    session.events.clear()
    out = session.alloc(1)
    session.events.append(model.Fill(out, 0))
    session.launch("count_kernel", 3, out_ptr=out)

    trace, _ = traced(session, out)

    _, ran = steps(trace, program=2)
    assert [access.kind for access in ran[0].accesses] == ["atomic"]
    assert row(trace, trace.tensors[0].after, 0) == [3.0]
    assert row(trace, trace.tensors[0].writers, 0) == [2]


def test_of_too_many_programs_the_ends_and_those_that_are_asked_for_are_traced(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "MAX_BYTES", 3000)
    session = Session(tmp_path, COPY, torch.arange(6400.0))
    out = session.alloc(6400)
    session.launch("copy_kernel", 100, x_ptr=session.inputs[0], out_ptr=out, n=6400, BLOCK=64)
    monkeypatch.setattr("grader.executor.trace.MAX_ELEMENTS", 0)

    trace, _ = traced(session, out, programs=(50,))

    programs = {program for group in trace.launches[0].groups for program in group.programs}
    assert programs == {0, 1, 50, 98, 99}
    assert not trace.cut


def test_a_program_that_does_too_much_is_cut(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "MAX_STEPS", 3)
    session, out = copied(tmp_path)

    trace, codes = traced(session, out)

    assert trace.cut and codes == []
    assert len(steps(trace)[1]) <= 4
    assert row(trace, trace.tensors[1].after, 0) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_of_a_cut_trace_every_array_is_whole(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "MAX_BYTES", 20)
    session, out = copied(tmp_path)

    trace, _ = traced(session, out)

    assert trace.cut
    assert row(trace, trace.tensors[1].after, 0) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert row(trace, trace.tensors[1].writers, 0) == [0, 0, 0, 0, 1, 1]
    assert all(0 not in array.shape for array in trace.arrays)


def test_an_endless_loop_is_traced_up_to_the_cut(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = HEAD + '''@triton.jit
def endless_kernel(out_ptr):
    i = 0
    while i < 10:
        i = (i + 1) % 5
'''
    monkeypatch.setattr(tracer, "MAX_STEPS", 50)
    monkeypatch.setattr(tracer, "AFTER_CUT_S", 0.0)
    session = Session(tmp_path, source, torch.zeros(1, dtype=torch.int32))
    session.launch("endless_kernel", 1, out_ptr=session.inputs[0])

    trace, _ = traced(session)

    (group,) = trace.launches[0].groups
    assert trace.cut and group.failed
    assert len(group.steps) > 40


def test_a_run_that_is_not_traced_sets_no_trace_function(tmp_path: Path) -> None:
    session, out = copied(tmp_path)
    before = sys.gettrace()

    trace, _ = traced(session, out)

    assert trace.launches and sys.gettrace() is before


@pytest.mark.parametrize("data", [b"", b"\x80", b"nonsense"])
def test_what_is_no_trace_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"truncated|missing|Expected|malformed"):
        decode(data)


def test_an_array_beyond_the_data_is_refused(tmp_path: Path) -> None:
    session, out = copied(tmp_path)
    trace, _ = traced(session, out)

    trace.data = b""

    again = decode(encode(trace))
    with pytest.raises(ValueError, match=r"buffer|array"):
        again.numbers(len(again.arrays))
    with pytest.raises(ValueError, match=r"buffer|array"):
        again.numbers(0)
