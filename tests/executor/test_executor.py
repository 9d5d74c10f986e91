"""The executor: which code it takes from a file, and how it replays a recording."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import triton.language as tl
from msgspec import structs

from grader.executor.extract import kernels
from grader.executor.main import ExecutorHandler, warm
from grader.judge.draws import Draws
from grader.processes import session as sessions
from grader.recording import arena, model
from grader.recording.launch_stats import Footprint, LaunchFacts, Traffic
from grader.recording.model import (
    Alloc,
    Argument,
    Descriptor,
    Event,
    Fill,
    Launch,
    MalformedRecording,
    Move,
    Recording,
    View,
)
from grader.report import Finding
from grader.sandbox import Child, Sandbox
from grader.submission import source
from grader.suite import Sparse

HEADER = "import triton\nimport triton.language as tl\n\n\n"

ADD = HEADER + """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)
"""

COPY = HEADER + """
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)
"""


class Session:
    """Writes a kernel file, records by hand, runs the executor on it."""

    def __init__(self, folder: Path, source: str | bytes, *inputs: torch.Tensor) -> None:
        self.path = folder / "kernel.py"
        self.path.write_bytes(source.encode() if isinstance(source, str) else source)
        self.handler = ExecutorHandler()
        self.loaded = self.handler.handle({"op": "load", "path": str(self.path)}, [])
        self.handler.__exit__()  # the engine stays in its place in a process of its own only
        self.packed = arena.pack(inputs)
        self.inputs = self.packed.views
        self.events: list[Event] = []

    def alloc(self, *shape: int, dtype: str = "float32") -> View:
        number = len(self.packed.storages) + sum(isinstance(e, Alloc) for e in self.events)
        like = torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
        self.events.append(Alloc(number, like.numel() * like.element_size()))
        return View(number, dtype, shape, tuple(like.stride()), 0)

    def launch(self, kernel: str, *grid: int, options: Mapping[str, Any] | None = None,
               **arguments: Any) -> None:
        full = (*grid, 1, 1)[:3]
        bound = {name: self._argument(value) for name, value in arguments.items()}
        self.events.append(Launch(kernel, (full[0], full[1], full[2]), bound, options or {}))

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, Argument):
            return value
        if isinstance(value, tuple):
            items = tuple(self._argument(item) for item in value)
            return Argument("tuple", items, getattr(value, "_fields", ()))
        kinds = {View: "tensor", Descriptor: "descriptor", bool: "bool", int: "int",
                 float: "float", type(None): "none"}
        return Argument(kinds[type(value)], value)

    def run(self, *results: View, in_place: bool = False,
            **settings: Any) -> tuple[dict[str, Any], list[torch.Tensor]]:
        made = Recording(self.inputs, tuple(self.events), results, in_place=in_place)
        request = {"op": "run", "recording": model.to_json(made),
                   "layout": self.packed.layout(), **settings}
        return self.ask(request)

    def ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[torch.Tensor]]:
        output = os.memfd_create("output")
        try:
            reply = self.handler.handle(request, [self.packed.fd, output])
            tensors = [
                torch.frombuffer(bytearray(os.pread(output, nbytes, offset)),
                                 dtype=getattr(torch, dtype)).reshape(shape)
                for dtype, shape, offset, nbytes in reply.get("results", []) if nbytes
            ]
        finally:
            os.close(output)
            self.packed.close()
        return reply, tensors


def seen(reply: dict[str, Any]) -> dict[str, str]:
    return {item["code"]: Finding.from_json(item).seen for item in reply["findings"]}


# ---------------------------------------------------------------------------------------------
# Replay


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("poison", [0, 1])
def test_a_recording_is_replayed(tmp_path: Path, order: str, poison: int) -> None:
    x, y = torch.randn(1000), torch.randn(1000)
    session = Session(tmp_path, ADD, x, y)
    out = session.alloc(1000)
    session.launch("add_kernel", 4, x_ptr=session.inputs[0], y_ptr=session.inputs[1], out_ptr=out,
                   n=1000, BLOCK_SIZE=256)

    reply, (result,) = session.run(out, order=order, poison=poison)

    unread = (0, 0, 0, 0)  # requests, since no layout was given
    assert session.loaded == {"status": "ready"}
    assert torch.equal(result, x + y)
    assert reply == {
        "status": "done", "findings": [], "results": [["float32", [1000], 0, 4000]],
        "launches": [{
            "kernel": "add_kernel", "programs": 4, "idle_programs": 0,
            "bytes_loaded": 8000, "bytes_stored": 4000, "block": 256,
            "flops": 0, "sectors_loaded": 250, "sectors_stored": 125,
            "traffic": ([10, "load", "x_ptr", 1000, 4000, 125, 125, 125, *unread],
                        [11, "load", "y_ptr", 1000, 4000, 125, 125, 125, *unread],
                        [12, "store", "out_ptr", 1000, 4000, 125, 125, 125, *unread]),
            "footprint": {"out_ptr": [0, 125], "x_ptr": [125, 0], "y_ptr": [125, 0]}}],
        "determined": False, "other": [], "printed": [],
    }


ROUND_TRIP = HEADER + """
@triton.jit
def round_trip_kernel(s_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(s_ptr + offs, offs)
    tl.store(out_ptr + offs, tl.load(s_ptr + offs))
"""


@pytest.mark.parametrize(("options", "told"), [
    ({}, True), ({"num_warps": 8}, True), ({"num_warps": 1}, False), ({"num_warps": "1"}, True),
], ids=["as many warps as usual", "8 warps", "one warp", "no number"])
def test_threads_of_several_warps_alone_may_miss_what_their_program_stored(
        tmp_path: Path, options: dict[str, Any], told: bool) -> None:
    session = Session(tmp_path, ROUND_TRIP)
    s, out = session.alloc(32, dtype="int32"), session.alloc(32, dtype="int32")
    session.launch("round_trip_kernel", 2, s_ptr=s, out_ptr=out, BLOCK=16, options=options)

    reply, (result,) = session.run(out)

    assert result.tolist() == list(range(32))
    assert seen(reply) == ({"M09": (
        "program 0 loaded 16 elements of `s_ptr` that it stored on line 9 itself, with no "
        "barrier in between (first index 0); 1 more program did the same")} if told else {})


def test_elements_that_no_kernel_stored(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(100, 100))
    out = session.alloc(100, 100)
    session.launch("copy_kernel", 9, x_ptr=session.inputs[0], out_ptr=out, n=10_000, BLOCK=1024)

    reply, _ = session.run(out)

    assert seen(reply) == {
        "M03": "784 of 10000 elements of the result were never stored by a kernel, "
               "all from index (92, 16) on"}


@pytest.mark.parametrize(("names", "said"), [
    ((), "result 2"), (("plus",), "result 2"), (("plus", "minus"), "`minus`")])
def test_of_several_results_the_one_with_gaps_is_named(
        tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    session = Session(tmp_path, COPY, torch.randn(8))
    outs = [session.alloc(8), session.alloc(8)]
    for out, n in zip(outs, (8, 6), strict=True):
        session.launch("copy_kernel", 1, x_ptr=session.inputs[0], out_ptr=out, n=n, BLOCK=8)

    reply, _ = session.run(*outs, names=names)

    assert seen(reply)["M03"].startswith(f"2 of 8 elements of {said} were never stored")


def test_a_fill_by_host_code_is_no_result_of_a_kernel(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(8))
    out = session.alloc(8)
    session.events.append(Fill(out, 0))
    session.launch("copy_kernel", 1, x_ptr=session.inputs[0], out_ptr=out, n=6, BLOCK=8)

    reply, (result,) = session.run(out)

    assert seen(reply)["M03"].startswith("2 of 8 elements of the result were never stored")
    assert result[6:].tolist() == [0, 0]


@pytest.mark.parametrize(("shape", "filled", "expected"), [
    ((3, 0), 8, {}),
    ((3, 0), 6, {"M03": "2 of 8 elements of the result were never stored by a kernel, "
                        "all from index 6 on"}),
    ((3, 1), 8, {"M03": "8 of 8 elements of the result were never stored by a kernel; "
                        "the first is index 0"}),
])
def test_a_fill_is_enough_where_no_input_has_an_element(
        tmp_path: Path, shape: tuple[int, int], filled: int, expected: dict[str, str]) -> None:
    session = Session(tmp_path, COPY, torch.randn(shape))
    out = session.alloc(8)
    session.events.append(Fill(View(out.storage, out.dtype, (filled,), (1,), 0), 0))

    reply, _ = session.run(out)

    assert seen(reply) == expected


def test_a_fill_is_no_result_where_nothing_was_given(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY)
    out = session.alloc(8)
    session.events.append(Fill(out, 0))

    reply, _ = session.run(out)

    assert list(seen(reply)) == ["M03"]


@pytest.mark.parametrize(("other", "kept"), [("", 1), (", other=0.0", 0)],
                         ids=["garbage", "no garbage"])
def test_a_short_run_that_could_end_otherwise_is_followed_by_another(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str, kept: int) -> None:
    kernel = COPY.replace("mask=offs < n)", f"mask=offs < n{other})", 1)
    counts = []
    for asked, second_s in ((True, 1.0), (False, 1.0), (True, 0.0)):
        monkeypatch.setattr("grader.executor.main.OTHER_S", second_s)
        session = Session(tmp_path, kernel, torch.randn(4))
        out = session.alloc(4)
        session.launch("copy_kernel", 1, x_ptr=session.inputs[0], out_ptr=out, n=4, BLOCK=8)
        reply, _ = session.run(out, other=asked)
        counts.append(len(reply["other"]))

    assert counts == [kept, 0, 0]


def test_fresh_memory_is_poisoned_and_guarded(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY)
    source, out = session.alloc(8), session.alloc(8)
    session.launch("copy_kernel", 1, x_ptr=source, out_ptr=out, n=8, BLOCK=8)

    reply, (result,) = session.run(out)

    assert list(seen(reply)) == ["M06"]
    assert result.isnan().all()


def test_a_host_copy_keeps_what_is_known_of_each_element(tmp_path: Path) -> None:
    """A kernel's results stay a kernel's when they are cast and transposed by host code."""
    x = torch.randn(4, 6)
    session = Session(tmp_path, COPY, x)
    middle, out = session.alloc(4, 6), session.alloc(6, 4, dtype="float16")
    session.launch("copy_kernel", 1, x_ptr=session.inputs[0], out_ptr=middle, n=20, BLOCK=32)
    turned = View(middle.storage, "float32", (6, 4), (1, 6), 0)
    session.events.append(Move(out, turned))

    reply, (result,) = session.run(out)

    assert torch.equal(result.T.flatten()[:20], x.half().flatten()[:20])
    assert seen(reply)["M03"] == (
        "4 of 24 elements of the result were never stored by a kernel; the first is index (2, 3)")


@pytest.mark.parametrize(("filled", "zeroed", "missing"),
                         [(0.0, True, 0), (0.0, False, 4), (1.0, True, 4)])
def test_zeros_of_a_host_fill_may_stay_where_the_suite_says_so(
    filled: float, zeroed: bool, missing: int, tmp_path: Path
) -> None:
    """A kernel stores 4 of 8 elements; the others hold what the host wrote."""
    session = Session(tmp_path, COPY, torch.randn(8))
    out = session.alloc(8)
    session.events.append(Fill(out, filled))
    session.launch("copy_kernel", 1, x_ptr=session.inputs[0], out_ptr=out, n=4, BLOCK=32)

    reply, _ = session.run(out, zeroed=zeroed)

    assert seen(reply).get("M03", "0 of 8").startswith(f"{missing} of 8")


def test_a_host_copy_of_an_input_is_no_result_of_a_kernel(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(8))
    out = session.alloc(8)
    session.events.append(Move(out, session.inputs[0]))

    reply, _ = session.run(out)

    assert seen(reply)["M03"].startswith("8 of 8 elements")


def test_an_input_that_is_changed_is_named_and_stays_as_it_was(tmp_path: Path) -> None:
    x = torch.randn(8)
    session = Session(tmp_path, COPY, torch.ones(8), x)
    session.launch("copy_kernel", 1, x_ptr=session.inputs[0], out_ptr=session.inputs[1], n=8,
                   BLOCK=8)

    reply, (result,) = session.run(session.inputs[1])

    assert list(seen(reply)) == ["M07"]
    assert "input `out_ptr` was modified" in seen(reply)["M07"]
    assert torch.equal(result, torch.ones(8))  # executed, on a private copy


@pytest.mark.parametrize(("first", "steps", "count", "where"), [
    (6, 2, 0, ""), (6, 1, 1, "1 elements after"), (5, 2, 3, "1 elements before"),
], ids=["its elements", "those between", "those before"])
def test_what_is_changed_in_place_is_the_view_and_nothing_beside_it(
    tmp_path: Path, first: int, steps: int, count: int, where: str
) -> None:
    x = torch.randn(14)
    changed = View(1, "float32", (3,), (2,), 6)
    strided = COPY.replace("out_ptr + offs", f"out_ptr + {steps} * offs")
    session = Session(tmp_path, strided, torch.ones(8), x)
    into = structs.replace(changed, offset=first, shape=(5,), stride=(1,))
    session.launch("copy_kernel", 1, x_ptr=session.inputs[0], out_ptr=into, n=3, BLOCK=8)

    reply, (result,) = session.run(changed, in_place=True)

    assert list(seen(reply)) == ["M07"] * bool(count)
    if count:
        assert seen(reply)["M07"].startswith(f"{count} elements outside the view of an input")
        assert where in seen(reply)["M07"]
    else:
        assert torch.equal(result, torch.ones(3))


def test_storing_what_was_there_counts_as_a_change_beside_the_view(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.ones(8), torch.randn(14))
    whole = View(1, "float32", (14,), (1,), 0)
    session.launch("copy_kernel", 1, x_ptr=whole, out_ptr=whole, n=14, BLOCK=16)

    reply, _ = session.run(View(1, "float32", (3,), (2,), 6), in_place=True)

    assert list(seen(reply)) == ["M07"]


@pytest.mark.parametrize(("target", "codes"), [
    (View(1, "float32", (4,), (2,), 0), []), (View(1, "float32", (8,), (1,), 0), ["M07"]),
    (View(0, "float32", (8,), (1,), 0), ["M07"]),
], ids=["what is changed", "more of it", "another input"])
def test_host_code_may_fill_what_is_changed_in_place(
    tmp_path: Path, target: View, codes: list[str]
) -> None:
    session = Session(tmp_path, COPY, torch.ones(8), torch.ones(8))
    session.events.append(Fill(target, 0.0))

    reply, _ = session.run(View(1, "float32", (4,), (2,), 0), in_place=True)

    assert list(seen(reply)) == codes


def test_views_with_strides_and_offsets(tmp_path: Path) -> None:
    source = HEADER + """
@triton.jit
def strided_kernel(x_ptr, out_ptr, stride_m, stride_n, N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, N)
    x = tl.load(x_ptr + row * stride_m + cols * stride_n)
    tl.store(out_ptr + row * N + cols, x)
"""
    x = torch.randn(12, 8)[1:, ::2]
    session = Session(tmp_path, source, x)
    out = session.alloc(11, 4)
    session.launch("strided_kernel", 11, x_ptr=session.inputs[0], out_ptr=out,
                   stride_m=x.stride(0), stride_n=x.stride(1), N=4)

    reply, (result,) = session.run(out)

    assert reply["findings"] == []
    assert torch.equal(result, x)


def test_results_of_several_dtypes_lie_aligned(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.arange(5, dtype=torch.int16))
    outs = [session.alloc(5, dtype="int16"), session.alloc(5, dtype="bfloat16"), session.alloc(0)]
    for out in outs[:2]:
        session.launch("copy_kernel", 1, x_ptr=session.inputs[0], out_ptr=out, n=5, BLOCK=8)

    reply, results = session.run(*outs)

    assert reply["findings"] == []
    assert reply["results"] == [
        ["int16", [5], 0, 10], ["bfloat16", [5], 64, 10], ["float32", [0], 128, 0]]
    assert [r.tolist() for r in results] == [[0, 1, 2, 3, 4]] * 2


def test_a_kernel_that_stops_ends_the_replay(tmp_path: Path) -> None:
    source = COPY + """
@triton.jit
def broken_kernel(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), 1.0)
"""
    session = Session(tmp_path, source, torch.randn(8))
    out = session.alloc(8)
    session.launch("broken_kernel", 1, x_ptr=out, N=7)
    session.launch("copy_kernel", 1, x_ptr=session.inputs[0], out_ptr=out, n=8, BLOCK=8)

    reply, results = session.run(out)

    assert [(f["code"], f["line"]) for f in reply["findings"]] == [("L05", 13)]
    assert "arange's range must be a power of 2" in reply["findings"][0]["data"]["figures"]["text"]
    assert len(reply["launches"]) == 1
    assert results == []


@pytest.mark.parametrize("past_the_end", [0, 5], ids=["right", "reads outside"])
def test_a_replay_keeps_no_input_mapped(tmp_path: Path, past_the_end: int) -> None:
    """Those of the next one would come on top, and with them the limit on addresses."""
    source = COPY.replace("mask=offs < n)", f"mask=offs < n + {past_the_end})")
    session = Session(tmp_path, source, torch.randn(1000))
    out = session.alloc(1000)
    session.launch("copy_kernel", 4, x_ptr=session.inputs[0], out_ptr=out, n=1000, BLOCK=256)

    gc.disable()  # what is left in a cycle stays until its collector happens to run
    try:
        reply, _ = session.run(out)
        maps = Path("/proc/self/maps").read_text().splitlines()
    finally:
        gc.enable()

    assert bool(reply["findings"]) == bool(past_the_end)
    assert not [line for line in maps if "tritonlab-inputs" in line]


# ---------------------------------------------------------------------------------------------
# Facts of a launch


def test_the_facts_of_a_launch_can_be_read(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(200))
    out = session.alloc(100)
    strided = View(0, "float32", (100,), (2,), 0)
    session.launch("copy_kernel", 1, x_ptr=strided, out_ptr=out, n=100, BLOCK=128)

    reply, _ = session.run(out)

    facts = LaunchFacts.from_dict(reply["launches"][0])
    assert (facts.kernel, facts.block, facts.programs) == ("copy_kernel", 128, 1)
    assert facts.traffic == (Traffic(9, "load", "x_ptr", 100, 400, 13, 13, 13),
                             Traffic(9, "store", "out_ptr", 100, 400, 13, 13, 13))
    assert facts.footprint["x_ptr"] == Footprint(13, 0)
    assert (facts.traffic[0].coalescing, facts.traffic[0].redundancy) == (1.0, 1.0)


def test_a_matrix_product_counts_its_operations(tmp_path: Path) -> None:
    session = Session(tmp_path, MATMUL, torch.randn(40, 24), torch.randn(24, 32))
    out = session.alloc(40, 32)
    tiled(session, out)

    reply, _ = session.run(out)

    assert reply["launches"][0]["flops"] == 6 * 2 * (2 * 16 * 16 * 16)


def test_of_very_many_places_the_heaviest_are_told(tmp_path: Path) -> None:
    loads = "\n".join(f"    x += tl.load(x_ptr + offs % {k + 1})" for k in range(80))
    source = HEADER + f"""
