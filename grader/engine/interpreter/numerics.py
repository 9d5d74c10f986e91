"""NumPy dtypes for Triton's, bfloat16 and float8 included, and casts that round as a GPU does."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl
from numpy.typing import NDArray

_NUMPY: dict[str, np.dtype[Any]] = {
    "int1": np.dtype(np.bool_),
    **{name: np.dtype(name) for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "fp16": np.dtype(np.float16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "fp8e4b15": np.dtype(np.uint8),  # NumPy has no such type; loads and stores work, casts do not
}
_POINTER = np.dtype(np.uint64)

# torch's names for the element types that a kernel can point to
TRITON: dict[str, Any] = {
    "bool": tl.int1,
    "int8": tl.int8, "int16": tl.int16, "int32": tl.int32, "int64": tl.int64,
    "uint8": tl.uint8, "uint16": tl.uint16, "uint32": tl.uint32, "uint64": tl.uint64,
    "float16": tl.float16, "bfloat16": tl.bfloat16, "float32": tl.float32, "float64": tl.float64,
    "float8_e5m2": tl.float8e5, "float8_e4m3fn": tl.float8e4nv,
    "float8_e5m2fnuz": tl.float8e5b16, "float8_e4m3fnuz": tl.float8e4b8,
}


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype of a Triton type: of its elements for a block, an address for a pointer."""
    scalar = dtype.scalar
    if scalar.is_ptr():
        return _POINTER
    return _NUMPY[scalar.name]


def cast(data: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Convert, floats to nearest even; overflow of a float8 e4m3 saturates, as the GPU's does."""
    target = numpy_dtype(dtype)
    if target == ml_dtypes.float8_e4m3fn and data.dtype.kind == "f":
        limit = float(ml_dtypes.finfo(target).max)
        data = np.clip(data, -limit, limit)
    return data.astype(target)


def dot(a: NDArray[Any], b: NDArray[Any], accumulator: NDArray[Any]) -> NDArray[Any]:
    """``a @ b + accumulator`` in the accumulator's dtype, products and sums in at least float32."""
    if accumulator.dtype.kind in "iu":  # float64 holds the sums of 8-bit products exactly
        product = np.matmul(a.astype(np.float64), b.astype(np.float64))
        exact: NDArray[Any] = product.astype(accumulator.dtype) + accumulator
        return exact
    wide = np.float64 if accumulator.dtype == np.float64 else np.float32
    product = np.matmul(a.astype(wide), b.astype(wide))
    total: NDArray[Any] = product + accumulator.astype(wide)
    return total.astype(accumulator.dtype)
