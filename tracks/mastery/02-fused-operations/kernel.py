"""Four fused operations from their formulas, and the gain that fusing can have at most.

    fused_add_relu_mul(x, bias, s)     relu(x + bias) * s
    linear_bias_act(x, w, b, act)      act(x @ w.T + b)
    layer_norm_gelu(x, g, h)           gelu(layer_norm(x) * g + h)
    layer_norm_linear(x, g, h, w, b)   (layer_norm(x) * g + h) @ w.T + b
    fusion_gain(...)                   time before over time after: host code, no kernel

Shapes:  x of the first has any shape, and its bias that shape or one number for each column. In the
         others x is a matrix, (M, K) or (R, C), w is (N, K) as for `F.linear`, b is (N,) or None,
         and what is normalized are rows. Float32, float16 or bfloat16, all alike; any strides.
         Results are new contiguous tensors of that dtype.
Given:   the signatures and what they promise.
Missing: everything else: kernels, grids, checks of arguments, and `DESIGN`.
Judged:  values  arithmetic is float32, rounded once to the result; products of float32 without TF32
         memory  offsets have 64 bits; no intermediate tensor exists
         cost    one launch each; what it reads how often is said in the lesson
         errors  bad arguments are refused before anything is launched
         design  every entry of `DESIGN` within 10 % for three shapes

`python kernel.py` runs some public cases, `tritonlab grade track4/fused-operations` runs all of
them. Both want every `...` gone; `raise NotImplementedError` stands for a function that you do
later.
"""

from __future__ import annotations

from typing import Literal

import torch

# Write these first. Each entry is a text with a Python expression, but for "bound", which is
# "memory" or "compute".
#
#   flops   operations: each sum, product, quotient, comparison and function is one
#   bytes   that have to be read and written at least, whatever tiles read again
#   grid    programs
#   tile    elements of the result that one program owns, padding included; of a persistent program,
#           those of all its tiles together
#
# Variables: R rows and C columns of `fused_add_relu_mul`, with a bias for columns, and of
# `layer_norm_gelu`; M, N and K of the two products, both with a bias; e bytes an element.
# Functions: ceil, floor, min, max, log2, cdiv and next_power_of_2. Constants of this file that are
# written in capitals may be used by their names.
DESIGN = {
    "fused_add_relu_mul": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "linear_bias_act": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "layer_norm_gelu": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "layer_norm_linear": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


def fused_add_relu_mul(x: torch.Tensor, bias: torch.Tensor, scale: float) -> torch.Tensor:
    """relu(x + bias) * scale, for a bias of the shape of ``x`` or one number for each column.

    Raises:
        TypeError: an argument is no tensor or not of a supported dtype, the dtypes differ, or scale
            is no number.
        ValueError: bias has neither shape, or the devices differ.
    """
    ...


def linear_bias_act(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None,
    act: Literal["none", "relu", "gelu", "silu"] = "none",
) -> torch.Tensor:
    """act(x @ w.T + b) for x (M, K), w (N, K) and b (N,) or None; "gelu" is the one with erf.

    Without inputs (K = 0) it is act(b), or act(0).

    Raises:
        TypeError: an argument is no tensor or not of a supported dtype, the dtypes differ, or act
            is no str.
        ValueError: a shape does not fit, the devices differ, or act is not one of the four.
    """
    ...


def layer_norm_gelu(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """gelu of the normalized rows of ``x`` (R, C), for weight and bias (C,); GELU with erf.

    Raises:
        TypeError: an argument is no tensor or not of a supported dtype, the dtypes differ, or eps
            is no number.
        ValueError: a shape does not fit, C is not 1 to 65,536, the devices differ, or eps is not
            above 0.
    """
    ...


def layer_norm_linear(
    x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor, w: torch.Tensor,
    b: torch.Tensor | None, eps: float = 1e-5,
) -> torch.Tensor:
    """layer_norm(x) @ w.T + b for x (M, K), ln_w and ln_b (K,), w (N, K) and b (N,) or None.

    Raises:
        TypeError: an argument is no tensor or not of a supported dtype, the dtypes differ, or eps
            is no number.
        ValueError: a shape does not fit, K is not 1 to 8,192, the devices differ, or eps is not
            above 0.
    """
    ...


def fusion_gain(
    passes_before: int, passes_after: int, launches_before: int, launches_after: int,
    n_bytes: int, copy_gbps: float, launch_us: float,
) -> float:
    """How many times as fast the fused form is at most: time before over time after.

    All launches run one after the other. Each takes ``launch_us`` before it moves anything, and
    then every pass moves its bytes at the rate of a copy.

    Args:
        passes_before, passes_after: walks of a whole tensor, reading or writing.
        launches_before, launches_after: kernels.
        n_bytes: of one pass.
        copy_gbps: 1e9 bytes a second, read and written ones together.
        launch_us: microseconds.

    Raises:
        TypeError: a count or n_bytes is no int, or another argument no number.
        ValueError: a count is below 1, n_bytes or launch_us below 0, copy_gbps not above 0, or
            nothing takes any time.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
