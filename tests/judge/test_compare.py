"""The tolerance rule: right arithmetic always passes, known wrong arithmetic never does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import grader
from grader.diagnosis import messages
from grader.diagnosis.difference import Difference
from grader.engine.interpreter import numerics
from grader.judge.compare import exactly, judge, right_as_float32, within
from grader.suite import (
    TENSOR_CORES,
    Amplitude,
    Cost,
    Suite,
    Tolerance,
    correctness,
    error_bounds,
    rand,
)
from grader.suite.rounding import in_tf32, tf32

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


def words(difference: Difference) -> str:
    return messages.difference(difference.data())


def softmax_in_float32(x: torch.Tensor, blocks: int = 1) -> torch.Tensor:
    """As a kernel computes it: float32, the sum taken over ``blocks`` parts one after another."""
    wide = x.float()
    e = torch.exp(wide - wide.amax(1, keepdim=True))
    total = torch.zeros(len(x), 1)
    for part in e.chunk(blocks, 1):
        total = total + part.sum(1, keepdim=True)
    return (e / total).to(x.dtype)


INPUTS = {
    "normal": lambda n: torch.randn(7, n),
    "offset 60": lambda n: torch.randn(7, n) + 60,
    "scale 30": lambda n: torch.randn(7, n) * 30,
    "tiny": lambda n: torch.randn(7, n) * 1e-3,
    "equal": lambda n: torch.full((7, n), 3.25),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES.values())
@pytest.mark.parametrize("family", INPUTS)
@pytest.mark.parametrize("width", [1, 2, 127, 1000, 4097])
def test_right_softmaxes_pass_in_every_order_of_summation(dtype, family, width):
    torch.manual_seed(width)
    x = INPUTS[family](width).to(dtype)
    reference = torch.softmax(x.double(), 1)

    for result in (
        torch.softmax(x, 1),
        softmax_in_float32(x),
        softmax_in_float32(x, blocks=16),
        softmax_in_float32(x.flip(1)).flip(1),
    ):
        assert within(result, reference, error_bounds.softmax(x), NAMES[dtype]) is None


def wrong_results(x: torch.Tensor) -> dict[str, torch.Tensor]:
    right = torch.softmax(x.double(), 1)
    e = torch.exp(x.float() - x.float().amax(1, keepdim=True))
    unit = torch.finfo(x.dtype).eps / 2
    return {
        "zeros": torch.zeros_like(x),
        "ones": torch.ones_like(x),
        "the mean": right.mean().to(x.dtype).expand_as(x),
        "the input": x,
        "reversed": right.flip(1).to(x.dtype),
        "scaled by 1 + 64 u": (right * (1 + 64 * unit)).to(x.dtype),
        "sum in float16": (e / e.half().cumsum(1, dtype=torch.float16)[:, -1:].float()).to(x.dtype),
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=NAMES.values())
@pytest.mark.parametrize("mistake", wrong_results(torch.randn(2, 4)))
def test_wrong_softmaxes_fail(dtype, mistake):
    torch.manual_seed(0)
    # A long reduction may lean by more than 64 units of float32 roundoff; a short one may not.
    x = torch.randn(8, 16 if mistake.startswith("scaled") else 4097).to(dtype)

    difference = within(wrong_results(x)[mistake], torch.softmax(x.double(), 1),
                        error_bounds.softmax(x), NAMES[dtype])

    assert difference is not None


def test_a_sum_kept_in_float16_is_found_in_a_float16_result():
    torch.manual_seed(1)
    x = torch.randn(2, 4097).half()
    e = torch.exp(x.float() - x.float().amax(1, keepdim=True))
    result = (e / e.half().sum(1, keepdim=True).float()).half()  # rounded once, as NumPy sums

    difference = within(result, torch.softmax(x.double(), 1), error_bounds.softmax(x), "float16")

    assert difference is not None


@pytest.mark.parametrize(("factor", "kinds"), [(1.0, []), (1 + 2**-14, ["drift"])])
def test_a_factor_near_one_shows_in_how_many_float16_results_round_otherwise(factor, kinds):
    reference = torch.linspace(1.5, 1.999, 4096, dtype=torch.float64)
    result = (factor * reference).half()  # each is within the tolerance

    difference = within(result, reference, Amplitude(pointwise=reference), "float32")

    assert [one.kind for one in (difference,) if one] == kinds


@pytest.mark.parametrize(("common", "kinds"), [(0.0, []), (1e-5, ["drift"])])
@pytest.mark.parametrize("seed", range(10))
def test_rows_may_each_share_an_error_but_not_all_of_them_one(seed, common, kinds):
    """As of attention whose scores are large: the error of a row's scores is in all its results."""
    random = torch.Generator().manual_seed(seed)
    reference = torch.randn(140, 32, generator=random, dtype=torch.float64)
    of_rows = 1e-5 * torch.randn(140, 1, generator=random, dtype=torch.float64)
    result = (reference * (1 + common + of_rows)).float()

    difference = within(result, reference, Amplitude(pointwise=1_000 * reference.abs()), "float32")

    assert [one.kind for one in (difference,) if one] == kinds


