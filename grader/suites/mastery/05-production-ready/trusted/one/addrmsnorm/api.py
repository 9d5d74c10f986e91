"""The function of the contract."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton

from addrmsnorm.errors import KernelExecutionError, safe_launch
from addrmsnorm.kernel import add_rms_norm_kernel
from addrmsnorm.validation import Problems, validate


@dataclass(frozen=True, kw_only=True)
class Config:
    num_warps: int | None = None
    max_columns: int = 65_536
    check_outputs: bool = False

    def __post_init__(self) -> None:
        problems = Problems(("num_warps", "max_columns", "check_outputs"))
        for name, allowed, words in (
                ("num_warps", [None, 1, 2, 4, 8, 16, 32], "a power of two up to 32, or None"),
                ("max_columns", range(1, 65_537), "1 to 65536")):
            value = getattr(self, name)
            if type(value) is not int and not (value is None and None in allowed):
                problems.type(name, f"expected an int, got {type(value).__name__}")
            elif value not in allowed:
                problems.value(name, f"expected {words}, got {value}")
        if type(self.check_outputs) is not bool:
            kind = type(self.check_outputs).__name__
            problems.type("check_outputs", f"expected a bool, got {kind}")
        problems.refuse()


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6,
                 *, config: Config | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    given, is_config = config, config is None or isinstance(config, Config)
    config = config if isinstance(config, Config) else Config()
    validate(x, residual, weight, eps, given, config.max_columns, is_config=is_config)
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
