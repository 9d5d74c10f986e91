"""The executor: which code it takes from a file, and how it replays a recording."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from grader import recording
from grader.executor import kernels
from grader.executor.main import Handler, warm
from grader.recording import Alloc, Argument, Event, Fill, Launch, Move, Recording, View
from grader.sandbox import arena
from grader.sandbox.arena import SparseTensor
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
        self.handler = Handler()
        self.loaded = self.handler.handle({"op": "load", "path": str(self.path)}, [])
        self.packed = arena.pack(inputs)
        self.inputs = self.packed.views
        self.events: list[Event] = []

    def alloc(self, *shape: int, dtype: str = "float32") -> View:
        number = len(self.packed.storages) + sum(isinstance(e, Alloc) for e in self.events)
        like = torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
        self.events.append(Alloc(number, like.numel() * like.element_size()))
        return View(number, dtype, shape, tuple(like.stride()), 0)

    def launch(self, kernel: str, *grid: int, **arguments: Any) -> None:
        full = (*grid, 1, 1)[:3]
        bound = {name: self._argument(value) for name, value in arguments.items()}
        self.events.append(Launch(kernel, (full[0], full[1], full[2]), bound))

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, Argument):
            return value
        kinds = {View: "tensor", bool: "bool", int: "int", float: "float", type(None): "none"}
        return Argument(kinds[type(value)], value)

    def run(self, *results: View, **settings: Any) -> tuple[dict[str, Any], list[torch.Tensor]]:
        made = Recording(self.inputs, tuple(self.events), results)
        request = {"op": "run", "recording": recording.to_json(made),
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
    return {finding["code"]: finding["seen"] for finding in reply["findings"]}


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

    assert session.loaded == {"status": "ready", "kernels": ["add_kernel"]}
    assert torch.equal(result, x + y)
    assert reply == {
        "status": "done", "findings": [], "results": [["float32", [1000], 0, 4000]],
        "launches": [{"kernel": "add_kernel", "programs": 4, "idle_programs": 0,
                      "bytes_loaded": 8000, "bytes_stored": 4000, "block": 256}],
        "modified_inputs": [],
    }


def test_elements_that_no_kernel_stored(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(100, 100))
    out = session.alloc(100, 100)
    session.launch("copy_kernel", 9, x_ptr=session.inputs[0], out_ptr=out, n=10_000, BLOCK=1024)

    reply, _ = session.run(out)

    assert seen(reply) == {
        "M03": "784 of 10000 elements of the result were never stored by a kernel; "
               "the first is index (92, 16)"}


def test_a_fill_by_host_code_is_no_result_of_a_kernel(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(8))
    out = session.alloc(8)
    session.events.append(Fill(out, 0))
    session.launch("copy_kernel", 1, x_ptr=session.inputs[0], out_ptr=out, n=6, BLOCK=8)

    reply, (result,) = session.run(out)

    assert seen(reply)["M03"].startswith("2 of 8 elements of the result were never stored")
    assert result[6:].tolist() == [0, 0]


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
    assert reply["modified_inputs"] == [1]
    assert torch.equal(result, torch.ones(8))  # executed, on a private copy


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
    assert "arange's range must be a power of 2" in reply["findings"][0]["seen"]
    assert len(reply["launches"]) == 1
    assert results == []


@pytest.mark.parametrize("wide", [True, False], ids=["64-bit program id", "32-bit program id"])
def test_huge_tensors_are_sampled_without_filling_memory(tmp_path: Path, wide: bool) -> None:
    elements, block = (1 << 31) + 512, 1024
    source = COPY.replace("tl.program_id(0)", "tl.program_id(0).to(tl.int64)") if wide else COPY
    path = tmp_path / "kernel.py"
    path.write_text(source)
    x = SparseTensor.draw(Sparse(elements), torch.Generator().manual_seed(1))
    out = View(1, "float32", (elements,), (1,), 0)
    arguments = {"x_ptr": Argument("tensor", View(0, "float32", (elements,), (1,), 0)),
                 "out_ptr": Argument("tensor", out),
                 "n": Argument("int", elements), "BLOCK": Argument("int", block)}
    launch = Launch("copy_kernel", (-(-elements // block), 1, 1), arguments)
    handler, output = Handler(), os.memfd_create("output")
    try:
        with arena.pack([x]) as packed:
            made = Recording(packed.views, (Alloc(1, 4 * elements), launch), (out,))
            handler.handle({"op": "load", "path": str(path)}, [])
            reply = handler.handle(
                {"op": "run", "recording": recording.to_json(made), "layout": packed.layout(),
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
                     "n": ["int", "8"], "BLOCK": ["int", "8"]}, {}, 3]],
        "results": [[1, "float32", [8], [1], 0]],
    }
    change(data)
    return {"op": "run", "recording": data}


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
    "an unknown parameter": lambda d: d["events"][1][3].update(z=["int", "1"]),
    "a missing argument": lambda d: d["events"][1][3].pop("n"),
    "a missing constexpr": lambda d: d["events"][1][3].pop("BLOCK"),
    "an unknown function": lambda d: d["events"][1][3].update(n=["function", "os.system"]),
    "a move of other shapes": lambda d: d["events"].append(
        ["move", [1, "float32", [8], [1], 0], [0, "float32", [3], [1], 0]]),
    "a move into an expanded view": lambda d: d["events"].append(
        ["move", [1, "float32", [8], [0], 0], [0, "float32", [8], [1], 0]]),
    "a view of more elements than there can be": lambda d: d["results"].append(
        [1, "float32", [1 << 50], [0], 0]),
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


def test_a_launch_of_a_function_that_is_no_kernel(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(8))
    session.launch("made_at_run_time", 1)

    reply, _ = session.run()

    assert list(seen(reply)) == ["L05"]
    assert "no function with @triton.jit" in seen(reply)["L05"]


def test_too_many_programs_are_not_started(tmp_path: Path) -> None:
    session = Session(tmp_path, COPY, torch.randn(8))
    out = session.alloc(8)
    session.launch("copy_kernel", 1 << 21, x_ptr=session.inputs[0], out_ptr=out, n=8, BLOCK=8)

    reply, _ = session.run(out)

    assert list(seen(reply)) == ["T03"]


def test_requests_that_mean_nothing(tmp_path: Path) -> None:
    assert Handler().handle({"op": "dance"}, [])["status"] == "malformed"
    assert Handler().handle({"op": "run"}, [0, 1])["status"] == "malformed"


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
        "BLOCK = 128", "SCALE = tl.constexpr(1.5)", "LIMIT: 'constexpr' = 1 << 4",
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
    "an enumeration": ("y = tl.maximum(n, 1, propagate_nan=tl.PropagateNan.ALL)", ""),
}


@pytest.mark.parametrize(("body", "before"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_triton_compiles_is_accepted(body: str, before: str) -> None:
    kept = kernels.extract(_kernel(body, before))

    assert kept.findings == []
    assert "kernel" in kernels.load(kept, "/nowhere/kernel.py")


REFUSED = {
    "numpy": ("y = np.exp(n)", "import numpy as np\n", "calls `np.exp`, which a kernel cannot use"),
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
    "a plain function": ("y = host(n)", "def host(x):\n    return x\n", "calls `host`"),
    "a module through Triton": ("tl.core.os.system('x')", "", "calls `tl.core.os.system`"),
    "a private name of Triton": ("y = tl.core._unwrap_if_constexpr(n)", "", "which Triton"),
    "the runtime": ("y = triton.runtime.driver", "", "uses `triton.runtime.driver`"),
    "a name that Triton has not": ("y = tl.tanh(n)", "", "calls `tl.tanh`, which Triton"),
    "inline assembly": ("y = tl.inline_asm_elementwise('', '', [], tl.int32, True, 1)", "",
                        "which Triton does not offer"),
    "a global number": ("y = WIDTH + n", "WIDTH = 5\n", "a global that is not a tl.constexpr"),
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
        "kernel `k` is decorated with `wrap`, which the grader does not know")
    assert kept.findings[0].line == 5


def test_a_default_that_is_computed_is_refused() -> None:
    kept = kernels.extract(HEADER + "@triton.jit\ndef k(x_ptr, n=open('f')):\n    pass\n")

    assert "a kernel's defaults must be constants" in kept.findings[0].seen


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
    warm()
    warm()
