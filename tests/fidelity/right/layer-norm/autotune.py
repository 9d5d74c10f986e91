"""Right but different: an autotuner picks the number of warps."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({}, num_warps=warps) for warps in (8, 16)],
    key=["n_cols"],
)
@triton.jit
def layer_norm_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask)
    bias = tl.load(bias_ptr + cols, mask=mask)
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, 0) / n_cols + eps)
    y = tl.fma(centred * rstd, weight.to(tl.float32), bias.to(tl.float32))
    tl.store(out_ptr + row * stride_out + cols, y, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


def layer_norm(x, weight, bias, eps=1e-5, *, return_stats=False):
    check(x, weight, bias, eps)
    x = x if x.stride(1) == 1 else x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    mean = torch.empty((n_rows,), device=x.device)
    rstd = torch.empty((n_rows,), device=x.device)
    if n_rows:
        layer_norm_kernel[lambda meta: (n_rows,)](
            x, out, weight.contiguous(), bias.contiguous(), mean, rstd, n_cols, x.stride(0),
            out.stride(0), eps, BLOCK_SIZE=triton.next_power_of_2(n_cols),
        )
    return (out, mean, rstd) if return_stats else out


SUPPORTED = (torch.float32, torch.float16, torch.bfloat16)


def check(x, weight, bias, eps):
    for name, value in {"x": x, "weight": weight, "bias": bias}.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(value).__name__}")
    if not isinstance(eps, float | int):
        raise TypeError(f"eps: expected a number, got {type(eps).__name__}")
    if x.dtype not in SUPPORTED:
        raise TypeError(f"x: expected one of {SUPPORTED}, got {x.dtype}")
    for name, value in {"weight": weight, "bias": bias}.items():
        if value.dtype != x.dtype:
            raise TypeError(f"{name}: expected {x.dtype} as x has, got {value.dtype}")
        if value.device != x.device:
            raise ValueError(f"{name}: expected device {x.device}, got {value.device}")
    if x.ndim != 2:
        raise ValueError(f"x: expected a matrix (2 dimensions), got {x.ndim}: {tuple(x.shape)}")
    if not 0 < x.size(1) <= 65536:
        raise ValueError(f"x: expected 1 to 65536 columns, got {x.size(1)}")
    for name, value in {"weight": weight, "bias": bias}.items():
        if list(value.shape) != [x.size(1)]:
            raise ValueError(f"{name}: expected shape ({x.size(1)},), got {tuple(value.shape)}")
    if eps <= 0 or eps != eps:
        raise ValueError(f"eps: expected a number above 0, got {eps}")
