"""The host-operation policy, class by class; and right functions of every form, all the way."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

import grader
from grader import Verdict
from grader.processes.replies import Outcome
from grader.processes.session import Session
from grader.sandbox import Sandbox
from grader.submission import source
from grader.suite import Amplitude, Cost, Suite, Tolerance, correctness, rand
from tests.support.tiers import by_default

PRELUDE = """\
import functools
import math
from collections import namedtuple

import numpy as np
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr = 64):
    pass

def launch(x, y):
    k[(1,)](x, y, 8)
    return y

"""


def recorded(body: str, sandbox: Sandbox, folder: Path) -> tuple[Outcome, int]:
    """What a call of ``f(x)`` gave, and the line of the first statement of ``f``."""
    path = folder / "kernel.py"
    path.write_text(PRELUDE + "def f(x):\n" + textwrap.indent(textwrap.dedent(body), "    "))
    with Session(source.read(path), "f", sandbox) as session:
        return session.record([torch.arange(8.0) + 1]), len(PRELUDE.splitlines()) + 2


# Each class of operations: what is allowed, what is not, and how a person writes the latter.
CLASSES = {
    "allocate": ("y = torch.empty_strided((2, 4), (1, 2), device=x.device)",
                 "y = torch.arange(8.0)", "torch.arange"),
    "allocate, of another tensor": ("y = x.new_empty(8)", "y = torch.linspace(0, 1, 8)",
                                    "torch.linspace"),
    "initialise": ("y = torch.full((8,), -math.inf, device=x.device)",
                   "y = torch.full((8,), 0.5)", "torch.full"),
    "initialise in place": ("y = x.new_empty(8).fill_(1)", "y = x.new_empty(8).fill_(math.pi)",
                            "fill_` writes 3.14"),
    "random": ("y = torch.zeros(8, device=x.device)", "y = x.new_empty(8).uniform_()", "uniform_"),
    "random, new": ("y = torch.ones(8, device=x.device)", "y = torch.randn(8)", "torch.randn"),
    "view": ("y = x.new_empty(8).view(2, 4).mT[1:].squeeze()", "y = x.flip(0)", "torch.flip"),
    "view, unfolded": ("y = x.new_empty(8).unfold(0, 2, 2)", "y = torch.roll(x, 1)", "torch.roll"),
    "move": ("y = x.clone()", "y = torch.cat([x, x])", "torch.cat"),
    "move, one piece": ("y = x.new_empty(8); y[:4] = x[4:]", "y = x[[1, 0]]",
                        "torch.Tensor.__getitem__"),
    "move, padded": ("y = x.new_empty(16); y[:8].copy_(x)",
                     "y = torch.nn.functional.pad(x, (0, 8))", "pad"),
    "move, cast": ("y = x.half()", "y = x.round()", "torch.round"),
    "move, stacked": ("y = x.new_empty(2, 8); y[0] = x", "y = torch.stack([x, x])", "torch.stack"),
    "move, gathered": ("y = x.expand(2, 8).contiguous()",
                       "y = x.gather(0, torch.zeros(8, dtype=torch.int64))", "torch.gather"),
    "ask": ("assert x.is_contiguous() and x.data_ptr() % 4 == 0; y = x.new_empty(8)",
            "x.nonzero(); y = x.new_empty(8)", "torch.nonzero"),
    "check": ("assert not (x.isnan() | (x < 0)).any(); y = x.new_empty(8)",
              "assert x.sum() > 0; y = x.new_empty(8)", "torch.sum"),
    "check, extremes": ("assert x.amax() > x.amin(); y = x.new_empty(8)",
                        "assert x.argmax() < 9; y = x.new_empty(8)", "torch.argmax"),
    "check, where": ("assert not (x.isnan() | (x < -1e9)).nonzero().numel(); y = x.new_empty(8)",
                     "torch.where(x); y = x.new_empty(8)", "torch.where"),
    "read": ("assert x[0].item() > 0; y = x.new_empty(8)", "y = x.new_empty(8); y[0].item()",
             ".item()"),
    "read all": ("assert min(x.tolist()) > 0; y = x.new_empty(8)", "y = x.new_empty(8).tolist()",
                 ".tolist()"),
    "read as an array": ("assert x.numpy().min() > 0; y = x.new_empty(8)",
                         "y = torch.from_numpy(np.ones(8))", "host values"),
    "arithmetic": ("y = x.new_empty(8)", "y = -x", "torch.neg"),
    "arithmetic in place": ("y = x.clone()", "y = x.clone(); y *= 2", "torch.Tensor.mul_"),
    "arithmetic, into a tensor": ("y = x.new_empty(8)",
                                  "y = x.new_empty(8); torch.abs(x, out=y)", "torch.abs"),
    "products": ("y = x.new_empty(2, 2)", "y = x.view(2, 4) @ x.view(4, 2)", "torch.matmul"),
    "products, by a name with an alias": ("y = x.new_empty(2, 2)",
                                          "y = torch.mm(x.view(2, 4), x.view(4, 2))", "`torch.mm`"),
    "sorting": ("y = x.new_empty(8)", "y = x.sort().values", "torch.sort"),
    "scans": ("y = x.new_empty(8)", "y = x.cumsum(0)", "torch.cumsum"),
    "choosing": ("y = x.new_empty(8)", "y = torch.where(x > 0, x, 0)", "torch.where"),
    "layers": ("y = x.new_empty(8)", "y = torch.nn.functional.gelu(x)", "gelu"),
    "spectra": ("y = x.new_empty(8)", "y = torch.fft.fft(x)", "fft"),
    "formulas": ("y = x.new_empty(8)", "y = torch.einsum('i,i->i', x, x)", "torch.einsum"),
}


@pytest.mark.parametrize("body", [entry[0] for entry in CLASSES.values()], ids=CLASSES)
def test_what_the_policy_allows_is_recorded(body: str, sandbox: Sandbox, tmp_path: Path) -> None:
    outcome, _ = recorded(f"{body}\nlaunch(x, y)\nreturn y", sandbox, tmp_path)

    assert (outcome.findings, outcome.error) == ((), None)
    assert outcome.recording is not None
    assert len(outcome.recording.launches) == 1


@pytest.mark.parametrize(("body", "spoken"), [entry[1:] for entry in CLASSES.values()], ids=CLASSES)
def test_all_else_is_named_with_its_line(
    body: str, spoken: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    outcome, line = recorded(f"{body}\nlaunch(x, y)\nreturn y", sandbox, tmp_path)

    finding = outcome.findings[0]
    assert (finding.code, finding.line) == ("X01", line)
    assert spoken in finding.seen


OPERATOR = """\
@torch.library.custom_op("probe::one", mutates_args=())
def one(x: torch.Tensor) -> torch.Tensor:
    {}
