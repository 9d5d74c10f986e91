"""The kernel: one program adds and normalizes one row, and reads it once."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr,          # [n_rows, n_cols], contiguous within a row
    weight_ptr,                   # [n_cols]
    y_ptr, s_ptr,                 # [n_rows, n_cols], contiguous
    stride_x, stride_residual,    # elements between rows
    n_cols,
    eps,
    BLOCK_SIZE: tl.constexpr,     # elements per program, a power of two >= n_cols
):
    """Residual addition and RMS normalization of one row.

    Computes:
        s[m, :] = x[m, :] + residual[m, :], rounded to the tensors' dtype
        y[m, :] = s[m, :] * rsqrt(mean(s[m, :] ** 2) + eps) * weight

    Args:
        x_ptr: the layer's output, n_rows x n_cols.
        residual_ptr: the residual, of the same size and dtype.
        weight_ptr: one factor per column.
        y_ptr: the normalized rows.
        s_ptr: the sums, which are the residual of the next layer.
        stride_x: elements between rows of x.
        stride_residual: elements between rows of the residual.
        n_cols: columns of a row.
        eps: added to the mean square, so that a row of zeros stays zero.
        BLOCK_SIZE: power of two >= n_cols.

    Notes:
        The statistics are float32 and use the rounded sum, so y agrees with the s that is stored.
        Moves (4 * n_rows * n_cols + n_rows * n_cols) * itemsize bytes, including one load of the
        weight per program; on a GPU the weight comes from L2 after the first.
    """
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31 in large tensors
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols  # the rest of the block is padding

    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + row * stride_residual + cols, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)

    s = (x + residual.to(tl.float32)).to(s_ptr.dtype.element_ty)
    rounded = s.to(tl.float32)  # padding elements are 0 and add nothing to the sum of squares
    mean_square = tl.sum(rounded * rounded, axis=0) / n_cols
    y = rounded * tl.rsqrt(mean_square + eps) * weight

    tl.store(s_ptr + row * n_cols + cols, s, mask=mask)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
