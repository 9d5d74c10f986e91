"""The public function and its configuration."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from addrmsnorm.errors import KernelExecutionError, translated
from addrmsnorm.kernel import add_rms_norm_kernel
from addrmsnorm.validation import MOST_COLUMNS, check_arguments, refuse


@dataclass(frozen=True, kw_only=True)
class Config:
    """Launch options of `add_rms_norm`; the defaults suit most shapes.

    Args:
        num_warps: warps per program, a power of two up to 32. None chooses by the row width.
        max_columns: the widest row that is accepted, at most 65,536.
        check_outputs: wait for the results and raise if one is NaN or infinite. For debugging:
            it reads both results once more and makes the call synchronous.

    Raises:
        InputTypeError: a field has a wrong Python type.
        InputValidationError: a field has a value outside its range.

    Example:
        >>> Config(num_warps=8).num_warps
        8
    """

    num_warps: int | None = None
    max_columns: int = MOST_COLUMNS
    check_outputs: bool = False

    def __post_init__(self) -> None:
        types: list[tuple[int, str]] = []
        values: list[tuple[int, str]] = []
        for position, (name, value, valid, wanted) in enumerate((
                ("num_warps", self.num_warps, (1, 2, 4, 8, 16, 32), "a power of two from 1 to 32"),
                ("max_columns", self.max_columns, range(1, MOST_COLUMNS + 1),
                 f"1 to {MOST_COLUMNS}"))):
            if value is None and name == "num_warps":
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                kind = type(value).__name__
                types.append((position, f"{name}: expected an int, got {kind}"))
            elif value not in valid:
                values.append((position, f"{name}: expected {wanted}, got {value}"))
        if not isinstance(self.check_outputs, bool):
            kind = type(self.check_outputs).__name__
            types.append((2, f"check_outputs: expected a bool, got {kind}"))
        refuse(types, values)


def add_rms_norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-6,
    *,
    config: Config | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add a residual and normalize each row by its root mean square.

    s = x + residual, rounded to the dtype, and y = s * rsqrt(mean(s ** 2) + eps) * weight over the
    last dimension, with float32 statistics of the rounded s.

    Args:
        x: (..., C) in float32, float16 or bfloat16, on any device, with any strides. It is copied
            first if the columns of a row are not contiguous.
        residual: of x's shape, dtype and device.
        weight: (C,) of x's dtype and device.
        eps: a positive number that is added to the mean square.
        config: launch options; None is `Config()`.

    Returns:
        (y, s): two new contiguous tensors with x's shape, dtype and device. The inputs are
        not modified. Without rows both are empty, and nothing is launched.

    Raises:
        InputTypeError: an argument is of a wrong Python type or dtype.
        InputValidationError: a shape, a device, eps or the number of columns (0, or more than
            `config.max_columns`) is not as above.
        KernelCompilationError: Triton's compiler rejected the kernel.
        KernelResourceError: the launch requires more resources than the device has.
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

    s = torch.empty(x.shape, dtype=x.dtype, device=x.device)  # contiguous, unlike empty_like
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return y, s  # no rows, so no launch

    x_rows, residual_rows = _rows(x, n_cols), _rows(residual, n_cols)
    block_size = triton.next_power_of_2(n_cols)
    with translated("add_rms_norm"), torch.cuda.device_of(x):  # Triton uses the current device
        add_rms_norm_kernel[(x_rows.shape[0],)](
            x_rows, residual_rows, weight.contiguous(), y, s,
            x_rows.stride(0), residual_rows.stride(0), n_cols, eps,
            BLOCK_SIZE=block_size, num_warps=config.num_warps or _warps(block_size),
        )
    if config.check_outputs:
        _check_finite(y=y, s=s)
    return y, s


def _rows(tensor: torch.Tensor, n_cols: int) -> torch.Tensor:
    """Returns the tensor as a matrix with contiguous columns, a view if possible."""
    rows = tensor.reshape(-1, n_cols)
    return rows if rows.stride(1) == 1 else rows.contiguous()


def _warps(block_size: int) -> int:
    """Returns the warps per program. Its threads share the elements of three rows."""
    return 4 if block_size <= 2048 else 8 if block_size <= 8192 else 16 if block_size <= 16_384 \
        else 32


def _check_finite(**results: torch.Tensor) -> None:
    for name, result in results.items():
        finite = result.isfinite()
        if not finite.all():
            wrong = result.numel() - int(finite.sum())
            raise KernelExecutionError(
                f"add_rms_norm: {name} has {wrong} of {result.numel()} elements that are NaN or "
                f"infinite")
