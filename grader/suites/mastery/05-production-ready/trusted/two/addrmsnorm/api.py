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

Problem = tuple[type[Exception], str]
FLOATS = {torch.float16: "half", torch.bfloat16: "bfloat16", torch.float32: "float"}


@dataclass(frozen=True, kw_only=True)
class Config:
    num_warps: int | None = None
    max_columns: int = 1 << 16
    check_outputs: bool = False

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        warps, most, check = self.num_warps, self.max_columns, self.check_outputs
        for name, value, kind, valid, wanted in (
                ("num_warps", 1 if warps is None else warps, int,
                 lambda v: v in [2**k for k in range(6)], "1, 2, 4, 8, 16 or 32"),
                ("max_columns", most, int, lambda v: 1 <= v <= 1 << 16, "1 to 65536"),
                ("check_outputs", check, bool, lambda v: True, "")):
            if type(value) is not kind:
                problems.append((TypeError, f"{name} is to be {kind.__name__}, and is {value!r}"))
            elif not valid(value):
                problems.append((ValueError, f"{name} is to be {wanted}, and is {value!r}"))
        _refuse(problems)


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6,
                 *, config: Config | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    options = config if isinstance(config, Config) else Config()
    problems = _wrong(x, residual, weight, eps, options.max_columns)
    if config is not None and config is not options:
        problems.append((TypeError, f"config: a Config or nothing, not {config!r}"))
    _refuse(problems)
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


def _refuse(problems: list[Problem]) -> None:
    if problems:
        every = all(kind is TypeError for kind, _ in problems)
        raise (InputTypeError if every else InputValidationError)([text for _, text in problems])


def _wrong(x: object, residual: object, weight: object, eps: object, most: int) -> list[Problem]:
    problems: list[Problem] = []

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
    if isinstance(eps, bool) or not isinstance(eps, int | float):
        refuse(TypeError, "eps", "number", type(eps))
    elif not (eps > 0 and eps != math.inf):
        refuse(ValueError, "eps", "positive number", eps)
    return problems
