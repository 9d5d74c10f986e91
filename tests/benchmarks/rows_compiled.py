"""The rows of `torch-compile`, for `tests.benchmarks.kernels`."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it

from tests.benchmarks import peers
from tests.benchmarks.modules import solution
from tests.benchmarks.rows import Inputs, Row, normal, side

EPS = 1e-6


def compiled_rows() -> list[Row]:
    """RMSNorm, GELU and a linear layer; whether regions compile faster is in `regions`."""
    def unfused(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor,
                b: torch.Tensor) -> torch.Tensor:
        return F.linear(F.gelu(F.rms_norm(x, x.shape[1:], norm_w, EPS)), w, b)

    def row(rows: int, width: int) -> Row:
        def make(scale: int, device: str) -> Inputs:
            k, half = side(width, scale), torch.float16
            return (normal(side(rows, scale), k, dtype=half, device=device),
                    normal(k, dtype=half, device=device), normal(k, k, dtype=half, device=device),
                    normal(k, dtype=half, device=device))

        return Row(
            f"rmsnorm gelu linear {rows} x {width}", make,
            lambda *inputs: unfused(*(x.double() for x in inputs)),
            lambda: {"solution": lambda *inputs: solution("torch-compile").rmsnorm_gelu_linear(
                *inputs, EPS), **peers.function(unfused, autotuned=True)},
            flops=lambda x, norm_w, w, b: 2 * x.numel() * w.shape[0], goal=1.05,
            rival="torch.compile", tolerance=1e-2)

    return [row(rows, width) for rows in (2_048, 16_384) for width in (1_024, 4_096)]
