"""What a module asks for beside values: shape, dtype, layout, launches, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.budgets import denied_moves
from grader.costs import in_launches
from grader.outcome import Raised
from grader.recording import Recording, dtype_name
from grader.report import Finding
from grader.suite import Case, Suite
from grader.words import sentence


def broken_contract(suite: Suite, case: Case, recording: Recording,
                    inputs: Sequence[Any]) -> list[Finding]:
    """The first part of the contract that the recorded call does not keep, if any."""
    made = len(recording.launches)
    if case.launches is not None and made != case.launches:
        return [Finding("T03", f"The function made {in_launches(made)}; this case asks for "
                               f"{case.launches or 'none'}.")]
    if suite.moves == "deny" and (denied := denied_moves(recording)):
        return denied
    view = recording.results[0]
    shape = tuple(suite.reference(*inputs).shape)
    dtype = suite.result_dtype or dtype_name(inputs[0])
    if view.shape != shape:
        return [Finding("S01", f"The result has shape {view.shape}, expected {shape}.")]
    if view.dtype != dtype:
        return [Finding("S01", f"The result is {view.dtype}, expected {dtype}.")]
    if suite.contiguous_result and not _is_contiguous(view.shape, view.stride):
        return [Finding("S01", f"The result has strides {view.stride}; a contiguous tensor is "
                               "expected.")]
    return []


def broken_refusal(case: Case, error: Raised | None) -> list[Finding]:
    """What is wrong with the exception of a case that asks for one before anything is launched."""
    wanted = case.raises.__name__ if case.raises else ""
    if error is None:
        return [Finding("E01", f"No exception was raised; the contract asks for a {wanted}.")]
    if wanted not in error.types:
        seen = f"The function raised {error.types[0]} ({error.message}), expected {wanted}"
        return [Finding("E02", sentence(seen), line=error.line)]
    if error.launches:
        seen = f"The {wanted} came after a kernel had been launched; it has to come first."
        return [Finding("E01", seen, line=error.line)]
    missing = [word for word in case.mentions if word not in error.message]
    if missing:
        seen = f"The message “{error.message}” does not mention {' and '.join(missing)}."
        return [Finding("E03", seen, line=error.line)]
    return []


def _is_contiguous(shape: Sequence[int], stride: Sequence[int]) -> bool:
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if size == 0:
            return True
        if size != 1 and step != expected:
            return False
        expected *= size
    return True
