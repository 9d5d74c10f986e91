"""A step of Adam whose block is tuned; its trials bring back what they changed."""


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
            shares = torch.empty((2, programs, n_cols), dtype=torch.float32, device=x.device)
            dw, db = torch.empty((2, n_cols), dtype=weight.dtype, device=x.device)
        if n_rows:
            num_warps = 4 if block_size <= 1024 else 8 if block_size <= 4096 else 16
            backward_kernel[(programs,)](
                dy, x, dx, weight, mean, rstd, shares[0], shares[-1],
                dy.stride(0), x.stride(0), dx.stride(0), n_rows, n_cols,
                BLOCK_SIZE=block_size, FOR_X=for_x, FOR_PARAMETERS=for_parameters, STAGES=2,
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


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=warps)
             for block, warps in ((512, 4), (2048, 8))],
    key=["n"], restore_value=["param_ptr", "exp_avg_ptr", "exp_avg_sq_ptr"],
)
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

    exp_avg = beta1 * exp_avg + rest1 * grad
    exp_avg_sq = beta2 * exp_avg_sq + rest2 * grad * grad
    param = keep * param - step_size * exp_avg / (tl.sqrt(exp_avg_sq) / root + eps)

    tl.store(exp_avg_ptr + offs, exp_avg, mask=mask)
    tl.store(exp_avg_sq_ptr + offs, exp_avg_sq, mask=mask)
    tl.store(param_ptr + offs, param.to(param_ptr.dtype.element_ty), mask=mask)


def adam_step_(
    param: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor, exp_avg_sq: torch.Tensor, *,
    step: int, lr: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> None:
    """One step of Adam with decoupled weight decay: changes ``param`` and both moments in place.

    Args:
        param: float32, float16 or bfloat16, any shape, contiguous.
        grad: of the same shape and dtype, any strides.
        exp_avg: the first moment, float32, of the same shape, contiguous; so is ``exp_avg_sq``.
        step: how many steps there are with this one, from 1.
        eps: added to the root of the second moment.
        weight_decay: before the step, param is multiplied by 1 - lr * weight_decay.

    Raises:
        TypeError: an argument is no tensor, or a dtype is not as said.
        ValueError: step < 1, a beta outside [0, 1), or a shape, a device or a layout not as said.
    """
    check_adam(param, grad, exp_avg, exp_avg_sq, step, beta1, beta2)
    n = param.numel()
    if n:
        # In Python's double precision: near 1, float32 has no digits to spare.
        adam_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](
            param, grad.contiguous(), exp_avg, exp_avg_sq, n,
            1 - lr * weight_decay, lr / (1 - beta1**step),
            beta1, 1 - beta1, beta2, 1 - beta2,
            (1 - beta2**step) ** 0.5, eps,
        )
