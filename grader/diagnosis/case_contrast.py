"""What the failing cases have and the passing ones lack: a dtype, a layout, a size, some values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.recording.model import dtype_name

LEAST = 2  # cases on either side; one case alone differs from others in everything
FEW = 8  # cases of either side whose numbers are looked at first
CLEAR = 2.0  # how many times larger the numbers of one side have to be


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

    @property
    def magnitude(self) -> float:
        return max(abs(self.smallest), abs(self.largest))


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


def separation(failed: Sequence[Traits], passed: Sequence[Traits],
               values: Callable[[Traits], Values | None] | None = None) -> str:
    """Say what tells all failing cases from all passing ones; nothing where nothing simple does.

    Args:
        failed: all value cases that failed.
        passed: all value cases that passed.
        values: looks at the numbers of a case; asked only where its form explains nothing.
    """
    if min(len(failed), len(passed)) < LEAST:
        return ""
    if not any(case.elements for case in failed):
        return _sides(failed, passed, lambda case: case.elements == 0, "without elements",
                      "with elements")
    failed, passed = ([case for case in side if case.elements] for side in (failed, passed))
    if min(len(failed), len(passed)) < LEAST:
        return ""  # that a case without elements passes says nothing
    looks = (_by_dtype, _by_layout, _by_programs, _by_blocks, _by_width, _by_elements, _by_rank)
    for look in looks:
        if words := look(failed, passed):
            return words
    if values is None:
        return ""
    sides = [sorted(side, key=lambda case: case.elements) for side in (failed, passed)]
    words = ""
    for count in (FEW, None):  # what separates all separates the smallest, which are drawn sooner
        bad, good = ([values(case) for case in side[:count]] for side in sides)
        if None in bad or None in good:
            return ""  # a case without finite numbers has no range
        words = _by_values([v for v in bad if v], [v for v in good if v])
        if not words:
            break
    return words


def _sides(failed: Sequence[Any], passed: Sequence[Any], has: Callable[[Any], bool],
           words: str, other: str) -> str:
    """``words`` and ``other`` say with which property cases are, and without it."""
    if all(map(has, failed)) and not any(map(has, passed)):
        return _said(failed, passed, words, other)
    if all(map(has, passed)) and not any(map(has, failed)):
        return _said(failed, passed, other, words)
    return ""


def _said(failed: Sequence[Any], passed: Sequence[Any], bad: str, good: str) -> str:
    return f"All {len(failed)} cases {bad} fail; all {len(passed)} {good} pass."


def _by_dtype(failed: Sequence[Traits], passed: Sequence[Traits]) -> str:
    bad, good = {case.dtype for case in failed}, {case.dtype for case in passed}
    if bad & good:
        return ""
    shapes = {case.shape for case in passed}
    again = "the same shapes" if all(case.shape in shapes for case in failed) else \
        f"all {len(passed)} others"
    return f"All {len(failed)} cases in {_and(bad)} fail; {again} pass in {_and(good)}."


def _by_layout(failed: Sequence[Traits], passed: Sequence[Traits]) -> str:
    return _sides(failed, passed, lambda case: case.contiguous, "with contiguous inputs",
                  "with views that have gaps or another order of strides")


def _by_programs(failed: Sequence[Traits], passed: Sequence[Traits]) -> str:
    if not all(case.programs for case in (*failed, *passed)):
        return ""
    return _sides(failed, passed, lambda case: case.programs == 1, "that one program does",
                  "that take several programs")


def _by_blocks(failed: Sequence[Traits], passed: Sequence[Traits]) -> str:
    """Whole blocks or not, by the block of each case's own launch; then powers of two."""
    if all(case.block for case in (*failed, *passed)):
        if words := _sides(failed, passed, lambda case: case.elements % case.block == 0,
                           "whose elements fill whole blocks",
                           "whose last block is not full"):
            return words
        if words := _sides(failed, passed, lambda case: case.width % case.block == 0,
                           "whose rows fill whole blocks",
                           "whose rows leave a part of a block over"):
            return words
    return _sides(failed, passed, lambda case: case.width & (case.width - 1) == 0,
                  "whose last dimension is a power of two",
                  "whose last dimension is no power of two")


def _by_width(failed: Sequence[Traits], passed: Sequence[Traits]) -> str:
    if any(len(case.shape) < 2 for case in (*failed, *passed)):
        return ""
    return _by_size(failed, passed, lambda case: case.width, "whose last dimension is")


def _by_elements(failed: Sequence[Traits], passed: Sequence[Traits]) -> str:
    return _by_size(failed, passed, lambda case: case.elements, "whose number of elements is")


def _by_size(failed: Sequence[Traits], passed: Sequence[Traits],
             size: Callable[[Traits], int], words: str) -> str:
    bad, good = [size(case) for case in failed], [size(case) for case in passed]
    if min(bad) > max(good):
        return _said(failed, passed, f"{words} {min(bad):,} or more",
                     f"where it is {max(good):,} or less")
    if max(bad) < min(good):
        return _said(failed, passed, f"{words} {max(bad):,} or less",
                     f"where it is {min(good):,} or more")
    return ""


def _by_rank(failed: Sequence[Traits], passed: Sequence[Traits]) -> str:
    bad, good = ({len(case.shape) for case in side} for side in (failed, passed))
    if bad & good:
        return ""
    return _said(failed, passed, _dimensions(bad), _dimensions(good))


def _dimensions(ranks: set[int]) -> str:
    return f"in {_and(map(str, ranks))} dimension{'' if ranks == {1} else 's'}"


def _by_values(failed: Sequence[Values], passed: Sequence[Values]) -> str:
    if words := _sides(failed, passed, lambda case: case.finite, "with finite numbers only",
                       "with NaN or infinities"):
        return words
    if words := _sides(failed, passed, lambda case: case.largest < 0, "with negative numbers only",
                       "with other numbers too"):
        return words
    if words := _sides(failed, passed, lambda case: case.smallest < 0, "with negative numbers",
                       "without any"):
        return words
    bad, good = ([case.magnitude for case in side] for side in (failed, passed))
    if min(bad) > CLEAR * max(good):
        return _said(failed, passed, f"with numbers as large as {min(bad):.3g}",
                     f"whose numbers stay within {max(good):.3g}")
    if CLEAR * max(bad) < min(good):
        return _said(failed, passed, f"whose numbers stay within {max(bad):.3g}",
                     f"with numbers as large as {min(good):.3g}")
    return ""


def _and(words: Any) -> str:
    *most, last = sorted(words)
    return f"{', '.join(most)} and {last}" if most else str(last)
