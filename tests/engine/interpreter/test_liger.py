"""Liger-Kernel's ops, forward and backward on the engine: right results and not one finding.

A library that people train with is a good source of kernels that nobody wrote for this grader.
A finding here is a false alarm of the engine or a bug of the library; neither may stay.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from torch import Tensor

from grader.engine.interpreter.eager import InterpretedLaunches, interpreted
from tests.support.tiers import by_default

pytest.importorskip("liger_kernel", reason="Liger-Kernel is not installed; the extra `test` has it")

from tests.fidelity.liger import BF16, FP32, OPS, Op, drawing, errors, supposed_gpu, with_gradients

SETTINGS: dict[str, dict[str, Any]] = {
    "forward": {"order": "forward", "poison": 0},
    "reverse": {"order": "reverse", "poison": 1, "config": 9, "chunk": 3},  # of the autotuned
}
IN_BFLOAT16 = ("cross entropy", "RMS norm", "layer norm", "group norm", "RoPE", "SwiGLU", "GeGLU",
               "softmax", "fused add and RMS norm", "embedding", "dynamic tanh", "sparsemax",
               "Jensen-Shannon divergence", "total variation distance", "neighborhood attention",
               "mixture of experts")


def check(the_op: Op, setting: str, tolerance: float) -> None:
    wanted = with_gradients(the_op.reference, [t.double() for t in the_op.inputs],
                            [t.double() if t.is_floating_point() else t for t in the_op.fixed])

    with interpreted(**SETTINGS[setting]) as trace, supposed_gpu():
        found = with_gradients(the_op.ours, the_op.inputs, the_op.fixed)

    assert said(trace) == []
    assert errors(found, wanted, tolerance) == []
    assert max(launch.programs for launch in trace.launches) >= the_op.programs


def said(trace: InterpretedLaunches) -> list[str]:
    return [f"{finding.code}, line {finding.line}: {finding.seen}" for finding in trace.findings]


@pytest.mark.parametrize("setting", by_default(1, SETTINGS))
@pytest.mark.parametrize("name", OPS)
def test_an_op_computes_what_torch_computes(name: str, setting: str) -> None:
    the_op = OPS[name](drawing(torch.float32))

    check(the_op, setting, the_op.tolerance)


@pytest.mark.parametrize("name", IN_BFLOAT16)
def test_an_op_computes_what_torch_computes_in_bfloat16(name: str) -> None:
    check(OPS[name](drawing(torch.bfloat16)), "forward", BF16)


# ---------------------------------------------------------------------------------------------
# What the tests above would see


@triton.jit
def twice_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr, READS_RESULT: tl.constexpr):
    """y = 2 x; with READS_RESULT it adds what it finds in y first."""
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    if READS_RESULT:
        x += 0 * tl.load(y_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, 2 * x, mask=offs < n)


class Twice(torch.autograd.Function):
    """2 x. ``forgets`` names the pass whose kernel reads memory that nobody wrote."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, forgets: str) -> Tensor:
        ctx.forgets = forgets
        return twice(x, forgets == "forward")

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple[Tensor, None]:
        return twice(weights, ctx.forgets == "backward"), None


def twice(x: Tensor, reads_result: bool) -> Tensor:
    y = torch.empty_like(x)
    twice_kernel[(triton.cdiv(len(x), 16),)](
        x, y, len(x), BLOCK_SIZE=16, READS_RESULT=reads_result)
    return y


@pytest.mark.parametrize("forgets", ["forward", "backward"])
def test_unwritten_memory_is_seen_in_both_passes(forgets: str) -> None:
    with interpreted() as trace, supposed_gpu():
        with_gradients(lambda x: Twice.apply(x, ""), [torch.ones(50)], [])
        sound = said(trace)
        with_gradients(lambda x: Twice.apply(x, forgets), [torch.ones(50)], [])

    assert sound == []
    assert [finding.code for finding in trace.findings] == ["M06"]


def test_a_wrong_result_is_seen() -> None:
    right, zeros, nothing = torch.ones(9), torch.zeros(9), torch.full((9,), math.nan)

    assert errors([right, right], [right.double(), right.double()], FP32) == []
    assert len(errors([zeros, nothing], [right.double(), right.double()], BF16)) == 2
