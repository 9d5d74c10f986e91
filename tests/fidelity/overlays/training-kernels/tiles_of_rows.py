"""Programs own tiles of two rows; the sums of a tile go to its share by a reduction."""


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
    STAGES: tl.constexpr,      # rows on their way from memory, this one included
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

    step = 2 * tl.num_programs(axis=0)
    for m in tl.range(2 * pid, n_rows, step, num_stages=STAGES):
        rows = m + tl.arange(0, 2)
        real = rows < n_rows
        tile = real[:, None] & mask[None, :]
        row = rows.to(tl.int64)[:, None]  # row * stride passes 2**31
        dy = tl.load(dy_ptr + row * stride_dy + cols[None, :], mask=tile, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * stride_x + cols[None, :], mask=tile, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + rows, mask=real, other=0.0)[:, None]
        x_hat = (x - tl.load(mean_ptr + rows, mask=real, other=0.0)[:, None]) * rstd

        if FOR_X:
            g = weight[None, :] * dy
            mean_g = (tl.sum(g, axis=1) / n_cols)[:, None]
            mean_gx = (tl.sum(g * x_hat, axis=1) / n_cols)[:, None]
            dx = rstd * (g - mean_g - x_hat * mean_gx)
            tl.store(dx_ptr + row * stride_dx + cols[None, :], dx.to(dx_ptr.dtype.element_ty),
                     mask=tile)
        if FOR_PARAMETERS:
            dw += tl.sum(dy * x_hat, axis=0)
            db += tl.sum(dy, axis=0)

    if FOR_PARAMETERS:
        share = pid.to(tl.int64) * n_cols + cols
        tl.store(dw_share_ptr + share, dw, mask=mask)
        tl.store(db_share_ptr + share, db, mask=mask)


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
        programs = min(resident(x, block_size), triton.cdiv(n_rows, 2))
        if for_parameters:
            programs = min(programs, triton.cdiv(n_rows, ROWS_OF_A_SHARE))
            shares = torch.empty((2, programs, n_cols), dtype=torch.float32, device=x.device)
            dw, db = torch.empty((2, n_cols), dtype=weight.dtype, device=x.device)
        if n_rows:
            num_warps = 4 if block_size <= 1024 else 8 if block_size <= 4096 else 16
            backward_kernel[(programs,)](
                dy, x, dx, weight, mean, rstd, shares[0], shares[-1],
                dy.stride(0), x.stride(0), dx.stride(0), n_rows, n_cols,
                BLOCK_SIZE=block_size, FOR_X=for_x, FOR_PARAMETERS=for_parameters,
                STAGES=1 if block_size > 4096 else 2,
                num_warps=num_warps,
            )
        if for_parameters:
            block_cols = 32  # few, so that many programs share the reading
            add_shares_kernel[(triton.cdiv(n_cols, block_cols),)](
                shares[0], shares[1], dw, db, programs, n_cols,
                BLOCK_ROWS=32, BLOCK_COLS=block_cols,
            )
        return (dx.view(ctx.shape) if for_x else None, dw if for_weight else None,
                db if for_bias else None, None)


# ---------------------------------------------------------------------------------------------
# Adam


@triton.jit
def adam_kernel(
    param_ptr, grad_ptr,          # [n], of one dtype
    exp_avg_ptr, exp_avg_sq_ptr,  # [n], float32
    n,
    keep, step_size,              # 1 - lr * weight_decay, lr / (1 - beta1^step)
    beta1, rest1, beta2, rest2,   # rest = 1 - beta: in float32 it would lose what 0.999 rounds away
    root, eps,                    # sqrt(1 - beta2^step)
    BLOCK: tl.constexpr,
):
    """One step of Adam on BLOCK elements. Moves 28 bytes for each float32 parameter."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    param = tl.load(param_ptr + offs, mask=mask).to(tl.float32)
    grad = tl.load(grad_ptr + offs, mask=mask).to(tl.float32)
    exp_avg = tl.load(exp_avg_ptr + offs, mask=mask)
    exp_avg_sq = tl.load(exp_avg_sq_ptr + offs, mask=mask)

    exp_avg = exp_avg + rest1 * (grad - exp_avg)
    exp_avg_sq = beta2 * exp_avg_sq + rest2 * grad * grad
    param = keep * param - step_size * exp_avg / (tl.sqrt(exp_avg_sq) / root + eps)

    tl.store(exp_avg_ptr + offs, exp_avg, mask=mask)
    tl.store(exp_avg_sq_ptr + offs, exp_avg_sq, mask=mask)
    tl.store(param_ptr + offs, param.to(param_ptr.dtype.element_ty), mask=mask)
