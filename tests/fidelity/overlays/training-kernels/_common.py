"""What the right solutions here share, over the solution."""

del MAX_TOGETHER

BLOCK = 1024  # elements of a program of Adam


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
        adam_kernel[(triton.cdiv(n, BLOCK),)](
            param, grad.contiguous(), exp_avg, exp_avg_sq, n,
            1 - lr * weight_decay, lr / (1 - beta1**step),
            beta1, 1 - beta1, beta2, 1 - beta2,
            (1 - beta2**step) ** 0.5, eps,
            BLOCK=BLOCK,
        )
