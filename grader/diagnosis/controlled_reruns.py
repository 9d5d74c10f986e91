"""Repeats a run with one change to find the cause of a failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from grader.diagnosis.wrong_value_regions import place
from grader.finding import fault
from grader.processes.replies import Run
from grader.processes.session import Session
from grader.recording.model import Recording, dtype_name
from grader.report import Finding

Passes = Callable[[Sequence[Any]], bool]
Right = Callable[[Sequence[torch.Tensor]], bool]
ROUNDING = 2.0**-12  # of the largest result; another order of sums of float32 changes less
_LOW_PRECISION = (torch.float16, torch.bfloat16)
_LAYOUT_SYMPTOMS = ("N01", "N02", "N03", "M01", "M02", "M03", "M04", "M07")


def undefined_or_ordered(session: Session, recording: Recording, inputs: Sequence[Any],
                         first: Run, right: Right | None = None) -> list[Finding]:
    """Run again with the programs reversed and other garbage where nothing is defined.

    The result of a right kernel depends on neither. A third run, which changes only the garbage,
    tells which of the two it was. Where the first run could not depend on either, none is needed,
    and where the other run was made with the first one, none is made here.

    Args:
        right: says of results whether they are near enough; where it is given, another order may
            change them as far as that.
    """
    if first.determined:
        return []
    other = first.other or session.replay(recording, inputs, order="reverse", poison=1).results
    ordered = _one_that_changed(first.results, other)
    if ordered is None:
        return []
    several = len(first.results) > 1
    garbage = session.replay(recording, inputs, poison=1).results
    number = _one_that_changed(first.results, garbage)
    if number is None:
        if right is not None and (right(other) or _near(first.results, other)):
            return []
        index = _first_change(first.results[ordered], other[ordered])
        return [Finding("M09", fault("other order", index=index).with_figures(
            number=ordered if several else None))]
    one, another = first.results[number], garbage[number]
    changed, index = _changed(one, another), _first_change(one, another)
    finding = Finding("M06", fault(
        "masked elements", count=int(changed.sum()), total=changed.numel(), index=index,
        value=one[index].item(), other=another[index].item()).with_figures(
            number=number if several else None))
    region = place(changed)
    return [finding.within("differing", region=region) if region else finding]


def name_the_cause(inputs: Sequence[Any], findings: list[Finding], passes: Passes) -> list[Finding]:
    """Try the same values where a mistake of layout or of precision would not show.

    Args:
        inputs: of the failing case.
        findings: what was found, the one to show first first.
        passes: whether the submission is right on the inputs it is given.
    """
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    strided = [tensor for tensor in tensors if not tensor.is_contiguous()]
    code = findings[0].code
    if code in _LAYOUT_SYMPTOMS and strided and passes(_each(inputs, torch.Tensor.contiguous)):
        return [Finding("M08", fault("strides", strides=strided[0].stride(), rank=strided[0].dim()),
                        line=findings[0].line)]
    low = [tensor for tensor in tensors if tensor.dtype in _LOW_PRECISION]
    if code == "N01" and low and passes(_each(inputs, torch.Tensor.float)):
        return [replace(findings[0], code="N04").within(
            "right in float32", dtype=dtype_name(low[0]))]
    if code == "N01" and _signs(inputs) and passes(_signs(inputs)):
        return [replace(findings[0], code="N04").within("right in few bits")]
    return findings


def _signs(inputs: Sequence[Any]) -> list[Any]:
    """The inputs with the signs of all float8 in their places; nothing where there are none.

    Wider numbers of the same values, as for 16 bits, are not what such a function takes.
    """
    narrow = [isinstance(value, torch.Tensor) and value.is_floating_point() and value.itemsize == 1
              for value in inputs]
    return [value.float().sign().to(value.dtype) if small else value
            for value, small in zip(inputs, narrow, strict=True)] if any(narrow) else []


def _each(inputs: Sequence[Any], change: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
    return [change(value) if isinstance(value, torch.Tensor) else value for value in inputs]


def _near(first: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    """Whether results differ by no more than the rounding of sums in another order."""
    return all(one.is_floating_point() and bool(
        ((one - another).abs() <= ROUNDING * one.abs().max()).all())
        for one, another in zip(first, other, strict=True) if one.numel())


def _one_that_changed(first: Sequence[torch.Tensor],
                      other: Sequence[torch.Tensor]) -> int | None:
    """The number of the first result that differs between two runs."""
    return next((number for number, (one, another) in enumerate(zip(first, other, strict=True))
                 if bool(_changed(one, another).any())), None)


def _first_change(one: torch.Tensor, another: torch.Tensor) -> tuple[int, ...]:
    """The index of the first element that differs."""
    return tuple(map(int, _changed(one, another).nonzero()[0]))


def _changed(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Marks the elements that differ as numbers; all NaN are equal."""
    return ~((first == second) | (first.isnan() & second.isnan()))