return one(x)
"""


def test_an_operator_that_the_file_registers_is_host_code(sandbox: Sandbox, tmp_path: Path) -> None:
    outcome, _ = recorded(OPERATOR.format("return launch(x, torch.empty_like(x))"), sandbox,
                          tmp_path)

    assert (outcome.findings, outcome.error) == ((), None)
    assert outcome.recording is not None
    assert len(outcome.recording.launches) == 1


@pytest.mark.parametrize(("inside", "code", "spoken"), [
    ("return launch(x, torch.relu(x))", "X01", "torch.relu"),
    ("return launch(x, x.mul_(2))", "M07", "`x`"),
    ("return launch(x, torch.empty(8))", "S01", "no device"),
])
def test_what_an_operator_of_the_file_does_is_looked_at(
    inside: str, code: str, spoken: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    outcome, line = recorded(OPERATOR.format(inside), sandbox, tmp_path)

    finding = outcome.findings[0]
    assert (finding.code, finding.line) == (code, line + 2)
    assert spoken in finding.seen


# Where memory is asked for, and what of that would lie on the CPU beside inputs on a GPU.
ON_THE_DEVICE = {
    "a device": "y = torch.empty(8, device=x.device)",
    "like a tensor": "y = torch.zeros_like(torch.empty_like(x))",
    "of a tensor": "y = x.new_full((8,), 0)",
    "in a context": "with torch.device(x.device): y = torch.empty(8)",
    "moved there": "y = torch.empty(8).to(x.device)",
    "moved to where a tensor is": "y = torch.zeros(8, dtype=torch.float16).to(x)",
    "by a word": "y = torch.empty(8, device=x.device.type)",
    "a plan that no kernel gets": "plan = torch.zeros(4); y = x.new_empty(8)",
    "a number": "y = x.new_empty(8); y[:] = torch.tensor(1.0)",
}
BESIDE_IT = {
    "torch.empty": "y = torch.empty(x.shape, dtype=x.dtype)",
    "torch.zeros": "y = torch.zeros(8)[2:]",
    "torch.full": "y = torch.full_like(torch.full((8,), 0.0), -1)",
    "torch.ones": "y = torch.ones(8).clone()",
    "empty": "y = torch.Tensor(8)",
    "'cpu'": "y = torch.empty(8, device='cpu')",
}


@pytest.mark.parametrize("body", ON_THE_DEVICE.values(), ids=ON_THE_DEVICE)
def test_memory_may_be_asked_for_where_the_inputs_are(body, sandbox, tmp_path):
    outcome, _ = recorded(f"{body}\nlaunch(x, y)\nreturn y", sandbox, tmp_path)

    assert (outcome.findings, outcome.error) == ((), None)


@pytest.mark.parametrize("then", ["launch(x, y)\nreturn y", "return y",
                                  "launch(x, y)\nreturn x.new_empty(8)"],
                         ids=["both", "returned", "launched"])
@pytest.mark.parametrize(("word", "body"), BESIDE_IT.items(), ids=BESIDE_IT)
def test_memory_that_would_lie_on_the_cpu_is_s01(word, body, then, sandbox, tmp_path):
    outcome, line = recorded(f"{body}\n{then}", sandbox, tmp_path)

    (finding,) = outcome.findings
    assert (finding.code, finding.line) == ("S01", line)
    assert word in finding.seen and "CPU" in finding.seen


# ---------------------------------------------------------------------------------------------
# Right functions: 2 x + 1 in many forms

SIMPLE = """
@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)

