"""A tile of several rows for each program; rows are divided by the root."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    out_ptr, sum_ptr, scale_ptr, a_ptr, b_ptr,
    n_rows, n_cols, stride_a, stride_b, eps,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    cols = tl.arange(0, COLUMNS)[None, :]
    inside = (rows < n_rows) & (cols < n_cols)
    b = tl.load(b_ptr + rows * stride_b + cols, mask=inside, other=0.0).to(tl.float32)
    a = tl.load(a_ptr + rows * stride_a + cols, mask=inside, other=0.0).to(tl.float32)
    total = (b + a).to(sum_ptr.dtype.element_ty).to(tl.float32)
    scaled = total * (1.0 / n_cols)
    root = tl.sqrt(tl.sum(scaled * total, axis=1) + eps)[:, None]
    scale = tl.load(scale_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    out = (total / root) * scale
    where = rows * n_cols + cols
    tl.store(out_ptr + where, out.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(sum_ptr + where, total.to(sum_ptr.dtype.element_ty), mask=inside)
