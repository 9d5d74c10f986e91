"""The untrusted side: what host code may do is recorded, the rest is a finding."""

from __future__ import annotations

import dataclasses
import os
import re
import secrets
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from grader import Sandbox
from grader.recording import arena, host_values, model
from grader.recording.model import Alloc, Argument, Descriptor, Fill, Launch, Move, Recording, View
from grader.report import Finding
from grader.sandbox import Child

PRELUDE = """\
import numpy as np
import torch
import triton
import triton.language as tl
from typing import NamedTuple
from triton.tools.tensor_descriptor import TensorDescriptor

class Pair(NamedTuple):
    x_ptr: object
    n: object

@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr = 64):
    pass

@triton.jit
def helper(x):
    return x

LATER = torch.ones(8)

def launch(x, y, n=8, grid=(1,), **options):
    k[grid](x, y, n, **options)
    return y

"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


Call = Callable[..., dict[str, Any]]


@pytest.fixture
def call(sandbox: Sandbox, tmp_path: Path) -> Iterator[Call]:
    """Call ``f`` of a module with the prelude, in a worker, on tensors, values and meta shapes."""
    children: list[Child] = []

    def run(body: str, *arguments: Any, prelude: str = PRELUDE, **more: Any) -> dict[str, Any]:
        path = tmp_path / "kernel.py"
        path.write_text(prelude + textwrap.dedent(body), encoding="utf-8")
        child = sandbox.fork("worker")
        children.append(child)
        loaded = child.ask({"op": "load", "path": str(path)})
        assert loaded == {"status": "ready"}
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        with arena.pack(tensors) as packed:
            views = iter(packed.views)
            items = [
                {"tensor": model.to_json(next(views))} if isinstance(a, torch.Tensor)
                else {"meta": list(a)} if isinstance(a, tuple)
                else {"value": host_values.to_json(a)}
                for a in arguments
            ]
            request = {"op": "call", "entry": "f", "layout": packed.layout(), "arguments": items,
                       **more}
            reply = child.ask(request, [packed.fd])
        if reply["status"] == "returned":
            reply["recording"] = model.from_json(reply["recording"])
        reply["output"] = child.output()
        return reply

    yield run
    for child in children:
        child.kill()


def x8() -> torch.Tensor:
    return torch.arange(8, dtype=torch.float32)


def line_of(body: str, text: str) -> int:
    """The line of the submission that holds ``text`` first."""
    lines = (PRELUDE + textwrap.dedent(body)).splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def events(reply: dict[str, Any]) -> list[Any]:
    assert reply["status"] == "returned", reply
    assert reply["findings"] == [], reply["findings"]
    made: Recording = reply["recording"]
    return list(made.events)


# ---------------------------------------------------------------------------------------------
# Loading

DOUBLE = PRELUDE + """
@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr = 64):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, 2 * x, mask=offs < n)

double[(1,)](LATER, 8)
"""
LOADS = [
    ("ready", "def f(): ...", {"status": "ready"}),
    ("raises", "x = 1\n\n1 / 0", {"status": "raised", "line": 3, "message": "division by zero"}),
    ("raises in a call", "def g():\n    {}[1]\ng()", {"status": "raised", "line": 2}),
    ("raises in a library", "import json\njson.loads('')", {"status": "raised", "line": 2}),
    ("does not parse", "x = 1\ndef f(:\n", {"status": "raised", "line": 2}),
    ("imports what is not there", "import nowhere", {"status": "raised", "line": 1}),
    ("imports its neighbour", "import neighbour", {"status": "raised", "line": 1}),
    ("leaves", "raise SystemExit(0)", {"status": "raised", "line": 1}),
    ("is interrupted", "raise KeyboardInterrupt", {"status": "raised", "line": 1}),
    ("takes a module that it does not import",
     "import triton.language as tl\nlibdevice = tl.extra.libdevice",
     {"status": "raised", "line": 2,
      "message": "module 'triton.language.extra' has no attribute 'libdevice'"}),
    ("imports it from its package", "from triton.language.extra import libdevice\nlibdevice.asin",
     {"status": "ready"}),
    ("imports it by its whole name",
     "import triton.language as tl\nimport triton.language.extra.libdevice\n"
     "tl.extra.libdevice.asin", {"status": "ready"}),
    ("imports a package of modules",
     "from triton.experimental.gluon import language\nlanguage.arange", {"status": "ready"}),
    ("asks which GPU there is, as tutorials begin",
     "import triton\nDEVICE = triton.runtime.driver.active.get_active_torch_device()\n"
     "assert str(DEVICE) == 'cpu'", {"status": "ready"}),
    ("measures", "import triton.testing\n"
     "assert triton.testing.do_bench(int) != triton.testing.do_bench(int)\n"
     "assert len(triton.testing.do_bench(int, quantiles=[0.5, 0.2, 0.8])) == 3",
     {"status": "ready"}),
    ("launches", DOUBLE + "assert LATER.tolist() == [2.0] * 8", {"status": "ready"}),
    ("launches what is tuned", PRELUDE + "configs = [triton.Config({'BLOCK': 2 ** n}) "
     "for n in (5, 6)]\ntriton.autotune(configs, ['n'])(k)[(1,)](LATER, LATER, 8)",
     {"status": "ready"}),
    ("launches and fails", DOUBLE.replace("2 * x", "2 * x[None]"),
     {"status": "raised", "line": 33}),
    ("raises without a message", "class E(Exception):\n    def __str__(self): 1 / 0\nraise E",
     {"status": "raised", "line": 3}),
]


@pytest.mark.parametrize(("source", "expected"), [case[1:] for case in LOADS],
                         ids=[case[0] for case in LOADS])
def test_loading_says_how_it_went(
    sandbox: Sandbox, tmp_path: Path, source: str, expected: dict[str, Any]
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(source)
    (tmp_path / "neighbour.py").write_text("")

    with sandbox.fork("worker") as child:
        reply = child.ask({"op": "load", "path": str(path)})

    assert {key: reply[key] for key in expected} == expected


ASKS = """
import torch
import triton

