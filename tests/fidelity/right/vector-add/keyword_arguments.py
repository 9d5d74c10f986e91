"""Right but different: keyword arguments in another order, another kernel name, a default width."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

SUPPORTED = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)


@triton.jit
def tile_sum(n, result, right, left, BLOCK: tl.constexpr = 512):
    """result[i] = left[i] + right[i] for a flat run of n elements."""
    index = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    total = tl.load(left + index, inside) + tl.load(right + index, inside)
    tl.store(result + index, total, inside)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    out = torch.empty(x.size(), device=x.device, dtype=x.dtype)
    if out.numel():
        tile_sum[(-(-out.numel() // 512),)](
            left=x.contiguous(), right=y.contiguous(), result=out, n=out.numel(), num_warps=4
        )
    return out


def check(x: torch.Tensor, y: torch.Tensor) -> None:
    for name, value in (("x", x), ("y", y)):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(value).__name__}")
        if value.dtype not in SUPPORTED:
            raise TypeError(f"{name}: expected one of {SUPPORTED}, got {value.dtype}")
    if x.dtype != y.dtype:
        raise TypeError(f"y: expected dtype {x.dtype}, got {y.dtype}")
    if x.shape != y.shape:
        raise ValueError(f"y: expected shape {tuple(x.shape)}, got {tuple(y.shape)}")
    if x.device != y.device:
        raise ValueError(f"y: expected device {x.device}, got {y.device}")
