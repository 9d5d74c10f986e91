"""Speed without a GPU: what a bound proves fails, all else is left open, and says why."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from msgspec import structs

import grader
from grader import Verdict
from grader.diagnosis.codes import explain
from grader.diagnosis.perf_lints import peak
from grader.engine.compiler.targets import find
from grader.engine.compiler.time_lower_bound import least_seconds
from grader.engine.compiler.timing_model.accuracy import stated_error
from grader.engine.gpu.measurement import Units
from grader.judge.perf_bound import Yardstick, peak_of, traffic
from grader.judge.perf_limits import code_limits, count
from grader.recording.compiled_kernel import ALL_SUMS, Access, Binary, Occupancy
from grader.recording.launch_stats import Interval, LaunchFacts, Survey, Traffic
from grader.report import SPARED, CaseResult
from grader.suite import Cost, Limits, correctness, integers, performance, rand
from tests.judge.test_grade import KERNEL, RIGHT, SUITE
from tests.judge.test_perf_limits import asked_by
from tests.support.tiers import by_default

N = 1 << 26
REAL = performance("at its real size", rand(N), pass_at=0.8, stretch=0.9)
EASIER = performance("at its real size", rand(N), pass_at=0.7)  # by more than the stated error
LAUNCH = "        double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)\n"
WIDE = KERNEL.replace(LAUNCH, LAUNCH.replace("64", "1024"))

PRODUCT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N, BM: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BM + tl.arange(0, BM)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BM), tl.float32)
    for start in range(0, N, BK):
        a = tl.load(a_ptr + m[:, None] * N + (start + k)[None, :])
        b = tl.load(b_ptr + n[None, :] * N + (start + k)[:, None])
        acc = tl.dot(a, b, acc, input_precision="PRECISION")
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


def double(x):
    out = torch.empty_like(x)
    product_kernel[(32, 32)](x, x, out, 4096, BM=128, BK=32, num_warps=8)
    return out
"""

IN_STEPS = """\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, N, BK: tl.constexpr):
    rows = tl.program_id(0) * 16 + tl.arange(0, 16)
    for start in range(0, N, BK):
        offs = rows[:, None] * N + start + tl.arange(0, BK)[None, :]
        tl.store(out_ptr + offs, 2 * tl.load(x_ptr + offs))


def double(x):
    out = torch.empty_like(x)
    double_kernel[(x.shape[0] // 16,)](x, out, x.shape[1], BK=STEP)
    return out
"""


@pytest.fixture
def judged(tmp_path, sandbox):
    """Grade one performance case; its result."""
    def judge(text: str, case=REAL, **changes) -> CaseResult:
        path = tmp_path / "kernel.py"
        path.write_text(text)
        suite = replace(SUITE, cases=[case], **changes)
        return grader.grade(path, suite, sandbox=sandbox).results[0]

    return judge


def test_a_good_kernel_is_expected_to_pass_which_is_no_pass(judged):
    result = judged(WIDE, EASIER)

    assert result.verdict is Verdict.SKIPPED
    assert result.reason.startswith(
        "expected to pass on a GPU; predicted for the NVIDIA H100 SXM, not measured: ")
    assert "bound by memory" in result.reason and "where 70 % is required" in result.reason
    assert result.facts["memory traffic"] == "1.00x of the minimum"


def test_a_kernel_that_misses_the_speed_within_the_stated_error_is_left_to_a_gpu(judged):
    result = judged(WIDE, REAL)

    assert stated_error("dram") == 1.25
    assert 0.8 < result.predicted["share"] < 1.0
    assert result.reason.startswith("a GPU is needed; predicted for the NVIDIA H100 SXM")


def test_a_case_that_asks_for_no_speed_names_no_share(judged):
    result = judged(WIDE, performance("a million floats", rand(1 << 20), pass_at=1e-9))

    assert result.reason == "a GPU is needed: this case checks values at this size, not speed"


