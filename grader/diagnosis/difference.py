"""Describes how a result differs from the exact one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from grader.diagnosis.wrong_value_regions import element_map
from grader.finding import DifferenceKind, Fault, WrongValues
from grader.report import Finding
from grader.suite.rounding import UNIT_ROUNDOFF

NEARLY = 64.0  # times the tolerance: as far as instructions that only approximate may lead astray
_EFFECTS = {"L05": "other compiler", "T05": "shared memory", "N05": "TF32", "R02": "any order"}


@dataclass(frozen=True)
class Difference:
    """Describes how a result differs from the reference, worst difference first.

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

    def data(self, region: Fault | None = None, likeness: Fault | None = None, *,
             draw: bool = False) -> WrongValues:
        """The difference as the data of a finding, with where and what the wrong values are.

        Where neither is known, a map of the wrong elements is drawn if asked for.
        """
        rows, scale = element_map(self.tensors[0]) if draw and not (region or likeness) else \
            ((), ())
        return WrongValues(self.kind, self.count, self.total, self.index, self.got, self.expected,
                           self.output, None if self.output else self.position, self.of_parts,
                           region, likeness, rows, scale)


def in_reals(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs of real ones along a last dimension of two; others as they are."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Returns the results of a function as a sequence, even if there is one."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def effect(finding: Finding, difference: Difference | None) -> str:
    """The known reason for a failure on a GPU alone, by its name; empty where there is none.

    ``difference`` describes the wrong values, if these are what failed.
    """
    if finding.code in _EFFECTS or difference is None:
        return _EFFECTS.get(finding.code, "")
    wrong, result, reference = difference.tensors
    if not result.dtype.is_floating_point:
        return ""
    least = torch.finfo(result.dtype).tiny if result.dtype.itemsize > 1 else 0.0
    if bool(((reference.abs() < least) | ~wrong).all()):
        return "flushed"
    fused = difference.kind != "nonfinite" and 1.0 < difference.ratio <= NEARLY \
        and str(result.dtype).removeprefix("torch.") in UNIT_ROUNDOFF
    return "fused" if fused else ""
