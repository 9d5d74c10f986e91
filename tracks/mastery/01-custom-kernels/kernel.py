"""Five functions from their formulas: you write the design first, then the code.

    poly_act(x, c)      c0 + c1 x + c2 x^2 + ...     1 to 9 coefficients, the constant first
    swish(x, beta)      x * sigmoid(beta x)
    glu(x, gate)        x * sigmoid(gate)
    complex_mul(a, b)   the product of complex numbers, by the elementary formula
    l2_norm(x)          the square root of the sum of the squares of each row

Shapes:  the first three take float32, float16 or bfloat16 of any shape; `complex_mul` takes
         complex64 of any shape; `l2_norm` takes a matrix (R, C) of up to 65,536 columns and returns
         (R,). Any strides. Results are new contiguous tensors of the input's dtype, float32 for
         `l2_norm`. Nothing is broadcast.
Given:   the signatures and their contracts.
Missing: everything else: kernels, grids, argument checks, and `DESIGN`.
Graded:  values  float32 arithmetic, rounded once to the result; NaN and infinities
         memory  64-bit offsets; every access is in bounds
         cost    one launch each, which reads every operand once and writes every result once
         errors  invalid arguments are rejected before any launch
         design  every entry of `DESIGN` within 10 % for three shapes

`python kernel.py` runs four public cases, `tritonlab grade track4/custom-kernels` runs all of them.
Both require that no `...` is left; use `raise NotImplementedError` for functions that come later.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

# Write these first. Each entry is a string with a Python expression; "bound" is "memory" or
# "compute".
#
#   flops   FLOP: each sum, product, quotient, magnitude, comparison and exponential counts as one
#   bytes   the minimum that must be read and written
#   grid    programs
#   tile    elements of x (complex numbers of a) that one program owns, padding included
#
# Variables: n elements of e bytes, k coefficients, R rows and C columns. In `complex_mul`, n counts
# complex numbers of 8 bytes, and there is no e.
# Functions: ceil, floor, min, max, log2, cdiv and next_power_of_2. Entries may name the upper-case
# constants of this file.
DESIGN = {
    "poly_act": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "swish": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "glu": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "complex_mul": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "l2_norm": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


def poly_act(x: torch.Tensor, coeffs: Sequence[float]) -> torch.Tensor:
    """Returns the polynomial with ``coeffs``, the constant first, of every element of ``x``.

    Raises:
        TypeError: x is not a tensor of a supported dtype; a coefficient is not a number.
        ValueError: there are no coefficients, or more than 9.
    """
    ...


def swish(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    """Returns x * sigmoid(beta * x) elementwise; for -inf, NaN if beta is positive.

    Raises:
        TypeError: x is not a tensor of a supported dtype, or beta is not a number.
    """
    ...


def glu(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """Returns x * sigmoid(gate) elementwise.

    Raises:
        TypeError: an argument is not a tensor of a supported dtype, or the dtypes differ.
        ValueError: shapes or devices differ.
    """
    ...


def complex_mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns a * b elementwise, by the elementary formula, for lazily conjugated views too.

    Raises:
        TypeError: an argument is not a complex64 tensor.
        ValueError: shapes or devices differ.
    """
    ...


def l2_norm(x: torch.Tensor) -> torch.Tensor:
    """Returns the Euclidean norm of each row of ``x`` (R, C), as float32 (R,).

    Norms of rows with elements near 1e30 and 1e-30 are accurate. The norm of a row with a NaN is
    NaN, that of a row with an infinity and no NaN is inf. A row without columns has the norm 0.

    Raises:
        TypeError: x is not a tensor of a supported dtype.
        ValueError: x is not a matrix, or has more than 65,536 columns.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
