"""Compares a result with the exact one, within the error of its arithmetic.

One rule for every kernel. With r the float64 reference from the very inputs that the kernel got,

    T_i = u_out·|r_i| + κ·u_c·(E_pt,i + g(L)·E_red,i) + κ·1.5·u_in·E_mid,i + η
    g(L) = min(L, 4·sqrt(L)),  κ = 4

every element must lie within T_i, NaN and infinities must stand where the reference has them, and
the errors together must not lean one way (the aggregate check, where elements share no number of an
input that is repeated: its one rounding moves them all). u is a unit roundoff, half the
distance from 1 to the next number: of the result, of the arithmetic, of the first input; E are the
amplitudes of ``grader.suite.spec.Amplitude``. Where matrix products may run in TF32, the whole
result has to pass against one of four references: from the inputs, or from one of TF32's three
roundings of them. Error analysis after Higham, Accuracy and Stability of Numerical Algorithms (2nd
ed., chapters 2 to 4); the constants were fitted so that right kernels always pass and known wrong
ones never do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from grader.diagnosis.difference import Difference, as_tuple, in_reals
from grader.finding import DifferenceKind
from grader.recording.model import dtype_name
from grader.suite import FLOAT32, TENSOR_CORES, Amplitude, Function, Tolerance, mistakes
from grader.suite.rounding import UNDERFLOW, UNIT_ROUNDOFF, in_tf32, spread, ulp
from grader.suite.spec import KAPPA

MINIMUM_FOR_SLOPE = 64  # elements; below, a slope means nothing


# ---------------------------------------------------------------------------------------------
# The decision


def difference(suite: Function, results: Sequence[torch.Tensor], inputs: Sequence[Any], *,
               on_gpu: bool = False) -> Difference | None:
    """Compares results with the reference of a suite's function; None where they are right."""
    tolerance = suite.tolerance.of_a_gpu() if on_gpu else suite.tolerance
    return next(iter(judge(results, inputs, suite.reference, tolerance, suite.result_names)), None)


def judge(results: Sequence[torch.Tensor], inputs: Sequence[Any], reference: Callable[..., Any],
          tolerance: Tolerance, names: Sequence[str] = ()) -> tuple[Difference, ...]:
    """Compares the results of one call with the exact ones; empty where they are right.

    Args:
        results: all that the function returned, in order.
        inputs: what it was called with.
        reference: maps the inputs to the exact result, or to a tuple of them.
        tolerance: the suite's. Of complex results it speaks of real and imaginary parts, along a
            last dimension of two.
        names: of the results, where there are several.

    Raises:
        ValueError: the suite's fault: the reference has another shape or number of results, or the
            amplitude is negative, NaN or infinite where the reference is finite.
    """
    differences = _against(results, inputs, reference, tolerance, names, tolerance.arithmetic)
    if differences:
        least = max(tolerance.arithmetic, TENSOR_CORES)
        for rounded in in_tf32(inputs, tolerance.products):
            if not _against(results, rounded, reference, tolerance, names, least):
                return () if tolerance.tf32 else tuple(replace(d, kind="tf32") for d in differences)
    return differences


def _against(results: Sequence[torch.Tensor], inputs: Sequence[Any],
             reference: Callable[..., Any], tolerance: Tolerance, names: Sequence[str],
             arithmetic: float) -> tuple[Difference, ...]:
    exact = as_tuple(mistakes.call("reference", reference, *inputs))
    amplitudes: tuple[Amplitude | None, ...] = (None,) * len(exact)
    if tolerance.amplitude is not None:
        amplitudes = as_tuple(mistakes.call("tolerance", tolerance.amplitude, *inputs))
    if not len(results) == len(exact) == len(amplitudes):
        raise ValueError(f"{len(results)} results, {len(exact)} references and "
                         f"{len(amplitudes)} amplitudes cannot be compared")
    dtype = next((dtype_name(value.dtype) for value in inputs if isinstance(value, torch.Tensor)
                  and value.dtype.is_floating_point), "")
    differences = []
    for number, (result, right, amplitude) in enumerate(
            zip(map(in_reals, results), map(in_reals, exact), amplitudes, strict=True)):
        if amplitude is None:
            difference = exactly(result, right)
        else:
            difference = within(result, right, amplitude, dtype, arithmetic,
                                together=tolerance.leaning or any(map(_repeated, inputs)))
        if difference is not None:
            if len(exact) > 1:
                name = names[number] if number < len(names) else ""
                difference = replace(difference, output=name, position=number)
            differences.append(replace(difference, of_parts=results[number].is_complex()))
    return tuple(differences)


def _repeated(value: Any) -> bool:
    """Whether a tensor is a view that repeats what it holds, such as one number for all."""
    return isinstance(value, torch.Tensor) and any(
        stride == 0 and size > 1 for size, stride in zip(value.shape, value.stride(), strict=True))