def f():
    driver = triton.runtime.driver.active
    device = driver.get_active_torch_device()
    known = driver.utils.get_device_properties(device.index)
    with torch.cuda.device(device):
        torch.cuda.set_device(torch.cuda.current_device())
        torch.cuda.synchronize()
        properties = torch.cuda.get_device_properties(device)
    return [driver.get_current_target().arch, driver.get_current_device(),
            known["multiprocessor_count"], known["max_shared_mem"],
            list(torch.cuda.get_device_capability()), properties.multi_processor_count,
            torch.cuda.get_device_name(0), torch.cuda.is_available(), device.type]
"""


@pytest.mark.parametrize(("target", "expected"), [
    ({}, [90, 0, 132, 232_448, [9, 0], 132, "NVIDIA H100 SXM", False, "cpu"]),
    ({"target": "a100"}, [80, 0, 108, 166_912, [8, 0], 108, "NVIDIA A100 SXM 80 GB", False, "cpu"]),
], ids=["nothing said", "a100"])
def test_host_code_that_asks_which_gpu_there_is_finds_the_target(
    sandbox: Sandbox, tmp_path: Path, target: dict[str, str], expected: list[Any]
) -> None:
    (tmp_path / "kernel.py").write_text(ASKS)

    with sandbox.fork("worker") as child:
        child.ask({"op": "load", "path": str(tmp_path / "kernel.py")} | target)
        reply = child.ask({"op": "ask", "of": "f", "drivers": "", "arguments": []})

    assert host_values.from_json(reply["answer"]) == expected


@pytest.mark.parametrize("source", ["def g(): ...", "f = 3"])
def test_a_function_that_is_not_there_is_missing(call, source):
    assert call(source)["status"] == "missing"


def test_types_are_the_names_along_the_resolution_order(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("class Odd(ValueError): pass\nraise Odd('so odd')")

    with sandbox.fork("worker") as child:
        reply = child.ask({"op": "load", "path": str(tmp_path / "kernel.py")})

    assert reply["types"] == ["Odd", "ValueError", "Exception", "BaseException"]
    assert reply["message"] == "so odd"


def test_the_text_is_loaded_and_not_bytecode_beside_it(sandbox: Sandbox, tmp_path: Path) -> None:
    import py_compile

    path = tmp_path / "kernel.py"
    path.write_text("print('old')\ndef f(): ...")
    py_compile.compile(str(path))
    times = path.stat()
    path.write_text("print('new')\ndef f(): ...")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    with sandbox.fork("worker") as child:
        child.ask({"op": "load", "path": str(path)})

        assert child.output() == "new\n"


# ---------------------------------------------------------------------------------------------
# Recording what is allowed

def test_a_launch_is_recorded_with_its_arguments_options_and_line(call: Call) -> None:
    body = """
    def f(x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 4), 2)](x, y, x.numel(), BLOCK=4, num_warps=8)
        return y
    """
    reply = call(body, x8())
    alloc, launch = events(reply)

    assert alloc == Alloc(1, 32)
    assert isinstance(launch, Launch)
    assert (launch.kernel, launch.grid, launch.options) == ("k", (2, 2, 1), {"num_warps": 8})
    assert launch.line == line_of(body, "k[(")
    kinds = {name: (a.kind, a.value) for name, a in launch.arguments.items()}
    assert kinds["n"] == ("int", 8)
    assert kinds["BLOCK"] == ("int", 4)
    assert kinds["x_ptr"][1] == reply["recording"].inputs[0]
    assert kinds["y_ptr"][1] == reply["recording"].results[0]
    assert reply["recording"].returned_tuple is False


def test_inputs_are_freed_when_a_call_ends(sandbox: Sandbox, tmp_path: Path) -> None:
    """Without waiting for the collector of cycles: inputs may be as large as memory allows."""
    path = tmp_path / "kernel.py"
    path.write_text(PRELUDE + textwrap.dedent("""\
        import gc
        import weakref

        gc.disable()
        BEFORE = []

        def f(x):
            print([reference() is None for reference in BEFORE])
            BEFORE.append(weakref.ref(x))
            return launch(x, torch.empty_like(x))
        """))
    child = sandbox.fork("worker")
    child.ask({"op": "load", "path": str(path)})

    with arena.pack([x8()]) as packed:
        request = {"op": "call", "entry": "f", "layout": packed.layout(),
                   "arguments": [{"tensor": model.to_json(packed.views[0])}]}
        replies = [child.ask(request, [packed.fd]) for _ in range(3)]
    output = child.output()
    child.kill()

    assert [reply["status"] for reply in replies] == ["returned"] * 3
    assert output.splitlines() == ["[]", "[True]", "[True, True]"]


def test_torchs_own_compiler_is_not_loaded_to_watch_a_call(call: Call) -> None:
    """To import it takes longer than most grades."""
    reply = call("def f(x):\n    y = torch.empty_like(x)\n    k[(1,)](x, y, 8)\n"
                 "    import sys\n    raise ValueError('torch._dynamo' in sys.modules)", x8())

    assert reply["message"] == "False"


def test_the_kernel_is_never_run(call: Call) -> None:
    body = """
    @triton.jit
    def loud(y_ptr):
        print("interpreted")
        tl.static_assert(False)
    def f(x):
        y = torch.empty_like(x)
        loud[(1,)](y)
        return y
    """
    assert call(body, x8())["output"] == ""


ARGUMENTS = [
    ("int", "7", "int", 7), ("float", "2.5", "float", 2.5),
    ("inf", "float('inf')", "float", float("inf")),
    ("bool", "True", "bool", True), ("none", "None", "none", None),
    ("str", "'ieee'", "str", "ieee"),
    ("dtype", "tl.float16", "dtype", "fp16"), ("function", "helper", "function", "helper"),
    ("numpy float", "np.float64(0.5)", "float", 0.5),
    ("constexpr", "tl.constexpr(5)", "int", 5),
    ("constexpr of NumPy", "tl.constexpr(np.int64(5))", "int", 5), ("large", "2**63", "int", 2**63),
]


@pytest.mark.parametrize(("text", "kind", "value"), [case[1:] for case in ARGUMENTS],
                         ids=[case[0] for case in ARGUMENTS])
def test_every_kind_of_argument_is_recorded(call: Call, text: str, kind: str, value: Any) -> None:
    launch = events(call(f"def f(x): return launch(x, torch.empty_like(x), n={text})", x8()))[-1]

    assert (launch.arguments["n"].kind, launch.arguments["n"].value) == (kind, value)


def test_tuples_of_tensors_and_numbers_are_recorded(call: Call) -> None:
    launch = events(call("def f(x): return launch(x, torch.empty_like(x), n=(x, (1, 2.0)))",
                         x8()))[-1]

    first, second = launch.arguments["n"].value
    assert (launch.arguments["n"].kind, first.kind, second.kind) == ("tuple", "tensor", "tuple")
    assert [item.value for item in second.value] == [1, 2.0]


@pytest.mark.parametrize(("text", "kind"), [
    ("np.int64(3)", "int64"), ("np.uint8(3)", "uint8"), ("np.float32(0.5)", "float32"),
    ("np.bool_(True)", "bool"), ("(1, np.int64(3))", "tuple"), ("Pair(x, np.int64(3))", "Pair"),
    ("[1, 2]", "list"), ("torch.float32", "dtype"),
])
def test_what_triton_takes_for_no_argument_is_refused_in_its_words(
    call: Call, text: str, kind: str
) -> None:
    reply = call(f"def f(x): return launch(x, torch.empty_like(x), n={text})", x8())

    assert (reply["status"], reply["types"][0], reply["findings"]) == ("raised", "TypeError", [])
    assert reply["message"] == f"failed to specialize argument of type: {kind}"


def test_numbers_of_numpy_are_taken_where_the_type_is_declared(call: Call) -> None:
    body = """
    @triton.jit
    def scaled(y_ptr, scale: tl.float32, half: "fp16", flag: tl.int1, B: tl.constexpr,
               C: tl.constexpr, D: tl.constexpr):
        pass
    def f(x):
        y = torch.empty_like(x)
        scaled[(1,)](y, np.float32(0.5), np.int64(3), np.bool_(True), np.int64(8), np.float32(2),
                     (np.int64(1), 2))
        return y
    """
    launch = events(call(body, x8()))[-1]

    kinds = [(a.kind, a.value) for a in launch.arguments.values()][1:]
    assert kinds == [
        ("float", 0.5), ("int", 3), ("bool", True), ("int", 8), ("float", 2.0),
        ("tuple", (Argument("int", 1), Argument("int", 2)))]


def test_a_named_tuple_keeps_its_names(call: Call) -> None:
    body = """
    from collections import namedtuple
    Both = namedtuple("Both", "first second")
    Odd = namedtuple("Odd", ["class", "x"], rename=True)
    def f(x):
        return launch(x, torch.empty_like(x), n=(Both(Pair(x, 8), second=2), Odd(1, 2)))
    """
    reply = call(body, x8())

    both, odd = events(reply)[-1].arguments["n"].value
    x = Argument("tensor", reply["recording"].inputs[0])
    pair = Argument("tuple", (x, Argument("int", 8)), ("x_ptr", "n"))
    assert both == Argument("tuple", (pair, Argument("int", 2)), ("first", "second"))
    assert odd.fields == ()  # no kernel reads a name that starts with an underscore


# ---------------------------------------------------------------------------------------------
# Host tensor descriptors


def matrix(rows: int = 8, columns: int = 8, dtype: str = "float32") -> torch.Tensor:
    return torch.arange(rows * columns).reshape(rows, columns).to(getattr(torch, dtype))


DESCRIPTORS = [
    ("a tensor", "TensorDescriptor.from_tensor(x, [4, 8])", (0, (8, 8), (8, 1)),
     ((8, 8), (8, 1), (4, 8)), "zero"),
    ("a view", "TensorDescriptor.from_tensor(x[2:, 4:], [2, 4])", (20, (6, 4), (8, 1)),
     ((6, 4), (8, 1), (2, 4)), "zero"),
    ("a part of a tensor", "TensorDescriptor(x, [3, 4], [16, 1], [1, 4], 'nan')",
     (0, (8, 8), (8, 1)), ((3, 4), (16, 1), (1, 4)), "nan"),
    ("more than its view", "TensorDescriptor(x[:1], x.shape, x.stride(), [4, 4])",
     (0, (1, 8), (8, 1)), ((8, 8), (8, 1), (4, 4)), "zero"),
    ("sizes of NumPy", "TensorDescriptor(x, list(np.array([8, 8])), [np.int64(8), 1], [4, 4])",
     (0, (8, 8), (8, 1)), ((8, 8), (8, 1), (4, 4)), "zero"),
]


@pytest.mark.parametrize(("text", "base", "sizes", "padding"), [case[1:] for case in DESCRIPTORS],
                         ids=[case[0] for case in DESCRIPTORS])
@pytest.mark.parametrize("annotation", ["", ": TensorDescriptor", ": tl.tensor_descriptor",
                                        ": 'tl.tensor_descriptor'"])
def test_a_descriptor_is_recorded(
    call: Call, annotation: str, text: str, base: Any, sizes: Any, padding: str
) -> None:
    body = f"""
    @triton.jit
    def copy(desc{annotation}, y_ptr):
        pass
    def f(x):
        y = torch.empty_like(x)
        copy[(1,)]({text}, y)
        return y
    """
    launch = events(call(body, matrix()))[-1]

    offset, shape, stride = base
    assert launch.arguments["desc"] == Argument("descriptor", Descriptor(
        View(0, "float32", shape, stride, offset), *sizes, padding))


def test_a_descriptor_is_recorded_as_a_hook_of_its_configuration_left_it(call: Call) -> None:
    body = """
    def resize(named):
        named["desc"].block_shape = [named["B"], 8]

    @triton.autotune(configs=[triton.Config({"B": b}, pre_hook=resize) for b in (2, 4)], key=[])
    @triton.jit
    def tuned(desc, B: tl.constexpr):
        pass

    def f(x):
        y = torch.empty_like(x)
        tuned[(1,)](TensorDescriptor.from_tensor(y, [1, 1]), )
        return y
    """
    blocks = [events(call(body, matrix(), config=k))[-1].arguments["desc"].value.block_shape
              for k in range(2)]

    assert blocks == [(2, 8), (4, 8)]


@pytest.mark.skipif(not hasattr(TensorDescriptor, "round_f32_to_tf32"), reason="Triton 3.6")
def test_a_descriptor_that_rounds_says_so(call: Call) -> None:
    launch = events(call("""
    def f(x):
        y = torch.empty_like(x)
        return launch((TensorDescriptor(x, [8, 8], [8, 1], [8, 8], round_f32_to_tf32=True),), y)
    """, matrix()))[-1]

    (descriptor,) = launch.arguments["x_ptr"].value
    assert descriptor.value.round_f32_to_tf32


ALLOWED = [
    ("empty", "y = torch.empty(8, device=x.device)", [Alloc]),
    ("empty_strided", "y = torch.empty_strided((2, 4), (1, 2), device=x.device)", [Alloc]),
    ("new_empty", "y = x.new_empty(8)", [Alloc]),
    ("zeros", "y = torch.zeros(8, device=x.device)", [Alloc, Fill]),
    ("zeros_like", "y = torch.zeros_like(x)", [Alloc, Fill]),
    ("new_zeros", "y = x.new_zeros((2, 3))", [Alloc, Fill]),
    ("ones", "y = torch.ones(8, dtype=torch.int32, device=x.device)", [Alloc, Fill]),
    ("full", "y = torch.full((8,), float('-inf'), device=x.device)", [Alloc, Fill]),
    ("full_like", "y = torch.full_like(x, -1)", [Alloc, Fill]),
    ("new_full", "y = x.new_full((2,), 1)", [Alloc, Fill]),
    ("zero_", "y = x.new_empty(8).zero_()", [Alloc, Fill]),
    ("fill_", "y = x.new_empty(8); y.fill_(float('inf'))", [Alloc, Fill]),
    ("y[:] = 0", "y = x.new_empty(8); y[:] = 0", [Alloc, Fill]),
    ("y[0] = 1", "y = x.new_empty(8); y[0] = 1", [Alloc, Fill]),
    ("y[:4] = x[4:]", "y = x.new_empty(8); y[:4] = x[4:]", [Alloc, Move]),
    ("copy_", "y = x.new_empty(8); y.copy_(x)", [Alloc, Move]),
    ("copy_ broadcast", "y = x.new_empty(3, 8); y.copy_(x)", [Alloc, Move]),
    ("clone", "y = x.clone()", [Alloc, Move]),
    ("contiguous", "y = x.view(2, 4).t().contiguous()", [Alloc, Move]),
    ("cast", "y = x.to(torch.float16)", [Alloc, Move]),
    ("reshape with a copy", "y = x.view(2, 4).t().reshape(8)", [Alloc, Move]),
    ("views", "y = x.new_empty(8).view(2, 4).t()[1:, ::2].unsqueeze(0).expand(3, -1, -1)[0]",
     [Alloc]),
    ("split", "a, b = x.chunk(2); y = torch.empty_like(a)", [Alloc]),
    ("view of another type", "y = x.new_empty(8).view(torch.int32)", [Alloc]),
    ("validation", "assert not (x < 0).any() and not torch.isnan(x).any() and x.isfinite().all()\n"
     "    assert x.amax().item() == 7 and x.amin() == 0 and torch.equal(x, x) and x.min() <= 1\n"
     "    assert (x[1:] >= x[:-1]).all()\n    y = x.new_empty(8)", [Alloc]),
    ("validation of a copy", "y = x.clone(); assert not y.isnan().any()", [Alloc, Move]),
    ("reading inputs", "assert x.tolist() == list(range(8)) and int(x[3]) == 3 == x.numpy()[3]"
     "\n    y = x.new_empty(8)", [Alloc]),
    ("printing", "y = x.new_empty(8); print(x, y, f'{x}')", [Alloc]),
    ("questions", "assert x.is_contiguous() and not x.is_cuda and x.data_ptr() % 16 == 0\n"
     "    assert not torch.cuda.is_available() and x.device == torch.device('cpu')\n"
     "    y = x.new_empty(triton.next_power_of_2(7), dtype=torch.promote_types(x.dtype, x.dtype))",
     [Alloc]),
    ("no_grad", "with torch.no_grad(): y = x.new_empty(8)", [Alloc]),
    ("meta scratch", "torch.zeros(4, device='meta'); y = x.new_empty(8)", [Alloc]),
]


@pytest.mark.parametrize(("body", "kinds"), [case[1:] for case in ALLOWED],
                         ids=[case[0] for case in ALLOWED])
def test_allocating_filling_viewing_moving_and_validating_is_allowed(
    call: Call, body: str, kinds: list[type]
) -> None:
    reply = call(f"def f(x):\n    {body}\n    return launch(x, y)", x8())

    assert [type(event) for event in events(reply)] == [*kinds, Launch]


def test_fills_and_moves_say_what_goes_where(call: Call) -> None:
    body = """
    def f(x):
        y = torch.full((4,), 1.0, device=x.device)
        y[1:3] = x[::4]
        return launch(x, y)
    """
    _, fill, move, _ = events(call(body, x8()))

    assert (fill.value, fill.target.storage, fill.target.shape) == (1.0, 1, (4,))
    assert (move.target.offset, move.target.shape) == (1, (2,))
    assert (move.source.storage, move.source.stride) == (0, (4,))


def test_inputs_that_share_memory_share_a_number(call: Call) -> None:
    base = x8()
    made: Recording = call("def f(a, b, c): return launch(a, torch.empty_like(c))",
                           base[:4], x8(), base[4:])["recording"]

    assert [view.storage for view in made.inputs] == [0, 1, 0]
    assert made.inputs[2].offset == 4
    assert made.events[0] == Alloc(2, 16)


def test_values_and_several_results_come_through(call: Call) -> None:
    body = """
    def f(x, n, flag, words):
        assert (n, flag, words) == (3, None, ["a", 1.5])
        a = x.new_empty(n); b = torch.empty_like(x)
        launch(x, a); launch(x, b)
        return [a, b[2:]]
    """
    made: Recording = call(body, x8(), 3, None, ["a", 1.5])["recording"]

    assert made.returned_tuple
    assert [(view.storage, view.offset) for view in made.results] == [(1, 0), (2, 2)]


@pytest.mark.parametrize(("grid", "expected"), [
    ("(2,)", (2, 1, 1)), ("[2, 3]", (2, 3, 1)), ("(2, 3, 4)", (2, 3, 4)), ("(0,)", (0, 1, 1)),
    ("lambda meta: (triton.cdiv(8, meta['BLOCK']), meta['n'])", (1, 8, 1)),
    ("(np.int64(2),)", (2, 1, 1)), ("torch.Size([3])", (3, 1, 1)),
])
def test_grids(call: Call, grid: str, expected: tuple[int, int, int]) -> None:
    launch = events(call(f"def f(x): return launch(x, torch.empty_like(x), grid={grid})", x8()))[-1]

    assert launch.grid == expected


TUNED = """
@triton.autotune(configs=[triton.Config({"B": 32}, num_warps=2), triton.Config({"B": 64})],
                 key=["n"]%s)
