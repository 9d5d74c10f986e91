"""A module's contract beside values: shape, dtype, layout, launches, refusals, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from grader.diagnosis.difference import as_tuple
from grader.diagnosis.messages import NOTHING_TO_DO, PLAIN_VALUES
from grader.finding import Figure, fault
from grader.processes.replies import Answer, Raised, not_written
from grader.recording.budget import denied_moves
from grader.recording.model import Recording, dtype_name
from grader.report import Finding
from grader.suite import Call, Case, Reading, Suite, mistakes
from grader.text import mentions, sentence

_OF_PLACES = frozenset(("M02", "M03", "M04", "M08"))


def broken_contract(suite: Suite, case: Case, recording: Recording,
                    inputs: Sequence[Any]) -> list[Finding]:
    """The first part of the contract that the recorded call does not keep, if any."""
    n_launches = len(recording.launches)
    if case.launches is not None and n_launches != case.launches:
        return [Finding("T03", fault("launches", count=n_launches, expected=case.launches),
                        means=NOTHING_TO_DO if case.launches == 0 else "")]
    if suite.moves == "deny" and (denied := denied_moves(recording)):
        return denied
    exact = mistakes.call("reference", suite.reference, *inputs)
    expected = as_tuple(exact)
    if isinstance(exact, tuple) != recording.returned_tuple or len(expected) != len(
            recording.results):
        return [Finding("S01", fault(
            "results", count=len(recording.results), in_tuple=recording.returned_tuple,
            expected=len(expected), expected_tuple=isinstance(exact, tuple)))]
    dtypes = suite.result_dtypes(dtype_name(inputs[0]), len(expected), inputs)
    for number, (view, right, dtype) in enumerate(
            zip(recording.results, expected, dtypes, strict=True)):
        shape = tuple(right.shape)
        result: dict[str, Figure] = {} if len(expected) == 1 else {
            "number": number, "result": dict(enumerate(suite.result_names)).get(number, "")}
        if view.shape != shape:
            return [Finding("S01", fault("shape", shape=view.shape, expected=shape, **result))]
        if view.dtype != dtype and not suite.in_place:
            return [Finding("S01", fault("dtype", dtype=view.dtype, expected=dtype, **result))]
        if suite.contiguous_result and not torch.empty_strided(
                view.shape, view.stride, device="meta").is_contiguous():
            return [Finding("S01", fault("not contiguous", strides=view.stride, **result))]
    return []


def wrong_places_follow(broken: Finding, findings: Sequence[Finding]) -> bool:
    """Whether a result of the wrong form explains all findings about places in memory.

    Its shape and strides were there before anything was stored: a kernel that is right for the
    right ones stores past the end of others, twice into one place, or nowhere.
    """
    return broken.code == "S01" and all(finding.code in _OF_PLACES for finding in findings)


def broken_refusal(case: Case, error: Raised | None) -> list[Finding]:
    """Checks the exception of a case that asks for one before anything is launched."""
    expected = case.raises.__name__ if case.raises else ""
    if error is None:
        return [Finding("E01", fault("no exception", expected=expected))]
    if later := not_written(error):
        return later
    if expected not in error.types:
        return [Finding("E02", fault("exception", exception=error.types[0], text=error.message,
                                     expected=expected), line=error.line)]
    if error.launches:
        return [Finding("E01", fault("late exception", expected=expected), line=error.line)]
    missing = tuple(word for word in case.mentions if not mentions(error.message, word))
    if missing:
        return [Finding("E03", fault("message", text=error.message, missing=missing),
                        line=error.line)]
    return []


def unanswered(call: Call, answer: Answer) -> list[Finding]:
    """Checks that host code gave plain values, and that its launches were right."""
    if answer.findings and (call.watched or answer.findings[0].code == "P04"):
        return list(answer.findings)
    if answer.error is not None:
        error = answer.error
        if later := not_written(error, call.of):
            return later
        return [Finding("R01", fault("raised", name=call.of, exception=error.types[0],
                                     text=error.message), line=error.line)]
    if answer.other:
        return [Finding("S01", fault("answer type", name=call.of, type=answer.other),
                        means=PLAIN_VALUES)]
    return []


def wrong_answer(call: Call, answer: Any, inputs: Sequence[Any]) -> list[Finding]:
    """Runs the case's own check on plain values or on the answers of several trees."""
    assert call.check is not None
    try:
        call.check(answer, *inputs)
    except AssertionError as error:
        return [Finding(call.code, sentence(str(error)))]
    except (TypeError, AttributeError, KeyError, IndexError, ValueError) as error:
        return [Finding(call.code, fault(
            "answer form", name=call.of, answer=f"{answer!r:.200}",
            exception=type(error).__name__, text=str(error)))]
    return []


def wrong_text(reading: Reading, texts: Mapping[str, str]) -> list[Finding]:
    """Runs the case's own check on the files of a submission."""
    try:
        reading.check(texts)
    except AssertionError as error:
        return [Finding(reading.code, sentence(str(error)))]
    return []
