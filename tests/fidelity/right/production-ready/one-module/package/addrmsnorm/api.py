"""Function, settings and checks in one place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import torch
import triton
from addrmsnorm.errors import (
    InputTypeError,
    InputValidationError,
    KernelExecutionError,
    translation,
)
from addrmsnorm.kernel import add_rms_norm_kernel


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings: `num_warps` of a program, `max_columns` of a row, `check_outputs` or not."""

    _: dataclasses.KW_ONLY
    num_warps: int | None = None
    max_columns: int = 2**16
    check_outputs: bool = False

    def __post_init__(self) -> None:
        found = []
        for name, value, kinds, good in (
                ("num_warps", self.num_warps, (int, type(None)), (None, 1, 2, 4, 8, 16, 32)),
                ("max_columns", self.max_columns, (int,), range(1, 2**16 + 1)),
                ("check_outputs", self.check_outputs, (bool,), (False, True))):
            if type(value) not in kinds or value not in good:
                found.append((type(value) not in kinds, f"{name} is {value!r}"))
        _raise(found)


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6,
                 *, config: Config | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum and norm.

    Args:
        x: rows.
        residual: rows to add.
        weight: factors.
        eps: a small number.
        config: settings.

    Returns:
        The norm and the sum.

    Raises:
        InputTypeError, InputValidationError: the arguments are not accepted.
        KernelCompilationError, KernelResourceError, KernelExecutionError: the launch failed.

    Examples:
        >>> one = torch.ones(1, 4)
        >>> add_rms_norm(one, one, one[0])[1]
        tensor([[2., 2., 2., 2.]])
    """
    settings = config if type(config) is Config else Config()
    found = list(_problems(x, residual, weight, eps, settings.max_columns))
    if config is not None and config is not settings:
        found.append((True, f"config: want a Config, have {type(config).__name__}"))
    _raise(found)
    columns = x.size(-1)
    y, s = (torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(2))
    if s.numel():
        flat = [t.reshape(-1, columns) for t in (x, residual)]
        flat = [t if columns == 1 or t.stride(1) == 1 else t.clone(
            memory_format=torch.contiguous_format) for t in flat]
        block = triton.next_power_of_2(columns)
        try:
            add_rms_norm_kernel[flat[0].size(0), 1, 1](
                flat[0], flat[1], weight.contiguous(), y, s, flat[0].stride(0), flat[1].stride(0),
                columns, float(eps), block,
                num_warps=settings.num_warps or max(4, min(32, block // 512)))
        except (Exception, KeyboardInterrupt) as error:
            ours = translation(error)
            if ours is None:
                raise
            raise ours from error
    if settings.check_outputs and not all(bool(t.isfinite().all()) for t in (y, s)):
        raise KernelExecutionError("NaN or infinity in a result")
    return y, s


def _raise(found: list[tuple[bool, str]]) -> None:
    if found:
        kind = InputTypeError if all(of_type for of_type, _ in found) else InputValidationError
        raise kind([text for _, text in found])


def _problems(x: Any, residual: Any, weight: Any, eps: Any,
              most: int) -> Iterator[tuple[bool, str]]:
    """Whether it is one of types, and the text, for all problems in the order of arguments."""
    model = x if isinstance(x, torch.Tensor) else None
    for name, value in (("x", x), ("residual", residual), ("weight", weight)):
        if not isinstance(value, torch.Tensor):
            yield True, f"{name}: want a tensor, have {type(value).__name__.replace('Type', '')}"
            continue
        if name == "x" and value.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            yield True, f"{name}: want 32 or 16 bits of float, have {value.dtype}"
        if name == "x" and (value.dim() == 0 or not 1 <= value.size(-1) <= most):
            yield False, f"{name}: want 1 to {most} columns, have {value.dim()} dimensions, " \
                         f"{value.size(-1) if value.dim() else 0} columns"
        if model is None or name == "x":
            continue
        if value.dtype != model.dtype:
            yield True, f"{name}: want {model.dtype}, have {value.dtype}"
        if value.device != model.device:
            yield False, f"{name}: want {model.device}, have {value.device}"
        want = tuple(model.shape[-1:] if name == "weight" else model.shape)
        if model.dim() and tuple(value.shape) != want:
            yield False, f"{name}: want {want}, have {tuple(value.shape)}"
    if type(eps) not in (int, float):
        yield True, f"eps: want a number, have {type(eps).__name__}"
    elif not 0.0 < eps < math.inf:
        yield False, f"eps: want a number above 0, have {eps}"
