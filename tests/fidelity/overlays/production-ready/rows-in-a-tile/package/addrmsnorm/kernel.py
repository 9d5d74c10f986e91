"""A program owns a tile of rows, as wide as a row; rows are divided by their root."""


@triton.jit
def add_rms_norm_kernel(x_ptr, residual_ptr, weight_ptr, y_ptr, s_ptr, stride_x, stride_residual,
                        n_rows, n_cols, eps, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Several rows at once.

    Computes:
        s = x + residual and y = s / sqrt(mean(s * s) + eps) * weight, row by row

    Args:
        x_ptr, residual_ptr, weight_ptr: what is read.
        y_ptr, s_ptr: what is written, without gaps.
        stride_x, stride_residual: from a row to the next.
        n_rows, n_cols: the size.
        eps: stands under the root.
        ROWS, COLUMNS: the tile.

    Notes:
        The weight is read once for each tile.
    """
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, COLUMNS)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * stride_x + cols, mask, other=0)
    r = tl.load(residual_ptr + rows * stride_residual + cols, mask, other=0)
    s = (x.to(tl.float32) + r.to(tl.float32)).to(s_ptr.dtype.element_ty)
    tl.store(s_ptr + rows * n_cols + cols, s, mask)
    f = s.to(tl.float32)
    root = tl.sqrt(tl.sum(f * f / n_cols, 1) + eps)
    w = tl.load(weight_ptr + cols, cols < n_cols, other=0).to(tl.float32)
    y = f / root[:, None] * w
    tl.store(y_ptr + rows * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask)