@pytest.mark.parametrize(("got", "expected"), [
    (float("nan"), 1.0), (1.0, float("nan")), (float("inf"), 1.0), (float("inf"), float("-inf")),
    (float("nan"), float("inf")),
])
def test_nan_and_infinities_must_stand_where_the_reference_has_them(got, expected):
    result, reference = torch.ones(2, 3), torch.ones(2, 3, dtype=torch.float64)
    result[1, 2], reference[1, 2] = got, expected

    difference = within(result, reference, Amplitude(), "float32")

    assert difference is not None
    assert (difference.kind, difference.index, difference.count) == ("nonfinite", (1, 2), 1)


def test_equal_patterns_of_nan_and_infinity_pass():
    reference = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")], dtype=torch.float64)

    assert within(reference.float(), reference, Amplitude(), "float32") is None
    assert exactly(reference.float(), reference) is None


@pytest.mark.parametrize("dtype", [*DTYPES, torch.int32, torch.int64], ids=str)
def test_exact_comparison_sees_one_wrong_bit_and_accepts_the_rounded_sum(dtype):
    generator = torch.Generator().manual_seed(3)
    x = (torch.randn(1000, generator=generator) * 100).to(dtype)
    y = (torch.randn(1000, generator=generator) * 100).to(dtype)
    floating = dtype.is_floating_point
    reference = x.double() + y.double() if floating else x + y
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    wrong = (x + y).clone()
    wrong.view(bits)[17] ^= 1

    assert exactly(x + y, reference) is None
    difference = exactly(wrong, reference)
    assert difference is not None
    assert (difference.index, difference.count) == ((17,), 1)


def test_negative_zero_is_told_from_zero_only_by_the_exact_comparison():
    zero, negative = torch.zeros(3), -torch.zeros(3, dtype=torch.float64)

    assert exactly(zero, negative) is not None
    assert within(zero, negative, Amplitude(), "float32") is None


def test_results_without_elements_and_without_dimensions_are_compared():
    assert exactly(torch.empty(0, 3), torch.empty(0, 3, dtype=torch.float64)) is None
    nothing = torch.empty(0, dtype=torch.float64)
    assert within(nothing.float(), nothing, Amplitude(), "float32") is None
    assert exactly(torch.tensor(2.0), torch.tensor(2.0, dtype=torch.float64)) is None
    assert words(exactly(torch.tensor(2.0), torch.tensor(3.0, dtype=torch.float64))) == (
        "1 of 1 elements is wrong; the first is the value: got 2, expected 3"
    )


def test_bfloat16_results_that_a_gpu_flushed_to_zero_are_no_drift():
    torch.manual_seed(5)
    reference = torch.rand(4096, dtype=torch.float64) * torch.finfo(torch.bfloat16).smallest_normal
    flushed = torch.zeros(4096, dtype=torch.bfloat16)

    assert within(reference.bfloat16(), reference, Amplitude(), "bfloat16") is None
    assert within(flushed, reference, Amplitude(), "bfloat16") is None
    assert within(flushed, reference * 8, Amplitude(), "bfloat16") is not None