@triton.jit
def many_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.zeros((BLOCK,), tl.float32)
{loads}
    tl.store(out_ptr + offs, x)
"""
    session = Session(tmp_path, source, torch.randn(128))
    out = session.alloc(128)
    session.launch("many_kernel", 1, x_ptr=session.inputs[0], out_ptr=out, BLOCK=128)

    reply, _ = session.run(out)

    rows = reply["launches"][0]["traffic"]
    sectors = sorted(row[5] for row in rows)
    assert (len(rows), sectors[0], sectors[-1]) == (64, 3, 16)  # left out: 17 loads of 1 to 3
    assert list(rows) == sorted(rows)


FORGED: dict[str, Any] = {
    "nothing": lambda f: f.clear(), "a count too few": lambda f: f.pop("flops"),
    "a count too many": lambda f: f.update(more=1), "a word": lambda f: f.update(programs="1"),
    "a negative count": lambda f: f.update(flops=-1), "a truth": lambda f: f.update(flops=True),
    "no kernel": lambda f: f.update(kernel=None), "a fraction": lambda f: f.update(block=0.5),
    "traffic that is none": lambda f: f.update(traffic=3),
    "a short row": lambda f: f["traffic"][0].pop(),
    "a row of another kind": lambda f: f["traffic"][0].__setitem__(1, "glance"),
    "a row with words": lambda f: f["traffic"][0].__setitem__(5, "12"),
    "a footprint that is none": lambda f: f.update(footprint=[1]),
    "a footprint of three": lambda f: f["footprint"].update(x=[1, 2, 3]),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_facts_of_another_form_are_refused(change: Any) -> None:
    facts = {"kernel": "k", "programs": 1, "idle_programs": 0, "bytes_loaded": 4,
             "bytes_stored": 4, "block": None, "flops": 0, "sectors_loaded": 1,
             "sectors_stored": 1, "traffic": [[None, "load", "x", 1, 4, 1, 1, 1]],
             "footprint": {"x": [1, 0]}}
    assert LaunchFacts.from_dict(facts).traffic[0].line is None

    change(facts)

    with pytest.raises(ValueError):
        LaunchFacts.from_dict(facts)


# ---------------------------------------------------------------------------------------------
# Host tensor descriptors

TMA = HEADER + """
@triton.jit
def tma_kernel(x_desc, y_desc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    at = [tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N]
    y_desc.store(at, x_desc.load(at))


@triton.jit
def pad_kernel(x_desc, y_ptr, M: tl.constexpr, N: tl.constexpr, ROW: tl.constexpr = 0):
    x = x_desc.load([ROW, 0])
    tl.store(y_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], x)
