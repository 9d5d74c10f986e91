"""Cases too large to run whole: what they need, and the first and last program of one launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from grader.diagnosis.explanation import result_of
from grader.draws import DEFAULT_BLOCK, block_of
from grader.outcome import unusable
from grader.recording import MAX_SAMPLED_PROGRAMS
from grader.report import CaseResult, Verdict
from grader.sandbox import Limits
from grader.sandbox.arena import SparseTensor
from grader.suite import Case, Cost, Input, Sparse, Suite

if TYPE_CHECKING:
    from grader.judge import Judge


ROOM = 4  # times the inputs of the largest case: for what a function makes of them


def is_measured(case: Case) -> bool:
    return case.limits is not None and case.limits.pass_at is not None


def waits_for_code(case: Case) -> bool:
    """Whether it is judged by compiled code too, so that it waits for the compiler."""
    return is_measured(case) or (case.limits is not None and case.limits.of_code)


def is_large(case: Case) -> bool:
    """Whether a case is not run whole, such as one whose inputs are memory without values."""
    return is_measured(case) or not case.runs or any(
        isinstance(spec, Sparse) for spec in case.inputs)


def is_tried(case: Case) -> bool:
    """Whether a case takes the two steps that can be begun ahead."""
    return not (case.call or case.reading or case.sizes or is_large(case))


def has_holes(case: Case) -> bool:
    """Whether an input lies on memory that is mostly untouched; such a case is run whole."""
    return any(isinstance(spec, Input) and spec.strides for spec in case.inputs)


def limits(suite: Suite) -> Limits:
    """What processes may use: untouched pages cost address space, not memory."""
    large = [case.inputs for case in suite.all_cases if is_large(case) or has_holes(case)]
    timed = [bench.inputs(size) for bench in (part.bench for part in suite.parts) if bench
             for size in bench.sizes]
    largest = max((sum(map(_nbytes, inputs)) for inputs in (*large, *timed)), default=0)
    usual = Limits()
    return replace(usual, address_space=usual.address_space + ROOM * largest)


def _nbytes(spec: Any) -> int:
    if isinstance(spec, Sparse):
        return spec.elements * int(getattr(torch, spec.dtype).itemsize)
    if isinstance(spec, Input) and spec.strides:
        return spec.draw(torch.Generator(), DEFAULT_BLOCK).untyped_storage().nbytes()
    outline = spec.outline(DEFAULT_BLOCK) if isinstance(spec, Input) else None
    return outline.untyped_storage().nbytes() if outline is not None else 0


def least(suite: Suite, inputs: Sequence[Any]) -> Cost:
    """What the job needs at least; the inputs may be tensors without values."""
    return suite.cost(*(value.like if isinstance(value, SparseTensor) else value
                        for value in inputs))


def sampled(judge: Judge, case: Case) -> CaseResult:
    """A case too large to run whole: its first and last program, on memory with holes.

    Of a case that does not run, only the recording is checked.
    """
    inputs = judge.draw(case.name, case.inputs)
    outcome = judge.session.record(inputs)
    recording = outcome.recording
    findings = unusable(outcome)
    if recording is None or findings or not case.runs:
        return result_of(case, findings)
    block, elements = block_of(recording), inputs[0].elements
    programs = sum(launch.programs for launch in recording.launches)
    if programs > MAX_SAMPLED_PROGRAMS:
        return CaseResult(case.name, case.kind, Verdict.SKIPPED,
                          reason=f"{programs} programs are too many to sample")
    if not block or len(recording.launches) != 1 or programs != -(-elements // block):
        return CaseResult(case.name, case.kind, Verdict.SKIPPED,
                          reason="only a grid of one program per block can be sampled")
    tail = elements - (programs - 1) * block
    windows = [(0, block), (elements - tail, tail)]
    run = judge.session.replay(recording, inputs, sample=1, windows=windows)
    findings = list(run.findings)
    for number, (start, length) in enumerate(windows):
        if not findings:
            parts = [value.part(number, start, length) if isinstance(value, SparseTensor) else value
                     for value in inputs]
            findings = judge.wrong_values(list(run.results[number::len(windows)]), parts)
    return result_of(case, findings)
