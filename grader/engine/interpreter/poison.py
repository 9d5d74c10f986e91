"""Poison values for uninitialized memory and masked-off elements."""

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

FRESH_BYTE = (0xFF, 0xA5)  # by pattern; the first reads as NaN in every float format
_INTEGERS = (0x5A5A5A5B, -0x5A5A5A5B)
_LARGE = 1e30


@cache
def masked_lane(dtype: np.dtype[Any], pattern: int) -> Any:
    """The value that a switched-off lane of a load without ``other`` gets."""
    if dtype == np.bool_:
        return np.bool_(pattern == 0)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        value = _INTEGERS[pattern]
        if dtype.kind == "u" and value < 0:
            value %= limits.max + 1  # clipping would give 0, which hides the mistake
        return dtype.type(min(max(value, int(limits.min)), int(limits.max)))
    if pattern == 0:
        return np.array(np.nan).astype(dtype)[()]
    return np.array(min(_LARGE, float(ml_dtypes.finfo(dtype).max))).astype(dtype)[()]
