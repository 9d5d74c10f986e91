"""The rows of `fused-operations`, for `tests.benchmarks.kernels`: what fusing gains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it

from tests.benchmarks import peers
from tests.benchmarks.modules import solution
from tests.benchmarks.rows import (
    ROUNDING,
    Function,
    Inputs,
    Row,
    few,
    normal,
    short,
    side,
)

# ---------------------------------------------------------------------------------------------
# Fused operations


def fused(name: str, make: Callable[[int, str], Inputs], own: Callable[[Any], Function],
          eager: Function, dtype: torch.dtype, more: Mapping[str, Function] | None = None,
          **cost: Any) -> Row:
    """A fused form beside PyTorch's steps and what `torch.compile` makes of them."""
    def who() -> Mapping[str, Function]:
        return {"solution": own(solution("fused-operations")),
                **peers.function(eager, autotuned=True), **(more or {})}

    return Row(f"{name} {short(dtype)}", make, lambda *xs: eager(*(x.double() for x in xs)), who,
               tolerance=ROUNDING[dtype], **cost)


def rows_and_vectors(count: int, columns: int, dtype: torch.dtype) -> Callable[[int, str], Inputs]:
    return lambda scale, device: (
        normal(few(count, scale, 3), columns, dtype=dtype, device=device),
        *(normal(columns, dtype=dtype, device=device) for _ in range(2)))


def norm_gelu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x, x.shape[1:], weight, bias))


def linear_row(name: str, own: Callable[[Any], Function], eager: Function, m: int, k: int, n: int,
               dtype: torch.dtype, *, vectors: int = 0, **goal: Any) -> Row:
    """Of x, ``vectors`` of K, w and b; weights are small, so that sums are of the size of x."""
    def make(scale: int, device: str) -> Inputs:
        rows, inputs, outputs = (side(size, scale) for size in (m, k, n))
        how = {"dtype": dtype, "device": device}
        return (normal(rows, inputs, **how), *(normal(inputs, **how) for _ in range(vectors)),
                normal(outputs, inputs, **how) / inputs**0.5, normal(outputs, **how))

    return fused(name, make, own, eager, dtype,
                 flops=lambda x, *rest: 2 * x.numel() * rest[-1].numel(), **goal)


def activated(act: str, eager: Function, m: int, k: int, n: int, dtype: torch.dtype, **goal: Any
              ) -> Row:
    """act(x @ w.T + b); cuBLAS has an epilogue of its own for ReLU."""
    more: dict[str, Function] = {
        "solution, as taught": lambda x, w, b: solution(
            "fused-operations").linear_bias_act(x, w, b, act.lower())}
    if act == "ReLU":
        more["torch._addmm_activation"] = lambda x, w, b: torch._addmm_activation(b, x, w.T)
    return linear_row(
        f"linear, bias and {act} {m}x{k} into {n}",
        lambda module: lambda x, w, b: module.linear_bias_act_persistent(x, w, b, act.lower()),
        lambda x, w, b: eager(F.linear(x, w, b)), m, k, n, dtype,
        more=more, **goal)


def fused_rows() -> list[Row]:
    def add_relu_mul(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + bias) * 0.5

    def norm_linear(x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor, w: torch.Tensor,
                    b: torch.Tensor) -> torch.Tensor:
        return F.linear(F.layer_norm(x, x.shape[1:], ln_w, ln_b), w, b)

    def elements(n: int, columns: int = 0) -> Callable[[int, str], Inputs]:
        def make(scale: int, device: str) -> Inputs:
            count = few(n, scale, columns or 1)
            shapes = ((count // columns, columns), (columns,)) if columns else ((count,),) * 2
            return tuple(normal(*shape, device=device) for shape in shapes)
        return make

    def moved(x: torch.Tensor, *rest: torch.Tensor) -> int:
        return 2 * x.nbytes + sum(tensor.nbytes for tensor in rest)

    half, brain, single = torch.float16, torch.bfloat16, torch.float32
    return [
        fused("fused add-ReLU-mul 10^7", elements(10_000_000),
              lambda module: lambda x, bias: module.fused_add_relu_mul(x, bias, 0.5),
              add_relu_mul, single, least_bytes=moved, goal=1.0),
        fused("fused add-ReLU-mul of a vector 65536x4096", elements(1 << 28, 4096),
              lambda module: lambda x, bias: module.fused_add_relu_mul(x, bias, 0.5),
              add_relu_mul, single, least_bytes=moved, goal=1.0),
        activated("ReLU", torch.relu, 8192, 1024, 4096, half, goal=1.0),
        activated("GELU", F.gelu, 8192, 4096, 4096, brain, goal=0.95,
                  rival="torch.compile, max-autotune"),
        *(fused(f"layer norm and GELU 16384x{columns}", rows_and_vectors(16384, columns, dtype),
                lambda module: module.layer_norm_gelu, norm_gelu, dtype, least_bytes=moved,
                goal=1.0)
          for columns, dtype in ((4096, single), (4096, brain))),
        *(linear_row(f"layer norm and linear 8192x{k} into 4096",
                     lambda module: module.layer_norm_linear, norm_linear, 8192, k, 4096, dtype,
                     vectors=2, goal=0.9, rival="torch")
          for k, dtype in ((1024, half), (4096, brain))),
    ]