def test_of_a_case_that_asks_for_no_speed_only_accesses_and_the_compiler_s_refusal_count(
        tmp_path, sandbox, uncached, requests):
    suite = replace(SUITE, cases=[
        SUITE.cases[0], performance("a million floats", rand(1 << 20), pass_at=1e-9)])

    def graded(text):
        (tmp_path / "kernel.py").write_text(text)
        report = grader.grade(tmp_path / "kernel.py", suite, sandbox=sandbox)
        return [result.findings[0].code if result.findings else str(result.verdict)
                for result in report.results]

    outside = WIDE.replace("x.numel()", "(x.numel() + x.numel() // 2**20)")
    too_large = WIDE.replace("BLOCK=1024)", "BLOCK=1024, num_warps=64 if x.numel() > 2**19 else 4)")

    assert graded(WIDE) == ["PASSED", "SKIPPED", "PASSED"]
    assert not any(request.get("whole") or request["op"] == "time" for request in requests)
    assert graded(outside) == ["PASSED", "M02", "PASSED"]
    assert graded(too_large) == ["PASSED", "T05", "PASSED"]


def test_what_does_not_compile_in_an_advisory_case_alone_decides_nothing(tmp_path, sandbox):
    case = replace(performance("a million floats", rand(1 << 20), pass_at=1e-9), advisory=True)
    (tmp_path / "kernel.py").write_text(
        WIDE.replace("BLOCK=1024)", "BLOCK=1024, num_warps=64 if x.numel() > 2**19 else 4)"))

    report = grader.grade(tmp_path / "kernel.py", replace(SUITE, cases=[SUITE.cases[0], case]),
                          sandbox=sandbox)

    assert report.verdict is Verdict.PASSED
    assert [str(result.verdict) for result in report.results] == ["PASSED", "FAILED", "PASSED"]


@pytest.mark.parametrize(("low", "high", "says"), [
    (100, 100, "1.00x of the minimum"), (40, 120, "0.40 to 1.20x of the minimum"),
    (55, 55, "0.55x of the minimum, by an incomplete sample"),
])
def test_less_than_the_minimum_is_no_figure_to_rely_on(low, high, says):
    assert traffic(low, high, 100) == says


def test_what_leaves_work_out_is_not_expected_to_pass(judged):
    half = judged(WIDE.replace("tl.load(x_ptr + offs, mask=mask)", "offs.to(tl.float32)"))

    assert half.verdict is Verdict.SKIPPED
    assert half.reason.startswith("a GPU is needed; predicted")
    assert half.reason.endswith("but only 0.50x of the required bytes were observed")


def test_a_kernel_that_failed_is_not_expected_to_pass(tmp_path, sandbox):
    path = tmp_path / "kernel.py"
    path.write_text(WIDE.replace("x * 2", "x * 3"))

    report = grader.grade(path, replace(SUITE, cases=[SUITE.cases[0], REAL]), sandbox=sandbox)

    wrong, fast, *_ = report.results
    assert (wrong.verdict, fast.verdict) == (Verdict.FAILED, Verdict.SKIPPED)
    assert fast.reason.startswith("a GPU is needed; predicted")
    assert fast.reason.endswith("but a case before this one has failed")


def test_a_bound_proves_that_three_passes_over_memory_are_too_slow(judged):
    thrice = WIDE.replace(LAUNCH.replace("64", "1024"), """
        first, second = torch.empty_like(x), torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        double_kernel[grid](x, first, x.numel(), BLOCK=1024)
        double_kernel[grid](x, second, x.numel(), BLOCK=1024)
        double_kernel[grid](x, out, x.numel(), BLOCK=1024)
""")

    result = judged(thrice)

    assert (result.verdict, result.findings[0].code) == (Verdict.FAILED, "T01")
    assert "copies; 80 % is required" in result.findings[0].seen
    assert result.facts["memory traffic"].endswith("3.00x of the minimum")


def test_what_a_bound_does_not_prove_is_left_to_a_gpu(judged):
    """Programs of 64 elements take long to start, which only a clock can show."""
    result = judged(KERNEL)

    assert result.verdict is Verdict.SKIPPED
    assert result.reason.startswith("a GPU is needed; predicted for the NVIDIA H100 SXM")
    assert "tiny programs" in result.reason


@pytest.mark.parametrize(("turns", "begins"), [
    (2, "expected to pass on a GPU"), (2000, "a GPU is needed; predicted")])
def test_a_loop_that_only_computes_takes_its_time(judged, turns, begins):
    looped = WIDE.replace("x = tl.load(x_ptr + offs, mask=mask)\n", f"""\
x = tl.load(x_ptr + offs, mask=mask)
    for _ in range(n // {N // turns}):
        x = tl.exp2(x)
""")

    assert judged(looped, EASIER).reason.startswith(begins)


