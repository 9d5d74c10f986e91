"""Why a kernel may give one result on the processor and another on a GPU: what is known of both."""

from __future__ import annotations

import torch

from grader.diagnosis.difference import Difference
from grader.report import Finding
from grader.suite.rounding import UNIT_ROUNDOFF

NEARLY = 64.0  # times the tolerance: as far as instructions that only approximate may lead astray


def effect(finding: Finding, difference: Difference | None) -> str:
    """The known reason for a failure on the GPU alone, as a sentence; empty where there is none.

    ``difference`` tells how the values are wrong, where that is what failed.
    """
    match finding.code:
        case "L05":
            return "The compiler for this GPU refuses what others compile."
        case "T05":
            return "This GPU has less shared memory than the one that launches were compiled for."
        case "N05":
            return "Tensor cores of the GPU round float32 operands to TF32."
        case "R02":
            return "On a GPU programs run at the same time and in any order."
    if difference is None:
        return ""
    wrong, result, reference = difference.tensors
    if not result.dtype.is_floating_point:
        return ""
    least = torch.finfo(result.dtype).tiny if result.dtype.itemsize > 1 else 0.0
    if bool(((reference.abs() < least) | ~wrong).all()):
        return "Instructions of the GPU flush numbers below the normal range to zero."
    if difference.kind != "nonfinite" and 1.0 < difference.ratio <= NEARLY \
            and str(result.dtype).removeprefix("torch.") in UNIT_ROUNDOFF:
        return ("The GPU fuses products with sums and approximates exp, division and square "
                "roots, which the processor rounds one by one.")
    return ""
