"""Precision of each dtype: unit roundoff, spacing, and the roundings of TF32."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

# Half the distance from 1 to the next number.
UNIT_ROUNDOFF = {
    "float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3,
}
# What a GPU may flush to zero, or half the spacing of subnormal numbers and more.
UNDERFLOW = {
    "float64": 2.0**-1022, "float32": 2.0**-125, "float16": 2.0**-24, "bfloat16": 2.0**-125,
    "float8_e4m3fn": 2.0**-10, "float8_e5m2": 2.0**-17,
}

_CUT = ~0x1FFF  # TF32 keeps 10 of float32's 23 bits of mantissa
_HALF = 0x1000


def spread(length: int) -> float:
    """g(L): how far the roundings of a sum of ``length`` terms may add up, in whatever order."""
    return min(length, 4.0 * math.sqrt(length))


def ulp(rounded: torch.Tensor) -> torch.Tensor:
    """Distance from each value to the next of its dtype, as float64."""
    info = torch.finfo(rounded.dtype)
    size = rounded.double().abs().clamp(min=float(info.smallest_normal))
    _, exponent = torch.frexp(size)  # size lies between 2**(exponent - 1) and 2**exponent
    return torch.exp2(exponent.double() - 1) * info.eps


def tf32(tensor: torch.Tensor, mode: str = "rz") -> torch.Tensor:
    """float32 values as TF32 keeps them; NaN and infinities stay as they are.

    Args:
        tensor: float32.
        mode: ``rz`` (cut, as tensor cores read float32), ``rna`` (to nearest, ties away from zero)
            or ``rne`` (to nearest, ties to even).
    """
    bits = tensor.contiguous().view(torch.int32)
    if mode == "rna":
        bits = bits + _HALF
    elif mode == "rne":
        bits = bits + (_HALF - 1) + ((bits >> 13) & 1)
    return torch.where(tensor.isfinite(), (bits & _CUT).view(torch.float32), tensor)


def in_tf32(inputs: Sequence[Any], places: Sequence[int]) -> Iterator[list[Any]]:
    """The inputs with the float32 tensors at ``places`` in TF32, once for each rounding.

    Nothing comes where TF32 holds all these values anyway.
    """
    for mode in ("rz", "rna", "rne"):
        rounded = list(inputs)
        changed = False
        for place in places:
            value = inputs[place]
            if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
                rounded[place] = tf32(value, mode)
                changed |= not torch.equal(rounded[place].nan_to_num(), value.nan_to_num())
        if changed:
            yield rounded
