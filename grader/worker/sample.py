"""A small submission that warms the worker up: it touches what most submissions touch."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def sample_kernel(x_ptr: Any, y_ptr: Any, n: Any, BLOCK_SIZE: tl.constexpr) -> None:  # noqa: N803
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


def sample(x: torch.Tensor) -> torch.Tensor:
    if x.isnan().any() or x.amax().item() > 1e30:
        raise ValueError("no numbers")
    x = x.view(2, 4).t().contiguous().half().float()
    y = torch.zeros_like(x)
    y[:] = 0
    sample_kernel[lambda meta: (triton.cdiv(8, meta["BLOCK_SIZE"]),)](x, y, 8, BLOCK_SIZE=8)
    return y
