"""The newer form of a Function, statistics as further results, a module derived from torch's."""


# ---------------------------------------------------------------------------------------------
# For PyTorch


class LayerNormFunction(torch.autograd.Function):
    """Layer norm of (..., C) as one node of the graph; ``layer_norm`` checks the arguments."""

    @staticmethod
    def forward(
        x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """y, new and contiguous, of the shape and dtype of x."""
        rows, weight, bias = as_rows(x), weight.contiguous(), bias.contiguous()
        n_rows, n_cols = rows.shape
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        mean = torch.empty(n_rows, dtype=torch.float32, device=x.device)
        rstd = torch.empty_like(mean)
        if n_rows:
            block_size = triton.next_power_of_2(n_cols)
            num_warps = 4 if block_size <= 2048 else 8 if block_size <= 8192 else 16
            forward_kernel[(n_rows,)](
                rows, y, weight, bias, mean, rstd, rows.stride(0), n_cols, n_cols, eps,
                BLOCK_SIZE=block_size, num_warps=num_warps,
            )
        return y, mean, rstd

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, weight, _, _ = inputs
        _, mean, rstd = output
        ctx.mark_non_differentiable(mean, rstd)
        ctx.save_for_backward(x, weight, mean, rstd)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, dy: torch.Tensor, _mean: Any, _rstd: Any
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None, None]:
        """The gradients that are asked for, None for the others and for eps."""
        x, weight, mean, rstd = ctx.saved_tensors
        for_x, for_weight, for_bias, _ = ctx.needs_input_grad
        for_parameters = for_weight or for_bias
        shape, x, weight, dy = x.shape, as_rows(x), weight.contiguous(), as_rows(dy)
        n_rows, n_cols = x.shape

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
        return (dx.view(shape) if for_x else None, dw if for_weight else None,
                db if for_bias else None, None)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Normalise x (..., C) over its last dimension, then scale and shift by column. Differentiable.

    Args:
        x: float32, float16 or bfloat16, with 1 <= C <= 16,384; any strides.
        weight: (C,), of one of these dtypes; ``bias`` is of the same.
        eps: added to the variance, above 0.

    Returns:
        A new contiguous tensor of the shape, dtype and device of x.

    Raises:
        TypeError: an argument has a wrong type, or a dtype that is not supported or not alike.
        ValueError: a shape, a device, or eps is not as said.
    """
    check_layer_norm(x, weight, bias, eps)
    return LayerNormFunction.apply(x, weight, bias, float(eps))[0]


class TritonLayerNorm(torch.nn.LayerNorm):
    """``torch.nn.LayerNorm`` over one dimension: the same parameters by the same names."""

    def __init__(
        self, normalized_shape: int, eps: float = 1e-5, *,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:
        """A weight of ones and a bias of zeros, for the last dimension of what is normalised.

        Raises:
            TypeError: ``normalized_shape`` is no int.
            ValueError: ``normalized_shape`` is below 1 or above 16,384.
        """
        if isinstance(normalized_shape, bool) or not isinstance(normalized_shape, int):
            name = type(normalized_shape).__name__
            raise TypeError(f"normalized_shape: expected an int, got {name}")
        if not 1 <= normalized_shape <= MAX_COLUMNS:
            raise ValueError(
                f"normalized_shape: expected 1 to {MAX_COLUMNS}, got {normalized_shape}")
        super().__init__(normalized_shape, eps, device=device, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``layer_norm`` of x (..., C) with the parameters of this module."""
        return layer_norm(x, self.weight, self.bias, self.eps)