def right_as_float32(difference: Difference) -> bool:
    """Whether a float64 result is as right as float32 is: most elements are off by its roundings.

    Where a function is steep it magnifies them, so single elements may be off by a thousand.
    """
    if difference.kind == "nonfinite":
        return False
    _, result, reference = difference.tensors
    finite = reference.isfinite() & (reference != 0)
    if result.dtype != torch.float64 or not bool(finite.any()):
        return False
    off = ((result - reference).abs() / reference.abs())[finite]
    return bool(off.median() <= KAPPA * FLOAT32) and bool(off.max() <= 1024 * FLOAT32)


def exactly(result: torch.Tensor, reference: torch.Tensor) -> Difference | None:
    """Compares with the correctly rounded reference, bit for bit (any NaN equals any NaN).

    Integers and booleans must equal the reference; it may be of a wider type, which shows
    whether a sum wrapped around.
    """
    _same_shape(result, reference)
    expected = reference
    if result.dtype.is_floating_point:
        expected = reference.to(result.dtype).double()
        value = result.double()
        signs = torch.signbit(value) == torch.signbit(expected)
        same = ((value == expected) & signs) | (value.isnan() & expected.isnan())
    else:
        same = result == expected  # torch compares in the wider of the two types
    wrong = ~same
    if not bool(wrong.any()):
        return None
    pattern = _pattern_differs(result, expected)
    if bool((wrong & pattern).any()):
        return _difference("nonfinite", wrong & pattern, result, expected, math.inf)
    return _difference("values", wrong, result, expected, math.inf)


def within(result: torch.Tensor, reference: torch.Tensor, amplitude: Amplitude,
           input_dtype: str, arithmetic: float = FLOAT32, *,
           together: bool = False) -> Difference | None:
    """Compares with the reference by the rule above.

    Args:
        result: any floating dtype, the reference's shape. Integers are codes: the reference
            rounded to the nearest, either neighbor where computing may have crossed a tie.
        reference: float64, before any rounding.
        amplitude: float64 tensors of that shape, or numbers.
        input_dtype: of the first input, for intermediates that may be rounded to it.
        arithmetic: its unit roundoff, u_c.
        together: one rounding may move all elements one way, as where they share a number; then
            nothing is said of leaning.

    Raises:
        ValueError: the shapes differ, or the amplitude is not a bound.
    """
    _same_shape(result, reference)
    computing = torch.as_tensor(computing_error(amplitude, input_dtype, arithmetic),
                                dtype=torch.float64)
    least, most = _ends(computing)
    bound = least >= 0 and most < math.inf
    computing = computing.expand(reference.shape)
    finite = _where_finite(reference)
    if not bound and not bool(((computing >= 0) & (computing < math.inf) | ~finite).all()):
        raise ValueError("the amplitude is negative, NaN or infinite where the result is finite")
    if not result.dtype.is_floating_point:
        return _codes(result, reference, computing)

    dtype = dtype_name(result.dtype)
    error, size = result.double() - reference, reference.abs()
    saturates = result.dtype == torch.float8_e4m3fn  # values too large do not become infinity there
    if saturates or not _all_finite(error):  # else both sides are finite throughout
        overflowed = _overflows(result, reference, computing)
        pattern = _pattern_differs(result, reference) & ~overflowed
        if bool(pattern.any()):
            return _difference("nonfinite", pattern, result, reference, math.inf)
        finite = finite & ~overflowed
        error = torch.where(finite, error, 0.0)
        computing = torch.where(finite, computing, 0.0)
        size = torch.where(finite, size, 0.0)
    tolerance = UNIT_ROUNDOFF[dtype] * size + computing + UNDERFLOW[dtype]
    wrong = ~(error.abs() <= tolerance)
    if bool(wrong.any()):
        ratio = float((error.abs() / tolerance).max())
        return _difference("values", wrong, result, reference, ratio)
    if UNIT_ROUNDOFF[dtype] > arithmetic:
        return _rounded_otherwise(result, reference, computing, finite)
    if together:
        return None
    return _leaning(result, reference, error, tolerance, finite, amplitude.length, arithmetic)


def _ends(tensor: torch.Tensor) -> tuple[float, float]:
    """The least and the largest number, both NaN where there is one, 0 where there is none."""
    if not tensor.numel():
        return 0.0, 0.0
    least, most = tensor.aminmax()
    return float(least), float(most)


def is_finite(tensor: torch.Tensor) -> bool:
    """Whether no element is NaN or infinite; torch asks no float8."""
    return bool((tensor.float() if tensor.itemsize == 1 else tensor).isfinite().all())


def _all_finite(tensor: torch.Tensor) -> bool:
    least, most = _ends(tensor)
    return -math.inf < least and most < math.inf


def _where_finite(reference: torch.Tensor) -> torch.Tensor:
    """Nearly always everywhere, and to ask each element takes five times as long."""
    if _all_finite(reference):
        return torch.ones((), dtype=torch.bool).expand(reference.shape)
    return reference.isfinite()


def computing_error(amplitude: Amplitude, input_dtype: str,
                    arithmetic: float = FLOAT32) -> torch.Tensor | float:
    """The part of the tolerance that stems from computing, without the rounding of the result."""
    summed = spread(amplitude.length) * amplitude.reduced
    error = KAPPA * arithmetic * (amplitude.pointwise + summed)
    return error + KAPPA * 1.5 * UNIT_ROUNDOFF.get(input_dtype, 0.0) * amplitude.middle


