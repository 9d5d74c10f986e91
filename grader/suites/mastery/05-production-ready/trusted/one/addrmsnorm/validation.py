"""One pass over the arguments for each kind of problem."""

from __future__ import annotations

import math
from typing import Any

import torch

from addrmsnorm.errors import InputTypeError, InputValidationError

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
ORDER = ("x", "residual", "weight", "eps")


def validate(x: Any, residual: Any, weight: Any, eps: Any, max_columns: int) -> None:
    tensors = {"x": x, "residual": residual, "weight": weight}
    wrong_types = {name: f"expected a tensor, got {type(value).__name__}"
                   for name, value in tensors.items() if not isinstance(value, torch.Tensor)}
    if isinstance(eps, bool) or not isinstance(eps, int | float):
        wrong_types["eps"] = f"expected a number, got {type(eps).__name__}"
    wrong: dict[str, str] = {}
    there = {name: value for name, value in tensors.items() if name not in wrong_types}
    if "x" in there:
        if x.dtype not in FLOATS:
            wrong_types["x"] = f"expected a float of 32 or 16 bits, got {x.dtype}"
        for name, tensor in there.items():
            if tensor.dtype is not x.dtype:
                wrong_types[name] = f"expected {x.dtype}, got {tensor.dtype}"
            if tensor.device != x.device:
                wrong[name] = f"expected {x.device}, got {tensor.device}"
        _shapes(x, there, wrong, max_columns)
    if "eps" not in wrong_types and not (0 < eps < math.inf):
        wrong["eps"] = f"expected a number above 0, got {eps}"
    if wrong_types or wrong:
        problems = [f"{name}: {problem}" for name in ORDER
                    for problem in (wrong_types.get(name), wrong.get(name)) if problem]
        raise (InputValidationError if wrong else InputTypeError)(problems)


def _shapes(x: torch.Tensor, there: dict[str, torch.Tensor], wrong: dict[str, str],
            max_columns: int) -> None:
    if x.dim() == 0:
        wrong["x"] = "expected a dimension or more, got 0"
        return
    if not 0 < x.shape[-1] <= max_columns:
        wrong["x"] = f"expected 1 to {max_columns} columns, got {x.shape[-1]}"
    expected = {"x": x.shape, "residual": x.shape, "weight": x.shape[-1:]}
    for name, tensor in there.items():
        if tensor.shape != expected[name]:
            wrong[name] = f"expected {tuple(expected[name])}, got {tuple(tensor.shape)}"
