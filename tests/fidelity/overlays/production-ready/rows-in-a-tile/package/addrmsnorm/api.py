"""The function that users call, and what they can set."""


def add_rms_norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-6,
    *,
    config: Config | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add a residual and normalise each row by its root mean square.

    s = x + residual, rounded to the dtype, and y = s * rsqrt(mean(s ** 2) + eps) * weight over the
    last dimension, with float32 statistics of the rounded s.

    Args:
        x: (..., C) in float32, float16 or bfloat16, on any device, with any strides. Where the
            columns of a row are not neighbours in memory, a copy is made first.
        residual: of x's shape, dtype and device.
        weight: (C,) of x's dtype and device.
        eps: a positive number that is added to the mean square.
        config: launch options; None is `Config()`.

    Returns:
        (y, s): two new contiguous tensors with x's shape, dtype and device. The inputs stay as they
        are. Without rows both are empty, and nothing is launched.

    Raises:
        InputTypeError: an argument is of a wrong Python type or dtype.
        InputValidationError: a shape, a device, eps or the number of columns (0, or more than
            `config.max_columns`) is not as above.
        KernelCompilationError: Triton's compiler refused the kernel.
        KernelResourceError: the device has too little of something.
        KernelExecutionError: the device failed, or `check_outputs` found NaN or infinity.

    Example:
        >>> x = torch.tensor([[3.0, 0.0], [0.0, 6.0]])
        >>> residual = torch.tensor([[0.0, 4.0], [8.0, 0.0]])
        >>> y, s = add_rms_norm(x, residual, torch.ones(2))
        >>> s.tolist()
        [[3.0, 4.0], [8.0, 6.0]]
        >>> [round(value, 4) for value in y[0].tolist()]
        [0.8485, 1.1314]
    """
    if config is None:
        config = Config()
    wrong_config = ""
    if not isinstance(config, Config):
        wrong_config = f"config: expected a Config, got {type(config).__name__}"
        config = Config()  # its limits hold for the other arguments
    check_arguments(x, residual, weight, eps, config.max_columns, wrong_config=wrong_config)
    n_cols = x.shape[-1]

    s = torch.empty(x.shape, dtype=x.dtype, device=x.device)  # without gaps, unlike empty_like
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return y, s  # no rows: no program, no launch

    x_rows, residual_rows = _rows(x, n_cols), _rows(residual, n_cols)
    block_size = triton.next_power_of_2(n_cols)
    with translated("add_rms_norm"), torch.cuda.device_of(x):  # Triton launches where torch is
        n_rows, tile = x_rows.shape[0], max(1, 2048 // block_size)
        add_rms_norm_kernel[lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),)](
            x_rows, residual_rows, weight.contiguous(), y, s, x_rows.stride(0),
            residual_rows.stride(0), n_rows, n_cols, eps, ROWS=tile, COLUMNS=block_size,
            num_warps=config.num_warps or _warps(block_size))
    if config.check_outputs:
        _check_finite(y=y, s=s)
    return y, s
