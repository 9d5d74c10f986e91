"""Each program owns rows that follow each other; rows of shares hold dw and db side by side."""


# ---------------------------------------------------------------------------------------------
# Layer norm, backward


@triton.jit
def backward_kernel(
    dy_ptr, x_ptr, dx_ptr,     # [n_rows, n_cols], each row without gaps
    weight_ptr,                # [n_cols]
    mean_ptr, rstd_ptr,        # [n_rows], float32
    dw_share_ptr, db_share_ptr,  # [num_programs, n_cols], float32
    stride_dy, stride_x, stride_dx,  # elements from one row to the next
    n_rows, n_cols,
    BLOCK_SIZE: tl.constexpr,  # a power of two >= n_cols
    FOR_X: tl.constexpr, FOR_PARAMETERS: tl.constexpr,  # which gradients are asked for
):
    """dx, and this program's share of dw and db. One program owns every num_programs-th row.

    Moves 3 * n_rows * n_cols * itemsize bytes for dx, or 2 without it; for each program the weight
    once, and its two shares.
    """
    pid = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    weight = tl.full([BLOCK_SIZE], 0.0, tl.float32)
    if FOR_X:
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.full([BLOCK_SIZE], 0.0, tl.float32)
    db = tl.full([BLOCK_SIZE], 0.0, tl.float32)

    each = tl.cdiv(n_rows, tl.num_programs(axis=0))
    for number in range(each):
        m = pid * each + number
        row = m.to(tl.int64)  # row * stride passes 2**31
        real = mask & (m < n_rows)
        mean = tl.load(mean_ptr + row, mask=m < n_rows, other=0.0)
        rstd = tl.load(rstd_ptr + row, mask=m < n_rows, other=0.0)
        dy = tl.load(dy_ptr + row * stride_dy + cols, mask=real, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * stride_x + cols, mask=real, other=0.0).to(tl.float32)
        x_hat = (x - mean) * rstd

        if FOR_X:
            g = weight * dy
            mean_g = tl.sum(g, axis=0) / n_cols
            mean_gx = tl.sum(g * x_hat, axis=0) / n_cols
            dx = rstd * (g - mean_g - x_hat * mean_gx)
            tl.store(dx_ptr + row * stride_dx + cols, dx.to(dx_ptr.dtype.element_ty), mask=real)
        if FOR_PARAMETERS:
            dw += dy * x_hat
            db += dy

    if FOR_PARAMETERS:
        share = pid.to(tl.int64) * 2 * n_cols + cols
        tl.store(dw_share_ptr + share, dw, mask=mask)
        tl.store(db_share_ptr + share, db, mask=mask)


@triton.jit
def add_shares_kernel(
    dw_share_ptr, db_share_ptr,  # [n_shares, n_cols], float32
    dw_ptr, db_ptr,              # [n_cols]
    n_shares, n_cols,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    """dw and db are the sums of all shares. One program owns BLOCK_COLS columns of both.

    The order of the additions is that of the shares, so the bits are the same every time.
    """
    cols = tl.program_id(axis=0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    dw = tl.full([BLOCK_ROWS, BLOCK_COLS], 0.0, tl.float32)
    db = tl.full([BLOCK_ROWS, BLOCK_COLS], 0.0, tl.float32)
    for start in range(0, n_shares, BLOCK_ROWS):
        shares = start + tl.arange(0, BLOCK_ROWS)
        mask = (shares < n_shares)[:, None] & (cols < n_cols)[None, :]
        offs = shares[:, None].to(tl.int64) * 2 * n_cols + cols[None, :]
        dw += tl.load(dw_share_ptr + offs, mask=mask, other=0.0)
        db += tl.load(db_share_ptr + offs, mask=mask, other=0.0)
    mask = cols < n_cols
    tl.store(dw_ptr + cols, tl.sum(dw, axis=0).to(dw_ptr.dtype.element_ty), mask=mask)
    tl.store(db_ptr + cols, tl.sum(db, axis=0).to(db_ptr.dtype.element_ty), mask=mask)


# ---------------------------------------------------------------------------------------------
# For PyTorch


class LayerNormFunction(torch.autograd.Function):
    """Layer norm of (..., C) as one node of the graph; ``layer_norm`` checks the arguments."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """y, new and contiguous, of the shape and dtype of x."""
        rows, weight, bias = as_rows(x), weight.contiguous(), bias.contiguous()
        n_rows, n_cols = rows.shape
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        mean, rstd = torch.empty((2, n_rows), dtype=torch.float32, device=x.device)
        if n_rows:
            block_size = triton.next_power_of_2(n_cols)
            num_warps = 4 if block_size <= 2048 else 8 if block_size <= 8192 else 16
            forward_kernel[(n_rows,)](
                rows, y, weight, bias, mean, rstd, rows.stride(0), n_cols, n_cols, eps,
                BLOCK_SIZE=block_size, num_warps=num_warps,
            )
        ctx.save_for_backward(rows, weight, mean, rstd)
        ctx.shape = x.shape
        return y

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, dy: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None, None]:
        """The gradients that are asked for, None for the others and for eps."""
        x, weight, mean, rstd = ctx.saved_tensors
        for_x, for_weight, for_bias, _ = ctx.needs_input_grad
        for_parameters = for_weight or for_bias
        n_rows, n_cols = x.shape
        dy = as_rows(dy)

        # What is not asked for takes no memory: its pointer is one that nothing is stored to.
        dx = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device) if for_x else dy
        dw = db = shares = mean[None, None]
        block_size = triton.next_power_of_2(n_cols)
        programs = min(resident(x, block_size), n_rows)
        if for_parameters:
            programs = min(programs, triton.cdiv(n_rows, ROWS_OF_A_SHARE))
            shares = torch.empty((programs, 2, n_cols), dtype=torch.float32, device=x.device)
            dw, db = torch.empty((2, n_cols), dtype=weight.dtype, device=x.device)
        if n_rows:
            num_warps = 4 if block_size <= 1024 else 8 if block_size <= 4096 else 16
            backward_kernel[(programs,)](
                dy, x, dx, weight, mean, rstd, shares[:, 0], shares[:, -1],
                dy.stride(0), x.stride(0), dx.stride(0), n_rows, n_cols,
                BLOCK_SIZE=block_size, FOR_X=for_x, FOR_PARAMETERS=for_parameters,
                num_warps=num_warps,
            )
        if for_parameters:
            block_cols = 32  # few, so that many programs share the reading
            add_shares_kernel[(triton.cdiv(n_cols, block_cols),)](
                shares[:, 0], shares[:, 1], dw, db, programs, n_cols,
                BLOCK_ROWS=32, BLOCK_COLS=block_cols,
            )
        return (dx.view(ctx.shape) if for_x else None, dw if for_weight else None,
                db if for_bias else None, None)
