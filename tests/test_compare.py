"""The tolerance rule: right arithmetic always passes, known wrong arithmetic never does."""

from __future__ import annotations

import pytest
import torch

from grader.compare import exactly, within
from grader.suite import Amplitude

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


def softmax_amplitude(x: torch.Tensor) -> Amplitude:
    x = x.double()
    p = torch.softmax(x, 1)
    size = x.abs() + x.amax(1, keepdim=True).abs()
    return Amplitude(p * (4 + 2 * size + 2 * (p * size).sum(1, keepdim=True)), p, x.shape[1])


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
        assert within(result, reference, softmax_amplitude(x), NAMES[dtype]) is None


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
                        softmax_amplitude(x), NAMES[dtype])

    assert difference is not None


def test_a_sum_kept_in_float16_is_found_in_a_float16_result():
    torch.manual_seed(1)
    x = torch.randn(2, 4097).half()
    e = torch.exp(x.float() - x.float().amax(1, keepdim=True))
    result = (e / e.half().sum(1, keepdim=True).float()).half()  # rounded once, as NumPy sums

    difference = within(result, torch.softmax(x.double(), 1), softmax_amplitude(x), "float16")

    assert difference is not None


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
    assert str(exactly(torch.tensor(2.0), torch.tensor(3.0, dtype=torch.float64))) == (
        "1 of 1 elements is wrong; the first is the value: got 2, expected 3"
    )


def test_bfloat16_results_that_a_gpu_flushed_to_zero_are_no_drift():
    torch.manual_seed(5)
    reference = torch.rand(4096, dtype=torch.float64) * torch.finfo(torch.bfloat16).smallest_normal
    flushed = torch.zeros(4096, dtype=torch.bfloat16)

    assert within(reference.bfloat16(), reference, Amplitude(), "bfloat16") is None
    assert within(flushed, reference, Amplitude(), "bfloat16") is None
    assert within(flushed, reference * 8, Amplitude(), "bfloat16") is not None
