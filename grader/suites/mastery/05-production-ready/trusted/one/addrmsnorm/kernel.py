"""One row for each program."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, weight_ptr, y_ptr, s_ptr,
    stride_x, stride_residual, stride_out,
    n_cols, eps,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(residual_ptr + row * stride_residual + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    s = (x + r).to(s_ptr.dtype.element_ty)
    tl.store(s_ptr + row * stride_out + cols, s, mask=mask)
    v = s.to(tl.float32)
    mean = tl.sum(v * v, axis=0) / n_cols
    y = v * tl.rsqrt(mean + eps) * w
    tl.store(y_ptr + row * stride_out + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
