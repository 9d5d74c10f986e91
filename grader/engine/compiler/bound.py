"""Bound: the least time that a launch can take, however good its code: the one thing proved."""

from __future__ import annotations

from grader.binary import Binary
from grader.engine.compiler.targets import Target
from grader.facts import Survey

MOST_OVER_COPY = 1.17
"""No GPU moves more bytes per second than this many times what its copy reaches: peaks of the
datasheets are 1.12 to 1.17 of it, filling memory on an H200 reached 1.09."""
MOST_OVER_PEAK = 1.1
"""No GPU computes faster than this many times the datasheet: its clock may rise by so much."""
HALF_OVER_FP32 = 4
"""No GPU computes float16 without tensor cores faster than this many times float32: an A100 does
that, others reach twice or once."""


def least_seconds(survey: Survey, target: Target, binary: Binary | None = None,
                  cold: bool = True) -> float:
    """Less time than this, no such launch can take: what it must move, what it must compute.

    What fits L2 may still be there after the launch, and before it unless it is ``cold``. Without
    tensor cores in ``binary``, products are computed on other pipes; else they are taken to be of
    the fastest format that the target has.
    """
    return max(moving_seconds(survey, target, cold),
               survey.flops / _fastest(target, binary is None or bool(binary.tensor_cores)))


def moving_seconds(survey: Survey, target: Target, cold: bool = True) -> float:
    """The part of it that memory takes."""
    stays = float(target.l2)
    loaded = survey.loaded.low if survey.surely is None else survey.surely
    moved = max(0.0, loaded - (0.0 if cold else stays)) + max(
        0.0, survey.stored.low - stays)
    return moved / (target.dram * MOST_OVER_COPY)


def _fastest(target: Target, tensor_cores: bool) -> float:
    best = max(target.fp8_tensor, target.fp16_tensor, target.tf32_tensor, target.fp32)
    return (best if tensor_cores else min(best, HALF_OVER_FP32 * target.fp32)) * MOST_OVER_PEAK