@triton.jit
def increment(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)
"""

FORMS = {
    "two launches and a buffer between": SIMPLE + """
def f(x):
    middle, y = torch.empty_like(x), torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 64),)
    double[grid](x, middle, x.numel(), BLOCK=64)
    increment[grid](middle, y, x.numel(), BLOCK=64)
    return y
""",
    "a launch for every row": SIMPLE + """
def f(x):
    y = torch.empty_like(x)
    for row in range(x.shape[0]):
        double[(2,)](x[row], y[row], x.shape[1], BLOCK=64)
        increment[(2,)](y[row], y[row], x.shape[1], BLOCK=64)
    return y
""",
    "helpers that call helpers": """
@triton.jit
def one():
    return 1

@triton.jit
def affine(x, scale: tl.constexpr):
    return x * scale + one()

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, affine(tl.load(x_ptr + offs, mask=offs < n), 2), mask=offs < n)

def f(x):
    y = torch.empty_like(x)
    kernel[(2,)](x, y, x.numel(), BLOCK=256)
    return y
""",
    "a function as an argument": """
@triton.jit
def affine(x):
    return 2 * x + 1

@triton.jit
def kernel(x_ptr, y_ptr, n, FN: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, FN(tl.load(x_ptr + offs, mask=offs < n)), mask=offs < n)

def f(x):
    y = torch.empty_like(x)
    kernel[(2,)](x, y, x.numel(), affine, 256)
    return y
""",
    "a tuple of pointers and sizes": """
@triton.jit
def kernel(tensors, sizes, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < sizes[0]
    tl.store(tensors[1] + offs, 2 * tl.load(tensors[0] + offs, mask=mask) + 1, mask=mask)

def f(x):
    y = torch.empty_like(x)
    kernel[(2,)]((x, y), (x.numel(),), BLOCK=256)
    return y
""",
    "a named tuple": """
Args = namedtuple("Args", ["given", "made", "n"])

@triton.jit
def kernel(args, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(args.given + offs, mask=offs < args.n)
    tl.store(args.made + offs, 2 * x + 1, mask=offs < args.n)

def f(x):
    y = torch.empty_like(x)
    kernel[(2,)](Args(x, y, x.numel()), BLOCK=256)
    return y
""",
    "host descriptors": """
@triton.jit
def kernel(x_desc, y_desc, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    y_desc.store([row, column], 2 * x_desc.load([row, column]) + 1)

def f(x):
    y = torch.empty_like(x)
    block = [2, 32]
    grid = (triton.cdiv(x.shape[0], 2), triton.cdiv(x.shape[1], 32))
    kernel[grid](TensorDescriptor.from_tensor(x, block), TensorDescriptor.from_tensor(y, block),
                 ROWS=2, COLUMNS=32)
    return y
""",
    "autotune and heuristics": """
@triton.autotune(configs=[triton.Config({"BLOCK": block}, num_warps=4) for block in (64, 128)],
                 key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs) + 1)
    else:
        tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)

def f(x):
    y = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y
""",
    "split and joined by atomics": """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.atomic_add(y_ptr + offs, x + tl.program_id(1), mask=offs < n)

def f(x):
    y = torch.zeros_like(x)
    kernel[(triton.cdiv(x.numel(), 64), 2)](x, y, x.numel(), BLOCK=64)
    return y
""",
    "a kernel chosen by the shape": SIMPLE + """
@functools.lru_cache
def plan(columns):
    return 64 if columns < 100 else 128

def f(x):
    y, block = torch.empty_like(x), plan(x.shape[1])
    for kernel, given in ((double, x), (increment, y)):
        kernel[(triton.cdiv(x.numel(), block),)](given, y, x.numel(), BLOCK=block)
    return y
""",
    "checks of the values first": SIMPLE + """
def f(x):
    if torch.isnan(x).any() or x.abs().amax().item() > 1e30 or x[0, 0].item() == math.inf:
        raise ValueError("x: a finite number is expected everywhere")
    y = torch.empty_like(x)
    double[(8,)](x, y, x.numel(), BLOCK=64)
    increment[(8,)](y, y, x.numel(), BLOCK=64)
    return y
""",
    "the last definition of a name": SIMPLE + """
@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)

def f(x):
    y = torch.empty_like(x)
    double[(8,)](x, y, x.numel(), BLOCK=64)
    return y
""",
}


@pytest.mark.parametrize("text", by_default(6, FORMS.values()), ids=FORMS)
def test_right_functions_of_every_form_pass(text: str, sandbox: Any, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(PRELUDE + text)
    exact = Suite("f", ("x",), lambda x: 2 * x.double() + 1, Tolerance(_two_roundings),
                  lambda x: Cost(2 * x.nbytes),
                  [correctness("4 x 100", rand(4, 100)), correctness("5 x 96", rand(5, 96))])

    report = grader.grade(path, exact, sandbox=sandbox)

    assert report.verdict is Verdict.PASSED, report.first_failure


def _two_roundings(x: torch.Tensor) -> Amplitude:
    return Amplitude(pointwise=2 * (2 * x.double().abs() + 1))
