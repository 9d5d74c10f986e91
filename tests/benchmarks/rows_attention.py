"""The rows of `attention-kernels`, for `tests.benchmarks.kernels`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.benchmarks import peers
from tests.benchmarks.modules import solution
from tests.benchmarks.rows import FULL, QUICK, ROUNDING, Function, Inputs, Row, normal

# ---------------------------------------------------------------------------------------------
# attention-kernels

BATCHES, HEADS, LENGTH = 4, 16, 4096


def attention_row(width: int, causal: bool) -> Row:
    """Forward, in float16, beside what PyTorch has; flash attention is who is raced."""
    def make(scale: int, device: str) -> Inputs:
        batches, heads, length = {FULL: (BATCHES, HEADS, LENGTH), QUICK: (1, 4, 1024)}.get(
            scale, (1, 1, 128))
        return tuple(normal(batches, heads, length, width, dtype=torch.float16, device=device)
                     for _ in range(3))

    def exactly(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(q, dtype=torch.float64)  # scores of one batch take 2 GB
        for place in range(q.shape[0]):
            out[place] = F.scaled_dot_product_attention(
                q[place].double(), k[place].double(), v[place].double(), is_causal=causal)
        return out

    def by(backend: SDPBackend) -> Function:
        def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            with sdpa_kernel(backend if q.is_cuda else SDPBackend.MATH):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return run

    def who() -> Mapping[str, Function]:
        module = solution("attention-kernels")
        return {"solution": lambda q, k, v: module.attention(q, k, v, causal=causal),
                "flash": by(SDPBackend.FLASH_ATTENTION), "cudnn": by(SDPBackend.CUDNN_ATTENTION),
                "tutorial06": lambda q, k, v: peers.tutorial_attention(q, k, v, causal=causal)}

    operations = 2 if causal else 4
    return Row(
        f"attention fp16 {LENGTH}x{width}{' causal' if causal else ''}", make, exactly, who,
        flops=lambda q, k, v: operations * q.numel() * k.shape[2], goal=1.0, rival="flash",
        tolerance=(2 if causal else 1) * ROUNDING[torch.float16])  # short sums of weights round


def attention_rows() -> list[Row]:
    """The most important first, as in `tests.benchmarks.rows`."""
    return [attention_row(width, causal) for width in (64, 128) for causal in (False, True)]