# ---------------------------------------------------------------------------------------------
# Other dtypes


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32], ids=str)
def test_an_integer_that_wrapped_around_differs_from_a_wider_reference(dtype):
    reference = torch.tensor([1, 2, torch.iinfo(dtype).max + 1])

    difference = exactly(reference.to(dtype), reference)

    assert exactly(reference[:2].to(dtype), reference[:2]) is None
    assert difference is not None
    assert difference.index == (2,)


@pytest.mark.parametrize(("gate", "right"), [
    (torch.full((1, 1), 0.3).expand(7, 65), True),  # one sigmoid, and its rounding is everywhere
    (torch.full((7, 65), 0.3), False),
], ids=["one number for all", "as many numbers"])
def test_what_shares_a_number_may_be_off_one_way(gate, right):
    x = torch.randn(7, 65, generator=torch.Generator().manual_seed(1))
    off = (x * (gate.double().sigmoid() * (1 + 5 * 2.0**-24))).float()

    found = judge([off], [x, gate], lambda x, gate: x.double() * gate.double().sigmoid(),
                  Tolerance(lambda x, gate: Amplitude(2 * (x * gate.sigmoid()).double().abs())))

    assert (found == ()) is right


def test_booleans_are_compared_exactly():
    right = torch.tensor([True, False, True])

    difference = exactly(right, torch.tensor([True, True, True]))

    assert exactly(right, right.clone()) is None
    assert exactly(right, torch.tensor([1, 0, 1])) is None
    assert difference is not None
    assert (difference.index, difference.got, difference.expected) == ((1,), False, True)


def test_an_index_of_the_maximum_has_to_be_the_very_one():
    x = torch.randn(50, 33, generator=torch.Generator().manual_seed(1))
    wrong = x.argmax(1).clone()
    wrong[7] += 1

    assert exactly(x.argmax(1), x.double().argmax(1)) is None
    assert exactly(x.argmax(1).int(), x.double().argmax(1)) is None
    assert exactly(wrong, x.double().argmax(1)) is not None


def quantised(scale: float, x: torch.Tensor) -> torch.Tensor:
    return (x.double() / scale).clamp(-127, 127)


@pytest.mark.parametrize("scale", [0.037, 0.0213])
def test_quantised_codes_are_exact_except_at_ties(scale):
    x = torch.randn(40_000, generator=torch.Generator().manual_seed(2))
    codes = quantised(scale, x)
    amplitude = Amplitude(pointwise=2 * codes.abs())
    right = (x * (1 / torch.tensor(scale))).round().clamp(-127, 127).to(torch.int8)
    other_side = torch.where(codes.frac().abs() > 0.49, codes.round() - codes.sign(), codes.round())

    def verdict(result):
        return within(result.to(torch.int8), codes, amplitude, "float32")

    assert verdict(right) is None
    assert verdict(codes.floor()) is not None
    assert verdict(codes.trunc()) is not None
    assert verdict(codes.round() + 1) is not None
    assert verdict(other_side) is not None
    assert verdict((x / (scale * (1 + 2**-10))).round().clamp(-127, 127)) is not None


def test_at_a_tie_both_neighbours_are_right():
    codes = torch.tensor([2.5, -3.5, 7.0], dtype=torch.float64)
    amplitude = Amplitude(pointwise=codes.abs())

    def verdict(*result):
        return within(torch.tensor(result, dtype=torch.int8), codes, amplitude, "float32")

    assert verdict(2, -4, 7) is None
    assert verdict(3, -3, 7) is None
    assert verdict(3, -3, 8) is not None
    assert verdict(1, -3, 7) is not None


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_results_in_fp8_follow_the_same_rule(dtype):
    generator = torch.Generator().manual_seed(4)
    a, b = torch.randn(32, 40, generator=generator), torch.randn(40, 32, generator=generator)
    reference = a.double() @ b.double()
    amplitude = Amplitude(reduced=a.double().abs() @ b.double().abs(), length=40)

    def verdict(result):
        return within(result.to(dtype), reference, amplitude, "float32")

    assert verdict(a @ b) is None
    assert verdict(a @ b * (1 + 2**-4)) is not None
    assert verdict((a @ b).flip(0)) is not None
    assert verdict(torch.zeros(32, 32)) is not None
    assert exactly((a @ b).to(dtype), (a @ b).double()) is None
    assert exactly((a @ b * 1.2).to(dtype), reference) is not None


