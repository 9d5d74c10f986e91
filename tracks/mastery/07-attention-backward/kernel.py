"""Gradients of attention without a tensor of scores: you write the design first, then the code.

    p[m, n]  = exp(s[m, n] - lse[m])            s[m, n] = scale * q[m] . k[n]
    dp[m, n] = do[m] . v[n]                     delta[m] = out[m] . do[m]
    ds[m, n] = p[m, n] * (dp[m, n] - delta[m])

    dv[n] = sum_m p[m, n] do[m]
    dk[n] = scale * sum_m ds[m, n] q[m]         dq[m] = scale * sum_n ds[m, n] k[n]

Shapes:  q, out and d_out (B, Hq, Sq, D); k and v (B, Hk, Sk, D), with Hq a multiple of Hk: Hq / Hk
         consecutive heads of queries share a head of keys. 1 <= D <= 128. lse and delta are
         (B, Hq, Sq) in float32, with the natural logarithm. Results are new, contiguous and have
         the shapes and the dtype of q and k.
Dtypes:  float16, bfloat16 or float32, the same for all matrices; any strides.
Given:   the signatures and their contracts. Each function is graded on its own as soon as it is
         written, in the order of this file.
Missing: kernels, grids, argument checks, and `DESIGN`.
Graded:  values  float32 scores, weights, delta and sums; float32 inputs more accurate than TF32.
                 Infinities and NaN are not tested.
         order   bitwise equal results for any order of programs
         memory  64-bit offsets; every access is in bounds
         cost    one launch for each of the first three functions, three for the last, and no tensor
                 of size Sq * Sk; causal gradients do not visit tiles that are masked completely
         errors  invalid arguments are rejected before any launch
         design  every entry of `DESIGN` within 10 % for three shapes

`python kernel.py` runs the public cases, `tritonlab grade track4/attention-backward` runs all of
them. Both require that no `...` is left; use `raise NotImplementedError` for what comes later.
"""

from __future__ import annotations

import torch

# Write these first. Each entry is a string with a Python expression; "bound" is "memory" or
# "compute".
#
#   flops   FLOP of all products, two per multiply-add
#   bytes   the minimum that must be read and written
#   grid    programs
#   tile    elements of out, of dk or of dq that one program owns, padding included
#
# Variables: B, Hq, Hk, Sq, Sk and D as above, with e bytes per element; no mask. All graded shapes
# have sequences in the thousands.
# Functions: ceil, floor, min, max, log2, cdiv and next_power_of_2. Entries may name the upper-case
# integers of this file.
DESIGN = {
    "backward_delta": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "backward_keys": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "backward_queries": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


def backward_delta(out: torch.Tensor, d_out: torch.Tensor) -> torch.Tensor:
    """Returns the dot product of each row of out with that of d_out: (B, Hq, Sq) in float32.

    Args:
        out, d_out: (B, Hq, Sq, D) in float16, bfloat16 or float32, with 1 <= D <= 128; any strides.

    Raises:
        TypeError: an argument is not a tensor, or dtypes are not supported or differ.
        ValueError: shapes or devices differ, or D is out of range.
    """
    ...


def backward_keys(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor, lse: torch.Tensor,
    delta: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns dk and dv, new contiguous tensors of the shape and dtype of k.

    Args:
        delta: of ``backward_delta``; everything else as in ``attention_backward``.

    Raises:
        TypeError, ValueError: as in ``attention_backward``.
    """
    ...


def backward_queries(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor, lse: torch.Tensor,
    delta: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> torch.Tensor:
    """Returns dq, a new contiguous tensor of the shape and dtype of q.

    Args:
        delta: of ``backward_delta``; everything else as in ``attention_backward``.

    Raises:
        TypeError, ValueError: as in ``attention_backward``.
    """
    ...


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    d_out: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the gradients dq, dk and dv of out = softmax(scale * q @ k.mT) @ v per head.

    Args:
        q: (B, Hq, Sq, D) in float16, bfloat16 or float32, with 1 <= D <= 128; any strides.
        k, v: (B, Hk, Sk, D) of the same dtype. Hq / Hk consecutive heads of q share a head of k.
        out: (B, Hq, Sq, D), the result of the forward pass.
        lse: (B, Hq, Sq) in float32, the log-sum-exp of each query's scores, natural logarithm.
        d_out: (B, Hq, Sq, D), the gradient of out; any strides.
        causal: whether query m sees only the keys 0 to m.
        scale: factor of the scores in the forward pass; None means 1 / sqrt(D).

    Returns:
        New contiguous tensors of the shapes and dtype of q, k and v.

    Raises:
        TypeError: an argument is of the wrong type, a dtype is not supported or differs from q's.
        ValueError: shapes or devices do not fit together, Sq or Sk is 0, D is out of range, or
            ``causal`` is set and Sq != Sk.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
