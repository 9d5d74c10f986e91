"""As many programs as a GPU runs at once; each takes every so-manieth row, and the weight once."""


@triton.jit
def mean_square(row, n_cols):
    return tl.sum(row * row, axis=0) / n_cols


@triton.jit
def add_rms_norm_kernel(x_ptr, residual_ptr, weight_ptr, y_ptr, s_ptr, stride_x, stride_residual,
                        n_rows, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    """Rows of a program, one after the other.

    Computes:
        the sum of x and residual, and its root mean square norm times the weight

    Args:
        x_ptr: first addend.
        residual_ptr: second addend.
        weight_ptr: factors of the columns.
        y_ptr: the norm.
        s_ptr: the sum.
        stride_x: of the rows of x.
        stride_residual: of the rows of the residual.
        n_rows: how many rows.
        n_cols: how many columns.
        eps: added to the mean square.
        BLOCK_SIZE: as wide as a row, or wider.

    Notes:
        The weight stays in registers between rows.
    """
    cols = tl.arange(0, BLOCK_SIZE)
    inside = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    for number in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        row = number.to(tl.int64)
        a = tl.load(x_ptr + row * stride_x + cols, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(residual_ptr + row * stride_residual + cols, mask=inside, other=0.0)
        total = (a + b.to(tl.float32)).to(x_ptr.dtype.element_ty)
        wide = total.to(tl.float32)
        norm = wide * tl.rsqrt(mean_square(wide, n_cols) + eps)
        tl.store(y_ptr + row * n_cols + cols, (norm * weight).to(x_ptr.dtype.element_ty),
                 mask=inside)
        tl.store(s_ptr + row * n_cols + cols, total, mask=inside)
