"""Argument checks: all problems at once, before anything is allocated."""

from __future__ import annotations

import math
from typing import Any

import torch

from addrmsnorm.errors import InputTypeError, InputValidationError

MOST_COLUMNS = 65_536  # in float32 they fill the registers of one SM, 256 KiB
SUPPORTED = (torch.float32, torch.float16, torch.bfloat16)


def check_arguments(x: Any, residual: Any, weight: Any, eps: Any, max_columns: int,
                    *, wrong_config: str = "") -> None:
    """Rejects arguments outside the contract of `add_rms_norm`.

    Args:
        x: a tensor (..., C) with at least one column.
        residual: a tensor with the shape, dtype and device of x.
        weight: a tensor (C,) with the dtype and device of x.
        eps: a positive, finite number.
        max_columns: the largest C.
        wrong_config: the problem of the last argument, if any.

    Raises:
        InputTypeError: all problems are Python types or dtypes.
        InputValidationError: otherwise.
    """
    types: list[tuple[int, str]] = []   # (position of the argument, problem)
    values: list[tuple[int, str]] = []
    named = {"x": x, "residual": residual, "weight": weight}
    for position, (name, tensor) in enumerate(named.items()):
        if not isinstance(tensor, torch.Tensor):
            types.append((position, f"{name}: expected a torch.Tensor, got {_kind(tensor)}"))
    if isinstance(eps, bool) or not isinstance(eps, int | float):
        types.append((3, f"eps: expected a number, got {_kind(eps)}"))
    elif not (math.isfinite(eps) and eps > 0):
        values.append((3, f"eps: expected a positive, finite number, got {eps}"))

    if wrong_config:
        types.append((4, wrong_config))

    if isinstance(x, torch.Tensor):
        types += _dtypes(x, residual, weight)
        values += _shapes(x, residual, weight, max_columns)
        for position, (name, tensor) in enumerate(named.items()):
            if isinstance(tensor, torch.Tensor) and tensor.device != x.device:
                problem = f"{name}: expected device {x.device}, as x, got {tensor.device}"
                values.append((position, problem))
    refuse(types, values)


def refuse(types: list[tuple[int, str]], values: list[tuple[int, str]]) -> None:
    """Raises for all problems together, in the order of the arguments.

    Args:
        types: problems of types and dtypes, each with the position of its argument.
        values: all other problems.

    Raises:
        InputTypeError: all problems are Python types or dtypes.
        InputValidationError: otherwise.
    """
    if types or values:
        problems = [problem for _, problem in sorted(types + values, key=lambda pair: pair[0])]
        raise InputValidationError(problems) if values else InputTypeError(problems)


def _dtypes(x: torch.Tensor, residual: Any, weight: Any) -> list[tuple[int, str]]:
    if x.dtype not in SUPPORTED:
        names = ", ".join(str(dtype) for dtype in SUPPORTED)
        return [(0, f"x: expected one of {names}, got {x.dtype}")]
    return [(position, f"{name}: expected {x.dtype}, as x, got {tensor.dtype}")
            for position, name, tensor in ((1, "residual", residual), (2, "weight", weight))
            if isinstance(tensor, torch.Tensor) and tensor.dtype != x.dtype]


def _shapes(x: torch.Tensor, residual: Any, weight: Any,
            max_columns: int) -> list[tuple[int, str]]:
    if x.dim() == 0:
        return [(0, "x: expected at least 1 dimension, got 0")]
    problems: list[tuple[int, str]] = []
    columns = x.shape[-1]
    if columns == 0:
        problems.append((0, f"x: expected at least 1 column, got 0 in shape {tuple(x.shape)}"))
    if columns > max_columns:
        problems.append((0, f"x: expected at most {max_columns} columns, got {columns}"))
    for position, name, tensor, shape in ((1, "residual", residual, tuple(x.shape)),
                                          (2, "weight", weight, (columns,))):
        if isinstance(tensor, torch.Tensor) and tuple(tensor.shape) != shape:
            got = tuple(tensor.shape)
            problems.append((position, f"{name}: expected shape {shape}, got {got}"))
    return problems


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