def test_an_fp8_result_past_the_largest_number_may_stay_there():
    reference = torch.tensor([1e4, -1e4, 3.0], dtype=torch.float64)
    right = torch.tensor([448.0, -448.0, 3.0]).to(torch.float8_e4m3fn)
    wrong = torch.tensor([448.0, 448.0, 3.0]).to(torch.float8_e4m3fn)

    assert within(right, reference, Amplitude(), "float32") is None
    assert within(wrong, reference, Amplitude(), "float32") is not None
    assert within(right, reference / 100, Amplitude(), "float32") is not None


def test_float16_may_overflow_only_where_the_exact_value_does():
    reference = torch.tensor([70_000.0, -70_000.0, 65_000.0], dtype=torch.float64)

    assert within(torch.tensor([70_000.0, -70_000.0, 65_000.0]).half(), reference, Amplitude(),
                  "float16") is None
    for wrong in ([70_000.0, 70_000.0, 65_000.0], [70_000.0, -70_000.0, 70_000.0]):
        difference = within(torch.tensor(wrong).half(), reference, Amplitude(), "float16")
        assert difference is not None
        assert difference.kind == "nonfinite"


# ---------------------------------------------------------------------------------------------
# The grader's own mistakes are no verdicts


def test_a_result_of_another_shape_is_never_broadcast():
    reference = torch.ones(4, 3, dtype=torch.float64)

    for result in (torch.ones(3), torch.ones(1, 3), torch.tensor(1.0), torch.ones(12)):
        with pytest.raises(ValueError, match="shape"):
            exactly(result, reference)
        with pytest.raises(ValueError, match="shape"):
            within(result, reference, Amplitude(), "float32")


@pytest.mark.parametrize("amplitude", [float("nan"), float("inf"), -1.0])
def test_an_amplitude_that_is_no_bound_is_refused(amplitude):
    reference = torch.ones(4, dtype=torch.float64)

    with pytest.raises(ValueError, match="amplitude"):
        within(reference.float(), reference, Amplitude(pointwise=amplitude), "float32")


# ---------------------------------------------------------------------------------------------
# Several results


def three_results(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x * 2, x.sum(0), x.argmax(1)


THREE = Tolerance(lambda x: (Amplitude(), error_bounds.total(x, 0), None))


@pytest.mark.parametrize("corrupt", [0, 1, 2])
def test_every_output_is_compared_and_the_wrong_one_is_named(corrupt):
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(6))
    results = [part.clone() for part in three_results(x)]
    results[corrupt].view(-1)[-1] += 1

    found = judge(results, [x], lambda x: three_results(x.double()), THREE, ("dx", "dw", "index"))

    assert len(found) == 1
    assert found[0].output == ("dx", "dw", "index")[corrupt]
    assert f"elements of `{found[0].output}` is wrong" in words(found[0])


def test_all_wrong_outputs_are_told_and_right_ones_are_not():
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(6))
    right = three_results(x)

    def found(*results):
        return judge(results, [x], lambda x: three_results(x.double()), THREE)

    assert found(*right) == ()
    wrong = found(right[0] + 1, right[1], right[2] + 1)
    assert [difference.position for difference in wrong] == [0, 2]


def test_a_missing_output_is_no_pass():
    x = torch.randn(6, 5)

    with pytest.raises(ValueError, match="2 results, 3 references"):
        judge(three_results(x)[:2], [x], lambda x: three_results(x.double()), THREE)


