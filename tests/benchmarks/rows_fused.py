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
          eager: Function, dtype: torch.dtype, **cost: Any) -> Row:
    """A fused form beside PyTorch's steps and what `torch.compile` makes of them."""
    def who() -> Mapping[str, Function]:
        return {"solution": own(solution("fused-operations")), "torch": eager,
                "torch.compile": peers.compiled(eager),
                "torch.compile, max-autotune": torch.compile(
                    eager, dynamic=False, mode="max-autotune-no-cudagraphs")}

    return Row(f"{name} {short(dtype)}", make, lambda *xs: eager(*(x.double() for x in xs)), who,
               tolerance=ROUNDING[dtype], **cost)


def fused_rows() -> list[Row]:
    def add_relu_mul(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + bias) * 0.5

    def linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.linear(x, w, b)

    def norm_gelu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.gelu(F.layer_norm(x, x.shape[1:], weight, bias))

    def norm_linear(x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor, w: torch.Tensor,
                    b: torch.Tensor) -> torch.Tensor:
        return F.linear(F.layer_norm(x, x.shape[1:], ln_w, ln_b), w, b)

    def elements(n: int, columns: int = 0) -> Callable[[int, str], Inputs]:
        def make(scale: int, device: str) -> Inputs:
            count = few(n, scale, columns or 1)
            shapes = ((count // columns, columns), (columns,)) if columns else ((count,),) * 2
            return tuple(normal(*shape, device=device) for shape in shapes)
        return make

    def layer(m: int, k: int, n: int, dtype: torch.dtype, vectors: int = 0
              ) -> Callable[[int, str], Inputs]:
        """x, ``vectors`` of K, w and b; weights are small, so that sums are of the size of x."""
        def make(scale: int, device: str) -> Inputs:
            rows, inputs, outputs = (side(size, scale) for size in (m, k, n))
            how = {"dtype": dtype, "device": device}
            return (normal(rows, inputs, **how), *(normal(inputs, **how) for _ in range(vectors)),
                    normal(outputs, inputs, **how) / inputs**0.5, normal(outputs, **how))
        return make

    def product_flops(x: torch.Tensor, *rest: torch.Tensor) -> int:
        return 2 * x.numel() * rest[-1].numel()

    def rows(count: int, columns: int, dtype: torch.dtype) -> Callable[[int, str], Inputs]:
        return lambda scale, device: (
            normal(few(count, scale, 3), columns, dtype=dtype, device=device),
            *(normal(columns, dtype=dtype, device=device) for _ in range(2)))

    def own_layer(act: str) -> Callable[[Any], Function]:
        return lambda module: lambda x, w, b: module.linear_bias_act(x, w, b, act)

    def acted(act: Function) -> Function:
        return lambda x, w, b: act(linear(x, w, b))

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
        *(fused(f"linear, bias and {name} {m}x{k} into {n}", layer(m, k, n, dtype),
                own_layer(name.lower()), acted(act), dtype, flops=product_flops,
                goal=0.95, rival="torch.compile, max-autotune")
          for name, act, m, k, n, dtype in (
              ("ReLU", torch.relu, 8192, 1024, 4096, half),
              ("GELU", F.gelu, 8192, 4096, 4096, brain))),
        *(fused(f"layer norm and GELU 16384x{columns}", rows(16384, columns, dtype),
                lambda module: module.layer_norm_gelu, norm_gelu, dtype, least_bytes=moved,
                goal=1.0)
          for columns, dtype in ((4096, single), (4096, brain))),
        *(fused(f"layer norm and linear 8192x{k} into 4096",
                layer(8192, k, 4096, dtype, 2), lambda module: module.layer_norm_linear,
                norm_linear, dtype, flops=product_flops, goal=0.9, rival="torch")
          for k, dtype in ((1024, half), (4096, brain))),
    ]
