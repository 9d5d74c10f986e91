"""How a result differs from the exact one: which elements, by how much, in what way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from grader.diagnosis import messages
from grader.finding import DifferenceKind, Fault, WrongValues


@dataclass(frozen=True)
class Difference:
    """How a result differs from the reference, worst news first.

    ``kind``: ``nonfinite`` (NaN or infinities elsewhere than in the reference), ``values``
    (elements outside the tolerance), ``drift`` (each is near enough, together they lean one way) or
    ``tf32`` (right for inputs rounded to TF32, where the module asks for full float32).
    ``index`` is the first element concerned; ``ratio`` the largest error over its tolerance.
    ``output`` names the result where a function returns several, ``position`` is its number among
    them from 0. ``tensors``: which elements are concerned, the result and the reference. Of
    complex results, ``of_parts``, all this is about real and imaginary parts, along a last
    dimension of two.
    """

    kind: DifferenceKind
    count: int
    total: int
    index: tuple[int, ...]
    got: float
    expected: float
    ratio: float
    output: str = ""
    position: int = 0
    of_parts: bool = False
    tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = field(
        default=None, repr=False, compare=False)

    def data(self, region: Fault | None = None, likeness: Fault | None = None) -> WrongValues:
        """The difference as the data of a finding, with where and what the wrong values are."""
        name = "" if self.output == f"result {self.position + 1}" else self.output.strip("`")
        number = self.position if self.output and not name else None
        return WrongValues(self.kind, self.count, self.total, self.index, self.got, self.expected,
                           name, number, self.of_parts, region, likeness)

    def __str__(self) -> str:
        return messages.difference(self.data())


def in_reals(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs of real ones along a last dimension of two; others as they are."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def as_tuple(value: Any) -> tuple[Any, ...]:
    """What a function returned, as several results even where it is one."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