@pytest.mark.parametrize(("condition", "begins"), [
    ("error > 1.0", "a GPU is needed: The iterations of the loop on line"),
    ("turn < 2", "expected to pass on a GPU")])
def test_iterations_that_depend_on_values_leave_the_time_open(judged, condition, begins):
    looped = WIDE.replace("x = tl.load(x_ptr + offs, mask=mask)\n", f"""\
x = tl.load(x_ptr + offs, mask=mask)
    turn, error = 0, tl.max(tl.abs(x), axis=0)
    while {condition}:
        turn += 1
        error *= 0.5
""")

    assert judged(looped, EASIER).reason.startswith(begins)


def test_of_an_autotuner_the_fastest_configuration_is_judged(judged):
    launch_1024 = LAUNCH.replace("64", "1024")
    sizes = ("triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 1024}), "
             "triton.Config({'BLOCK': 32})")
    tuned = WIDE.replace("@triton.jit", f"@triton.autotune([{sizes}], key=['n'])\n@triton.jit")
    grid = "(lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),))"
    tuned = tuned.replace(launch_1024, f"        double_kernel[{grid}](x, out, x.numel())\n")

    assert judged(tuned, EASIER).reason.startswith("expected to pass on a GPU")
    worse = tuned.replace("triton.Config({'BLOCK': 1024}), ", "")
    assert judged(worse, EASIER).reason.startswith("a GPU is needed")


def test_addresses_that_nobody_can_know_leave_a_case_open(judged):
    """The indices are what a first launch writes."""
    chase = WIDE.replace("    x = tl.load(x_ptr + offs, mask=mask)\n", """\
    at = tl.load(out_ptr + offs, mask=mask, other=0).to(tl.int32)
    x = tl.load(x_ptr + at, mask=mask)
""")

    result = judged(chase)

    assert result.verdict is Verdict.SKIPPED
    assert result.reason.startswith("a GPU is needed: ")


def test_indices_that_the_judge_drew_are_followed(judged):
    gather = WIDE.replace("def double(x):", "def double(x, at):").replace(
        "(x, out, x.numel()", "(x, at, out, x.numel()").replace(
        "x_ptr, out_ptr, n", "x_ptr, at_ptr, out_ptr, n").replace(
        "    x = tl.load(x_ptr + offs, mask=mask)\n", """\
    at = tl.load(at_ptr + offs, mask=mask, other=0)
    x = tl.load(x_ptr + at, mask=mask)
""")
    n = 1 << 22
    case = performance("a gather", rand(n), integers(n, low=0, high=n - 1, dtype="int32"),
                       pass_at=0.5)

    result = judged(gather, case, parameters=("x", "at"),
                    reference=lambda x, at: x.double()[at.long()] * 2,
                    cost=lambda x, at: Cost(2 * x.nbytes + at.nbytes))

    assert result.facts["memory traffic"] != "1.00x of the minimum"
    assert "not measured" in result.reason or result.findings[0].code == "T01"


def test_an_access_outside_a_tensor_fails_at_its_real_size(judged):
    result = judged(WIDE.replace("mask=mask)\n    tl.store", ")\n    tl.store"),
                    performance("an odd size", rand(N - 1), pass_at=0.8))

    assert (result.verdict, result.findings[0].code) == (Verdict.FAILED, "M01")


def test_no_memory_is_taken_and_the_function_gets_what_it_needs(judged):
    """Half a gigabyte twice, and a function that would take 25 more."""
    assert judged(WIDE, performance("large", rand(1 << 28), pass_at=0.8)).verdict \
        is Verdict.SKIPPED
    more = "    hog = [x.new_empty(1 << 28) for _ in [0] * 25]\n    out = "
    hog = WIDE.replace("    out = ", more)
    assert judged(hog).findings[0].code == "R04"


def product_case(dtype: str, pass_at: float):
    return performance("a product", rand(4096, 4096, dtype=dtype), pass_at=pass_at)


SQUARED = {"reference": lambda x: x.double() @ x.double(),
           "cost": lambda x: Cost(2 * x.nbytes, 2 * 4096**3)}
WIDENED = PRODUCT.replace("(a, b, acc,", "(a.to(tl.float32), b.to(tl.float32), acc,")


