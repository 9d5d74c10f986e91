"""Right but different: floats are added in float32 and cast back; a program may return early."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

SUPPORTED = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)


@triton.jit
def vector_add_kernel(
    x_ptr, y_ptr, out_ptr, n_elements, IS_FLOAT: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * BLOCK_SIZE
    if start >= n_elements:
        return
    offs = start + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    total = x + y
    if IS_FLOAT:
        total = x.to(tl.float32) + y.to(tl.float32)
    tl.store(out_ptr + offs, total.to(out_ptr.dtype.element_ty), mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if n == 0:
        return out
    vector_add_kernel[(triton.cdiv(n, 1024),)](
        x, y, out, n, IS_FLOAT=x.is_floating_point(), BLOCK_SIZE=1024
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