@triton.jit
def tuned(x_ptr, y_ptr, n, B: tl.constexpr):
    pass

def f(x):
    y = torch.empty_like(x)
    tuned[lambda meta: (meta["B"],)](x, y, 8)
    return y
"""


@pytest.mark.parametrize(("extra", "block"), [
    ("", 32),
    (", prune_configs_by={'early_config_prune': lambda configs, named, **kw: configs[1:]}", 64),
])
def test_autotune_takes_the_first_configuration_that_is_left(
    call: Call, extra: str, block: int
) -> None:
    launch = events(call(TUNED % extra, x8()))[-1]

    assert (launch.arguments["B"].value, launch.grid) == (block, (block, 1, 1))
    assert launch.options["num_warps"] == (2 if block == 32 else 4)


@pytest.mark.parametrize(("extra", "blocks", "configurations"), [
    ("", [32, 64, 32], 2),
    (", prune_configs_by={'early_config_prune': lambda configs, named, **kw: configs[1:]}",
     [64, 64, 64], 1),
], ids=["both", "pruned"])
def test_every_configuration_can_be_asked_for(
    call: Call, extra: str, blocks: list[int], configurations: int
) -> None:
    replies = [call(TUNED % extra, x8(), config=k) for k in range(3)]

    assert [events(reply)[-1].arguments["B"].value for reply in replies] == blocks
    assert {reply["configurations"] for reply in replies} == {configurations}


def test_the_largest_tuner_of_a_call_counts(call: Call) -> None:
    body = TUNED.split("def f(x)")[0] % "" + """
