"""The function of the contract, written by another hand."""

from __future__ import annotations

import math
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

FLOATS = {torch.float16: "half", torch.bfloat16: "bfloat16", torch.float32: "float"}


@dataclass(frozen=True, kw_only=True)
class Config:
    num_warps: int | None = None
    max_columns: int = 1 << 16
    check_outputs: bool = False

    def __post_init__(self) -> None:
        types = [f"{name} is to be {kind.__name__}, and is {value!r}" for name, value, kind in (
            ("num_warps", 1 if self.num_warps is None else self.num_warps, int),
            ("max_columns", self.max_columns, int),
            ("check_outputs", self.check_outputs, bool)) if type(value) is not kind]
        if types:
            raise InputTypeError(types)
        values = []
        if self.num_warps is not None and self.num_warps not in [2**k for k in range(6)]:
            values.append(f"num_warps is to be 1, 2, 4, 8, 16 or 32, and is {self.num_warps}")
        if self.max_columns < 1 or self.max_columns > 1 << 16:
            values.append(f"max_columns is to be 1 to 65536, and is {self.max_columns}")
        if values:
            raise InputValidationError(values)


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6,
                 *, config: Config | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    if config is not None and not isinstance(config, Config):
        raise InputTypeError([f"config: a Config or nothing, not {config!r}"])
    options = config or Config()
    _check(x, residual, weight, eps, options.max_columns)
    out, total = x.new_empty(x.shape), x.new_empty(x.shape)
    rows, cols = math.prod(x.shape[:-1]), x.shape[-1]
    if rows:
        a, b = x.reshape(rows, cols), residual.reshape(rows, cols)
        a, b = (t if t.stride(-1) == 1 else t.contiguous() for t in (a, b))
        width = triton.next_power_of_2(cols)
        tile = max(1, min(4, 1024 // width))
        safe_launch(lambda: add_rms_norm_kernel[(triton.cdiv(rows, tile),)](
            out, total, weight.contiguous(), a, b, rows, cols, a.stride(0), b.stride(0), eps,
            ROWS=tile, COLUMNS=width, num_warps=options.num_warps or 8))
    if options.check_outputs:
        for name, result in (("y", out), ("s", total)):
            if not result.isfinite().all():
                raise KernelExecutionError(f"{name} has NaN or infinities")
    return out, total


def _check(x: object, residual: object, weight: object, eps: object, most: int) -> None:
    problems: list[tuple[type[Exception], str]] = []

    def refuse(kind: type[Exception], name: str, wanted: str, came: object) -> None:
        problems.append((kind, f"{name}: expected {wanted}, got {came}"))

    like = x if isinstance(x, torch.Tensor) else None
    for name, tensor in (("x", x), ("residual", residual), ("weight", weight)):
        if not isinstance(tensor, torch.Tensor):
            refuse(TypeError, name, "tensor", type(tensor))
            continue
        if name == "x" and tensor.dtype not in FLOATS:
            refuse(TypeError, name, " or ".join(FLOATS.values()), tensor.dtype)
        if like is None:
            continue
        if tensor.dtype != like.dtype:
            refuse(TypeError, name, str(like.dtype), tensor.dtype)
        if tensor.device != like.device:
            refuse(ValueError, name, str(like.device), tensor.device)
        if name == "x" and (not like.dim() or like.shape[-1] not in range(1, most + 1)):
            refuse(ValueError, name, f"rows of 1 to {most} columns", tuple(like.shape))
        wanted = like.shape[-1:] if name == "weight" else like.shape
        if like.dim() and tensor.shape != wanted:
            refuse(ValueError, name, str(tuple(wanted)), tuple(tensor.shape))
    if type(eps) not in (int, float):
        refuse(TypeError, "eps", "number", type(eps))
    elif not (eps > 0 and eps != math.inf):
        refuse(ValueError, "eps", "positive number", eps)
    if problems:
        every = all(kind is TypeError for kind, _ in problems)
        raise (InputTypeError if every else InputValidationError)([text for _, text in problems])