@pytest.mark.parametrize(("dtype", "precision", "verdict"), by_default(2, [
    ("float16", "tf32", Verdict.SKIPPED),
    ("float16", "ieee", Verdict.FAILED),
    ("float32", "ieee", Verdict.SKIPPED),  # whoever asks for full float32 has no other units
]))
def test_arithmetic_that_the_job_needs_fails_nobody_and_slow_units_do(
        judged, dtype, precision, verdict):
    """No product of this size runs as fast as a copy."""
    result = judged(WIDENED.replace("PRECISION", precision), product_case(dtype, 0.6), **SQUARED)

    assert result.verdict is verdict
    if verdict is Verdict.FAILED:
        assert result.findings[0].code == "T01"
        assert "compute 137,438,953,472 FLOP with tl.dot" in result.findings[0].seen
        assert "multiplies matrices; 60 % is required" in result.findings[0].seen


def test_a_product_is_measured_by_products_and_not_by_copies(judged):
    text = PRODUCT.replace("PRECISION", "ieee").replace("BK=32", "BK=64")

    low, high = (judged(text, product_case("float16", share), **SQUARED) for share in (0.2, 0.99))

    assert low.verdict is high.verdict is Verdict.SKIPPED
    assert low.reason.startswith("expected to pass on a GPU; predicted for the NVIDIA H100 SXM")
    assert " TFLOP/s, about " in low.reason
    assert low.reason.endswith(" % of matmul speed where 20 % is required")
    assert high.reason.startswith("a GPU is needed; ")


def test_what_takes_the_job_longer_is_the_yardstick():
    h200 = find("h200")

    copied = Yardstick.of(Cost(3 << 30, 1 << 30), h200.fp16_tensor, h200)
    product = Yardstick.of(Cost(3 * 2 * 4096**2, 2 * 4096**3), h200.fp16_tensor, h200)

    assert (copied.name, copied.slow) == ("copy", copied.fast)
    assert (product.name, product.verb) == ("matmul", "multiplies matrices")
    assert product.fast < 2 * 4096**3 / 713e12 < product.slow  # what torch.matmul reached there
    assert [peak_of(units, h200) for units in get_args(Units)] == [
        h200.fp8_tensor, h200.fp16_tensor, h200.tf32_tensor, h200.fp32]


@pytest.mark.parametrize(("code", "units"), [
    ({"tensor_cores": "wgmma", "factors": ("fp8",)}, "FP8 tensor cores"),
    ({"tensor_cores": "wgmma", "factors": ("fp16", "fp8")}, "FP16 tensor cores"),
    ({"tensor_cores": "wgmma", "factors": ("fp16",)}, "FP16 tensor cores"),
    ({"tensor_cores": "mma", "factors": ("tf32",), "tf32": True}, "TF32 tensor cores"),
    ({}, "FP32"),
])
def test_a_kernel_lies_under_the_roof_of_what_its_products_multiply(code, units):
    h200 = find("h200")

    rate, name = peak(h200, binary(dot=True, **code))

    assert name == units
    assert (rate == h200.fp8_tensor) == (units == "FP8 tensor cores")


def test_nothing_is_proved_by_what_was_guessed_of_programs_that_share():
    """Of blocks that the programs of a wave have in common, while a part of the wave was run."""
    binary_, target = binary(tensor_cores="wgmma"), find("h200")
    known = Survey("k", (132, 1, 1), 132, 1, (), {}, Interval(4 << 30, 4 << 30), Interval(0, 0), 0,
                   0, 0)

    guessed = least_seconds(replace(known, surely=1 << 30), target, binary_)

    assert guessed == least_seconds(known, target, binary_) / 4


# ---------------------------------------------------------------------------------------------
# Limits on code and sectors


def binary(**changes) -> Binary:
    given = {"kernel": "k", "target": "h100", "capability": 90, "registers": 32, "spill_bytes": 0,
             "shared": 0, "warps": 4, "occupancy": Occupancy(16, 64, 64, "warps"),
             "accesses": (Access(3, "load", 128, 2), Access(4, "store", 128, 2))}
    return Binary(**{**given, **changes})


def launch(*traffic: Traffic) -> LaunchFacts:
    return LaunchFacts("k", 1, 0, 0, 0, None, 0, 0, 0, traffic)


