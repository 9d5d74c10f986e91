"""The function of the contract."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from addrmsnorm.errors import (
    InputTypeError,
    InputValidationError,
    KernelExecutionError,
    safe_launch,
)
from addrmsnorm.kernel import add_rms_norm_kernel
from addrmsnorm.validation import validate


@dataclass(frozen=True, kw_only=True)
class Config:
    num_warps: int | None = None
    max_columns: int = 65_536
    check_outputs: bool = False

    def __post_init__(self) -> None:
        for name in ("num_warps", "max_columns"):
            value = getattr(self, name)
            if value is None and name == "num_warps":
                continue
            if type(value) is not int:
                raise InputTypeError([f"{name}: expected an int, got {type(value).__name__}"])
        if self.num_warps not in (None, 1, 2, 4, 8, 16, 32):
            raise InputValidationError([f"num_warps: expected 1 to 32, got {self.num_warps}"])
        if not 1 <= self.max_columns <= 65_536:
            raise InputValidationError([f"max_columns: at most 65536, got {self.max_columns}"])
        if type(self.check_outputs) is not bool:
            kind = type(self.check_outputs).__name__
            raise InputTypeError([f"check_outputs: expected a bool, got {kind}"])


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6,
                 *, config: Config | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    config = Config() if config is None else config
    if not isinstance(config, Config):
        raise InputTypeError([f"config: expected a Config, got {type(config).__name__}"])
    validate(x, residual, weight, eps, config.max_columns)
    n_cols = x.shape[-1]
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    s = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return y, s
    x2, r2 = (t.reshape(-1, n_cols) for t in (x, residual))
    if x2.stride(1) != 1:
        x2 = x2.contiguous()
    if r2.stride(1) != 1:
        r2 = r2.contiguous()
    n_rows = x2.shape[0]
    warps = config.num_warps or 4
    safe_launch(lambda: add_rms_norm_kernel[(n_rows,)](
        x2, r2, weight.contiguous(), y, s, x2.stride(0), r2.stride(0), n_cols, n_cols, eps,
        BLOCK_SIZE=triton.next_power_of_2(n_cols), num_warps=warps,
    ))
    if config.check_outputs and not (y.isfinite().all() and s.isfinite().all()):
        raise KernelExecutionError("a result is not finite")
    return y, s