# ---------------------------------------------------------------------------------------------
# The aggregate check: many small errors that all point one way


def _rounded_otherwise(result: torch.Tensor, reference: torch.Tensor, computing: torch.Tensor,
                       finite: torch.Tensor) -> Difference | None:
    """For results less precise than the arithmetic: how many differ from the rounded reference.

    Right arithmetic rounds to another neighbor only where the exact value is close to a midpoint:
    with probability 2·T/ulp. Numbers below the normal range are left out: a GPU may flush them.
    """
    rounded = reference.to(result.dtype)
    least = max(torch.finfo(result.dtype).smallest_normal, 2 * UNDERFLOW[dtype_name(result.dtype)])
    normal = finite & (reference.abs() >= least)
    other = (rounded.double() != result.double()) & normal
    chance = torch.clamp(2 * computing / ulp(rounded), max=1.0)
    expected = float(torch.where(normal, chance, 0.0).sum())
    allowed = expected + 6 * math.sqrt(expected + 1) + 3
    if int(other.sum()) > allowed:
        return _difference("drift", other, result, reference, int(other.sum()) / allowed)
    return None


def _leaning(result: torch.Tensor, reference: torch.Tensor, error: torch.Tensor,
             tolerance: torch.Tensor, finite: torch.Tensor, length: int,
             arithmetic: float) -> Difference | None:
    """For results of the same precision: the least-squares slope of the error against the value.

    Both are weighted by the tolerance, and the error is 0 where nothing is ``finite``. A slope is
    what a factor near 1 leaves behind.

    The allowed slope is six of its standard deviations. All elements of a row may share an error,
    as those of attention share the row's scores, so each row counts as one observation where that
    gives more (Liang and Zeger 1986, "Longitudinal data analysis using generalized linear models").
    """
    count = int(finite.sum())
    if count < MINIMUM_FOR_SLOPE:
        return None
    values = reference if count == finite.numel() else torch.where(finite, reference, 0.0)
    scaled, off = (values / tolerance).flatten(), (error / tolerance).flatten()
    energy = float(scaled @ scaled)
    if energy == 0.0:
        return None
    slope = float(scaled @ off) / energy
    unexplained = max(float(off @ off) - slope * slope * energy, 0.0)  # squares that are left
    of_rows = (scaled * (off - slope * scaled)).view(-1, reference.shape[-1]).sum(dim=1)
    sigma = max(math.sqrt(unexplained / count / energy), float(of_rows.norm()) / energy)
    allowed = 2 * arithmetic * spread(length) + 6 * sigma
    if abs(slope) > allowed:
        return _difference("drift", finite & (error != 0), result, reference, abs(slope) / allowed)
    return None


# ---------------------------------------------------------------------------------------------
# Parts


def _codes(result: torch.Tensor, reference: torch.Tensor,
           computing: torch.Tensor) -> Difference | None:
    """Quantized values: the nearest whole number, or the other one where a tie is too close."""
    finite = reference.isfinite()  # what NaN becomes as an integer is for a suite to say
    error = torch.where(finite, result.double() - reference, 0.0).abs()
    wrong = finite & ~(error <= 0.5 + computing)
    if not bool(wrong.any()):
        return None
    return _difference("values", wrong, result, reference.round(), float(error.max()) / 0.5)


def _overflows(result: torch.Tensor, reference: torch.Tensor,
               computing: torch.Tensor) -> torch.Tensor:
    """Elements that are infinite because the exact value does not fit the dtype.

    A dtype without infinities holds its largest number instead.
    """
    largest = torch.finfo(result.dtype).max
    value = result.double()
    at_the_end = value.isinf()
    if result.dtype == torch.float8_e4m3fn:
        at_the_end = value.abs() == largest
    too_large = reference.isfinite() & (reference.abs() + computing > largest)
    return at_the_end & too_large & (torch.signbit(value) == torch.signbit(reference))


def _pattern_differs(result: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    if not result.dtype.is_floating_point:
        return torch.zeros_like(result, dtype=torch.bool)
    value = result.double()
    return (
        (value.isnan() != reference.isnan())
        | (value.isposinf() != reference.isposinf())
        | (value.isneginf() != reference.isneginf())
    )


def _difference(kind: DifferenceKind, wrong: torch.Tensor, result: torch.Tensor,
                reference: torch.Tensor, ratio: float) -> Difference:
    index = tuple(int(i) for i in wrong.nonzero()[0])
    return Difference(
        kind, int(wrong.sum()), wrong.numel(), index,
        _item(result[index]), _item(reference[index]), ratio, (wrong, result, reference))


def _item(element: torch.Tensor) -> float:
    item: float = (element.double() if element.dtype.is_floating_point else element).item()
    return item


def _same_shape(result: torch.Tensor, reference: torch.Tensor) -> None:
    if result.shape != reference.shape:  # broadcasting would compare other elements
        raise ValueError(f"a result of shape {tuple(result.shape)} cannot be compared with a "
                         f"reference of shape {tuple(reference.shape)}")