LOAD = Traffic(3, "load", "x_ptr", 1024, 4096, 128, 128, 128)
STORE = Traffic(4, "store", "out_ptr", 1024, 4096, 128, 128, 128)
STATISTIC = Traffic(5, "store", "rstd_ptr", 1, 4, 1, 1, 1)


NO_SHUFFLES = asked_by("optimization/02-pipelining", "row_sum: 64 x 8192 floats, counted")
ROLES = asked_by("optimization/04-warp-specialization",
                 "matmul_ws: 256 x 256 times 256 x 256, specialized, for an H100")
FP8 = asked_by("optimization/09-fp8-matmul",
               "matmul_fp8: 256 x 256 times 256 x 256, for an H100")


@pytest.mark.parametrize(("limits", "made", "code", "fact"), [
    (Limits(vector=128), binary(), "", "128 bits, at least 128"),
    (Limits(vector=128), binary(accesses=(Access(3, "load", 32, 8), Access(4, "store", 128, 2))),
     "T06", "32 bits, at least 128"),
    (Limits(vector=128), binary(accesses=(*binary().accesses, Access(5, "store", 32, 1))), "",
     "128 bits, at least 128"),  # a number for each row: nothing that costs
    (Limits(vector=128), binary(accesses=(
        Access(3, "bulk copy", 0, 1), Access(4, "bulk copy", 0, 1), Access(5, "store", 32, 1))), "",
     "whole tiles, at least 128"),
    (Limits(vector=128), binary(accesses=(Access(3, "bulk copy", 0, 1), Access(4, "store", 32, 1))),
     "T06", "32 bits, at least 128"),
    (Limits(vector=128), binary(accesses=()), "T06", "0 bits, at least 128"),
    (Limits(spills=0), binary(), "", "0 bytes per thread, limit 0"),
    (Limits(spills=0), binary(spill_bytes=64), "T04", "64 bytes per thread, limit 0"),
    (Limits(spills=64), binary(spill_bytes=64), "", "64 bytes per thread, limit 64"),
    (Limits(shared=99_328), binary(shared=99_328), "", "99,328 bytes per program, limit 99,328"),
    (Limits(shared=99_328), binary(shared=131_072), "T05",
     "131,072 bytes per program, limit 99,328"),
    (Limits(stages=2), binary(dot=True, stages=3, shared=49_152), "",
     "3 in 49,152 bytes of shared memory, at least 2"),
    (Limits(stages=2), binary(dot=True), "T06", "0 in 0 bytes of shared memory, at least 2"),
    (Limits(stages=(1, 2)), binary(dot=True, stages=2), "",
     "2 in 0 bytes of shared memory, at least 1 and at most 2"),
    (Limits(stages=(1, 2)), binary(dot=True, stages=3), "T06",
     "3 in 0 bytes of shared memory, at least 1 and at most 2"),
    (Limits(stages=(2, 3)), binary(dot=True, stages=3), "",
     "3 in 0 bytes of shared memory, at least 2 and at most 3"),
    (NO_SHUFFLES, binary(), "", "0, limit 0"),
    (NO_SHUFFLES, binary(loop_shuffles=((7, 5), (9, 2))), "T06", "7, limit 0"),
    (Limits(tensor_cores=True), binary(dot=True, tensor_cores="wgmma"), "", "wgmma"),
    (Limits(tensor_cores=True), binary(dot=True), "T06", "not used"),
    (Limits(bulk=True), binary(accesses=(Access(3, "bulk copy", 0, 1), Access(4, "store", 128, 2))),
     "", "whole tiles"),
    (Limits(bulk=True), binary(accesses=(Access(None, "bulk copy", 0, 1),)), "", "whole tiles"),
    (Limits(bulk=True), binary(), "T06", "in pieces"),
    (Limits(bulk=True), binary(accesses=(Access(3, "async copy", 128, 4),)), "T06", "in pieces"),
    (Limits(bulk=True), binary(accesses=(Access(9, "load", 32, 4),)), "T06", "in pieces"),
    (ROLES, binary(warps=12, options={"num_warps": 4}), "",
     "12, num_warps=4"),
    (ROLES, binary(warps=12), "", "12, num_warps=4"),
    (ROLES, binary(warps=8, options={"num_warps": 8}), "T06",
     "8, num_warps=8"),
])
def test_limits_on_code_are_told_beside_what_was_found(limits, made, code, fact):
    facts, findings = code_limits(limits, [launch(LOAD, STORE, STATISTIC)], [made])

    assert list(facts.values()) == [fact]
    assert [finding.code for finding in findings] == ([code] if code else [])


