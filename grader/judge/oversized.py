"""Cases too large to run whole, and the memory that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from grader.engine.gpu.measurement import SOME
from grader.recording.arena import SparseTensor
from grader.sandbox import ResourceLimits
from grader.suite import Case, Cost, Input, Limits, Property, Sparse, Suite, mistakes
from grader.suite.inputs import DEFAULT_BLOCK

ROOM = 4  # times the inputs of the largest case: for what a function makes of them


def is_measured(case: Case) -> bool:
    return case.limits is not None and case.limits.pass_at is not None


def asks_for_speed(case: Case) -> bool:
    """Whether a measured case asks for more than right values at its size."""
    limits = case.limits
    return limits is not None and limits.pass_at is not None and (
        limits.pass_at >= SOME or replace(limits, pass_at=None) != Limits())


def waits_for_code(case: Case) -> bool:
    """Whether it is judged by compiled code too, so that it waits for the compiler."""
    return asks_for_speed(case) or (case.limits is not None and case.limits.of_code)


def is_large(case: Case) -> bool:
    """Whether a case is not run whole, such as one whose inputs are memory without values."""
    return is_measured(case) or not case.runs or any(
        isinstance(spec, Sparse) for spec in case.inputs)


def runs_whole(case: Case) -> bool:
    """Whether the call of a case is recorded and replayed whole, which can be begun ahead."""
    return not (isinstance(case, Property) or case.call or case.reading or case.sizes
                or is_large(case))


def has_holes(case: Case) -> bool:
    """Whether an input lies on memory that is mostly untouched; such a case is run whole."""
    return any(isinstance(spec, Input) and spec.strides for spec in case.inputs)


def limits(suite: Suite) -> ResourceLimits:
    """Limits of the processes: untouched pages cost address space, not memory."""
    large = [case.inputs for case in suite.all_cases if is_large(case) or has_holes(case)]
    timed = [bench.inputs(size) for bench in (part.bench for part in suite.parts) if bench
             for size in bench.sizes]
    largest = max((sum(map(_nbytes, inputs)) for inputs in (*large, *timed)), default=0)
    usual = ResourceLimits()
    return replace(usual, address_space=usual.address_space + ROOM * largest)


def _nbytes(spec: Any) -> int:
    if isinstance(spec, Sparse):
        return spec.elements * int(getattr(torch, spec.dtype).itemsize)
    if isinstance(spec, Input) and spec.strides:
        return spec.draw(torch.Generator(), DEFAULT_BLOCK).untyped_storage().nbytes()
    outline = spec.outline(DEFAULT_BLOCK) if isinstance(spec, Input) else None
    return outline.untyped_storage().nbytes() if outline is not None else 0


def least(suite: Suite, inputs: Sequence[Any]) -> Cost:
    """The least cost of the job; the inputs may be tensors without values."""
    given = (value.like if isinstance(value, SparseTensor) else value for value in inputs)
    cost: Cost = mistakes.call("cost", suite.cost, *given)
    return cost
