"""Five functions from their formulas: you write the design first, then all of the code.

    poly_act(x, c)      c0 + c1 x + c2 x^2 + ...     1 to 9 coefficients, the constant one first
    swish(x, beta)      x * sigmoid(beta x)
    glu(x, gate)        x * sigmoid(gate)
    complex_mul(a, b)   the product of complex numbers, by the elementary formula
    l2_norm(x)          the square root of the sum of the squares of each row

Shapes:  the first three take float32, float16 or bfloat16 of any shape, `complex_mul` takes
         complex64 of any shape, `l2_norm` a matrix (R, C) of up to 65,536 columns, and gives (R,).
         Any strides. Results are new contiguous tensors of the input's dtype; of `l2_norm`,
         float32. Nothing is broadcast.
Given:   the signatures and what they promise.
Missing: everything else: kernels, grids, checks of arguments, and `DESIGN`.
Judged:  values  arithmetic is float32, rounded once to the result; NaN and infinities
         memory  offsets have 64 bits; no program touches an element that is not there
         cost    one launch each, which reads every operand once and writes every result once
         errors  bad arguments are refused before anything is launched
         design  every entry of `DESIGN` within 10 % for three shapes

`python kernel.py` runs four public cases, `tritonlab grade track4/custom-kernels` runs all of them.
Both want every `...` gone; `raise NotImplementedError` stands for a function that you do later.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

# Write these first. Each entry is a text with a Python expression, but for "bound", which is
# "memory" or "compute".
#
#   flops   operations: each sum, product, quotient, magnitude, comparison and exponential is one
#   bytes   that have to be read and written at least
#   grid    programs
#   tile    elements of x (or numbers of a) that one program owns, padding included
#
# Variables: n elements of e bytes, k coefficients, R rows and C columns. In `complex_mul`, n counts
# complex numbers of 8 bytes, and there is no e.
# Functions: ceil, floor, min, max, log2, cdiv and next_power_of_2. Constants of this file that are
# written in capitals may be used by their names.
DESIGN = {
    "poly_act": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "swish": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "glu": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "complex_mul": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "l2_norm": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


def poly_act(x: torch.Tensor, coeffs: Sequence[float]) -> torch.Tensor:
    """The polynomial with ``coeffs``, the constant one first, of every element of ``x``.

    Raises:
        TypeError: x is no tensor or not of a supported dtype; a coefficient is no number.
        ValueError: there is no coefficient, or more than 9.
    """
    ...


def swish(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    """x * sigmoid(beta * x), element by element; of minus infinity, NaN for a positive beta.

    Raises:
        TypeError: x is no tensor or not of a supported dtype, or beta is no number.
    """
    ...


def glu(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """x * sigmoid(gate), element by element.

    Raises:
        TypeError: an argument is no tensor or not of a supported dtype, or the dtypes differ.
        ValueError: shapes or devices differ.
    """
    ...


def complex_mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a * b, element by element, by the elementary formula; lazily conjugated views count.

    Raises:
        TypeError: an argument is no tensor, or not complex64.
        ValueError: shapes or devices differ.
    """
    ...


def l2_norm(x: torch.Tensor) -> torch.Tensor:
    """The Euclidean norm of every row of ``x`` (R, C), as float32 (R,).

    Rows of numbers near 1e30 and near 1e-30 have norms of that size. A NaN makes the norm of its
    row NaN, an infinity without NaN makes it infinite. A row without columns has the norm 0.

    Raises:
        TypeError: x is no tensor or not of a supported dtype.
        ValueError: x is no matrix, or has more than 65,536 columns.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
