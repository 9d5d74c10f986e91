"""Layer norm with its gradients, and an in-place Adam step: you write the design and the code.

    y = x_hat * w + b        x_hat = (x - mean) * rstd        rstd = 1 / sqrt(var + eps)

    dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat))       g = w * dy
    dw = sum over rows of dy * x_hat                          db = sum over rows of dy

    m = b1 * m + (1 - b1) * g        p = (1 - lr * wd) * p
    v = b2 * v + (1 - b2) * g * g    p = p - lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

Shapes:  x (..., C) in float32, float16 or bfloat16, 1 <= C <= 16,384, any strides; weight and bias
         (C,) in one of these dtypes, not always that of x. dx has the dtype of x; dw and db have
         that of the parameters. A parameter of Adam is contiguous, of any shape and one of these
         dtypes; its gradient has the same shape and dtype; its moments are float32.
Given:   the signatures and their contracts.
Missing: everything else: kernels, grids, argument checks, both classes, and `DESIGN`.
Graded:  values  of the result, of every requested gradient, and of everything that Adam updates
         order   bitwise equal results for any order of programs
         kept    only x, the weight and two numbers per row until the backward pass
         cost    one launch forward, two backward, one for Adam; every matrix moves once
         errors  invalid arguments are rejected before any launch
         design  every entry of `DESIGN` within 10 % for three shapes

`python kernel.py` runs the public cases, `tritonlab grade track4/training-kernels` runs all of
them. Both require that no `...` is left; use `raise NotImplementedError` for what comes later.
"""

from __future__ import annotations

from typing import Any

import torch

# Write these first. Each entry is a string with a Python expression; "bound" is "memory" or
# "compute".
#
#   flops   FLOP: each sum, product, quotient and root counts as one
#   bytes   the minimum that must be read and written
#   grid    programs of the launch that reads x, or param
#   tile    elements of x, or of param, that one program owns, padding included
#
# Variables: R rows, C columns and e bytes per element for layer norm, whose parameters have e bytes
# too; G programs that share the rows of the backward pass; n parameters of e bytes for Adam.
# Functions: ceil, floor, min, max, log2, cdiv and next_power_of_2. Entries may name the upper-case
# constants of this file.
DESIGN = {
    "layer_norm": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "layer_norm_backward": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "adam_step_": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


class LayerNormFunction(torch.autograd.Function):
    """Layer norm as one node of the autograd graph, marked as differentiable once."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """Returns the result; saves x, the weight, and each row's mean and rstd."""
        ...

    @staticmethod
    def backward(
        ctx: Any, dy: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None, None]:
        """Returns the requested gradients of x, weight and bias, and None for the rest."""
        ...


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Normalizes x (..., C) over its last dimension, then scales and shifts it. Differentiable.

    Args:
        x: float32, float16 or bfloat16, with 1 <= C <= 16,384; any strides.
        weight: (C,), of one of these dtypes; ``bias`` is of the same.
        eps: added to the variance, above 0.

    Returns:
        A new contiguous tensor of the shape, dtype and device of x.

    Raises:
        TypeError: an argument has the wrong type, or dtypes are unsupported or differ.
        ValueError: a shape, a device or eps is invalid.
    """
    ...


class TritonLayerNorm(torch.nn.Module):
    """``torch.nn.LayerNorm`` over one dimension, with the same parameter names."""

    def __init__(
        self, normalized_shape: int, eps: float = 1e-5, *,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:
        """Creates a weight of ones and a bias of zeros for the last dimension."""
        ...

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns ``layer_norm`` of x (..., C) with the parameters of this module."""
        ...


def adam_step_(
    param: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor, exp_avg_sq: torch.Tensor, *,
    step: int, lr: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> None:
    """Adam step with decoupled weight decay; updates ``param`` and both moments in place.

    Args:
        param: float32, float16 or bfloat16, any shape, contiguous.
        grad: of the same shape and dtype, any strides.
        exp_avg: the first moment, float32, of the same shape, contiguous; so is ``exp_avg_sq``.
        step: number of this step, counted from 1.
        eps: added to the square root of the second moment.
        weight_decay: before the step, param is multiplied by 1 - lr * weight_decay.

    Raises:
        TypeError: an argument is not a tensor, or has an invalid dtype.
        ValueError: step < 1, a beta outside [0, 1), or an invalid shape, device or layout.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
