"""Float8 among the inputs, a dtype as an argument, and GPUs that cannot multiply float8."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grader import Verdict
from grader.engine.compiler.targets import find
from grader.gpu import detect
from grader.processes.decoy_inputs import decoys
from grader.recording.model import dtype_name
from grader.suite import (
    TENSOR_CORES,
    Amplitude,
    Cost,
    Function,
    Suite,
    Tolerance,
    correctness,
    performance,
    rand,
    special,
)
from tests.judge.test_grade import graded  # noqa: F401 - a fixture
from tests.support import simulated

KERNEL = '''\
import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, K, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    at = tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, DEPTH):
        a = tl.load(a_ptr + at[:, None] * K + (k + depth)[None, :])
        b = tl.load(b_ptr + at[None, :] * K + (k + depth)[:, None])
        acc = tl.dot(a, b, acc, max_num_imprecise_acc=DEPTH)
    tl.store(out_ptr + at[:, None] * BLOCK + at[None, :], acc.to(out_ptr.dtype.element_ty))


def product(a, b_t, out_dtype=torch.float16):
    out = torch.empty((32, 32), dtype=out_dtype, device=a.device)
    product_kernel[(1,)](a, b_t, out, a.shape[1], BLOCK=32, DEPTH=32)
    return out
'''
FLOAT8 = "float8_e4m3fn"


def pair(k: int) -> tuple[object, object]:
    return tuple(rand(32, k, dtype=FLOAT8, mean=0.5) for _ in range(2))


SUITE = Suite(
    entry="product", parameters=("a", "b_t", "out_dtype"),
    reference=lambda a, b_t, out_dtype=torch.float16: a.double() @ b_t.double().mT,
    tolerance=Tolerance(lambda a, b_t, out_dtype=torch.float16: Amplitude(
        reduced=a.double().abs() @ b_t.double().abs().mT, length=a.shape[1]),
        TENSOR_CORES, products=(0, 1)),
    result_dtype=lambda a, b_t, out_dtype=torch.float16: dtype_name(out_dtype),
    cost=lambda a, b_t, out_dtype=torch.float16: Cost(a.nbytes + b_t.nbytes + 2 * 32 * 32),
    cases=[correctness("float16", *pair(512)),
           correctness("float32", *pair(512), torch.float32),
           correctness("bfloat16", *pair(64), torch.bfloat16)],
    capability=(8, 9),
)


def test_float8_is_drawn_recorded_and_judged_in_the_dtype_that_was_asked_for(graded):  # noqa: F811
    report = graded(KERNEL, SUITE)

    assert report.verdict is Verdict.PASSED, [result.findings for result in report.results]


@pytest.mark.parametrize(("old", "new", "code", "words"), [
    ("acc = tl.dot(a, b, acc, max_num_imprecise_acc=DEPTH)",
     "acc = (acc + tl.dot(a, b).to(tl.float16)).to(tl.float16).to(tl.float32)", "N04",
     "With factors of only 1, -1 and 0, whose sums need few bits, the result is right."),
    ("acc.to(out_ptr", "(2 * acc).to(out_ptr", "N01", ""),
    ("dtype=out_dtype", "dtype=torch.float16", "S01", "is float16, expected float32"),
])
def test_sums_of_float8_in_few_bits_are_told_from_other_mistakes(
        graded, old, new, code, words):  # noqa: F811
    report = graded(KERNEL.replace(old, new), SUITE)

    first = next(finding for result in report.results for finding in result.findings)
    assert first.code == code
    assert words in first.seen


@pytest.mark.parametrize(("value", "code"), [(0.5, "N02"), (float("nan"), "N03")])
def test_what_is_not_finite_is_told_by_whether_float8_inputs_are(
        graded, value, code):  # noqa: F811
    wrong = KERNEL.replace("acc.to(out_ptr", "(acc / (acc - acc)).to(out_ptr")
    inputs = [special(32, 64, values=[one], share=0.02, dtype=FLOAT8) for one in (value, 0.5)]

    report = graded(wrong, replace(SUITE, cases=[correctness("some places", *inputs)]))

    assert report.results[0].findings[0].code == code
    assert report.results[0].verdict is Verdict.FAILED


def test_float8_gets_decoys_that_are_no_larger():
    x = torch.tensor([0.0, 448.0, -3.0, float("nan"), 0.5] * 9).to(torch.float8_e4m3fn)

    (decoy,) = decoys([x])

    assert (decoy.dtype, decoy.shape) == (x.dtype, x.shape)
    assert torch.equal(decoy.isnan(), x.isnan())
    assert torch.equal(decoy.float() == 0, x.float() == 0)
    assert decoy.float().nan_to_num().abs().max() <= 448
    assert not torch.equal(decoy.view(torch.int8), x.view(torch.int8))


TIMED = replace(SUITE, cases=[*SUITE.cases, performance(
    "65 536 deep", rand(32, 65_536, dtype=FLOAT8), rand(32, 65_536, dtype=FLOAT8), pass_at=0.01)])


@pytest.mark.parametrize(("least", "asked"), [((8, 9), True), ((10, 0), False)])
def test_a_gpu_that_lacks_what_the_kernels_need_is_not_asked(
        graded, monkeypatch, least, asked):  # noqa: F811
    gpu = simulated.install(monkeypatch, simulated.Simulated([simulated.taking(1e-3)]))

    report = graded(KERNEL, replace(TIMED, capability=least), gpu="found")

    assert bool(gpu.runs) == asked
    assert report.verdict is Verdict.PASSED
    reasons = [result.reason for result in report.results if result.verdict is Verdict.SKIPPED]
    assert asked or any("its compute capability is 9.0, and this module's kernels need 10.0"
                        in reason for reason in reasons)


@pytest.mark.parametrize(("limits", "least"), [
    ({}, (0, 0)), ({"vector": 128, "spills": 0}, (0, 0)),
    ({"tensor_cores": True}, (8, 0)), ({"stages": 2}, (8, 0)), ({"stages": (2, 4)}, (8, 0)),
    ({"tensor_cores": True, "target": "h100"}, (0, 0)),
])
def test_what_triton_does_from_ampere_on_is_asked_of_no_older_gpu(limits, least):
    case = performance("counted", rand(8), **limits)
    one = replace(SUITE, cases=[case], capability=(0, 0))
    several = Suite(functions=[Function("f", cases=[case])])

    assert one.least_capability == several.least_capability == least
    assert replace(one, capability=(8, 9)).least_capability == (8, 9)


def test_kernels_are_compiled_for_the_own_gpu_where_it_is_able_to_run_them(monkeypatch):
    monkeypatch.setattr(detect, "present", lambda: True)
    monkeypatch.setattr(detect, "names", lambda: ("NVIDIA A100-SXM4-40GB",))

    assert detect.default_target() == detect.default_target((8, 0)) == find("a100")
    assert detect.default_target((8, 9)) == find()


@pytest.mark.parametrize(("coarse", "verdict"), [(2.0**-16, Verdict.PASSED),
                                                 (0.0, Verdict.FAILED)])
def test_a_gpu_may_sum_more_coarsely_where_the_suite_says_so(
        graded, monkeypatch, coarse, verdict):  # noqa: F811
    simulated.install(monkeypatch, simulated.Simulated(
        [simulated.taking(1e-3)], lambda result, run: (result.double() * (1 - 2.0**-9)).to(
            result.dtype)))
    suite = replace(TIMED, tolerance=replace(TIMED.tolerance, on_gpu=coarse),
                    cases=TIMED.cases[1:2])

    assert graded(KERNEL, suite, gpu="found").verdict is verdict
    assert graded(KERNEL.replace("acc.to(out", "(acc * (1 - 2.0**-9)).to(out"), suite
                  ).verdict is Verdict.FAILED  # the processor sums exactly
