"""Solutions of mastery at sizes that choose other tiles than those that their suites interpret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it

from grader.engine.compiler import targets
from grader.engine.interpreter.eager import interpreted
from grader.processes.session import Session
from grader.sandbox import Sandbox
from grader.submission import source
from tests.benchmarks.modules import solution

pytestmark = pytest.mark.course


@pytest.mark.parametrize("outputs", [528, 516], ids=["in halves", "rows of no 16 bytes"])
def test_a_layer_of_long_sums(outputs: int) -> None:
    fused = solution("fused-operations")
    torch.manual_seed(1)
    x = torch.randn(530, fused.LONG_SUMS, dtype=torch.bfloat16)
    w = torch.randn(outputs, fused.LONG_SUMS, dtype=torch.bfloat16) / fused.LONG_SUMS**0.5
    b = torch.randn(outputs, dtype=torch.bfloat16)

    with interpreted():
        y = fused.linear_bias_act(x, w, b, "gelu")

    exact = F.gelu(F.linear(x.double(), w.double(), b.double()))
    torch.testing.assert_close(y.double(), exact, rtol=2**-8, atol=1e-4)


@pytest.mark.parametrize("columns", [8_192, 8_200], ids=["one launch", "a launch each"])
def test_gradients_of_wide_rows(columns: int) -> None:
    norm = solution("training-kernels")
    torch.manual_seed(1)
    x, w, b = (torch.randn(*shape, requires_grad=True)
               for shape in ((5, columns), (columns,), (columns,)))
    dy = torch.randn(5, columns)

    with interpreted():
        norm.layer_norm(x, w, b).backward(dy)

    inputs: list[Any] = [tensor.detach().double().requires_grad_() for tensor in (x, w, b)]
    F.layer_norm(inputs[0], (columns,), *inputs[1:]).backward(dy.double())
    for ours, exact in zip((x, w, b), inputs, strict=True):
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad.double(), exact.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["a100", "rtx5090", "b200"])
@pytest.mark.parametrize(("module", "function", "shapes", "dtype"), [
    ("attention-kernels", "attention", [(1, 1, 1024, 64)] * 3, torch.float16),
    ("attention-kernels", "attention", [(1, 1, 1024, 128)] * 3, torch.float16),
    ("attention-kernels", "attention", [(1, 1, 128, 128)] * 3, torch.float32),
    ("fused-operations", "linear_bias_act", [(1024, 512), (512, 512), (512,)], torch.float16),
    ("fused-operations", "layer_norm_linear",
     [(1024, 512), (512,), (512,), (512, 512), (512,)], torch.float16),
    ("warp-specialization", "linear_relu", [(1024, 512), (512, 512), (512,)], torch.float16),
], ids=["attention 64", "attention 128", "attention float32", "a layer", "norm and layer", "relu"])
def test_tiles_that_were_chosen_on_hopper_are_taken_nowhere_else(
    sandbox: Sandbox, module: str, function: str, shapes: list[tuple[int, ...]],
    dtype: torch.dtype, target: str,
) -> None:
    """There they spill or do not fit. (Attention in float32 spills everywhere, Hopper included.)"""
    submitted = source.read(Path(str(solution(module).__file__)))
    tensors = [torch.randn(shape, dtype=dtype) for shape in shapes]

    with Session(submitted, function, sandbox, target=target) as session:
        recording = session.record(tensors).recording
        assert recording is not None
        made = session.begin_compile(recording, targets.find(target))()

    assert made.findings == ()
    assert dtype == torch.float32 or [binary.spill_bytes for binary in made.binaries] == [0]