"""

MATMUL = HEADER + """
@triton.jit
def matmul_kernel(a_desc, b_desc, c_desc, K, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        a = a_desc.load([row, k])
        b = b_desc.load([k, column])
        acc = tl.dot(a, b, acc, input_precision="ieee")
    c_desc.store([row, column], acc)
"""


def whole(view: View, *block: int, **more: Any) -> Descriptor:
    return Descriptor(view, view.shape, view.stride, block, **more)


def tiled(session: Session, out: View) -> None:
    a, b = session.inputs
    session.launch("matmul_kernel", 3, 2, a_desc=whole(a, 16, 16), b_desc=whole(b, 16, 16),
                   c_desc=whole(out, 16, 16), K=24, BLOCK=16)


ANNOTATIONS = ["", ": tl.tensor_descriptor", ": 'tl.tensor_descriptor'", ": TensorDescriptor"]


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_a_block_is_copied_by_descriptors(tmp_path: Path, annotation: str) -> None:
    x = torch.randn(20, 24)
    source = TMA.replace("kernel(x_desc", f"kernel(x_desc{annotation}")
    session = Session(tmp_path, source, x)
    out = session.alloc(20, 24)
    session.launch("tma_kernel", 3, 2, x_desc=whole(session.inputs[0], 8, 16),
                   y_desc=whole(out, 8, 16), BLOCK_M=8, BLOCK_N=16)

    reply, (result,) = session.run(out)

    assert reply["findings"] == []
    assert torch.equal(result, x)
    assert reply["launches"][0]["footprint"] == {"x_desc": [60, 0], "y_desc": [0, 60]}


def test_tiles_of_a_matrix_product_come_by_descriptors(tmp_path: Path) -> None:
    a, b = torch.randn(40, 24), torch.randn(24, 32)
    session = Session(tmp_path, MATMUL, a, b)
    out = session.alloc(40, 32)
    tiled(session, out)

    reply, (result,) = session.run(out)

    assert reply["findings"] == []
    torch.testing.assert_close(result, a @ b)


@pytest.mark.parametrize("row", [0, -2], ids=["after", "before and after"])
@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_outside_of_its_shape_a_descriptor_gives_its_padding(
    tmp_path: Path, padding: str, row: int
) -> None:
    x = torch.randn(3, 4)
    session = Session(tmp_path, TMA, x)
    out = session.alloc(4, 8)
    session.launch("pad_kernel", 1, x_desc=whole(session.inputs[0], 4, 8, padding=padding),
                   y_ptr=out, M=4, N=8, ROW=row)

    reply, (result,) = session.run(out)

    expected = torch.full((4, 8), 0.0 if padding == "zero" else float("nan"))
    expected[-row:3 - row, :4] = x[:4 + row]
    assert reply["findings"] == []
    assert torch.equal(result.nan_to_num(7), expected.nan_to_num(7))


def test_a_descriptor_of_a_view_reaches_as_far_as_it_says(tmp_path: Path) -> None:
    """Its base is the view's first element; the view's own shape is of no account."""
    x = torch.randn(8, 16)
    session = Session(tmp_path, TMA, x)
    out = session.alloc(4, 8)
    base = View(0, "float32", (1, 1), (16, 1), 16 * 2 + 4)
    session.launch("tma_kernel", 1, x_desc=Descriptor(base, (4, 8), (16, 1), (4, 8)),
                   y_desc=whole(out, 4, 8), BLOCK_M=4, BLOCK_N=8)

    reply, (result,) = session.run(out)

    assert reply["findings"] == []
    assert torch.equal(result, x[2:6, 4:12])


def test_a_descriptor_rounds_float32_where_that_is_asked_for(tmp_path: Path) -> None:
    x = torch.full((4, 8), 1 + 2**-13)
    session = Session(tmp_path, TMA, x)
    out = session.alloc(4, 8)
    session.launch("pad_kernel", 1, y_ptr=out, M=4, N=8,
                   x_desc=whole(session.inputs[0], 4, 8, round_f32_to_tf32=True))

    _, (result,) = session.run(out)

    assert result.unique().tolist() == [1.0]


def test_a_store_through_a_descriptor_of_an_input_is_found(tmp_path: Path) -> None:
    session = Session(tmp_path, TMA, torch.zeros(4, 8), torch.ones(4, 8))
    x, y = session.inputs
    session.launch("tma_kernel", 1, x_desc=whole(x, 4, 8), y_desc=whole(y, 4, 8), BLOCK_M=4,
                   BLOCK_N=8)

    reply, _ = session.run(y)

    assert list(seen(reply)) == ["M07"]
    assert "`y_desc`" in seen(reply)["M07"]


def test_what_a_descriptor_reads_before_anybody_wrote_it_is_found(tmp_path: Path) -> None:
    session = Session(tmp_path, TMA)
    x, out = session.alloc(4, 8), session.alloc(4, 8)
    session.launch("tma_kernel", 1, x_desc=whole(x, 4, 8), y_desc=whole(out, 4, 8), BLOCK_M=4,
                   BLOCK_N=8)

    reply, _ = session.run(out)

    assert list(seen(reply)) == ["M06"]


def test_a_storage_is_watched_by_the_element_of_its_descriptor(tmp_path: Path) -> None:
    """One allocation, stored as halves through a descriptor and read as words."""
    x = torch.randn(4, 8).half()
    session = Session(tmp_path, TMA + COPY.removeprefix(HEADER), x)
    middle, out = session.alloc(16, dtype="int32"), session.alloc(16, dtype="int32")
    halves = View(middle.storage, "float16", (4, 8), (8, 1), 0)
    session.launch("tma_kernel", 1, x_desc=whole(session.inputs[0], 4, 8),
                   y_desc=whole(halves, 4, 8), BLOCK_M=4, BLOCK_N=8)
    session.launch("copy_kernel", 1, x_ptr=middle, out_ptr=out, n=16, BLOCK=16)

    reply, (result,) = session.run(out)

    assert reply["findings"] == []
    assert torch.equal(result.view(torch.float16), x.flatten())


def test_a_constexpr_is_no_descriptor(tmp_path: Path) -> None:
    session = Session(tmp_path, TMA.replace("N: tl.constexpr, ROW", "N: tl.constexpr, "
                                            "extra: tl.constexpr, ROW"), torch.zeros(4, 8))
    x = session.inputs[0]
    session.launch("pad_kernel", 1, x_desc=whole(x, 4, 8), y_ptr=x, M=4, N=8,
                   extra=(whole(x, 4, 8),))

    reply, _ = session.run()

    assert list(seen(reply)) == ["L05"]
    assert "`extra` is a tensor" in seen(reply)["L05"]


# ---------------------------------------------------------------------------------------------
# Tuples

ARGUMENTS = HEADER + """
from typing import NamedTuple


class Inner(NamedTuple):
    scale: float
    plus: object


class Args(NamedTuple):
    x_ptr: object
    out_ptr: object
    n: int
    inner: Inner


@triton.jit
def add(x, y):
    return x + y


@triton.jit
def scaled(args, offs):
    return tl.load(args.x_ptr + offs, mask=offs < args.n, other=0.0) * args.inner.scale


@triton.jit
def args_kernel(args, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = args.inner.plus(scaled(args, offs), 1.0)
    tl.store(args.out_ptr + offs, x, mask=offs < args.n)
"""


class Args(NamedTuple):
    x_ptr: View
    out_ptr: View
    n: int
    inner: Inner


class Inner(NamedTuple):
    scale: float
    plus: Argument


def test_fields_of_a_named_tuple_are_read_by_name(tmp_path: Path) -> None:
    x = torch.randn(100)
    session = Session(tmp_path, ARGUMENTS, x)
    out = session.alloc(100)
    inner = Inner(2.0, Argument("function", "add"))
    session.launch("args_kernel", 2, BLOCK=64, args=Args(session.inputs[0], out, 100, inner))

    reply, (result,) = session.run(out)

    assert session.loaded["status"] == "ready"
    assert reply["findings"] == []
    torch.testing.assert_close(result, 2 * x + 1)
    assert set(reply["launches"][0]["footprint"]) == {"args.x_ptr", "args.out_ptr"}


def test_a_field_that_a_tuple_has_not_is_named(tmp_path: Path) -> None:
    session = Session(tmp_path, ARGUMENTS, torch.randn(100))
    out = session.alloc(100)
    session.launch("args_kernel", 2, BLOCK=64, args=(session.inputs[0], out, 100))

    reply, _ = session.run(out)

    assert list(seen(reply)) == ["L05"]
    assert "inner" in seen(reply)["L05"]


# A field opens its name in all kernels of a file; none of these may come to anything by it.
ESCAPES = {
    "the handle": ("handle data", "y = x_ptr.handle.data.tofile"),
    "a module": ("core os system", "m = tl\nm.core.os.system('true')"),
    "a module that is handed over": ("core os system", "helper(tl, n)"),
    "a module in a tuple": ("core sys", "m = (tl.math, n)\ny = m[0].core"),
    "a module of a module": ("builtins", "m = tl.core\ny = m.builtins"),
    "a module imported by name": ("core", "m = libdevice\ny = m.core"),
    "a kernel's function": ("fn", "y = helper.fn"),
    "a loop's frame": ("gi_frame f_builtins", "r = tl.range(0, n)\ny = r.gi_frame"),
    "a format": ("format", "y = 'x'.format(n)"),
    "an underscore": ("_value x", "y = n._value"),
    "a name of Triton's own": ("os", "tl.core.os.system('true')"),
    "an assignment": ("x", "n.x = 1"),
}


@pytest.mark.parametrize(("names", "body"), ESCAPES.values(), ids=ESCAPES)
def test_fields_open_nothing_else(names: str, body: str) -> None:
    before = ("import triton.language.extra.cuda.libdevice as libdevice\n"
              f"from collections import namedtuple\nT = namedtuple('T', {names!r}, rename=True)\n"
              "@triton.jit\ndef helper(x, y):\n    return y\n")

    kept = kernels.extract(_kernel(body, before))

    assert [f.code for f in kept.findings][:1] == ["L05"]


@pytest.mark.parametrize("definition", [
    "class T(NamedTuple):\n    first: int\n    last: int = 3\n",
    "class T(typing.NamedTuple):\n    'Two.'\n    first: int\n    last: int\n",
    "T = namedtuple('T', 'first last')\n", "T = namedtuple('T', 'first,last')\n",
    "T = collections.namedtuple('T', ['first', 'last'])\n",
    "T = NamedTuple('T', [('first', int), ('last', int)])\n",
    "def make():\n    return namedtuple('T', ('first', 'last'), defaults=[1])\n",
])
def test_named_tuples_of_all_spellings_are_known(definition: str) -> None:
    assert kernels.extract(_kernel("tl.store(n.first, n.last)", definition)).findings == []


@pytest.mark.parametrize("wide", [True, False], ids=["64-bit program id", "32-bit program id"])
def test_huge_tensors_are_sampled_without_filling_memory(tmp_path: Path, wide: bool) -> None:
    elements, block = (1 << 31) + 512, 1024
    source = COPY.replace("tl.program_id(0)", "tl.program_id(0).to(tl.int64)") if wide else COPY
    path = tmp_path / "kernel.py"
    path.write_text(source)
    [x] = Draws("suite", "1").draw("huge", [Sparse(elements)])
    out = View(1, "float32", (elements,), (1,), 0)
    arguments = {"x_ptr": Argument("tensor", View(0, "float32", (elements,), (1,), 0)),
                 "out_ptr": Argument("tensor", out),
                 "n": Argument("int", elements), "BLOCK": Argument("int", block)}
    launch = Launch("copy_kernel", (-(-elements // block), 1, 1), arguments)
    handler, output = ExecutorHandler(), os.memfd_create("output")
    try:
        with arena.pack([x]) as packed:
            made = Recording(packed.views, (Alloc(1, 4 * elements), launch), (out,))
            handler.handle({"op": "load", "path": str(path)}, [])
            reply = handler.handle(
                {"op": "run", "recording": model.to_json(made), "layout": packed.layout(),
                 "sample": 1, "windows": [[0, block], [elements - 512, 512]]},
                [packed.fd, output])
        parts = [torch.frombuffer(bytearray(os.pread(output, nbytes, offset)), dtype=torch.float32)
                 for _, _, offset, nbytes in reply["results"]]
    finally:
        os.close(output)

    if wide:
        assert reply["findings"] == []
        assert torch.equal(parts[0], x.part(0, 0, block))
        assert torch.equal(parts[1], x.part(1, elements - 512, 512))
    else:
        assert {finding["code"] for finding in reply["findings"]} == {"M05"}


# ---------------------------------------------------------------------------------------------
# What comes from the worker is not trusted


def _run_request(change: Any) -> dict[str, Any]:
    view = [0, "float32", [8], [1], 0]
    data: dict[str, Any] = {
        "inputs": [view],
        "events": [["alloc", 1, 32],
                   ["launch", "copy_kernel", [1, 1, 1],
                    {"x_ptr": ["tensor", view], "out_ptr": ["tensor", [1, "float32", [8], [1], 0]],
                     "n": ["int", 8], "BLOCK": ["int", 8]}, {}, 3]],
        "results": [[1, "float32", [8], [1], 0]],
    }
    change(data)
    return {"op": "run", "recording": data}


def _describe(data: dict[str, Any], *, base: Any = (0, "float32", [8], [1], 0),
              shape: Any = (2, 4), strides: Any = (4, 1), block: Any = (2, 4),
              padding: Any = "zero", rounds: Any = False) -> Any:
    """Hand a descriptor to the kernel, which is never reached; the argument as it is sent."""
    sent = ["descriptor", [list(base), list(shape), list(strides), list(block), padding, rounds]]
    data["events"][1][3]["x_ptr"] = sent
    return sent


def _name(data: dict[str, Any], names: Any) -> None:
    data["events"][1][3]["n"] = ["tuple", [["int", 8], ["int", 8]], names]


MALFORMED: dict[str, Any] = {
    "no recording": lambda d: d.clear(),
    "a view beyond its storage": lambda d: d["events"][1][3].update(
        x_ptr=["tensor", [0, "float32", [9], [1], 0]]),
    "an offset beyond its storage": lambda d: d["results"].append([1, "float32", [1], [1], 8]),
    "an unknown dtype": lambda d: d["results"].append([1, "nn", [1], [1], 0]),
    "a dtype that is none": lambda d: d["results"].append([1, "__name__", [1], [1], 0]),
    "an unknown storage": lambda d: d["results"].append([5, "float32", [1], [1], 0]),
    "an input that is not in the arena": lambda d: d["inputs"].append([7, "float32", [1], [1], 0]),
    "an allocation over an input": lambda d: d["events"].append(["alloc", 0, 64]),
    "an unknown parameter": lambda d: d["events"][1][3].update(z=["int", 1]),
    "a missing argument": lambda d: d["events"][1][3].pop("n"),
    "a missing constexpr": lambda d: d["events"][1][3].pop("BLOCK"),
    "an unknown function": lambda d: d["events"][1][3].update(n=["function", "os.system"]),
    "a move of other shapes": lambda d: d["events"].append(
        ["move", [1, "float32", [8], [1], 0], [0, "float32", [3], [1], 0], None, False]),
    "a move into an expanded view": lambda d: d["events"].append(
        ["move", [1, "float32", [8], [0], 0], [0, "float32", [8], [1], 0], None, False]),
    "a view of more elements than there can be": lambda d: d["results"].append(
        [1, "float32", [1 << 50], [0], 0]),
    "a descriptor beyond its storage": lambda d: _describe(d, shape=[3, 4]),
    "a descriptor that starts beyond its storage": lambda d: _describe(
        d, base=[0, "float32", [1], [1], 8], shape=[1, 4]),
    "a descriptor whose base is beyond its storage": lambda d: _describe(
        d, base=[0, "float32", [9], [1], 0]),
    "a descriptor of an unknown storage": lambda d: _describe(
        d, base=[5, "float32", [8], [1], 0]),
    "a descriptor of a storage of later": lambda d: (
        _describe(d, base=[2, "float32", [8], [1], 0]), d["events"].append(["alloc", 2, 32])),
    "a descriptor of an unknown dtype": lambda d: _describe(d, base=[0, "nn", [8], [1], 0]),
    "a descriptor of complex elements": lambda d: _describe(
        d, base=[0, "complex64", [4], [1], 0], shape=[2, 2], strides=[2, 1], block=[2, 2]),
    "a descriptor with a crooked base": lambda d: _describe(
        d, base=[0, "float32", [4], [1], 1], shape=[1, 4]),
    "a descriptor with a crooked stride": lambda d: _describe(d, strides=[3, 1]),
    "a descriptor with a wide last stride": lambda d: _describe(d, strides=[4, 2]),
    "a descriptor without a size": lambda d: _describe(d, shape=[0, 4]),
    "a descriptor of another rank": lambda d: _describe(d, strides=[1]),
    "a descriptor of another block": lambda d: _describe(d, block=[4]),
    "a descriptor of rank 0": lambda d: _describe(d, shape=[], strides=[], block=[]),
    "a descriptor of rank 6": lambda d: _describe(
        d, shape=[1] * 6, strides=[4] * 5 + [1], block=[1] * 6),
    "a descriptor of sizes beyond 32 bits": lambda d: _describe(
        d, shape=[1 << 31, 4], strides=[0, 1]),
    "a descriptor with a stride backwards": lambda d: _describe(d, strides=[-4, 1]),
    "a descriptor with an odd block": lambda d: _describe(d, block=[2, 3]),
    "a descriptor with no block": lambda d: _describe(d, block=[2, 0]),
    "a descriptor with a huge block": lambda d: _describe(d, block=[1 << 20, 2]),
    "a descriptor with another padding": lambda d: _describe(d, padding="one"),
    "a descriptor of integers with NaN": lambda d: _describe(
        d, base=[0, "int32", [8], [1], 0], padding="nan"),
    "a descriptor that rounds perhaps": lambda d: _describe(d, rounds="yes"),
    "a descriptor that rounds halves": lambda d: _describe(
        d, base=[0, "float16", [8], [1], 0], strides=[8, 1], rounds=True),
    "a descriptor with too little": lambda d: _describe(d)[1].pop(),
    "a named tuple with a name too few": lambda d: _name(d, ["x"]),
    "a named tuple with a name too many": lambda d: _name(d, ["x", "y", "z"]),
    "a named tuple with a name twice": lambda d: _name(d, ["x", "x"]),
    "a named tuple with an underscore": lambda d: _name(d, ["x", "_y"]),
    "a named tuple with a keyword": lambda d: _name(d, ["x", "class"]),
    "a named tuple with code": lambda d: _name(d, ["x", "y=print()"]),
    "a named tuple with a number": lambda d: _name(d, ["x", 3]),
    "a named tuple with one word": lambda d: _name(d, "xy"),
    "names of no tuple": lambda d: d["events"][1][3].update(n=["int", 8, ["x"]]),
    "complex elements": lambda d: d["events"][1][3].update(
        x_ptr=["tensor", [0, "complex64", [4], [1], 0]]),
}


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED)
def test_a_recording_that_does_not_fit_together(tmp_path: Path, change: Any) -> None:
    session = Session(tmp_path, COPY, torch.randn(8))

    reply, _ = session.ask({**_run_request(change), "layout": session.packed.layout()})

    assert reply["status"] == "malformed"
    assert reply["why"]


def test_the_same_recording_unchanged_is_fine(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(8))

    reply, _ = session.ask({**_run_request(lambda d: d), "layout": session.packed.layout()})

    assert reply["status"] == "done"
    assert reply["findings"] == []


def test_a_descriptor_that_fits_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """What the refused ones above were made of."""
    session = Session(tmp_path, TMA, torch.randn(8))
    request = _run_request(_describe)
    x_desc = request["recording"]["events"][1][3]["x_ptr"]
    request["recording"]["events"][1][1:4] = ["pad_kernel", [1, 1, 1], {
        "x_desc": x_desc, "y_ptr": ["tensor", [1, "float32", [8], [1], 0]],
        "M": ["int", 2], "N": ["int", 4]}]

    reply, _ = session.ask({**request, "layout": session.packed.layout()})

    assert (reply["status"], reply["findings"]) == ("done", [])


def test_a_recording_comes_through_json_as_it_was() -> None:
    view = View(0, "float32", (2, 8), (8, 1), 0)
    values = (Argument("descriptor", Descriptor(view, (2, 8), (8, 1), (2, 4), "nan", True)),
              Argument("int", 3), Argument("tensor", view))
    launch = Launch("k", (1, 2, 3), {
        "plain": Argument("tuple", values), "named": Argument("tuple", values, ("a", "b", "c")),
        "empty": Argument("tuple", ())}, {"num_warps": 4}, 7)
    made = Recording((view,), (launch,), (view,), True)

    assert model.from_json(json.loads(json.dumps(model.to_json(made)))) == made


def test_what_a_descriptor_reaches_counts_as_its_view() -> None:
    base = View(3, "float32", (1,), (1,), 4)
    argument = Argument("descriptor", Descriptor(base, (2, 8), (16, 1), (2, 4)))

    views = model.views_of(Argument("tuple", (argument, Argument("tensor", base))))

    assert views == [View(3, "float32", (2, 8), (16, 1), 4), base]
    made = model.to_json(Recording((), (Launch("k", (1, 1, 1), {"x": argument}),), ()))
    with pytest.raises(MalformedRecording, match="storage 3 does not exist"):
        model.from_json(made)


def test_a_launch_of_a_function_that_is_no_kernel(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(8))
    session.launch("made_at_run_time", 1)

    reply, _ = session.run()

    assert list(seen(reply)) == ["L05"]
    assert "the file defines no kernel of this name" in seen(reply)["L05"]


def test_too_many_programs_are_not_started(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(8))
    out = session.alloc(8)
    session.launch("copy_kernel", 1 << 21, x_ptr=session.inputs[0], out_ptr=out, n=8, BLOCK=8)

    reply, _ = session.run(out)

    assert list(seen(reply)) == ["T03"]


def test_requests_that_mean_nothing(tmp_path: Path) -> None:
    assert ExecutorHandler().handle({"op": "dance"}, [])["status"] == "malformed"
    assert ExecutorHandler().handle({"op": "run"}, [0, 1])["status"] == "malformed"


# ---------------------------------------------------------------------------------------------
# Which code is taken from a file


def test_only_kernels_and_what_they_need_are_kept() -> None:
    text = '''from __future__ import annotations
"""A docstring"""
import os, triton
import triton.language as tl; import sys
import torch
from triton import cdiv
from triton.runtime import driver
try:
    from triton.language.extra import libdevice
except ImportError:
    os.abort()

BLOCK = 128
SCALE = tl.constexpr(1.5)
LIMIT: tl.constexpr = 1 << 4
DTYPE = tl.float32
DEVICE = driver.active.get_active_torch_device()
os.environ["X"] = "1"


@triton.autotune(
    configs=[triton.Config({"B": 2 ** k}) for k in range(3)],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda a: a["n"] % 2 == 0})
@triton.jit(do_not_specialize=["n"], repr=lambda s: "k")
def kernel(
    x_ptr: torch.Tensor, n: "int",
    B: tl.constexpr = BLOCK,  # größe
) -> None:
    """Ünicode."""
    tl.store(x_ptr, SCALE + LIMIT)


def host(x):
    os.abort()


class Thing:
    pass


if __name__ == "__main__":
    host(1)
'''

    kept = kernels.extract(text)

    assert kept.findings == []
    lines = kept.text.split("\n")
    assert len(lines) == len(text.split("\n"))
    assert [line for line in lines if line.strip()] == [
        "import triton", "import triton.language as tl", "from triton import cdiv",
        "from triton.language.extra import libdevice",
        "BLOCK = 128", "SCALE = tl.constexpr(1.5)", "LIMIT: 'constexpr' = 16",
        "DTYPE = tl.float32", "@triton.jit(do_not_specialize=['n'])", "def kernel(",
        "    x_ptr              , n: \"int\",", "    B: tl.constexpr = BLOCK,  # größe",
        ")        :",
        '    """Ünicode."""', "    tl.store(x_ptr, SCALE + LIMIT)"]
    assert lines.index("def kernel(") == text.split("\n").index("def kernel(")
    assert list(kernels.load(kept, "/nowhere/kernel.py")) == ["kernel"]


def _kernel(body: str, before: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return f"{HEADER}{before}\n@triton.jit\ndef kernel(x_ptr, n, B: tl.constexpr):\n{lines}\n"


ACCEPTED = {
    "a helper": ("tl.store(x_ptr, helper(n))", "@triton.jit\ndef helper(x):\n    return x + 1\n"),
    "methods and types": ("y = tl.load(x_ptr).to(tl.float32)\nz = y.to(y.dtype).sum()\n"
                          "w = x_ptr.dtype.element_ty", ""),
    "loops and branches": ("for k in tl.range(0, n, B):\n    if k > 2:\n        n = n + 1\n"
                           "    elif k == 1 and n > 3:\n        pass\n"
                           "while n > 0:\n    n -= 1", ""),
    "builtins": ("print('x', n)\nm = min(n, 3)\nf = float('inf')\nassert n > 0, 'n'", ""),
    "math and extra": ("y = tl.math.exp(tl.load(x_ptr))\nz = libdevice.tanh(y)\n"
                       "c = triton.cdiv(B, 2)",
                       "from triton.language.extra import libdevice\n"),
    "tuples and formats": ("a, b = tl.split(tl.join(n, n))\ntl.static_print(f'{B}')", ""),
    "a global constexpr": ("tl.store(x_ptr, ONE)", "ONE = tl.constexpr(1)\n"),
    "a jit function passed on": ("tl.store(x_ptr, tl.reduce(tl.arange(0, B), 0, plus))",
                                 "@triton.jit\ndef plus(a, b):\n    return a + b\n"),
    "a global that is bound twice, plainly": (
        "tl.store(x_ptr, ONE)", "ONE = tl.constexpr(2)\nONE = tl.constexpr(1)\n"),
    "an import from one of two places": (
        "y = exp2(tl.load(x_ptr))", "try:\n    from triton.language.extra.libdevice import exp2\n"
        "except ImportError:\n    from triton.language.math import exp2\n"),
    "a name that other scopes bind too": (
        "tl.store(x_ptr, ONE)", "ONE = tl.constexpr(1)\ndef host(x, ONE):\n    ONE = 2\n"
        "sizes = [ONE for ONE in range(3)]\nclass Mine:\n    ONE: int = 2\n"),
    "an enumeration": ("y = tl.maximum(n, 1, propagate_nan=tl.PropagateNan.ALL)", ""),
}


@pytest.mark.parametrize(("body", "before"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_triton_compiles_is_accepted(body: str, before: str) -> None:
    kept = kernels.extract(_kernel(body, before))

    assert kept.findings == []
    assert "kernel" in kernels.load(kept, "/nowhere/kernel.py")


REFUSED = {
    "numpy": ("y = np.exp(n)", "import numpy as np\n",
              "calls `np.exp`, which is Python host code; a kernel is compiled and can call only "
              "Triton functions: use `tl.exp`"),
    "torch": ("y = torch.amax(n)", "import torch\n", "call only Triton functions: use `tl.max`"),
    "a module of torch": ("y = F.softmax(n)", "import torch.nn.functional as F\n",
                          "use `tl.softmax`"),
    "a function of torch": ("y = sigmoid(n)", "from torch import sigmoid\n", "use `tl.sigmoid`"),
    "math": ("y = math.tanh(n)", "import math\n",
             "use `libdevice.tanh` from `triton.language.extra`"),
    "a type of torch": ("y = n.to(torch.float16)", "import torch\n", "use `tl.float16`"),
    "a function that Triton has not": ("y = torch.svd(n)", "import torch\n",
                                       "a kernel is compiled and can call only Triton functions"),
    "a name that is nowhere": ("y = off_s + n\noffs = n", "",
                               "uses `off_s`, and `off_s` is not defined; the nearest name is "
                               "`offs`"),
    "a module that is nowhere": ("y = tll.exp(n)", "", "calls `tll.exp`, and `tll` is not defined"),
    "an import": ("import os", "", "uses an import"),
    "a lambda": ("f = lambda: 1", "", "uses a lambda"),
    "a comprehension": ("y = [k for k in (1, 2)]", "", "uses a comprehension"),
    "try": ("try:\n    pass\nfinally:\n    pass", "", "uses `try`"),
    "with": ("with x_ptr:\n    pass", "", "uses `with`"),
    "raise": ("raise ValueError", "", "uses `raise`"),
    "global": ("global n2", "", "uses `global`"),
    "a nested function": ("def f():\n    pass", "", "uses a function inside the kernel"),
    "break": ("for k in range(3):\n    break", "", "uses `break`"),
    "a dunder": ("y = x_ptr.__class__", "", "uses `x_ptr.__class__`"),
    "a dunder name": ("y = __import__('os')", "", "calls `__import__`"),
    "the handle": ("y = x_ptr.handle.data", "", "uses `x_ptr.handle.data`"),
    "eval": ("eval('1')", "", "calls `eval`"),
    "getattr": ("y = getattr(x_ptr, 'handle')", "", "calls `getattr`"),
    "a plain function": ("y = host(n)", "def host(x):\n    return x\n",
                         "calls `host`, a plain Python function"),
    "a module through Triton": ("tl.core.os.system('x')", "", "calls `tl.core.os.system`"),
    "a private kernel of Triton": ("y = tl.standard._sum_combine(n, n)", "", "in Triton kernels"),
    "a private name of Triton": ("y = tl.core._unwrap_if_constexpr(n)", "", "in Triton kernels"),
    "the runtime": ("y = triton.runtime.driver", "", "uses `triton.runtime.driver`"),
    "a name that Triton has not": ("y = tl.tanh(n)", "",
                                   "calls `tl.tanh`, which is not available in Triton"),
    "inline assembly": ("y = tl.inline_asm_elementwise('', '', [], tl.int32, True, 1)", "",
                        "calls `tl.inline_asm_elementwise`, which inserts inline assembly"),
    "a function that runs while compiling": (
        "y = half(B)", "@triton.constexpr_function\ndef half(n):\n    return n // 2\n",
        "calls `half`, a `constexpr_function`"),
    "a global number": ("y = WIDTH + n", "WIDTH = 5\n", "a global that is not a tl.constexpr"),
    "a global of two branches": ("y = ONE + n", "if n_gpus():\n    ONE = tl.constexpr(1)\nelse:\n"
                                 "    ONE = tl.constexpr(2)\n", "uses `ONE`, which is assigned"),
    "a global that may be bound anew": (
        "y = ONE + n", "ONE = tl.constexpr(1)\nif n_gpus():\n    ONE = tl.constexpr(2)\n",
        "uses `ONE`, which is assigned on lines"),
    "an import that may be bound anew": (
        "y = tl.zeros((8,), ONE)", "from triton.language import float32 as ONE\nif n_gpus():\n"
        "    ONE = tl.constexpr(2)\n", "uses `ONE`, which is assigned on lines"),
    "a global that a handler binds": (
        "y = ONE + n", "try:\n    ONE = tl.constexpr(1)\n    import nowhere\nexcept ImportError:\n"
        "    ONE = tl.constexpr(2)\n", "uses `ONE`, which is assigned on lines"),
    "a global that a loop binds": (
        "y = ONE + n", "ONE = tl.constexpr(1)\nfor ONE in (tl.constexpr(2),):\n    pass\n",
        "uses `ONE`, which is assigned on lines"),
    "a global that is unpacked": (
        "y = ONE + n", "ONE = tl.constexpr(1)\n(ONE, TWO) = map(tl.constexpr, (2, 3))\n",
        "uses `ONE`, which is assigned on lines"),
    "a global that an expression binds": (
        "y = ONE + n", "ONE = tl.constexpr(1)\nprint(ONE := tl.constexpr(2))\n",
        "uses `ONE`, which is assigned on lines"),
    "a global that a function binds": (
        "y = ONE + n", "ONE = tl.constexpr(1)\ndef host():\n    global ONE\n    ONE = 2\n",
        "uses `ONE`, which is assigned on lines"),
    "a helper that is replaced": (
        "y = one(n)", "@triton.jit\ndef one(x):\n    return x\n@triton.jit\ndef two(x):\n"
        "    return 2 * x\none = two\n", "uses `one`, which is assigned on lines"),
    "a name of Triton that is replaced": (
        "y = maximum(n, 1)", "from triton.language import maximum\ndef maximum(a, b):\n"
        "    return a\n", "uses `maximum`, which is assigned on lines"),
    "a clock": ("y = cuda.globaltimer()", "from triton.language.extra import cuda\n",
                "calls `cuda.globaltimer`, which queries the GPU"),
    "a computed global": ("y = WIDTH + n", "WIDTH = tl.constexpr(len('abc'))\n", "uses `WIDTH`"),
    "a changed block": ("y = tl.arange(0, B)\ny[0] = 1", "", "assigns to `y[0]`"),
    "a changed attribute": ("x_ptr.dtype = 1", "", "cannot assign to attributes"),
    "an argument of a refused call": ("tl.store(x_ptr, math.exp(1))", "import math\n", "math.exp"),
    "a method of a word": ("y = 'a'.format(n)", "", "calls `'a'.format`"),
}


@pytest.mark.parametrize(("body", "before", "words"), REFUSED.values(), ids=REFUSED)
def test_what_a_kernel_cannot_use_is_refused(body: str, before: str, words: str) -> None:
    source = _kernel(body, before)

    kept = kernels.extract(source)

    assert [f.code for f in kept.findings] == ["L05"]
    assert words in kept.findings[0].seen
    first = source.split("\n").index("def kernel(x_ptr, n, B: tl.constexpr):") + 1
    assert kept.findings[0].line is not None
    assert kept.findings[0].line > first


def test_an_unknown_decorator_on_a_kernel_is_refused() -> None:
    kept = kernels.extract(HEADER + "@wrap\n@triton.jit\ndef k(x_ptr):\n    pass\n")

    assert kept.findings[0].seen == (
        "Kernel `k` is decorated with `wrap`, which the grader does not support.")
    assert kept.findings[0].line == 5


def test_a_default_that_is_computed_is_refused() -> None:
    kept = kernels.extract(HEADER + "@triton.jit\ndef k(x_ptr, n=open('f')):\n    pass\n")

    assert "defaults of a kernel must be constants" in kept.findings[0].seen


TWO = ADD + """

@triton.jit
def {helper}(x):
    return {body}


@triton.jit
def double_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, {helper}(tl.load(x_ptr + offs)))
"""


def _double_and_add(tmp_path: Path, text: str, kernel: str) -> tuple[dict[str, Any], Any]:
    x = torch.randn(8)
    session = Session(tmp_path, text, x)
    out = session.alloc(8)
    given = {"y_ptr": session.inputs[0], "n": 8} if kernel == "add_kernel" else {}
    session.launch(kernel, 1, x_ptr=session.inputs[0], out_ptr=out, BLOCK_SIZE=8, **given)
    reply, results = session.run(out)
    assert session.loaded["status"] == "ready"
    return reply, [torch.equal(result, x + x) for result in results]


def test_a_kernel_beside_one_that_is_refused_runs(tmp_path: Path) -> None:
    text = TWO.format(helper="twice", body="tl.relu(x)")

    reply, right = _double_and_add(tmp_path, text, "add_kernel")

    assert (reply["findings"], right) == ([], [True])


def test_a_kernel_that_uses_a_refused_one_is_refused_with_its_finding(tmp_path: Path) -> None:
    text = TWO.format(helper="twice", body="tl.relu(x)")

    reply, _ = _double_and_add(tmp_path, text, "double_kernel")

    line = 1 + text.split("\n").index("    return tl.relu(x)")
    found, = map(Finding.from_json, reply["findings"])
    assert (found.code, found.line, found.seen) == (
        "L05", line, f"Line {line} calls `tl.relu`, which is not available in Triton kernels.")


def test_a_kernel_that_uses_one_that_is_fine_runs(tmp_path: Path) -> None:
    text = TWO.format(helper="twice", body="x + x")

    reply, right = _double_and_add(tmp_path, text, "double_kernel")

    assert (reply["findings"], right) == ([], [True])


def test_a_refused_kernel_that_is_handed_over_as_an_argument_is_refused(tmp_path: Path) -> None:
    text = COPY + """

@triton.jit
def wrong(x):
    return tl.relu(x)


@triton.jit
def map_kernel(x_ptr, out_ptr, f: tl.constexpr):
    tl.store(out_ptr, f(tl.load(x_ptr)))
"""
    session = Session(tmp_path, text, torch.randn(1))
    out = session.alloc(1)
    session.launch("map_kernel", 1, x_ptr=session.inputs[0], out_ptr=out,
                   f=Argument("function", "wrong"))

    reply, _ = session.run(out)

    assert "calls `tl.relu`" in seen(reply)["L05"]


def test_a_name_of_its_own_is_no_use_of_a_refused_kernel() -> None:
    kept = kernels.extract(TWO.format(helper="offs", body="tl.relu(x)").replace(
        "offs(tl.load(x_ptr + offs))", "tl.load(x_ptr + offs)"))

    assert list(kept.problems) == ["offs"]


def test_of_two_kernels_with_one_name_each_has_its_own_problems() -> None:
    kept = kernels.extract(COPY + "\n\n" + COPY.removeprefix(HEADER).replace("tl.load", "tl.get"))

    assert list(kept.problems) == ["copy_kernel"]
    assert list(kernels.load(kept, "/nowhere/kernel.py")) == ["copy_kernel (line 7)"]


@pytest.mark.parametrize(("body", "seen"), [
    ("tl.relu(x)", "calls `tl.relu`, which is not available in Triton kernels"),
    ("x + tl.arrange(0, 8)", "calls `tl.arrange`, which is not available in Triton kernels; the "
     "nearest name is `arange`"),
    ("tl.math.expp(x)", "the nearest name is `exp`"),
    ("x.too(tl.float32)", "calls `x.too`, which a kernel cannot use; the nearest name is `to`"),
    (f"x{' + x' * 990}", "An expression of a kernel is nested too deeply"),
], ids=["a name", "a near name", "of a module", "of a tensor", "nesting"])
def test_a_file_without_a_kernel_that_can_be_used_is_refused(tmp_path: Path, body: str,
                                                             seen: str) -> None:
    only = TWO.replace(ADD, HEADER).format(helper="twice", body=body)

    session = Session(tmp_path, only)
    session.packed.close()

    assert session.loaded["status"] == "refused"
    assert seen in Finding.from_json(session.loaded["findings"][0]).seen


def test_a_problem_of_the_whole_file_refuses_every_kernel(tmp_path: Path) -> None:
    twice_the_same = "@triton.jit\ndef wrong(x, x):\n    pass\n\n\n"

    session = Session(tmp_path, ADD.replace("@triton.jit", f"{twice_the_same}@triton.jit"))
    session.packed.close()

    assert session.loaded["status"] == "refused"
    assert session.loaded["findings"][0]["code"] == "P02"


def test_an_import_that_triton_lacks_costs_the_kernels_that_use_it(tmp_path: Path) -> None:
    missing = "from triton.language import nothing_of_this_name\n"
    text = missing + TWO.format(helper="twice", body="nothing_of_this_name(x)")

    session = Session(tmp_path, text)
    session.packed.close()

    usable = [name for name, kernel in session.handler.kernels.items()
              if not isinstance(kernel, Finding)]
    assert usable == ["add_kernel"]


@pytest.mark.parametrize("data", [
    ADD.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + ADD.encode(),
    ("# -*- coding: latin-1 -*-\n# é\n" + ADD).encode("latin-1"),
    ADD.replace("mask = ", "# Größe ✓\n    mask = ").encode(),
    ADD.replace("import triton\n", "from triton import jit\n").replace("@triton.", "@").encode(),
], ids=["CRLF", "BOM", "latin-1", "non-ASCII", "jit imported by name"])
def test_files_in_other_forms(tmp_path: Path, data: bytes) -> None:
    x = torch.randn(10)
    session = Session(tmp_path, data, x)
    out = session.alloc(10)
    session.launch("add_kernel", 2, x_ptr=session.inputs[0], y_ptr=session.inputs[0], out_ptr=out,
                   n=10, BLOCK_SIZE=8)

    reply, (result,) = session.run(out)

    assert reply["findings"] == []
    assert torch.equal(result, x + x)


def test_nothing_of_the_module_level_runs(tmp_path: Path) -> None:
    trap = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"

    session = Session(tmp_path, ADD + trap)
    session.packed.close()

    assert session.loaded["status"] == "ready"
    assert not (tmp_path / "ran").exists()


def test_a_file_that_does_not_parse_is_refused(tmp_path: Path) -> None:
    session = Session(tmp_path, "def f(:\n")
    session.packed.close()

    assert session.loaded["status"] == "refused"
    assert session.loaded["findings"][0]["code"] == "P02"


def test_lines_are_those_of_the_learners_file(tmp_path: Path) -> None:
    session = Session(tmp_path, "# one\n# two\n" + ADD.replace(", mask=mask)\n    y", ")\n    y"),
                      torch.randn(10))
    out = session.alloc(10)
    session.launch("add_kernel", 2, x_ptr=session.inputs[0], y_ptr=session.inputs[0], out_ptr=out,
                   n=10, BLOCK_SIZE=8)

    reply, _ = session.run(out)

    (finding,) = reply["findings"]
    assert finding["code"] == "M01"
    assert "x = tl.load" in session.path.read_text().split("\n")[finding["line"] - 1]


def test_warming_up_leaves_no_trace() -> None:
    before = dict(vars(tl))

    warm()
    warm()

    assert dict(vars(tl)) == before  # the interpreter replaces some of it while kernels run


# ---------------------------------------------------------------------------------------------
# From the learner's file to the judge

SUBMISSION = """
import torch
import triton
import triton.language as tl
from typing import NamedTuple
from triton.tools.tensor_descriptor import TensorDescriptor

class Args(NamedTuple):
    x: TensorDescriptor
    y_ptr: torch.Tensor

@triton.jit
def wait_kernel(flag_ptr, y_ptr):
    while tl.atomic_add(flag_ptr, 0) == 0:
        pass
    tl.store(y_ptr + tl.arange(0, 32), 0.0)

@triton.autotune(configs=[triton.Config({"SCALE": scale}) for scale in (1, 2, 3)], key=[])
@triton.jit
def args_kernel(args, SCALE: tl.constexpr):
    x = args.x.load([0, 0])
    tl.store(args.y_ptr + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :], x * SCALE)