# ---------------------------------------------------------------------------------------------
# TF32


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double()


def matrices(seed: int = 8, mean: float = 0.0, k: int = 96) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(33, k, generator=generator) + mean,
            torch.randn(k, 17, generator=generator) + mean]


FULL = Tolerance(error_bounds.matmul, products=(0, 1))
SHORT = Tolerance(error_bounds.matmul, products=(0, 1), tf32=True)


@pytest.mark.parametrize("mode", ["rz", "rna", "rne"])
@pytest.mark.parametrize("mean", [0.0, 0.5, 60.0])
def test_one_of_three_roundings_to_tf32_is_accepted_or_told(mode, mean):
    a, b = matrices(mean=mean)
    result = tf32(a, mode) @ tf32(b, mode)

    assert judge([result], [a, b], product, SHORT) == ()
    (told,) = judge([result], [a, b], product, FULL)
    assert told.kind == "tf32"
    assert "rounded to TF32" in words(told)
    assert judge([a @ b], [a, b], product, FULL) == judge([a @ b], [a, b], product, SHORT) == ()


def test_one_rounding_has_to_explain_the_whole_result():
    a, b = matrices()
    mixed = torch.cat([tf32(a)[:16] @ tf32(b), tf32(a[16:], "rna") @ tf32(b, "rna")])
    one_side = tf32(a) @ b
    dropped = tf32(a)[:, :-1] @ tf32(b)[:-1]

    for wrong in (mixed, one_side, dropped):
        (found,) = judge([wrong], [a, b], product, SHORT)
        assert found.kind == "values"


def test_bfloat16_operands_do_not_pass_for_tf32():
    a, b = matrices()
    result = a.bfloat16().float() @ b.bfloat16().float()

    assert judge([result], [a, b], product, SHORT)[0].kind == "values"
    assert judge([result], [a, b], product, FULL)[0].kind == "values"


def test_low_precision_inputs_and_whole_numbers_have_no_tf32_of_their_own():
    a, b = matrices()
    half, whole = [a.half(), b.half()], [a.round(), b.round()]

    assert list(in_tf32(half, (0, 1))) == []
    assert list(in_tf32(whole, (0, 1))) == []
    assert len(list(in_tf32([a, b, 3], (0, 1)))) == 3


def test_rounding_to_tf32_keeps_ten_bits_and_what_is_not_finite():
    step = 2.0**-10
    x = torch.tensor([1.0, 1 + step, 1 + step / 2, 1 + 1.5 * step, 1 + step / 2 + 2.0**-23, -1.75,
                      float("inf"), float("-inf"), 0.0, -(1 + 1.5 * step)])

    assert tf32(x).tolist()[:5] == [1, 1 + step, 1, 1 + step, 1]
    assert tf32(x, "rna").tolist()[:5] == [1, 1 + step, 1 + step, 1 + 2 * step, 1 + step]
    assert tf32(x, "rne").tolist()[:5] == [1, 1 + step, 1, 1 + 2 * step, 1 + step]
    for mode in ("rz", "rna", "rne"):
        assert tf32(x, mode).tolist()[5:9] == [-1.75, float("inf"), float("-inf"), 0.0]
        assert tf32(x, mode)[9] == -tf32(-x, mode)[9]
        assert tf32(torch.tensor([float("nan")]), mode).isnan().all()


def test_the_interpreter_rounds_to_tf32_as_the_comparison_does():
    a, b = matrices(mean=0.3)
    zero = np.zeros((33, 17), np.float32)

    short = torch.from_numpy(numerics.dot(a.numpy(), b.numpy(), zero, "TF32"))
    long = torch.from_numpy(numerics.dot(a.numpy(), b.numpy(), zero, "IEEE"))
    split = torch.from_numpy(numerics.dot(a.numpy(), b.numpy(), zero, "TF32x3"))

    assert torch.equal(torch.from_numpy(numerics.tf32(a.numpy())), tf32(a))
    assert torch.equal(torch.from_numpy(numerics.near_tf32(a.numpy())), tf32(a, "rne"))
    assert judge([short], [a, b], product, FULL)[0].kind == "tf32"
    assert judge([short], [a, b], product, SHORT) == ()
    assert judge([long], [a, b], product, FULL) == ()
    assert judge([split], [a, b], product, replace(FULL, arithmetic=TENSOR_CORES)) == ()