three = triton.autotune(configs=[triton.Config({"B": b}) for b in (2, 4, 8)], key=[])(tuned.fn)

def f(x):
    y = torch.empty_like(x)
    for kernel in (tuned, three, tuned):
        kernel[(1,)](x, y, 8)
    return y
"""
    one, plain = call(body, x8(), config=4), call("def f(x): return torch.empty_like(x)", x8())

    assert [launch.arguments["B"].value for launch in events(one)[1:]] == [32, 4, 32]
    assert (one["configurations"], plain["configurations"]) == (3, 1)


@pytest.mark.parametrize("hooks", [
    "reset_to_zero=['y_ptr']", "restore_value=['y_ptr']",
    "pre_hook=lambda named, reset_only=False: named['y_ptr'].zero_()",
    "post_hook=lambda named, exception: named['y_ptr'].zero_()",
])
def test_what_a_tuner_does_round_its_measurements_belongs_to_no_later_run(
    call: Call, hooks: str
) -> None:
    made = events(call(TUNED % f", {hooks}", x8()))

    assert [type(event) for event in made] == [Alloc, Launch]


def test_hooks_and_heuristics_work(call: Call) -> None:
    body = """
    @triton.autotune(configs=[triton.Config({}, pre_hook=lambda a: a["y_ptr"].zero_())], key=[])
    @triton.heuristics({"B": lambda args: triton.next_power_of_2(args["n"])})
    @triton.jit
    def clever(x_ptr, y_ptr, n, B: tl.constexpr):
        pass
    def f(x):
        y = torch.empty_like(x)
        clever[(1,)](x, y, 5)
        clever.warmup(x, y, 5, grid=(1,))
        k.warmup(x, y, 5, grid=(1,))
        k.run(x, y, 5, grid=(1,), warmup=False)
        return y
    """
    alloc, fill, first, second = events(call(body, x8()))

    assert (type(alloc), type(fill), first.kernel, second.kernel) == (Alloc, Fill, "clever", "k")
    assert first.arguments["B"].value == 8


# ---------------------------------------------------------------------------------------------
# Findings

REFUSED = [
    ("softmax", "return torch.softmax(x, 0)", "X01", "torch.softmax"),
    ("nn softmax", "return torch.nn.functional.softmax(x, 0)", "X01", "torch.softmax"),
    ("a sum", "return launch(x, x + 1)", "X01", "torch.add"),
    ("matmul", "return x.view(2, 4) @ x.view(4, 2)", "X01", "torch.matmul"),
    ("out variant", "y = torch.empty_like(x); torch.neg(x, out=y); return y", "X01", "torch.neg"),
    ("cat", "return torch.cat([x, x])", "X01", "torch.cat"),
    ("gather", "return x[[1, 2]]", "X01", "Tensor.__getitem__"),
    ("arange", "return launch(x, torch.arange(8))", "X01", "torch.arange"),
    ("rand", "return launch(x, torch.rand(8))", "X01", "torch.rand"),
    ("max along a dimension", "return x.view(2, 4).max(dim=1)", "X01", "torch.max"),
    ("a list of values", "return launch(x, torch.tensor([1.0, 2.0]))", "X01", "torch.tensor"),
    ("from_numpy", "return launch(x, torch.from_numpy(np.ones(8)))", "X01", "host values"),
    ("a fill of its own", "return launch(x, torch.full((8,), 3.5))", "X01", "3.5"),
    ("filling with a result", "y = x.new_empty(8); y[:] = x.amax(); return launch(x, y)", "X01",
     "copies values"),
    ("a layer", "return torch.nn.LayerNorm(8)(x)", "X01", "layer_norm"),
    ("resize", "return x.new_empty(8).resize_(4)", "X01", "resize_"),
    ("set_", "y = x.new_empty(8); y.set_(x); return launch(x, y)", "X01", "set_"),
    ("a custom operator", "return torch.library.custom_op('my::op', lambda x: x + 1, "
     "mutates_args=(), schema='(Tensor x) -> Tensor')(x)", "X01", "add"),
    ("item of an output", "y = launch(x, torch.empty_like(x)); y[0].item(); return y", "X01",
     ".item()"),
    ("bool of an output", "y = launch(x, torch.empty_like(x)); return y if y[0] else x", "X01",
     "reads values"),
    ("an input again and again", "[x.tolist() for _ in range(9)]; return launch(x, x.clone())",
     "X01", ".tolist()"),
    ("tolist of an output", "y = x.new_empty(8); y.tolist(); return launch(x, y)", "X01",
     ".tolist()"),
    ("numpy of an output", "y = x.new_empty(8); y.numpy()[:] = 1; return y", "X01", ".numpy()"),
    ("asarray of an output", "y = x.new_empty(8); np.asarray(y)[:] = 1; return y", "X01",
     "__array__"),
    ("dlpack of an output", "np.from_dlpack(x.new_empty(8)); return x", "X01", "__dlpack"),
    ("validation of an output", "y = launch(x, torch.empty_like(x)); y.isnan().any(); return y",
     "X01", "torch.isnan"),
    ("validation of a copy that a kernel has", "y = launch(x, x.clone()); y.amax(); return y",
     "X01", "torch.amax"),
    ("a tensor made at import", "return launch(LATER, torch.empty_like(x))", "X01",
     "before the call"),
    ("frombuffer", "return launch(torch.frombuffer(bytearray(32), dtype=torch.float32), "
     "torch.empty_like(x))", "X01", "NumPy"),
    ("a result of validation", "return launch(x.amax(), torch.empty_like(x))", "X01",
     "result of a check of inputs"),
    ("in place on an input", "x.add_(1); return launch(x, torch.empty_like(x))", "M07",
     "argument `x`"),
    ("assignment to an input", "x[0] = 0; return launch(x, torch.empty_like(x))", "M07",
     "argument `x`"),
    ("zeroing an input", "x.zero_(); return launch(x, torch.empty_like(x))", "M07", "torch.zero_"),
    ("copy into an input", "x.copy_(x.new_empty(8)); return x", "M07", "torch.Tensor.copy_"),
    ("out is an input", "torch.neg(x, out=x); return x", "M07", "torch.neg"),
    ("a grid that is a number", "return launch(x, torch.empty_like(x), grid=128)", "L01",
     "of type int"),
    ("a grid from a function that is a number", "return launch(x, torch.empty_like(x), "
     "grid=lambda meta: 3)", "L01", "of type int"),
    ("an empty grid", "return launch(x, torch.empty_like(x), grid=())", "L01", "0 numbers"),
    ("four dimensions", "return launch(x, torch.empty_like(x), grid=(1, 1, 1, 1))", "L01",
     "4 numbers"),
    ("a fraction", "return launch(x, torch.empty_like(x), grid=(8 / 2,))", "L01", "4.0"),
    ("a negative size", "return launch(x, torch.empty_like(x), grid=(-1,))", "L01", "-1"),
    ("too many along y", "return launch(x, torch.empty_like(x), grid=(1, 65536))", "L01", "65,535"),
    ("an unknown keyword", "return launch(x, torch.empty_like(x), BLOK=64)", "L05", "BLOK"),
    ("a descriptor of a tensor made at import",
     "return launch(TensorDescriptor(LATER, [8], [1], [8]), torch.empty_like(x))", "X01",
     "before the call"),
    ("a descriptor that reaches too far",
     "return launch(TensorDescriptor(x, [3, 4], [4, 1], [1, 4]), torch.empty_like(x))", "M01",
     "16 bytes past the end"),
    ("a descriptor of a view that reaches too far",
     "return launch(TensorDescriptor(x[4:], [8], [1], [8]), torch.empty_like(x))", "M01",
     "16 bytes past the end"),
    ("too many launches", "y = torch.empty_like(x)\n    for _ in range(65): launch(x, y)\n"
     "    return y", "T03", "64"),
    ("too many events", "for _ in range(4097): x.new_empty(1)", "T03", "4096"),
]


@pytest.mark.parametrize(("body", "code", "word"), [case[1:] for case in REFUSED],
                         ids=[case[0] for case in REFUSED])
def test_what_host_code_may_not_do_is_a_finding(
    call: Call, body: str, code: str, word: str
) -> None:
    reply = call(f"def f(x):\n    {body}", x8())

    assert reply["status"] == "raised"
    finding = reply["findings"][0]
    assert finding["code"] == code
    assert word in Finding.from_json(finding).seen
    assert finding["line"] is not None


def test_a_kernel_that_was_made_elsewhere_is_not_taken_for_the_one_in_the_text(call: Call) -> None:
    reply = call("""
    import linecache
    TEXT = "@triton.jit\\ndef k(x_ptr, y_ptr, n, BLOCK: tl.constexpr = 64):\\n    return\\n"
    linecache.cache["other.py"] = (len(TEXT), None, TEXT.splitlines(True), "other.py")
    exec(compile(TEXT, "other.py", "exec"), globals(), other := {})

    def f(x):
        other["k"][(1,)](x, x, 8)
        return x
    """, x8())

    [finding] = map(Finding.from_json, reply["findings"])
    assert finding.code == "L05"
    assert "was not created by the text of the file" in finding.seen


def test_the_finding_names_the_learners_line(call: Call) -> None:
    body = """
    def f(x):
        y = torch.empty_like(x)
        y = x.exp()
        return y
    """
    reply = call(body, x8())

    assert reply["findings"][0]["line"] == line_of(body, "x.exp()")
    assert "torch.exp" in reply["findings"][0]["data"]["figures"]["code"]


def test_a_finding_stays_when_the_learner_catches_everything(call: Call) -> None:
    body = """
    def f(x):
        y = torch.empty_like(x)
        try:
            y.copy_(torch.exp(x))
        except BaseException:
            pass
        return launch(x, y)
    """
    reply = call(body, x8())

    assert reply["status"] == "returned"
    assert [finding["code"] for finding in reply["findings"]] == ["X01"]


def test_no_thread_can_be_started_beside_the_recording(call: Call) -> None:
    body = """
    def f(x):
        import threading
        box = []
        thread = threading.Thread(target=lambda: box.append(torch.ones(8)))
        thread.start()
        thread.join()
        return box[0]
    """
    reply = call(body, x8())

    assert (reply["status"], reply["types"][0]) == ("raised", "RuntimeError")
    assert reply["message"] == "can't start new thread"


FOREIGN = [
    ("made at import", "return LATER"),
    ("made of a buffer", "return torch.frombuffer(bytearray(32), dtype=torch.float32)"),
    ("a result of validation", "return x.amax()"),
    ("one of several", "return launch(x, torch.empty_like(x)), LATER"),
]


@pytest.mark.parametrize("body", [case[1] for case in FOREIGN], ids=[case[0] for case in FOREIGN])
def test_a_result_that_was_not_allocated_in_the_call_is_x01(call: Call, body: str) -> None:
    reply = call(f"def f(x):\n    {body}", x8())

    assert reply["status"] == "returned"
    assert [finding["code"] for finding in reply["findings"]] == ["X01"]
    assert reply["recording"].results == ()


def test_a_returned_input_is_seen_by_its_storage(call: Call) -> None:
    made: Recording = call("def f(a, x): return x[2:]", x8(), x8())["recording"]

    assert [(view.storage, view.offset) for view in made.results] == [(1, 2)]


@pytest.mark.parametrize(("body", "kind"), [
    ("return x.numpy()", "ndarray"), ("return None", "NoneType"), ("return 3", "int"),
    ("return torch.nn.Parameter(x.new_empty(3))", "Parameter"),
    ("return x.new_empty(3), 'x'", "str"),
    ("return {'y': x.new_empty(3)}", "dict"),
])
def test_what_is_no_plain_tensor_is_a_value(call: Call, body: str, kind: str) -> None:
    reply = call(f"def f(x): {body}", x8())

    assert (reply["status"], reply["type"], reply["findings"]) == ("value", kind, [])


RAISED = [
    ("an error of the learner's", "raise ValueError('rank must be 2')", "ValueError", 0, "rank"),
    ("after a launch", "launch(x, x.new_empty(8)); raise KeyError('late')", "KeyError", 1, "late"),
    ("a missing argument", "k[(1,)](x)", "TypeError", 0, "y_ptr"),
    ("too many arguments", "k[(1,)](x, x, 1, 2, 3)", "TypeError", 0, "too many"),
    ("twice", "k[(1,)](x, x, 1, n=1)", "TypeError", 0, "n"),
    ("an odd argument", "k[(1,)](x, object(), 1)", "TypeError", 1, "object"),
    ("a crooked descriptor", "k[(1,)](TensorDescriptor(x[1:], [4], [1], [4]), x, 1)",
     "AssertionError", 0, "16-byte aligned"),
    ("a descriptor changed for the worse", "d = TensorDescriptor(x, [8], [1], [4]); "
     "d.block_shape = [3]; k[(1,)](d, x, 1)", "ValueError", 1, "power of 2"),
    ("a descriptor that runs backwards", "d = TensorDescriptor(x, [1, 4], [-4, 1], [1, 4]); "
     "k[(1,)](d, x, 1)", "ValueError", 1, "-4"),
    ("a descriptor without memory", "d = TensorDescriptor(torch.empty(8, device='meta'), [8], "
     "[1], [4]); k[(1,)](d, x, 1)", "ValueError", 1, "meta"),
    ("warps", "launch(x, x.new_empty(8), num_warps=3)", "AssertionError", 0, "power of 2"),
    ("cuda", "torch.empty(8, device='cuda')", "AssertionError", 0, "CUDA"),
    ("an absurd size", "x.new_empty(10**14)", "MemoryError", 0, "allocate"),
    ("absurd zeros", "torch.zeros(10**14)", "MemoryError", 0, "allocate"),
    ("a negative size", "torch.zeros(-1)", "RuntimeError", 0, "-1"),
    ("calling a kernel", "k(x, x, 1)", "RuntimeError", 0, "scope"),
    ("leaving", "raise SystemExit(3)", "SystemExit", 0, "3"),
]


@pytest.mark.parametrize(("body", "kind", "launches", "word"), [case[1:] for case in RAISED],
                         ids=[case[0] for case in RAISED])
def test_exceptions_come_back_as_data(
    call: Call, body: str, kind: str, launches: int, word: str
) -> None:
    reply = call(f"def f(x):\n    {body}", x8())

    assert (reply["status"], reply["types"][0]) == ("raised", kind)
    assert (reply["launches"], reply["findings"]) == (launches, [])
    assert reply["line"] in (line_of("", "k[grid]"), len(PRELUDE.splitlines()) + 2)
    assert word in reply["message"]


def test_a_meta_argument_can_be_refused_by_the_function(call: Call) -> None:
    body = """
    def f(x):
        if x.device.type != "cpu":
            raise ValueError(f"x is on {x.device}")
    """
    reply = call(body, ("float32", [2, 3]))

    assert (reply["types"][0], reply["message"]) == ("ValueError", "x is on meta")
    assert reply["launches"] == 0


def test_a_meta_argument_that_is_launched_counts_as_a_launch(call: Call) -> None:
    reply = call("def f(x): return launch(x, torch.empty_like(x))", ("float32", [8]))

    assert (reply["types"][0], reply["launches"]) == ("ValueError", 1)


def test_the_worker_writes_into_a_copy_of_the_inputs(call: Call) -> None:
    x = x8()

    reply = call("def f(x):\n    x.numpy()[:] = 9\n    return launch(x, x.new_empty(8))", x)

    assert x.equal(x8())
    assert [finding["code"] for finding in reply["findings"]] == ["X01"]


@pytest.mark.parametrize("after", ["", "; launch(x, y)"], ids=["at the end", "before a launch"])
def test_memory_that_is_written_past_torch_is_a_finding(call: Call, after: str) -> None:
    body = f"""
    import ctypes
    def f(x):
        y = torch.empty_like(x)
        launch(x, y)
        ctypes.memset(y.data_ptr(), 7, 32){after}
        return y
    """
    reply = call(body, x8())

    assert reply["status"] == "returned"
    assert [finding["code"] for finding in reply["findings"]] == ["X01"]
    assert reply["findings"][0]["data"]["kind"] == "written past torch"


# ---------------------------------------------------------------------------------------------
# No secrets

SPY = r'''
import os, re, sys

def _known():
    yield repr(dict(os.environ)).encode()
    yield repr(sys.argv).encode()
    for number in os.listdir("/proc/self/fd"):
        try:
            yield f"fd {number} {os.readlink(f'/proc/self/fd/{number}')}".encode()
        except OSError:
            pass
    with open("/proc/self/cmdline", "rb") as file:
        yield file.read()
    with open("/proc/self/environ", "rb") as file:
        yield file.read()

def _memory():
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps.readlines():
            first, last = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1][0] != "r" or "[v" in line or ".so" in line:
                continue
            tail = b""
            while first < last:
                memory.seek(first)
                try:
                    part = memory.read(min(last - first, 1 << 22))
                except (OSError, ValueError, OverflowError):
                    break
                if not part:
                    break
                yield tail + part
                tail, first = part[-100:], first + len(part)

def f(x):
    pattern = re.compile(rb"tl-sec[r]et-([0-9a-f]{32})")
    canary = re.compile(rb"tl-can[a]ry-([0-9a-f]{8})")
    found = canaries = size = 0
    for part in (*_known(), ):
        found += len(pattern.findall(part))
    for part in _memory():
        size += len(part)
        found += len(pattern.findall(part))
        canaries += len(canary.findall(part))
    modules = sorted(name for name in sys.modules if name.startswith(("grader", "tritonlab")))
    fds = sorted(part.decode().split(":")[0] for part in _known() if part.startswith(b"fd "))
    print("found", found, "canaries", canaries > 0, "enough", size > 20_000_000)
    print("modules", *modules)
    print("fds", *fds)
    y = torch.empty_like(x)
    return launch(x, y)

OWN = "tl-can" + "ary-" + "0123" * 2
'''


def test_the_worker_holds_no_secret_of_the_judge(call: Call) -> None:
    secret = f"tl-secret-{secrets.token_hex(16)}"
    os.environ["TRITONLAB_TEST_SECRET"] = secret
    try:
        output = call(SPY, x8())["output"]
    finally:
        del os.environ["TRITONLAB_TEST_SECRET"]

    assert "found 0 canaries True enough True" in output
    modules = set(re.search(r"modules (.*)", output)[1].split())  # type: ignore[index]
    assert not {name for name in modules if name.startswith(
        ("grader.judge.grade", "grader.judge.compare", "grader.diagnosis", "grader.suites",
         "tritonlab.")
    )}
    numbers = re.findall(r"fd (\d+) (\S+)", output.partition("fds ")[2])
    assert {number for number, _ in numbers} <= {"0", "1", "2", "3", "4", *map(str, range(5, 12))}
    assert {target for number, target in numbers if int(number) < 5} == {
        "/dev/null", "pipe", "socket",
    }


@dataclasses.dataclass
class _Answer:
    ok: bool
    n_bad: object


@pytest.mark.parametrize(("value", "says"), [
    (_Answer(True, torch.tensor(3)), "^field `n_bad` holds a Tensor$"),
    ({"rows": [1, torch.tensor(3)]}, "^'rows' holds a Tensor$"),
    ([torch.tensor(3)], "^a Tensor$"),
], ids=["field", "key", "item"])
def test_an_answer_that_is_no_plain_value_names_the_field(value: object, says: str) -> None:
    with pytest.raises(host_values.NotPlain, match=says):
        host_values.to_json(value)