@pytest.mark.parametrize(("made", "codes", "facts"), [
    (binary(dot=True, factors=("fp8",), imprecise_sums=512), [],
     ["fp8, expected fp8", "512, limit 512"]),
    (binary(dot=True, factors=("fp8",)), [], ["fp8, expected fp8", "0, limit 512"]),
    (binary(dot=True, factors=("fp8",), imprecise_sums=1024), ["N04"],
     ["fp8, expected fp8", "1,024, limit 512"]),
    (binary(dot=True, factors=("fp8",), imprecise_sums=ALL_SUMS), ["N04"],
     ["fp8, expected fp8", "all, limit 512"]),
    (binary(dot=True, factors=("fp16",)), ["T06"], ["fp16, expected fp8", "0, limit 512"]),
    (binary(dot=True, factors=("fp16", "fp8")), ["T06"],
     ["fp16 and fp8, expected fp8", "0, limit 512"]),
    (binary(dot=True), ["T06"], ["none on tensor cores, expected fp8", "0, limit 512"]),
    (binary(), ["T06"], ["none on tensor cores, expected fp8"]),
])
def test_a_product_of_float8_is_judged_by_its_suite(made, codes, facts):
    figures, findings = code_limits(FP8, [launch(LOAD)], [made])

    assert list(figures.values()) == facts
    assert [finding.code for finding in findings] == codes


@pytest.mark.parametrize(("target", "capability", "ends"), [
    ("t4", 75, ["Triton does not prefetch on the NVIDIA T4.",
                "Triton does not support those of the NVIDIA T4."]),
    ("a100", 80, ["at least 2 are required.", "does not use tensor cores."]),
])
def test_what_triton_lacks_for_a_gpu_is_said(target, capability, ends):
    made = binary(dot=True, target=target, capability=capability)

    _, findings = code_limits(Limits(tensor_cores=True, stages=2), [launch(LOAD)], [made])

    assert [one.code for one in findings] == ["T06", "T06"]
    assert all(map(str.endswith, (one.seen for one in findings), ends))


def test_a_launch_that_moves_next_to_nothing_needs_no_pipeline():
    """The second launch of a sum: it adds what the programs of the first have left."""
    heavy, light = (replace(launch(LOAD), bytes_loaded=moved) for moved in (1 << 20, 1 << 10))
    piped, plain = binary(stages=3), binary(loop_shuffles=((7, 5),))
    limits = replace(NO_SHUFFLES, stages=3)

    _, passed = code_limits(limits, [heavy, light], [piped, plain])
    _, failed = code_limits(limits, [light, heavy], [piped, plain])

    assert passed == []
    assert [(finding.code, finding.line) for finding in failed] == [("T06", None), ("T06", 7)]