def by_arguments(x):
    y = torch.empty_like(x)
    args_kernel[(1,)](Args(TensorDescriptor.from_tensor(x, [4, 8]), y))
    return y

@triton.jit
def one_kernel(y_ptr):
    tl.store(y_ptr, 1.0)

def too_large(x):
    y = torch.empty((64 << 20) // 4 + 1, device=x.device)
    one_kernel[(1,)](y)
    return y

def for_ever(x):
    y, flag = torch.empty_like(x), torch.zeros(1, dtype=torch.int32, device=x.device)
    wait_kernel[(2,)](flag, y)
    return y
"""


@pytest.fixture
def submitted(tmp_path: Path, sandbox: Sandbox) -> Iterator[Callable[[str], sessions.Session]]:
    """Both processes of one submission, by the name of its function."""
    path = tmp_path / "kernel.py"
    path.write_text(SUBMISSION)
    opened: list[sessions.Session] = []

    def open_session(entry: str) -> sessions.Session:
        opened.append(sessions.Session(source.read(path), entry, sandbox))
        return opened[-1]

    yield open_session
    for session in opened:
        session.close()


@pytest.mark.parametrize("config", range(4))
def test_descriptors_names_and_configurations_go_all_the_way(
    submitted: Callable[[str], sessions.Session], config: int
) -> None:
    session, x = submitted("by_arguments"), torch.randn(4, 8)

    outcome = session.record([x], config=config)
    assert outcome.recording is not None
    run = session.replay(outcome.recording, [x])

    assert outcome.configurations == 3
    assert run.findings == ()
    assert torch.equal(run.results[0], x * (config % 3 + 1))
    (facts,) = run.facts
    assert (facts.bytes_loaded, facts.sectors_loaded, facts.sectors_stored) == (128, 4, 4)
    assert facts.footprint == {"args.x": Footprint(4, 0), "args.y_ptr": Footprint(0, 4)}


def test_a_kernel_that_waits_for_ever_is_a_finding_and_the_process_stays(
    submitted: Callable[[str], sessions.Session]
) -> None:
    session, x = submitted("for_ever"), torch.randn(4, 8)

    first, again = session.execute([x])[2], session.execute([x])[2]

    (finding,) = first.findings
    assert (finding.code, finding.line) == ("R02", 14)
    assert "waits forever" in finding.seen
    assert (first.results, len(first.facts)) == ((), 1)
    assert again.findings == first.findings


def test_a_result_that_is_too_large_to_hand_over_is_a_finding(
    submitted: Callable[[str], sessions.Session]
) -> None:
    run = submitted("too_large").execute([torch.ones(8)])[2]

    assert [(finding.code, "a result this large" in finding.seen) for finding in run.findings] == [
        ("M03", False), ("R04", True)]


@pytest.mark.parametrize("reply", [0, -1, True, 2.0, "2", None])
def test_a_number_of_configurations_that_is_none_is_no_recording(
    submitted: Callable[[str], sessions.Session], monkeypatch: pytest.MonkeyPatch, reply: Any
) -> None:
    session, x = submitted("by_arguments"), torch.randn(4, 8)
    begin = Child.begin

    def forged(self: Child, *args: Any) -> Any:
        answer = begin(self, *args)
        return lambda: {**answer(), "configurations": reply}

    session.ready()
    monkeypatch.setattr(Child, "begin", forged)

    with pytest.raises(sessions.Stopped, match="no number of configurations"):
        session.record([x])
