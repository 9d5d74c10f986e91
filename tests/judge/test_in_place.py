"""Functions that work in place: what they may change, what they return, what trials leave behind.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import grader
from grader import Verdict
from grader.suite import (
    Cost,
    Function,
    Sparse,
    Suite,
    Tolerance,
    correctness,
    edge,
    integers,
    performance,
    rand,
    refuses,
)
from grader.suite.error_bounds import elementwise

FILE = '''import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})],
                 key=["n_cols"], restore_value=["x_ptr"])
@triton.jit
def scale_kernel(x_ptr, s_ptr, n_cols, stride_xm, stride_xn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = x_ptr + row * stride_xm + cols * stride_xn
    x = tl.load(at, mask=cols < n_cols)
    tl.store(at, x * tl.load(s_ptr + row), mask=cols < n_cols)


def scale_(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a tensor, got {type(x).__name__}")
    if x.numel():
        grid = lambda meta: (x.shape[0], triton.cdiv(x.shape[1], meta["BLOCK"]))
        scale_kernel[grid](x, s, x.shape[1], x.stride(0), x.stride(1))
    return x


@triton.jit
def step_kernel(weight_ptr, speed_ptr, grad_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    speed = tl.load(speed_ptr + offs, mask=mask) + tl.load(grad_ptr + offs, mask=mask)
    weight = tl.load(weight_ptr + offs, mask=mask).to(tl.float32) - speed
    tl.store(speed_ptr + offs, speed, mask=mask)
    tl.store(weight_ptr + offs, weight.to(weight_ptr.dtype.element_ty), mask=mask)


def step_(weight: torch.Tensor, speed: torch.Tensor, grad: torch.Tensor) -> None:
    step_kernel[(triton.cdiv(weight.numel(), 64),)](weight, speed, grad, weight.numel(), BLOCK=64)
'''


def stepped(weight, speed, grad):
    speed = speed.double() + grad.double()
    return weight.double() - speed, speed


SUITE = Suite(
    functions=[
        Function("scale_", ("x", "s"), reference=lambda x, s: x.double() * s.double()[:, None],
                 cost=lambda x, s: Cost(bytes=2 * x.nbytes + s.nbytes),
                 in_place=("x",), returns_self=True, cases=[
                     correctness("5 x 70", integers(5, 70), integers(5), public=True),
                     correctness("every other column", integers(3, 140)[:, ::2], integers(3)),
                     edge("a transposed view", integers(70, 4).mT, integers(4)),
                     edge("no row", rand(0, 4), rand(0), launches=0),
                     refuses("a list", [1.0], rand(1), raises=TypeError, mentions=("x",)),
                     performance("64 x 1 024", rand(64, 1_024), rand(64), traffic=1.1,
                                 launches=1)]),
        Function("step_", ("weight", "speed", "grad"), reference=stepped,
                 result_names=("weight", "speed"), in_place=("weight", "speed"), cases=[
                     correctness("100 weights", integers(100, dtype="float16"), integers(100),
                                 integers(100))]),
    ],
    name="toy",
)


@pytest.fixture
def graded(tmp_path: Path, sandbox):
    def run(*changes: tuple[str, str], text: str = FILE, suite: Suite = SUITE,
            **options: object) -> grader.Report:
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (tmp_path / "kernel.py").write_text(text)
        return grader.grade(tmp_path / "kernel.py", suite, sandbox=sandbox, **options)

    return run


def first(report: grader.Report) -> tuple[str, str, str]:
    """Case, code and words of the first failure."""
    failure = report.first_failure
    assert failure is not None, [(r.name, r.verdict, r.reason) for r in report.results]
    return failure.name, failure.findings[0].code, failure.findings[0].seen


def test_right_functions_in_place_pass(graded):
    report = graded()

    assert {result.verdict for result in report.results} == {Verdict.PASSED}, report.first_failure
    assert "every launch compiles" in report.results[-1].name


@pytest.mark.parametrize(("change", "case", "code", "says"), [
    (("x * tl.load", "x + tl.load"), "scale_: 5 x 70", "N01", "expected"),
    (("    tl.store(at, x", "    tl.store(s_ptr + row, 0.0)\n    tl.store(at, x"),
     "scale_: 5 x 70", "M07", "Input `s` was modified"),
    (("    return x\n", "    return None\n"), "scale_: 5 x 70", "S01",
     "returned None, expected the updated `x`"),
    (("    return x\n", "    return torch.empty_like(x)\n"), "scale_: 5 x 70", "S01",
     "returned something else, expected the updated `x`"),
    (("    return x\n", "    return x, x\n"), "scale_: 5 x 70", "S01", "returned something else"),
    (("    return x\n", "    return (x,)\n"), "scale_: 5 x 70", "S01", "returned something else"),
    (("    return x\n", "    return 1\n"), "scale_: 5 x 70", "S01", "returned a int"),
    (('restore_value=["x_ptr"]', 'restore_value=[]'), "scale_: 5 x 70", "N01",
     "In the first call, after 2 autotuner trials on the caller's tensors: "),
    (('restore_value=["x_ptr"]', 'reset_to_zero=["x_ptr"]'), "scale_: 5 x 70", "N01",
     "In the first call, after 2 autotuner trials"),
    (("(x, s, x.shape[1], x.stride(0), x.stride(1))", "(x, s, x.shape[1], x.shape[1], 1)"),
     "scale_: every other column", "M08", "right for a contiguous input"),
    (("tl.program_id(1) * BLOCK", "0 * BLOCK"), "scale_: 5 x 70", "M04", "both stored element"),
    (("        grid = lambda", "        x.mul_(1.0)\n        grid = lambda"), "scale_: 5 x 70",
     "X01", "torch.Tensor.mul_"),
    (("        grid = lambda", "        s.zero_()\n        grid = lambda"), "scale_: 5 x 70",
     "M07", "modifies the argument `s` in place"),
    (("    return x\n", "    return x if x[0, 0] < 1e9 else x\n"), "scale_: 5 x 70", "X01",
     "that a kernel has not written yet"),
    (("BLOCK=64)", "BLOCK=64)\n    return weight"), "step_: 100 weights", "S01",
     "returned a tensor, expected None"),
    (("    tl.store(speed_ptr + offs, speed, mask=mask)\n", ""), "step_: 100 weights", "N01",
     "`speed`"),
    (("tl.load(speed_ptr + offs, mask=mask) +", "tl.load(speed_ptr + offs) +"),
     "step_: 100 weights", "M01", "speed"),
])
def test_what_is_wrong_in_place_is_found(graded, change, case, code, says):
    name, found, seen = first(graded(change, effort="first"))

    assert (name, found) == (case, code), seen
    assert says in seen


HOOKS = '''KEPT = []


def keep(nargs, reset_only=False):
    if not reset_only:
        KEPT.append(nargs["x_ptr"].clone())


def bring_back(nargs, exception):
    nargs["x_ptr"].copy_(KEPT.pop())


@triton.autotune'''


@pytest.mark.parametrize("changes", [
    [("@triton.autotune", HOOKS),
     ('restore_value=["x_ptr"]', "pre_hook=keep, post_hook=bring_back")],
    [("(x, s, x.shape[1], x.stride(0), x.stride(1))",
      "(work := x.clone(), s, x.shape[1], work.stride(0), work.stride(1))\n"
      "        x.copy_(work)")],
    [("    return x\n", "    return x[:]\n")],
], ids=["hooks of its own", "by way of a copy", "a view of all of it is returned"])
def test_other_ways_to_work_in_place_are_right_too(graded, changes):
    report = graded(*changes, effort="values")

    assert report.first_failure is None, first(report)


def test_a_function_that_is_not_said_to_work_in_place_may_not(graded):
    parts = [replace(one, in_place=(), returns_self=False) for one in SUITE.functions]

    name, code, seen = first(graded(suite=replace(SUITE, functions=parts), effort="first"))

    assert (name, code) == ("scale_: 5 x 70", "S01")
    assert "returned its input" in seen


SUM = '''import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})],
                 key=["n"], reset_to_zero=["out_ptr"])
@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0)))


def total(x):
    out = torch.zeros(1, dtype=x.dtype, device=x.device)
    sum_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out
'''
TOTAL = Suite("total", ("x",), reference=lambda x: x.double().sum().view(1), name="toy",
              cases=[correctness("100", integers(100).then(lambda t: t + 10))])


@pytest.mark.parametrize(("changes", "seen"), [
    ([], ""),
    ([(', reset_to_zero=["out_ptr"]', "")], "In the first call, after 2 autotuner trials"),
    ([('reset_to_zero=["out_ptr"]', 'restore_value=["x_ptr", "out_ptr"]')], ""),
], ids=["cleared", "not cleared", "brought back, and an input too"])
def test_trials_add_to_what_a_function_clears_once(graded, changes, seen):
    report = graded(*changes, text=SUM, suite=TOTAL, effort="values")

    found = report.first_failure and first(report)
    assert (found is None) if not seen else (found[1] == "N01" and found[2].startswith(seen)), found


@pytest.mark.parametrize(("changes", "seen"), [
    ([], ""), ([("tl.store(speed_ptr + offs, speed,", "tl.store(speed_ptr + offs, speed + 1,")],
               "`speed`"),
    ([("tl.store(weight_ptr + offs, weight.to", "tl.store(weight_ptr + offs, -weight.to")],
     "`weight`"),
    ([(" - speed\n", " - tl.where(tl.program_id(0) > 0, 0.0, speed)\n")], "`weight`")],
    ids=["right", "first result", "second result", "all blocks but the first"])
def test_of_a_huge_call_in_place_every_result_is_looked_at(graded, changes, seen):
    wide = [("tl.program_id(0) * BLOCK + tl", "tl.program_id(0).to(tl.int64) * BLOCK + tl"),
            (", 64),)](weight", ", 1024),)](weight"), ("BLOCK=64", "BLOCK=1024")]
    step = replace(SUITE.functions[1], tolerance=Tolerance(lambda *of: (elementwise(*of),) * 2),
                   cases=[edge("huge", *(Sparse(2**31 + 7),) * 3)])

    report = graded(*wide, *changes, suite=replace(SUITE, functions=[step]), effort="first")

    huge = next(result for result in report.results if result.name == "step_: huge")
    assert huge.verdict is (Verdict.FAILED if seen else Verdict.PASSED), huge
    assert seen in " ".join(finding.seen for finding in huge.findings)
