"""Complex tensors: as pairs of real numbers, and as the views that torch conjugates lazily."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import grader
from grader import Verdict
from grader.sandbox import Sandbox
from grader.suite import Amplitude, Cost, Suite, Tolerance, correctness, edge, rand

KERNEL = '''\
import torch
import triton
import triton.language as tl


@triton.jit
def twice_kernel(a_ptr, out_ptr, n, sign, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, a * tl.where(offs % 2 == 1, sign, 1.0) * 2, mask=offs < n)


def twice(a):
    sign = 1.0
    {real}
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    target = torch.view_as_real(out)
    n = target.numel()
    twice_kernel[(triton.cdiv(n, 64),)]({source}, target, n, sign, BLOCK=64)
    return {result}
'''

RIGHT = {
    "resolved": "real = torch.view_as_real(a.resolve_conj().contiguous())",
    "cloned": "real = torch.view_as_real(a.clone(memory_format=torch.contiguous_format))",
    "copied": "b = a.new_empty(a.shape); b.copy_(a); real = torch.view_as_real(b)",
    "conjugated in the kernel": """\
if a.is_conj():
        a, sign = a.conj(), -1.0
    real = torch.view_as_real(a.contiguous())""",
}


def suite() -> Suite:
    pairs = rand(40, 2).then(torch.view_as_complex)
    square = rand(7, 9, 2).then(torch.view_as_complex)
    return Suite(
        "twice", ("a",), lambda a: a.to(torch.complex128) * 2,
        Tolerance(lambda a: Amplitude(torch.view_as_real(a.resolve_conj()).double().abs())),
        lambda a: Cost(bytes=16 * a.numel()),
        [correctness("pairs", pairs), edge("conjugated", pairs.then(torch.conj)),
         edge("conjugated and transposed", square.then(torch.adjoint)),
         edge("rows far apart", square.apart(1 << 28, 1))])


def graded(sandbox: Sandbox, folder: Path, real: str, source: str = "real",
           result: str = "out") -> grader.Report:
    path = folder / "kernel.py"
    path.write_text(KERNEL.replace("{real}", real).replace("{source}", source)
                    .replace("{result}", result))
    return grader.grade(path, suite(), sandbox=sandbox, effort="values")


@pytest.mark.parametrize("real", RIGHT.values(), ids=RIGHT)
def test_conjugated_views_reach_host_code_and_are_resolved_by_copies(
        real: str, sandbox: Sandbox, tmp_path: Path):
    report = graded(sandbox, tmp_path, real)

    assert report.verdict is Verdict.PASSED, [f.seen for f in report.findings()]


def test_a_conjugate_that_is_forgotten_is_a_wrong_value(sandbox: Sandbox, tmp_path: Path):
    report = graded(sandbox, tmp_path, """\
if a.is_conj():
        a = a.conj()
    real = torch.view_as_real(a.contiguous())""")

    failed = {result.name: result.findings[0].code for result in report.results
              if result.verdict is Verdict.FAILED}
    assert failed.keys() == {"conjugated", "conjugated and transposed"}
    assert failed["conjugated"] == "N01"


@pytest.mark.parametrize(("change", "says"), [
    ("real = torch.view_as_real(a).clone(); real[5:, 1].zero_()",
     "35 of 80 real and imaginary parts are wrong; the first is the imaginary part of [5]: got 0, "
     "expected {}. Only imaginary parts are wrong. Of these, all elements except the first 5 are "
     "wrong. Each of these elements is 0."),
    ("real = torch.view_as_real(a).clone(); real.zero_()",
     "80 of 80 real and imaginary parts are wrong; the first is the real part of [0]: got 0, "
     "expected {}. Every element is 0."),
], ids=["one part", "both parts"])
def test_what_is_wrong_with_complex_numbers_is_said_of_their_parts(sandbox, tmp_path, change,
                                                                   says):
    report = graded(sandbox, tmp_path, change)

    assert report.first_failure is not None
    seen = report.first_failure.findings[0].seen
    assert re.fullmatch(re.escape(says).replace(r"\{\}", "-?[0-9.e-]+"), seen), seen


@pytest.mark.parametrize(("source", "result", "code"), [
    ("a", "out", "L05"), ("real", "out.conj()", "X01")],
    ids=["a complex argument", "a conjugated result"])
def test_kernels_take_real_numbers_and_results_are_what_they_wrote(
        source: str, result: str, code: str, sandbox: Sandbox, tmp_path: Path):
    report = graded(sandbox, tmp_path, RIGHT["resolved"], source, result)

    assert report.first_failure is not None
    assert report.first_failure.findings[0].code == code
