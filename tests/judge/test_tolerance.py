"""The tolerance: every right order of operations passes, every known mistake is caught."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grader.suite import Amplitude, Tolerance
from tests.fidelity.tolerance import products, rows
from tests.fidelity.tolerance.measure import KERNELS, measure, upper_bound
from tests.support.tiers import by_default


@pytest.mark.parametrize("kernel", by_default(6, KERNELS), ids=lambda kernel: kernel.name)
def test_right_runs_pass_and_wrong_variants_are_caught_in_every_dtype(kernel):
    torch.set_num_threads(1)

    count = measure([0], [kernel], ["the rule"])["the rule"]

    assert count.failed == []
    assert count.never_caught() == []
    assert sum(count.right.values()) >= 50


def test_the_count_sees_a_tolerance_that_is_too_narrow():
    def nothing(x: torch.Tensor) -> Amplitude:
        return Amplitude()

    kernel = replace(rows.SOFTMAX, tolerance=Tolerance(nothing))

    count = measure([0], [kernel], ["the rule"])["the rule"]

    assert len(count.failed) > 100


def test_the_count_sees_a_tolerance_that_is_too_wide():
    def anything(x: torch.Tensor) -> Amplitude:
        return Amplitude(pointwise=torch.full(x.shape, 2.0**24))

    kernel = replace(rows.SOFTMAX, tolerance=Tolerance(anything))

    count = measure([0], [kernel], ["the rule"])["the rule"]

    assert ("softmax", "summed in float16", "float16") in count.never_caught()
    assert ("softmax", "padding loaded as 0", "bfloat16") in count.never_caught()


def test_fixed_tolerances_pass_wrong_softmaxes_and_fail_right_products():
    softmax = measure([0], [rows.SOFTMAX], ["the rule", "allclose 1e-2"])
    matmul = measure([0], [products.MATMUL], ["the rule", "torch.testing"])

    never = softmax["allclose 1e-2"].variants_never_caught()
    assert ("softmax", "1e-6 in the denominator") in never
    assert softmax["allclose 1e-2"].passed_pairs() > softmax["the rule"].passed_pairs()
    assert matmul["torch.testing"].failed
    assert not matmul["the rule"].failed


def test_no_failure_in_three_thousand_runs_bounds_the_rate_at_a_thousandth():
    assert 0.0009 < upper_bound(3_000) < 0.001
