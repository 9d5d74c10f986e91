"""Right but different: several short rows per program, as a block of two dimensions."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_rows, n_cols, stride_x, stride_out,
    eps, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    cols = tl.arange(0, BLOCK_COLS)
    in_width = cols < n_cols
    mask = (rows < n_rows)[:, None] & in_width[None, :]

    x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=0.0)
    x = x.to(tl.float32)
    mean = tl.sum(x, axis=1) / n_cols
    centred = tl.where(mask, x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=1) / n_cols + eps)

    weight = tl.load(weight_ptr + cols, mask=in_width, other=1.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=in_width, other=0.0).to(tl.float32)
    y = centred * rstd[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + rows[:, None] * stride_out + cols[None, :], y, mask=mask)
    tl.store(mean_ptr + rows, mean, mask=rows < n_rows)
    tl.store(rstd_ptr + rows, rstd, mask=rows < n_rows)


def layer_norm(x, weight, bias, eps=1e-5, *, return_stats=False):
    check(x, weight, bias, eps)
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    mean = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    if n_rows:
        width = triton.next_power_of_2(n_cols)
        height = max(1, min(8, 2048 // width))
        layer_norm_kernel[(triton.cdiv(n_rows, height),)](
            x, out, weight.contiguous(), bias.contiguous(), mean, rstd, n_rows, n_cols,
            x.stride(0), out.stride(0), eps, BLOCK_ROWS=height, BLOCK_COLS=width,
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
