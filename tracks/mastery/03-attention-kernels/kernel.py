"""Attention without a tensor of scores: you write the design first, then the code.

    out[m] = sum_n p[m, n] v[n],   p[m, :] = softmax(s[m, :]),   s[m, n] = scale * q[m] . k[n]
    lse[m] = log(sum_n exp(s[m, n]))

Shapes:  q (B, Hq, Sq, D), k and v (B, Hk, Sk, D), with Hq a multiple of Hk: Hq / Hk consecutive
         heads of queries share a head of keys. 1 <= D <= 128. The result is new, contiguous and of
         q's shape; lse is (B, Hq, Sq) in float32, with the natural logarithm.
Dtypes:  float16, bfloat16 or float32, the same for all three; any strides.
Given:   the signature and its contract.
Missing: kernels, grids, argument checks, and `DESIGN`.
Graded:  values  float32 scores, sums and logarithms; float32 inputs more accurate than TF32
         NaN     in q: that row is NaN; in v: its column, for every query that sees the key.
                 Not tested: infinities, NaN in k, and NaN in v at a key not seen.
         memory  64-bit offsets; every access is in bounds
         cost    one launch, and no tensor of size Sq * Sk; causal attention does not visit tiles
                 that are masked completely
         errors  invalid arguments are rejected before any launch
         design  every entry of `DESIGN` within 10 % for three shapes

`python kernel.py` runs four public cases, `tritonlab grade track4/attention-kernels` runs all of
them. Both require that no `...` is left.
"""

from __future__ import annotations

import torch

# Write these first. Each entry is a string with a Python expression; "bound" is "memory" or
# "compute".
#
#   flops   FLOP of the two matrix products, two per multiply-add
#   bytes   the minimum that must be read and written
#   grid    programs
#   tile    elements of the result that one program owns, padding included
#
# Variables: B, Hq, Hk, Sq, Sk and D as above, with e bytes per element. Causal attention has
# Sq == Sk. All graded shapes have sequences in the thousands.
# Functions: ceil, floor, min, max, log2, cdiv and next_power_of_2. Entries may name the upper-case
# integers of this file.
DESIGN = {
    "attention": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "causal attention": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, return_lse: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Returns softmax(scale * q @ k.mT) @ v per head, a new contiguous tensor of q's shape.

    Args:
        q: (B, Hq, Sq, D) in float16, bfloat16 or float32, with 1 <= D <= 128; any strides.
        k, v: (B, Hk, Sk, D) of the same dtype. Hq / Hk consecutive heads of q share a head of k.
        causal: whether query m sees only the keys 0 to m.
        scale: the scores are multiplied by it, any finite int or float; None means 1 / sqrt(D).
        return_lse: whether to return the log-sum-exp of each query's scores as well, (B, Hq, Sq)
            in float32.

    Raises:
        TypeError: an argument is of the wrong type, a dtype is not supported or differs from q's.
        ValueError: shapes or devices do not fit together, Sk is 0, D is out of range, or ``causal``
            is set and Sq != Sk.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