@pytest.mark.parametrize(("bits", "bytes_", "why"), [
    (64, 1024, ": 256 elements of 4 bytes, split among 128 threads, are 8 bytes each."),
    (32, 1024, " are required."),
    (64, 4096, " are required."),
], ids=["its whole share", "less than its share", "of a larger block"])
def test_a_narrow_access_is_explained_by_the_share_of_a_thread_where_that_is_why(
        bits, bytes_, why):
    moved = launch(Traffic(3, "load", "x_ptr", bytes_ // 4, bytes_, 32, 32, 32))
    made = binary(accesses=(Access(3, "load", bits, 1),))

    _, (finding,) = code_limits(Limits(vector=128), [moved], [made])

    assert finding.seen.endswith(why)


@pytest.mark.parametrize(("limit", "allowed"), [(1.0, "2.00x the required 48. "),
                                                (1.5, "48; the limit is 1.50x. ")])
def test_too_many_bytes_are_told_with_the_limit_and_the_line_that_moves_most(limit, allowed):
    moved = replace(launch(Traffic(3, "load", "x_ptr", 16, 64, 2, 2, 2),
                           Traffic(4, "store", "y_ptr", 8, 32, 1, 1, 1)),
                    bytes_loaded=64, bytes_stored=32)

    _, (finding,) = count(Limits(traffic=limit), Cost(48), [moved], 64)

    assert allowed in finding.seen
    assert finding.seen.endswith("Line 3 loads most of them: 64 bytes of `x_ptr`.")


def test_a_strided_access_fails_a_limit_on_sectors_and_a_dense_one_passes(judged):
    case = performance("every element", rand(1 << 16), sectors=1.0)
    strided = WIDE.replace("offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)", """\
rows = tl.program_id(0) + tl.num_programs(0) * tl.arange(0, BLOCK)
    offs = rows""")

    dense, poor = judged(RIGHT, case), judged(strided, case)

    assert (dense.verdict, dense.facts["sectors"]) == (
        Verdict.PASSED, "1.00x of the minimum, limit 1.00x")
    assert (poor.verdict, poor.findings[0].code) == (Verdict.FAILED, "T02")
    assert "12 %" in poor.findings[0].seen


@pytest.mark.parametrize(("unique", "rest"), [
    (4096, ""),
    (256, " Other accesses use the rest: each sector is requested 16.0 times instead of 2.0."),
], ids=["the rest is not used", "later steps of the loop use the rest"])
def test_a_strided_access_is_told_with_what_becomes_of_the_rest_of_its_sectors(unique, rest):
    moved = launch(Traffic(3, "load", "a_ptr", 4096, 16_384, 4096, 512, unique))

    _, (finding,) = count(Limits(sectors=1.0), Cost(16_384), [moved], 64)
    told = explain(finding, (), {})

    assert finding.seen == (
        f"`{moved.kernel}` loads only 12 % of each 32-byte sector of `a_ptr` that an access "
        f"touches: the access is not coalesced.{rest}")
    assert ("may find the sector in a cache" in told.means) == bool(rest)
    assert "at least 32 contiguous bytes" in told.next_step


def test_warps_that_take_one_element_of_each_sector_fail_a_limit_on_requests():
    """All sectors are used, by other instructions of the same programs."""
    alike = Traffic(3, "load", "a_ptr", 4096, 16_384, 512, 512, 512)
    for request_sectors, limit, codes in ((4096, 2.5, ["T02"]), (1024, 2.5, []), (512, 1.0, [])):
        moved = launch(structs.replace(
            alike, requests=128, request_sectors=request_sectors, request_lines=request_sectors,
            request_bytes=16_384))

        facts, findings = count(Limits(requests=limit, sectors=1.0, pass_at=0.7), Cost(16_384),
                                [moved], 64)

        assert [finding.code for finding in findings] == codes
        assert facts["requests"].startswith(f"{request_sectors / 512:.2f}x of the minimum")
    assert "requests" not in count(Limits(requests=1.0, pass_at=0.7), Cost(1), [launch(alike)],
                                   64)[0]


@pytest.mark.parametrize(("columns", "verdict"), [(4, Verdict.FAILED), (8, Verdict.PASSED)])
def test_a_loop_has_to_take_whole_sectors_in_each_step(judged, columns, verdict):
    case = performance("rows of 64", rand(64, 64), sectors=1.0)

    result = judged(IN_STEPS.replace("STEP", str(columns)), case)

    assert (result.verdict, [f.code for f in result.findings]) == (
        verdict, ["T02"] * (verdict is Verdict.FAILED))


def test_scalar_loads_fail_a_limit_on_their_width(judged):
    case = performance("every element", rand(1 << 16), vector=128)

    wide, scalar = judged(WIDE, case), judged(KERNEL, case)

    assert (wide.verdict, wide.facts["vector"]) == (Verdict.PASSED, "128 bits, at least 128")
    assert (scalar.verdict, scalar.findings[0].code) == (Verdict.FAILED, "T06")
    assert scalar.findings[0].line is not None


DESCRIBED = """\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [N // 64, 64], [64, 1], [BLOCK, 64])
    row = tl.program_id(0) * BLOCK
    x = x_desc.load([row, 0])
    offs = (row + tl.arange(0, BLOCK))[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out_ptr + offs, x * 2)


def double(x):
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 64 * 32),)](x, out, x.numel(), BLOCK=32)
    return out
"""


@pytest.mark.parametrize(("target", "code", "fact"), [
    ("", "", "whole tiles"), ("h100", "", "whole tiles"), ("a100", "T06", "in pieces"),
])
def test_code_is_judged_for_the_target_that_a_case_names(judged, target, code, fact):
    result = judged(DESCRIBED, performance("by tiles", rand(1 << 14), bulk=True, target=target))

    assert result.facts["loads"] == fact
    assert [finding.code for finding in result.findings] == ([code] if code else [])
    assert not code or "a TMA copy of the NVIDIA A100" in result.findings[0].seen


def test_what_does_not_compile_for_the_target_of_a_case_fails_that_case(judged):
    narrow = KERNEL.replace("x * 2", "x.to(tl.float8e4nv).to(tl.float32) * 2")
    numbers = integers(1 << 12)

    here = judged(narrow, performance("for an H100", numbers, spills=0))
    there = judged(narrow, performance("for an A100", numbers, spills=0, target="a100"))

    assert here.verdict is Verdict.PASSED
    assert [finding.code for finding in there.findings] == ["L05"]


def test_a_target_goes_with_no_share_of_speed():
    with pytest.raises(ValueError, match="a clock has only the GPU that is there"):
        performance("both", rand(8), spills=0, target="a100", pass_at=0.5)


def test_every_limit_holds_at_the_real_size_too(judged):
    case = performance("at its real size", rand(N), pass_at=0.8, traffic=1.0, sectors=1.0,
                       launches=1, programs=lambda B: -(-N // B), vector=128, spills=0)

    good, scalar = judged(WIDE, case), judged(KERNEL, case)

    assert good.verdict is Verdict.SKIPPED
    assert good.facts == {
        "memory traffic": "1.00x of the minimum", "traffic": "1.00x of the minimum, limit 1.00x",
        "sectors": "1.00x of the minimum, limit 1.00x", "launches": "1, limit 1",
        "programs": f"{N // 1024}, limit {N // 1024}", "vector": "128 bits, at least 128",
        "spills": "0 bytes per thread, limit 0"}
    assert scalar.verdict is Verdict.FAILED
    assert [finding.code for finding in scalar.findings] == ["T03", "T06"]


def test_no_limit_means_no_facts():
    assert count(Limits(), Cost(1), [launch(LOAD)], 64) == ({}, [])
    assert code_limits(Limits(), [launch(LOAD)], [binary()]) == ({}, [])


@pytest.mark.parametrize(("text", "effort", "spared"), [
    (WIDE, "values", False), (WIDE.replace("x * 2", "x * 3"), "whole", False),
    (WIDE.replace("x * 2", "x * 3"), "values", True),
], ids=["right", "wrong, but the whole is wanted", "wrong"])
def test_with_less_effort_nothing_is_compiled_for_what_failed_already(
        tmp_path, sandbox, text, effort, spared):
    path = tmp_path / "kernel.py"
    path.write_text(text)
    suite = replace(SUITE, cases=[correctness("values", rand(100)), REAL,
                                  performance("compiled", rand(4096), spills=0)])

    report = grader.grade(path, suite, sandbox=sandbox, effort=effort)

    real, compiled = (next(r for r in report.results if r.name == name)
                      for name in (REAL.name, "compiled"))
    assert (real.reason == SPARED) is spared
    assert ("spills" not in compiled.facts) is spared


FEW = """\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < N)
        tl.store(out_ptr + offs, x * 2, mask=offs < N)


def double(x):
    out = torch.empty_like(x)
    double_kernel[(PROGRAMS,)](x, out, x.numel(), BLOCK=2048)
    return out
"""


def test_few_programs_cannot_be_fast_because_most_sms_are_idle(judged):
    result = judged(FEW.replace("PROGRAMS", "8"))

    assert result.verdict is Verdict.FAILED
    finding, = result.findings
    assert finding.code == "T03"
    assert "The launches run on 8 of 132 SMs (streaming multiprocessors), with 8 programs: they " \
           "reach at most " in finding.seen
    assert "80 % is required" in finding.seen


@pytest.mark.parametrize(("programs", "says"), [
    ("16", "inspect` reports: too few programs (16 programs: 16 of 132 SMs (streaming "
           "multiprocessors) work, the others are idle)"),
    ("1056", "expected to pass on a GPU"),
])
def test_more_programs_are_left_to_the_clock_with_what_is_known(judged, programs, says):
    result = judged(FEW.replace("PROGRAMS", programs), EASIER)

    assert result.verdict is Verdict.SKIPPED
    assert says in result.reason
