"""Finds the trait that separates failing cases from passing ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.finding import Fault, Figure, fault
from grader.recording.model import dtype_name

LEAST = 2  # cases on either side; one case alone differs from others in everything
FEW = 8  # cases of either side whose numbers are looked at first
CLEAR = 2.0  # how many times larger the numbers of one side have to be

_Property = Callable[[Any], Any]


@dataclass(frozen=True)
class Traits:
    """The traits of a case, over all its tensors or of the first.

    ``block`` and ``programs`` are those of the case's own launches; ``drawn_for`` is the block
    that its sizes were drawn for.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    contiguous: bool
    drawn_for: int
    block: int | None = None
    programs: int = 0

    @property
    def elements(self) -> int:
        return int(torch.Size(self.shape).numel())

    @property
    def width(self) -> int:
        return self.shape[-1] if self.shape else 1


@dataclass(frozen=True)
class Values:
    """The finite numbers of a case, and whether there are others."""

    smallest: float
    largest: float
    finite: bool


def traits_of(name: str, inputs: Sequence[Any], drawn_for: int) -> Traits | None:
    """The traits of a case; None where it has no tensor."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    if not tensors:
        return None
    first = tensors[0]
    return Traits(name, dtype_name(first), tuple(first.shape),
                  all(tensor.is_contiguous() for tensor in tensors), drawn_for)


def values_of(inputs: Sequence[Any]) -> Values | None:
    """The range of all numbers of a case; None where there are none."""
    tensors = [value.double().flatten() for value in inputs
               if isinstance(value, torch.Tensor) and not value.is_complex()]
    numbers = torch.cat(tensors) if tensors else torch.empty(0)
    finite = numbers[numbers.isfinite()]
    if not len(finite):
        return None
    return Values(float(finite.min()), float(finite.max()), len(finite) == len(numbers))


# What a case can have; None where the question does not apply to it. The sizes of blocks are those
# of each case's own launch.
_PROPERTIES: tuple[tuple[str, _Property], ...] = (
    ("contiguous", lambda case: case.contiguous),
    ("one program", lambda case: case.programs == 1 if case.programs else None),
    ("whole blocks", lambda case: case.elements % case.block == 0 if case.block else None),
    ("whole rows", lambda case: case.width % case.block == 0 if case.block else None),
    ("power of two", lambda case: case.width & (case.width - 1) == 0),
)
_VALUE_PROPERTIES: tuple[tuple[str, _Property], ...] = (
    ("finite", lambda case: case.finite),
    ("all negative", lambda case: case.largest < 0),
    ("negative", lambda case: case.smallest < 0),
)


def separation(failed: Sequence[Traits], passed: Sequence[Traits],
               values: Callable[[Traits], Values | None] = lambda case: None) -> Fault | None:
    """Returns what separates all failing cases from all passing ones; None where nothing does.

    Args:
        failed: all value cases that failed.
        passed: all value cases that passed.
        values: looks at the numbers of a case; called only where its form explains nothing.
    """
    if min(len(failed), len(passed)) < LEAST:
        return None
    if not any(case.elements for case in failed):
        return _by_property([("filled", lambda case: case.elements > 0)], failed, passed)
    failed, passed = ([case for case in side if case.elements] for side in (failed, passed))
    if min(len(failed), len(passed)) < LEAST:
        return None  # that a case without elements passes says nothing
    if contrast := _by_form(failed, passed):
        return contrast
    sides = [sorted(side, key=lambda case: case.elements) for side in (failed, passed)]
    for count in (FEW, None):  # what separates all separates the smallest, which are drawn sooner
        bad, good = ([values(case) for case in side[:count]] for side in sides)
        if None in bad or None in good:
            return None  # a case without finite numbers has no range
        contrast = _by_property(_VALUE_PROPERTIES, bad, good) or _by_size(
            "magnitude", bad, good, lambda case: max(abs(case.smallest), abs(case.largest)), CLEAR)
        if not contrast:
            break
    return contrast


def _by_form(failed: Sequence[Traits], passed: Sequence[Traits]) -> Fault | None:
    """Contrasts dtypes, layouts, blocks and sizes."""
    bad, good = ({case.dtype for case in side} for side in (failed, passed))
    if not bad & good:
        shapes = {case.shape for case in passed}
        return _contrast("dtype", failed, passed, bad=tuple(sorted(bad)), good=tuple(sorted(good)),
                         same_shapes=all(case.shape in shapes for case in failed))
    if contrast := _by_property(_PROPERTIES, failed, passed):
        return contrast
    if all(len(case.shape) > 1 for case in (*failed, *passed)) and (contrast := _by_size(
            "width", failed, passed, lambda case: case.width)):
        return contrast
    if contrast := _by_size("elements", failed, passed, lambda case: case.elements):
        return contrast
    ranks = [{len(case.shape) for case in side} for side in (failed, passed)]
    return None if ranks[0] & ranks[1] else _contrast("rank", failed, passed, bad=tuple(
        sorted(ranks[0])), good=tuple(sorted(ranks[1])))


def _by_property(properties: Sequence[tuple[str, _Property]], failed: Sequence[Any],
                 passed: Sequence[Any]) -> Fault | None:
    """The first property that all cases of one side have, and none of the other."""
    for name, has in properties:
        bad, good = ({has(case) for case in side} for side in (failed, passed))
        if not bad & good and bad | good == {True, False}:
            return _contrast(name, failed, passed, inverse=bad == {False})
    return None


def _by_size(name: str, failed: Sequence[Any], passed: Sequence[Any],
             size: Callable[[Any], float], clear: float = 1.0) -> Fault | None:
    """A number that is larger, so many times, on one side."""
    bad, good = ([size(case) for case in side] for side in (failed, passed))
    if min(bad) > clear * max(good):
        return _contrast(name, failed, passed, bad=min(bad), good=max(good))
    if clear * max(bad) < min(good):
        return _contrast(name, failed, passed, bad=max(bad), good=min(good), inverse=True)
    return None


def _contrast(trait: str, failed: Sequence[Any], passed: Sequence[Any], **more: Figure) -> Fault:
    return fault("contrast", trait=trait, failed=len(failed), passed=len(passed), **more)
