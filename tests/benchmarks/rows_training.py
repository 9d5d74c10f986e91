"""The rows of track 4, for `tests.benchmarks.kernels`: backward passes and a step of an optimizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from tests.benchmarks import peers
from tests.benchmarks.modules import solution
from tests.benchmarks.rows import ROUNDING, Function, Inputs, Row, few, normal, short

EPS = 1e-5


# ---------------------------------------------------------------------------------------------
# Training kernels


def layer_norm_backward_row(rows: int, columns: int, dtype: torch.dtype) -> Row:
    """From dy, x, the weight and what the forward pass kept to all three gradients."""
    def make(scale: int, device: str) -> Inputs:
        x = normal(few(rows, scale, 3), columns, dtype=dtype, device=device) * 2 + 3
        variance, mean = torch.var_mean(x.float(), dim=1, correction=0)
        return (normal(*x.shape, dtype=dtype, device=device), x,
                normal(columns, dtype=dtype, device=device), mean, torch.rsqrt(variance + EPS))

    def torchs(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, mean: torch.Tensor,
               rstd: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.ops.aten.native_layer_norm_backward(
            dy, x, x.shape[1:], mean[:, None], rstd[:, None], weight, weight, [True, True, True])

    def own(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, mean: torch.Tensor,
            rstd: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx = SimpleNamespace(saved_tensors=(x, weight, mean, rstd), shape=x.shape,
                              needs_input_grad=(True, True, True, False))
        return solution("training-kernels").LayerNormFunction.backward(ctx, dy)[:3]

    return Row(
        f"layer norm backward {short(dtype)} {rows}x{columns}", make,
        lambda *inputs: torchs(*(tensor.double() for tensor in inputs)),
        lambda: {"solution": own, **peers.function(torchs), **peers.liger(
            "layer_norm", lambda ops: lambda dy, x, w, mean, rstd: ops.layer_norm_backward(
                dy, x, w, w, mean, rstd)[:3])},
        least_bytes=lambda dy, x, *_: 3 * x.nbytes, goal=1.0,
        tolerance=10 * ROUNDING[dtype])  # sums over all rows


def adam_row(power: int) -> Row:
    """A step in place. Its moments are where they would stay, and its rate is tiny, so that every
    contestant finds the tensors as the first did."""
    rate, beta1, beta2, eps, step = 1e-7, 0.9, 0.999, 1e-8, 1_000_000

    def make(scale: int, device: str) -> Inputs:
        grad = normal(few(1 << power, scale), device=device)
        return normal(len(grad), device=device), grad, grad.clone(), grad * grad

    def plain(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor
              ) -> tuple[torch.Tensor, ...]:
        m.mul_(beta1).add_(g, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        p.addcdiv_(m, v.sqrt().add_(eps), value=-rate)
        return p, m, v

    def own(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor
            ) -> tuple[torch.Tensor, ...]:
        solution("training-kernels").adam_step_(p, g, m, v, step=step, lr=rate)
        return p, m, v

    def fused() -> Mapping[str, Function]:
        steps: dict[Any, torch.Tensor] = {}

        def run(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor
                ) -> tuple[torch.Tensor, ...]:
            count = steps.setdefault(p.device, torch.full((), float(step), device=p.device))
            torch._fused_adam_([p], [g], [m], [v], [], [count], lr=rate, beta1=beta1, beta2=beta2,
                               weight_decay=0.0, eps=eps, amsgrad=False, maximize=False)
            return p, m, v

        return {"torch fused": run}

    return Row(
        f"adam fp32 2^{power}", make,
        lambda *inputs: plain(*(tensor.double() for tensor in inputs)),
        lambda: {"solution": own, **fused(), **peers.function(plain)},
        least_bytes=lambda p, *_: 7 * p.nbytes, goal=1.0, tolerance=1e-4)


def training_rows() -> list[Row]:
    """The most important first, as in `tests.benchmarks.rows`."""
    return [
        adam_row(26),
        *(layer_norm_backward_row(rows, columns, dtype)
          for rows, columns in ((16384, 4096), (4096, 16384), (65536, 1024))
          for dtype in (torch.float16, torch.float32)),
    ]
