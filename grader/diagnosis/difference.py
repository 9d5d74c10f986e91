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
    Where a function returns several results, ``position`` is the number of this one from 0, and
    ``output`` its name if it has one. ``tensors``: which elements are concerned, the result and the
    reference. Of complex results, ``of_parts``, all this is about real and imaginary parts, along a
    last dimension of two.
    """

    kind: DifferenceKind
    count: int
    total: int
    index: tuple[int, ...]
    got: float
    expected: float
    ratio: float
    tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = field(repr=False, compare=False)
    output: str = ""
    position: int | None = None
    of_parts: bool = False

    def data(self, region: Fault | None = None, likeness: Fault | None = None) -> WrongValues:
        """The difference as the data of a finding, with where and what the wrong values are."""
        return WrongValues(self.kind, self.count, self.total, self.index, self.got, self.expected,
                           self.output, None if self.output else self.position, self.of_parts,
                           region, likeness)

    def __str__(self) -> str:
        return messages.difference(self.data())


def in_reals(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs of real ones along a last dimension of two; others as they are."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def as_tuple(value: Any) -> tuple[Any, ...]:
    """What a function returned, as several results even where it is one."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
