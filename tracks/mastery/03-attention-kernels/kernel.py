"""Attention without a tensor of scores: you write the design first, then all of the code.

    out[m] = sum_n p[m, n] v[n],   p[m, :] = softmax(s[m, :]),   s[m, n] = scale * q[m] . k[n]
    lse[m] = log(sum_n exp(s[m, n]))

Shapes:  q (B, Hq, Sq, D), k and v (B, Hk, Sk, D), with Hq a multiple of Hk: each head of keys
         serves Hq / Hk heads of queries in a row. 1 <= D <= 128. The result is new, contiguous and
         of q's shape; lse is (B, Hq, Sq) in float32, its logarithm the natural one.
Types:   float16, bfloat16 or float32, all three alike; any strides.
Given:   the signature and what it promises.
Missing: everything else: kernels, grids, checks of arguments, and `DESIGN`.
Judged:  values  scores, sums and logarithms are float32; float32 stays better than TF32
         memory  offsets have 64 bits; no program touches an element that is not there
         cost    one launch, and no tensor that grows with queries times keys; where causal, tiles
                 that nobody may look at are not visited
         errors  bad arguments are refused before anything is launched
         design  every entry of `DESIGN` within 10 % for three shapes

`python kernel.py` runs four public cases, `tritonlab grade track4/attention-kernels` runs all of
them. Both want every `...` gone.
"""

from __future__ import annotations

import torch

# Write these first. Each entry is a text with a Python expression, but for "bound", which is
# "memory" or "compute".
#
#   flops   operations of the two products of matrices, two for each multiplication
#   bytes   that have to be read and written at least
#   grid    programs
#   tile    elements of the result that one program owns, padding included
#
# Variables: B, Hq, Hk, Sq, Sk and D as above, with elements of e bytes. Causal attention has Sq and
# Sk alike, in the thousands as in all shapes that are tried.
# Functions: ceil, floor, min, max, log2, cdiv and next_power_of_2. Whole numbers of this file whose
# names are written in capitals may be used by these names.
DESIGN = {
    "attention": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "causal attention": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, return_lse: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """softmax(scale * q @ k.mT) @ v for each head, as a new contiguous tensor of q's shape.

    Args:
        q: (B, Hq, Sq, D) in float16, bfloat16 or float32, with 1 <= D <= 128; any strides.
        k, v: (B, Hk, Sk, D) of the same dtype. Each of the Hk heads serves Hq / Hk heads of q in a
            row.
        causal: whether query m sees keys 0 to m only.
        scale: of the scores, an int or a float; None for 1 / sqrt(D).
        return_lse: whether to return the logarithm of the sum of the exponentials of each query's
            scores as well, (B, Hq, Sq) in float32.

    Raises:
        TypeError: an argument is of the wrong type, a dtype is not supported or differs from q's.
        ValueError: shapes or devices do not fit together, there is no key, D is out of range, or
            ``causal`` is asked for with Sq != Sk.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
