"""What the failing cases have and the passing ones lack: a dtype, a layout, a size, some values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.recording.model import dtype_name
from grader.text import joined

LEAST = 2  # cases on either side; one case alone differs from others in everything
FEW = 8  # cases of either side whose numbers are looked at first
CLEAR = 2.0  # how many times larger the numbers of one side have to be

_Property = Callable[[Any], Any]


@dataclass(frozen=True)
class Traits:
    """What a case is made of, of all its tensors together or of the first of them.

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


# Of cases: where the question applies, the property, and what cases with and without it are.
_PROPERTIES: tuple[tuple[_Property, _Property, str, str], ...] = (
    (lambda case: True, lambda case: case.contiguous, "with contiguous inputs",
     "with views that have gaps or another order of strides"),
    (lambda case: case.programs, lambda case: case.programs == 1, "that one program does",
     "that take several programs"),
    # by the block of each case's own launch
    (lambda case: case.block, lambda case: case.elements % case.block == 0,
     "whose elements fill whole blocks", "whose last block is not full"),
    (lambda case: case.block, lambda case: case.width % case.block == 0,
     "whose rows fill whole blocks", "whose rows leave a part of a block over"),
    (lambda case: True, lambda case: case.width & (case.width - 1) == 0,
     "whose last dimension is a power of two", "whose last dimension is no power of two"),
)
_VALUE_PROPERTIES: tuple[tuple[_Property, str, str], ...] = (
    (lambda case: case.finite, "with finite numbers only", "with NaN or infinities"),
    (lambda case: case.largest < 0, "with negative numbers only", "with other numbers too"),
    (lambda case: case.smallest < 0, "with negative numbers", "without any"),
)


def separation(failed: Sequence[Traits], passed: Sequence[Traits],
               values: Callable[[Traits], Values | None] = lambda case: None) -> str:
    """Returns what separates all failing cases from all passing ones; empty where nothing does.

    Args:
        failed: all value cases that failed.
        passed: all value cases that passed.
        values: looks at the numbers of a case; called only where its form explains nothing.
    """
    if min(len(failed), len(passed)) < LEAST:
        return ""
    if not any(case.elements for case in failed):
        return _sides(failed, passed, lambda case: case.elements == 0, "without elements",
                      "with elements")
    failed, passed = ([case for case in side if case.elements] for side in (failed, passed))
    if min(len(failed), len(passed)) < LEAST:
        return ""  # that a case without elements passes says nothing
    if words := _by_form(failed, passed):
        return words
    sides = [sorted(side, key=lambda case: case.elements) for side in (failed, passed)]
    for count in (FEW, None):  # what separates all separates the smallest, which are drawn sooner
        bad, good = ([values(case) for case in side[:count]] for side in sides)
        if None in bad or None in good:
            return ""  # a case without finite numbers has no range
        words = _by_values([v for v in bad if v], [v for v in good if v])
        if not words:
            break
    return words


def _by_form(failed: Sequence[Traits], passed: Sequence[Traits]) -> str:
    """What dtypes, layouts, blocks and sizes separate."""
    cases = (*failed, *passed)
    bad, good = {case.dtype for case in failed}, {case.dtype for case in passed}
    if not bad & good:
        shapes = {case.shape for case in passed}
        again = "the same shapes" if all(case.shape in shapes for case in failed) else \
            f"all {len(passed)} others"
        return f"All {len(failed)} cases in {joined(sorted(bad))} fail; {again} pass in " \
               f"{joined(sorted(good))}."
    for applies, has, words, other in _PROPERTIES:
        if all(map(applies, cases)) and (sentence := _sides(failed, passed, has, words, other)):
            return sentence
    if all(len(case.shape) > 1 for case in cases) and (sentence := _by_size(
            failed, passed, lambda case: case.width, "whose last dimension is")):
        return sentence
    if sentence := _by_size(failed, passed, lambda case: case.elements,
                         "whose number of elements is"):
        return sentence
    ranks = [{len(case.shape) for case in side} for side in (failed, passed)]
    return "" if ranks[0] & ranks[1] else _contrast(failed, passed, *(
        f"in {joined(sorted(map(str, side)))} dimension{'' if side == {1} else 's'}"
        for side in ranks))


def _sides(failed: Sequence[Any], passed: Sequence[Any], has: Callable[[Any], bool],
           words: str, other: str) -> str:
    """``words`` and ``other`` say with which property cases are, and without it."""
    if all(map(has, failed)) and not any(map(has, passed)):
        return _contrast(failed, passed, words, other)
    if all(map(has, passed)) and not any(map(has, failed)):
        return _contrast(failed, passed, other, words)
    return ""


def _contrast(failed: Sequence[Any], passed: Sequence[Any], bad: str, good: str) -> str:
    return f"All {len(failed)} cases {bad} fail; all {len(passed)} {good} pass."


def _by_size(failed: Sequence[Traits], passed: Sequence[Traits],
             size: Callable[[Traits], int], words: str) -> str:
    bad, good = [size(case) for case in failed], [size(case) for case in passed]
    if min(bad) > max(good):
        return _contrast(failed, passed, f"{words} {min(bad):,} or more",
                         f"where it is {max(good):,} or less")
    if max(bad) < min(good):
        return _contrast(failed, passed, f"{words} {max(bad):,} or less",
                         f"where it is {min(good):,} or more")
    return ""


def _by_values(failed: Sequence[Values], passed: Sequence[Values]) -> str:
    for has, words, other in _VALUE_PROPERTIES:
        if sentence := _sides(failed, passed, has, words, other):
            return sentence
    bad, good = ([max(abs(case.smallest), abs(case.largest)) for case in side]
                 for side in (failed, passed))
    if min(bad) > CLEAR * max(good):
        return _contrast(failed, passed, f"with numbers as large as {min(bad):.3g}",
                         f"whose numbers stay within {max(good):.3g}")
    if CLEAR * max(bad) < min(good):
        return _contrast(failed, passed, f"whose numbers stay within {max(bad):.3g}",
                         f"with numbers as large as {min(good):.3g}")
    return ""
