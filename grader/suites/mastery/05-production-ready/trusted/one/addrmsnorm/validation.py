"""One pass over the arguments; each kind of problem has a list of its own."""

from __future__ import annotations

import math
from typing import Any

import torch

from addrmsnorm.errors import InputTypeError, InputValidationError

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
ORDER = ("x", "residual", "weight", "eps", "config")


class Problems:
    """Problems by the argument that has them, raised together in the order of the arguments."""

    def __init__(self, order: tuple[str, ...]) -> None:
        self._texts: dict[str, list[str]] = {name: [] for name in order}
        self._only_types = True

    def type(self, name: str, text: str) -> None:
        self._texts[name].append(f"{name}: {text}")

    def value(self, name: str, text: str) -> None:
        self._only_types = False
        self.type(name, text)

    def refuse(self) -> None:
        if texts := [text for of_one in self._texts.values() for text in of_one]:
            raise (InputTypeError if self._only_types else InputValidationError)(texts)


def validate(x: Any, residual: Any, weight: Any, eps: Any, config: Any, max_columns: int,
             *, is_config: bool) -> None:
    problems = Problems(ORDER)
    tensors = {"x": x, "residual": residual, "weight": weight}
    there = {name: value for name, value in tensors.items() if isinstance(value, torch.Tensor)}
    for name in tensors.keys() - there.keys():
        problems.type(name, f"expected a tensor, got {type(tensors[name]).__name__}")
    if "x" in there:
        if x.dtype not in FLOATS:
            problems.type("x", f"expected a float of 32 or 16 bits, got {x.dtype}")
        for name, tensor in there.items():
            if tensor.dtype != x.dtype:
                problems.type(name, f"expected {x.dtype}, got {tensor.dtype}")
            if tensor.device != x.device:
                problems.value(name, f"expected {x.device}, got {tensor.device}")
        _shapes(x, there, problems, max_columns)
    if isinstance(eps, bool) or not isinstance(eps, int | float):
        problems.type("eps", f"expected a number, got {type(eps).__name__}")
    elif not (0 < eps < math.inf):
        problems.value("eps", f"expected a number above 0, got {eps}")
    if not is_config:
        problems.type("config", f"expected a Config, got {type(config).__name__}")
    problems.refuse()


def _shapes(x: torch.Tensor, there: dict[str, torch.Tensor], problems: Problems,
            max_columns: int) -> None:
    if x.dim() == 0:
        problems.value("x", "expected a dimension or more, got 0")
        return
    if not 0 < x.shape[-1] <= max_columns:
        problems.value("x", f"expected 1 to {max_columns} columns, got {x.shape[-1]}")
    expected = {"x": x.shape, "residual": x.shape, "weight": x.shape[-1:]}
    for name, tensor in there.items():
        if tensor.shape != expected[name]:
            problems.value(name, f"expected {tuple(expected[name])}, got {tuple(tensor.shape)}")
