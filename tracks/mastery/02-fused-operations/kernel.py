"""Four fused operations from their formulas, and the maximum gain of fusion.

    fused_add_relu_mul(x, bias, s)     relu(x + bias) * s
    linear_bias_act(x, w, b, act)      act(x @ w.T + b)
    layer_norm_gelu(x, g, h)           gelu(layer_norm(x) * g + h)
    layer_norm_linear(x, g, h, w, b)   (layer_norm(x) * g + h) @ w.T + b
    fusion_gain(...)                   time before over time after; host code, no kernel

Shapes:  x of the first has any shape, and its bias has that shape or one element per column. In the
         others, x is a matrix (M, K) or (R, C) whose rows are normalized, w is (N, K) as for
         `F.linear`, and b is (N,) or None. float32, float16 or bfloat16, the same for all tensors;
         any strides. Results are new contiguous tensors of that dtype.
Given:   the signatures and their contracts.
Missing: everything else: kernels, grids, argument checks, and `DESIGN`.
Graded:  values  float32 arithmetic, rounded once to the result; float32 products without TF32
         memory  64-bit offsets; no intermediate tensors
         cost    one launch each; the lesson states the limits of traffic
         errors  invalid arguments are rejected before any launch
         design  every entry of `DESIGN` within 10 % for three shapes

`python kernel.py` runs some public cases, `tritonlab grade track4/fused-operations` runs all of
them. Both require that no `...` is left; use `raise NotImplementedError` for functions that come
later.
"""

from __future__ import annotations

from typing import Literal

import torch

# Write these first. Each entry is a string with a Python expression; "bound" is "memory" or
# "compute".
#
#   flops   FLOP: each sum, product, quotient, comparison and function counts as one
#   bytes   the minimum that must be read and written, without repeated reads of tiles
#   grid    programs
#   tile    elements of the result that one program owns, padding included; for a persistent
#           program, those of all its tiles together
#
# Variables: R rows and C columns of `fused_add_relu_mul`, with one bias element per column, and of
# `layer_norm_gelu`; M, N and K of the two products, both with a bias; e bytes per element.
# Functions: ceil, floor, min, max, log2, cdiv and next_power_of_2. Entries may name the upper-case
# constants of this file.
DESIGN = {
    "fused_add_relu_mul": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "linear_bias_act": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "layer_norm_gelu": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "layer_norm_linear": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


def fused_add_relu_mul(x: torch.Tensor, bias: torch.Tensor, scale: float) -> torch.Tensor:
    """Returns relu(x + bias) * scale, for a bias like ``x`` or with one element per column.

    Raises:
        TypeError: an argument is not a tensor of a supported dtype, the dtypes differ, or scale
            is not a number.
        ValueError: bias has neither shape, or the devices differ.
    """
    ...


def linear_bias_act(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None,
    act: Literal["none", "relu", "gelu", "silu"] = "none",
) -> torch.Tensor:
    """Returns act(x @ w.T + b) for x (M, K), w (N, K) and b (N,) or None; GELU uses erf.

    For K = 0 it is act(b), or act(0).

    Raises:
        TypeError: an argument is not a tensor of a supported dtype, the dtypes differ, or act
            is not a str.
        ValueError: a shape does not fit, the devices differ, or act is not one of the four.
    """
    ...


def layer_norm_gelu(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Returns GELU (with erf) of the normalized rows of ``x`` (R, C); weight and bias are (C,).

    Raises:
        TypeError: an argument is not a tensor of a supported dtype, the dtypes differ, or eps
            is not a number.
        ValueError: a shape does not fit, C is not 1 to 65,536, the devices differ, or eps is not
            above 0.
    """
    ...


def layer_norm_linear(
    x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor, w: torch.Tensor,
    b: torch.Tensor | None, eps: float = 1e-5,
) -> torch.Tensor:
    """Returns layer_norm(x) @ w.T + b for x (M, K), ln_w and ln_b (K,), w (N, K), b (N,) or None.

    Raises:
        TypeError: an argument is not a tensor of a supported dtype, the dtypes differ, or eps
            is not a number.
        ValueError: a shape does not fit, K is not 1 to 8,192, the devices differ, or eps is not
            above 0.
    """
    ...


def fusion_gain(
    passes_before: int, passes_after: int, launches_before: int, launches_after: int,
    n_bytes: int, copy_gbps: float, launch_us: float,
) -> float:
    """Returns the maximum speedup of fusion: time before over time after.

    Launches run one after the other. Each takes ``launch_us``, and then every pass moves its bytes
    at the bandwidth of a copy.

    Args:
        passes_before, passes_after: passes over a whole tensor, reads or writes.
        launches_before, launches_after: kernel launches.
        n_bytes: bytes of one pass.
        copy_gbps: bandwidth in GB/s (1e9 bytes/s), reads and writes together.
        launch_us: time per launch in microseconds.

    Raises:
        TypeError: a count or n_bytes is not an int, or another argument is not a number.
        ValueError: a count is below 1, n_bytes or launch_us below 0, copy_gbps not above 0, or
            the time is 0.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
