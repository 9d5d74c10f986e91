"""Odd, narrow and long shapes of the rows, for `tests.benchmarks.kernels`.

The published shapes are multiples of 16. These are not, or their rows are narrow, or one of their
sides is short: lengths at which vector accesses get lost and programs become small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it

from tests.benchmarks import peers
from tests.benchmarks.modules import solution
from tests.benchmarks.rows import (
    FULL,
    ROUNDING,
    Function,
    Inputs,
    Row,
    elements,
    few,
    layer_norm_row,
    normal,
    short,
    side,
    softmax_row,
)
from tests.benchmarks.rows_fused import activated, fused, linear_row, norm_gelu, rows_and_vectors
from tests.benchmarks.rows_optimization import HALF, reduction
from tests.benchmarks.rows_training import layer_norm_backward_row

BOTH = (torch.float32, torch.bfloat16)
LENGTH = (1 << 27) + 13
PRODUCTS = ((4096, 5000, 6000), (4096, 6000, 5000), (4097, 4099, 4101), (8192, 512, 8192),
            (8192, 8192, 512))


def about(n: int, scale: int) -> int:
    """A side that is shorter at other scales, and then as far from a multiple of 16."""
    return n if scale == FULL else side(n, scale) + n % 16


def odd_product(m: int, n: int, k: int) -> Row:
    """In float16; both products of the course take part."""
    def make(scale: int, device: str) -> Inputs:
        return (normal(about(m, scale), about(k, scale), dtype=HALF, device=device),
                normal(about(k, scale), about(n, scale), dtype=HALF, device=device))

    def who() -> Mapping[str, Function]:
        return {"solution": solution("matrix-mul").matmul_any_size,
                "solution, as taught": solution("matrix-mul").matmul,
                "solution of advanced-optimizations":
                    solution("advanced-optimizations").matmul_persistent, **peers.matmul(HALF)}

    return Row(f"matmul {short(HALF)} {m}x{n}x{k}", make, lambda a, b: a.double() @ b.double(), who,
               flops=lambda a, b: 2 * a.shape[0] * a.shape[1] * b.shape[1], goal=0.85,
               rival="torch", tolerance=ROUNDING[HALF])


def odd_elements() -> list[Row]:
    def add_relu_mul(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + bias) * 0.5

    def own() -> Function:
        module = solution("fused-operations")
        return lambda x, bias: module.fused_add_relu_mul(x, bias, 0.5)

    found: list[Row] = []
    for dtype in reversed(BOTH):
        found += [
            elements("vector add", LENGTH, lambda: solution("vector-add").vector_add_any_length,
                     torch.add, dtype=dtype, operands=2),
            elements("swish", LENGTH, lambda: solution("custom-kernels").swish, F.silu,
                     dtype=dtype),
            elements("fused add-ReLU-mul", LENGTH, own, add_relu_mul, dtype=dtype, operands=2),
        ]
    return [replace(row, name=f"{row.name}+13", goal=0.95) for row in found]


def odd_column_sums(rows: int, columns: int) -> Row:
    row = reduction(
        f"sum of columns under locks fp32 {rows}x{columns}",
        lambda scale: (few(rows, scale, 40), columns if scale == FULL else 200), torch.float32,
        "two-phase-reduction", lambda module: module.column_sum_locked, lambda x: x.sum(0),
        goal=0.9)
    return replace(row, who=lambda: {who: run for who, run in row.who().items()
                                     if who != "starter"})  # a hundred times as long


def odd_norm_linear(m: int, k: int, n: int, dtype: torch.dtype) -> Row:
    """Layer norm and a linear layer in one launch beside two launches of the course."""
    def plain(x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor, w: torch.Tensor,
              b: torch.Tensor) -> torch.Tensor:
        return F.linear(F.layer_norm(x, x.shape[1:], ln_w, ln_b), w, b)

    def two(module: Any) -> Function:
        norm = solution("layer-norm").layer_norm_any_width
        linear = module.linear_bias_act_persistent
        return lambda x, ln_w, ln_b, w, b: linear(norm(x, ln_w, ln_b), w, b)

    return linear_row(f"layer norm and linear, two launches {m}x{k} into {n}", two, plain, m, k, n,
                      dtype, vectors=2, goal=0.9, rival="torch")


def further(row: Row, slug: str, name: str, taught: str) -> Row:
    """A row for the function of this name at the end of a solution, beside the one that is taught.
    """
    def who() -> Mapping[str, Function]:
        module = solution(slug)
        return {**row.who(), "solution": getattr(module, name),
                "solution, as taught": getattr(module, taught)}

    return replace(row, who=who, goal=0.95)


def odd_rows() -> list[Row]:
    softmax_rows = ((262_144, 100), (65_536, 257), (262_144, 64), (131_072, 200), (12_345, 5_000))
    norm_rows = ((12_345, 5_000, torch.float32), (12_345, 5_000, torch.bfloat16),
                 (65_536, 768, torch.bfloat16), (131_072, 200, torch.bfloat16),
                 (65_536, 500, torch.float32))
    return [
        *(further(softmax_row(*shape, dtype), "softmax", "softmax_any_width", "softmax")
          for shape in softmax_rows for dtype in BOTH),
        *odd_elements(),
        *(further(layer_norm_row(*shape), "layer-norm", "layer_norm_any_width", "layer_norm")
          for shape in norm_rows),
        layer_norm_backward_row(12_345, 5_000, torch.float32),
        odd_column_sums(12_345, 5_000),
        fused("layer norm and GELU 12345x5000", rows_and_vectors(12_345, 5_000, torch.bfloat16),
              lambda module: module.layer_norm_gelu, norm_gelu, torch.bfloat16,
              least_bytes=lambda x, *_: 2 * x.nbytes, goal=0.9),
        *(odd_product(*sizes) for sizes in PRODUCTS),
        activated("SiLU", F.silu, 4096, 5000, 6000, HALF, goal=0.9),
        activated("ReLU", torch.relu, 4096, 6000, 5000, HALF, goal=0.9),
        odd_norm_linear(8192, 1024, 4096, HALF),
        odd_norm_linear(8192, 4096, 4096, torch.bfloat16),
    ]

