"""Whether a result is as near to the exact one as its arithmetic allows.

One rule for every kernel. With r the float64 reference from the very inputs that the kernel got,

    T_i = u_out·|r_i| + κ·u_c·(E_pt,i + g(L)·E_red,i) + κ·1.5·u_in·E_mid,i + η
    g(L) = min(L, 4·sqrt(L)),  κ = 4

every element must lie within T_i, NaN and infinities must stand where the reference has them, and
the errors together must not lean one way (the aggregate check). u is a unit roundoff, half the
distance from 1 to the next number; E_pt and E_red are the amplitudes of ``grader.suite.Amplitude``.
Error analysis after Higham, Accuracy and Stability of Numerical Algorithms (2nd ed., chapters 2 and
4); the constants were fitted so that right kernels always pass and known wrong ones never do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import torch

from grader.suite import Amplitude

KAPPA = 4.0
UNIT_ROUNDOFF = {
    "float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8,
}
UNDERFLOW = {  # η: what a GPU may flush to zero, or the spacing of subnormal numbers
    "float64": 2.0**-1022, "float32": 2.0**-125, "float16": 2.0**-24, "bfloat16": 2.0**-125,
}
COMPUTE_ROUNDOFF = 2.0**-24  # float32 arithmetic outside tensor cores
MINIMUM_FOR_SLOPE = 64  # elements; below, a slope says nothing


@dataclass(frozen=True)
class Difference:
    """How a result differs from the reference, worst news first.

    ``kind``: ``nonfinite`` (NaN or infinities elsewhere than in the reference), ``values``
    (elements outside the tolerance) or ``drift`` (each is near enough, together they lean one way).
    ``index`` is the first element concerned; ``ratio`` the largest error over its tolerance.
    ``tensors``: which elements are concerned, the result and the reference.
    """

    kind: Literal["nonfinite", "values", "drift"]
    count: int
    total: int
    index: tuple[int, ...]
    got: float
    expected: float
    ratio: float
    tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = field(
        default=None, repr=False, compare=False)

    def __str__(self) -> str:
        place = f"[{', '.join(map(str, self.index))}]" if self.index else "the value"
        many = f"{self.count} of {self.total} elements"
        if self.kind == "drift":
            return (
                f"the result leans away from the exact one by more than rounding explains "
                f"({many} are rounded otherwise; {place}: got {_number(self.got)}, "
                f"exact {_number(self.expected)})"
            )
        verb = "is" if self.count == 1 else "are"
        what = f"{verb} wrong"
        if self.kind == "nonfinite":
            what = f"{verb} NaN or infinite where the exact result is not, or the other way round"
        expected = f"got {_number(self.got)}, expected {_number(self.expected)}"
        return f"{many} {what}; the first is {place}: {expected}"


def exactly(result: torch.Tensor, reference: torch.Tensor) -> Difference | None:
    """Compare with the correctly rounded reference, bit for bit (any NaN equals any NaN)."""
    expected = reference.to(result.dtype)
    if result.dtype.is_floating_point:
        signs = torch.signbit(result) == torch.signbit(expected)
        same = ((result == expected) & signs) | (result.isnan() & expected.isnan())
    else:
        same = result == expected
    wrong = ~same
    if not bool(wrong.any()):
        return None
    pattern = _pattern_differs(result, expected)
    if bool((wrong & pattern).any()):
        return _difference("nonfinite", wrong & pattern, result, expected, math.inf)
    return _difference("values", wrong, result, expected, math.inf)


def within(result: torch.Tensor, reference: torch.Tensor, amplitude: Amplitude,
           input_dtype: str) -> Difference | None:
    """Compare with the reference by the rule above.

    Args:
        result: any floating dtype, the reference's shape.
        reference: float64.
        amplitude: float64 tensors of that shape, or numbers.
        input_dtype: of the first input, for intermediates that may be rounded to it.
    """
    dtype = str(result.dtype).removeprefix("torch.")
    pattern = _pattern_differs(result, reference)
    overflowed = _overflows(result, reference)
    pattern &= ~overflowed
    if bool(pattern.any()):
        return _difference("nonfinite", pattern, result, reference, math.inf)
    finite = reference.isfinite() & ~overflowed
    error = torch.where(finite, result.double() - reference, 0.0)
    computing = computing_error(amplitude, input_dtype)
    computing = torch.where(finite, torch.as_tensor(computing, dtype=torch.float64), 0.0)
    size = torch.where(finite, reference.abs(), 0.0)
    tolerance = UNIT_ROUNDOFF[dtype] * size + computing + UNDERFLOW[dtype]
    wrong = ~(error.abs() <= tolerance)
    if bool(wrong.any()):
        ratio = float((error.abs() / tolerance).max())
        return _difference("values", wrong, result, reference, ratio)
    return _drift(result, reference, error, computing, tolerance, finite, amplitude.length)


def computing_error(amplitude: Amplitude, input_dtype: str) -> torch.Tensor | float:
    """The part of the tolerance that stems from computing, without the rounding of the result."""
    spread = min(amplitude.length, 4.0 * math.sqrt(amplitude.length))
    error = KAPPA * COMPUTE_ROUNDOFF * (amplitude.pointwise + spread * amplitude.reduced)
    return error + KAPPA * 1.5 * UNIT_ROUNDOFF.get(input_dtype, 0.0) * amplitude.middle


def _drift(result: torch.Tensor, reference: torch.Tensor, error: torch.Tensor,
           computing: torch.Tensor, tolerance: torch.Tensor, finite: torch.Tensor,
           length: int) -> Difference | None:
    """The aggregate check: many small errors that all point one way."""
    dtype = str(result.dtype).removeprefix("torch.")
    if UNIT_ROUNDOFF[dtype] > COMPUTE_ROUNDOFF:
        # Correct arithmetic rounds to another neighbour only where the exact value is close to a
        # midpoint: with probability 2·T/ulp. Count how often it happened.
        # Numbers below the normal range are left out: a GPU may flush them to zero.
        rounded = reference.to(result.dtype)
        least = max(torch.finfo(result.dtype).smallest_normal, 2 * UNDERFLOW[dtype])
        normal = finite & (reference.abs() >= least)
        other = (rounded != result) & normal
        chance = torch.clamp(2 * computing / _ulp(rounded), max=1.0)
        expected = float(chance[normal].sum())
        allowed = expected + 6 * math.sqrt(expected + 1) + 3
        if int(other.sum()) > allowed:
            return _difference("drift", other, result, reference, int(other.sum()) / allowed)
        return None
    # Same precision: a least-squares slope of the error against the value, weighted by tolerance.
    count = int(finite.sum())
    if count < MINIMUM_FOR_SLOPE:
        return None
    scaled = torch.where(finite, reference, 0.0) / tolerance
    energy = float((scaled**2).sum())
    if energy == 0.0:
        return None
    slope = float((scaled * (error / tolerance)).sum()) / energy
    residual = (error - slope * torch.where(finite, reference, 0.0)) / tolerance
    sigma = math.sqrt(float((residual[finite] ** 2).mean()) / energy)
    allowed = 2 * COMPUTE_ROUNDOFF * min(length, 4.0 * math.sqrt(length)) + 6 * sigma
    if abs(slope) > allowed:
        return _difference("drift", finite & (error != 0), result, reference, abs(slope) / allowed)
    return None


def _ulp(rounded: torch.Tensor) -> torch.Tensor:
    """Distance from each value to the next of its dtype, as float64."""
    info = torch.finfo(rounded.dtype)
    size = rounded.double().abs().clamp(min=float(info.smallest_normal))
    return torch.exp2(torch.floor(torch.log2(size))) * info.eps


def _overflows(result: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Where the result is infinite because the exact value does not fit its dtype."""
    too_large = reference.isfinite() & (reference.abs() > torch.finfo(result.dtype).max)
    return result.isinf() & too_large & (torch.signbit(result) == torch.signbit(reference))


def _pattern_differs(result: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    if not result.dtype.is_floating_point:
        return torch.zeros_like(result, dtype=torch.bool)
    return (
        (result.isnan() != reference.isnan())
        | (result.isposinf() != reference.isposinf())
        | (result.isneginf() != reference.isneginf())
    )


def _difference(kind: Literal["nonfinite", "values", "drift"], wrong: torch.Tensor,
                result: torch.Tensor, reference: torch.Tensor, ratio: float) -> Difference:
    index = tuple(int(i) for i in wrong.nonzero()[0])
    return Difference(
        kind, int(wrong.sum()), wrong.numel(), index,
        result[index].item(), reference[index].item(), ratio, (wrong, result, reference),
    )


def _number(value: float) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)
