"""Layer norm with its gradients, and a step of Adam in place: you write the design and the code.

    y = x_hat * w + b        x_hat = (x - mean) * rstd        rstd = 1 / sqrt(var + eps)

    dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat))       g = w * dy
    dw = sum over rows of dy * x_hat                          db = sum over rows of dy

    m = b1 * m + (1 - b1) * g        p = (1 - lr * wd) * p
    v = b2 * v + (1 - b2) * g * g    p = p - lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

Shapes:  x (..., C) of float32, float16 or bfloat16, 1 <= C <= 16,384, any strides; weight and bias
         (C,) of one of these dtypes, not always that of x. dx has the dtype of x, dw and db have
         that of the parameters. A parameter of Adam has any shape without gaps and one of these
         dtypes, its gradient the same shape and dtype, its moments are float32.
Given:   the signatures and what they promise.
Missing: everything else: kernels, grids, checks of arguments, both classes, and `DESIGN`.
Judged:  values  of the result, of every gradient that is asked for, and of all that Adam changes
         order   the same bits again, in whatever order programs run
         kept    x, the weight and two numbers a row, nothing else, until the backward pass
         cost    one launch forward, two backward, one for Adam; every matrix moves once
         errors  bad arguments are refused before anything is launched
         design  every entry of `DESIGN` within 10 % for three shapes

`python kernel.py` runs the public cases, `tritonlab grade track4/training-kernels` runs all of
them. Both want every `...` gone; `raise NotImplementedError` stands for what you do later.
"""

from __future__ import annotations

from typing import Any

import torch

# Write these first. Each entry is a text with a Python expression, but for "bound", which is
# "memory" or "compute".
#
#   flops   operations: each sum, product, quotient and root is one
#   bytes   that have to be read and written at least
#   grid    programs of the launch that reads x, or param
#   tile    elements of x, or of param, that one program owns, padding included
#
# Variables: R rows, C columns and e bytes an element for layer norm, whose parameters have e bytes
# too; G programs that share the rows of the backward pass; n parameters of e bytes for Adam.
# Functions: ceil, floor, min, max, log2, cdiv and next_power_of_2. Constants of this file that are
# written in capitals may be used by their names.
DESIGN = {
    "layer_norm": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "layer_norm_backward": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
    "adam_step_": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


class LayerNormFunction(torch.autograd.Function):
    """Layer norm as one node of the graph. It can be differentiated once, and says so."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """The result; keeps x, the weight, and each row's mean and reciprocal deviation."""
        ...

    @staticmethod
    def backward(
        ctx: Any, dy: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None, None]:
        """The gradients of x, weight and bias that are asked for; None for all else."""
        ...


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Normalize x (..., C) over its last dimension, then scale and shift by column. Differentiable.

    Args:
        x: float32, float16 or bfloat16, with 1 <= C <= 16,384; any strides.
        weight: (C,), of one of these dtypes; ``bias`` is of the same.
        eps: added to the variance, above 0.

    Returns:
        A new contiguous tensor of the shape, dtype and device of x.

    Raises:
        TypeError: an argument has a wrong type, or a dtype that is not supported or not alike.
        ValueError: a shape, a device, or eps is not as said.
    """
    ...


class TritonLayerNorm(torch.nn.Module):
    """``torch.nn.LayerNorm`` over one dimension: the same parameters by the same names."""

    def __init__(
        self, normalized_shape: int, eps: float = 1e-5, *,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:
        """A weight of ones and a bias of zeros, for the last dimension of what is normalized."""
        ...

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``layer_norm`` of x (..., C) with the parameters of this module."""
        ...


def adam_step_(
    param: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor, exp_avg_sq: torch.Tensor, *,
    step: int, lr: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> None:
    """One step of Adam with decoupled weight decay: changes ``param`` and both moments in place.

    Args:
        param: float32, float16 or bfloat16, any shape, contiguous.
        grad: of the same shape and dtype, any strides.
        exp_avg: the first moment, float32, of the same shape, contiguous; so is ``exp_avg_sq``.
        step: how many steps there are with this one, from 1.
        eps: added to the root of the second moment.
        weight_decay: before the step, param is multiplied by 1 - lr * weight_decay.

    Raises:
        TypeError: an argument is no tensor, or a dtype is not as said.
        ValueError: step < 1, a beta outside [0, 1), or a shape, a device or a layout not as said.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
