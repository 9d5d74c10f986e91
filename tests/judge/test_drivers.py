"""Functions that are called by a driver of the suite: gradients are recorded and judged."""

from __future__ import annotations

from pathlib import Path

import pytest

import grader
from grader import Verdict
from grader.submission import reachability
from grader.submission.source import inspect, read
from grader.suite import EXACT, Cost, Function, Suite, correctness, integers, performance
from tests.support.tiers import by_default

FILE = '''import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x * x, mask=offs < n)


@triton.jit
def slope_kernel(x_ptr, dy_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    dy = tl.load(dy_ptr + offs, mask=offs < n)
    tl.store(dx_ptr + offs, 2 * x * dy, mask=offs < n)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        square_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dy = dy.contiguous()
        dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        slope_kernel[(triton.cdiv(x.numel(), 64),)](x, dy, dx, x.numel(), BLOCK=64)
        return dx


def square(x: torch.Tensor) -> torch.Tensor:
    return Square.apply(x)
'''

CALLS = '''import torch

def slope(module, x, dy):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(module.square(x), x, dy)[0]
'''

SUITE = Suite(
    functions=[
        Function("square", ("x",), reference=lambda x: x.double() ** 2, tolerance=EXACT, cases=[
            correctness("100 numbers", integers(100))]),
        Function("slope", ("x", "dy"), reference=lambda x, dy: 2 * x.double() * dy.double(),
                 tolerance=EXACT, drives="square",
                 cost=lambda x, dy: Cost(bytes=2 * x.nbytes + 3 * x.nbytes), cases=[
                     correctness("100 numbers", integers(100), integers(100), public=True),
                     correctness("one dy for all", integers(100),
                                 integers(1).then(lambda t: t.expand(100))),
                     performance("1 000 numbers", integers(1_000), integers(1_000), traffic=1.0,
                                 launches=2)]),
    ],
    calls=CALLS, name="toy",
)


@pytest.fixture
def graded(tmp_path: Path, sandbox):
    def run(old: str = "", new: str = "", suite: Suite = SUITE) -> grader.Report:
        text = FILE
        if old:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (tmp_path / "kernel.py").write_text(text)
        return grader.grade(tmp_path / "kernel.py", suite, sandbox=sandbox)

    return run


def test_gradients_of_right_kernels_pass_with_both_passes_counted(graded):
    report = graded()

    assert {result.verdict for result in report.results} == {Verdict.PASSED}, report.first_failure
    counted = next(result for result in report.results if result.name == "slope: 1 000 numbers")
    assert counted.facts["launches"] == "2, limit 2"
    assert counted.facts["traffic"] == "1.00x of the minimum, limit 1.00x"


@pytest.mark.parametrize(("old", "new", "code", "says"), by_default(3, [
    ("2 * x * dy", "x * dy", "N01", "expected"),
    ("        dy = dy.contiguous()\n", "", "M08", "with strides (0,)"),
    ("        slope_kernel[", "        return 2 * x * dy\n        slope_kernel[", "X01",
     "torch.mul"),
    ("        dy = dy.contiguous()\n", "        dy.tolist()\n", "X01", "`.tolist()`"),
    ("        dy = dy.contiguous()\n        dx = torch.empty(x.shape, dtype=x.dtype, "
     "device=x.device)\n",
     "        dy = dy.contiguous()\n        dx = torch.empty(x.shape)\n", "S01",
     "`torch.empty` has no device argument"),
    ("    return Square.apply(x)", "    return Square.apply(x.detach())", "R01",
     "does not require"),
]))
def test_what_is_wrong_in_a_backward_pass_is_found(graded, old, new, code, says):
    report = graded(old, new)

    failure = report.first_failure
    assert failure is not None
    assert failure.findings[0].code == code, failure.findings
    assert says in failure.findings[0].seen or says in failure.name


def test_a_driver_is_no_function_of_the_learner(tmp_path):
    (tmp_path / "kernel.py").write_text(FILE)

    assert set(SUITE.signatures) == {"square"}
    assert inspect(read(tmp_path / "kernel.py"), SUITE.signatures, 0) == []
    assert [part.called for part in SUITE.parts] == ["square", "square"]
    assert reachability.changes("square", {"kernel.py": FILE},
                         {"kernel.py": FILE.replace("2 * x * dy", "x * dy")}, {"kernel.py"})