@pytest.mark.parametrize("precision", ["TF32x3", "BF16x6"])
def test_parts_of_float32_keep_22_bits_of_every_single_product_and_infinities(precision):
    generator = torch.Generator().manual_seed(9)
    a, b = (torch.rand(size, generator=generator) for size in ((500, 1), (1, 500)))
    a[3], b[0, 5] = float("inf"), -0.5
    zero = np.zeros((500, 500), np.float32)

    split = torch.from_numpy(numerics.dot(a.numpy(), b.numpy(), zero, precision))

    assert judge([split], [a, b], product, replace(FULL, arithmetic=TENSOR_CORES)) == ()
    assert split[3, 5] == float("-inf")


MATMUL = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.arange(0, N)
    ks = tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + ks[None, :])
    b = tl.load(b_ptr + ks[:, None] * N + rows[None, :])
    tl.store(c_ptr + rows[:, None] * N + rows[None, :], tl.dot(a, b PRECISION))

def matmul(a, b):
    c = torch.empty((32, 32), device=a.device, dtype=a.dtype)
    kernel[(1,)](a, b, c, N=32, K=64)
    return c
"""


@pytest.mark.parametrize(("precision", "allowed", "code"), [
    ("", False, "N05"), ("", True, ""), (", input_precision='ieee'", False, ""),
    (", input_precision='tf32x3'", False, ""), (".to(a.dtype) * 1.001", False, "N01"),
])
def test_a_kernel_that_multiplies_in_tf32_is_told_so(precision, allowed, code, sandbox, tmp_path):
    kernel = tmp_path / "kernel.py"
    kernel.write_text(MATMUL.replace("PRECISION", precision))
    tolerance = Tolerance(error_bounds.matmul, TENSOR_CORES, products=(0, 1), tf32=allowed)
    suite = Suite(entry="matmul", parameters=("a", "b"), reference=product, tolerance=tolerance,
                  cost=lambda a, b: Cost(a.nbytes),
                  cases=[correctness("32 x 32", rand(32, 64), rand(64, 32))])

    report = grader.grade(kernel, suite, sandbox=sandbox)

    assert [finding.code for finding in report.findings()] == [code] * bool(code), report


def test_float64_computed_in_float32_is_told_from_other_wrong_float64():
    x = torch.rand(500, dtype=torch.float64) * 1.99 - 0.995
    tight = Tolerance(lambda x: Amplitude(pointwise=torch.asin(x).abs() * 2.0**-29))

    def seen(result):
        (found,) = judge([result], [x], torch.asin, tight)
        return right_as_float32(found)

    assert seen(torch.asin(x.float()).double())
    assert not seen(torch.asin(x.bfloat16().double()))
    assert not seen(torch.asin(x) * (1 + 1e-5))
    assert not seen(torch.asin(x).index_fill(0, torch.tensor([7]), 0.25))
    assert not seen(torch.asin(x).index_fill(0, torch.tensor([7]), torch.nan))
    (found,) = judge([torch.asin(x.float()) * 1.01], [x.float()], lambda x: torch.asin(x.double()),
                     Tolerance(error_bounds.elementwise))
    assert not right_as_float32(found), "of a float32 result nothing is said"


def test_numbers_that_7_digits_do_not_tell_apart_are_shown_with_all_of_them():
    x = torch.tensor([1 / 3], dtype=torch.float64)

    (found,) = judge([x.float().double()], [x], lambda x: x, Tolerance(lambda x: Amplitude()))

    assert "got 0.3333333432674408, expected 0.33333333333333331" in words(found)
