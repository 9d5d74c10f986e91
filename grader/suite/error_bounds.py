"""Amplitudes of the usual kernels: what float32 rounding may do to each element of their results.

Each function maps a kernel's inputs to an ``Amplitude`` for ``grader.judge.compare``, in float64.
The pattern is always the same, and a new kernel follows it: take the formula, put absolute values
inside every sum and on both sides of every subtraction (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., sections 3.1, 3.5 and 4.2), and carry the error of an intermediate to the
result by its derivative.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

from grader.suite.rounding import spread
from grader.suite.spec import FLOAT32, KAPPA, Amplitude


def elementwise(*operands: torch.Tensor, condition: float = 1.0) -> Amplitude:
    """Sums and products of a few numbers: the operands' sizes, times the function's condition.

    ``condition`` bounds |x·f'(x)/f(x)| of a function with more than rounding to it, such as erf.
    """
    return Amplitude(pointwise=condition * sum(operand.double().abs() for operand in operands))


def total(x: torch.Tensor, dim: int = -1) -> Amplitude:
    """A sum over one dimension: the sum of absolute values (Higham, section 4.2)."""
    return Amplitude(reduced=x.double().abs().sum(dim), length=max(1, x.shape[dim]))


def mean(x: torch.Tensor, dim: int = -1) -> Amplitude:
    """A mean over one dimension: the mean of absolute values, and a division."""
    return Amplitude(reduced=x.double().abs().mean(dim), length=max(1, x.shape[dim]))


def matmul(a: torch.Tensor, b: torch.Tensor) -> Amplitude:
    """A product of matrices, ``[..., M, K] @ [..., K, N]``: |A| |B| (Higham, section 3.5)."""
    return Amplitude(reduced=a.double().abs() @ b.double().abs(), length=max(1, a.shape[-1]))


def conv2d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
           **geometry: Any) -> Amplitude:
    """A convolution is a matrix product over channels and taps; ``geometry`` as torch's."""
    reduced = F.conv2d(x.double().abs(), weight.double().abs(), None, **geometry)
    added = 0.0 if bias is None else bias.double().abs()[:, None, None].expand_as(reduced)
    return Amplitude(pointwise=added, reduced=reduced, length=weight[0].numel())


def softmax(x: torch.Tensor, dim: int = -1) -> Amplitude:
    """Softmax over one dimension.

    An error d in an exponent is a relative error d in its exp. The exponents x_j - m carry errors
    of the order of |x_j| + |m|; each element has its own, and through the sum the mean of all,
    weighted by p. Exp, sum and quotient add a few roundings, and the sum of C terms those of C.
    Elements that equal m share one exponent, however it is computed: nothing sets them apart.
    """
    if x.numel() == 0:
        return Amplitude()
    x = x.double()
    finite = x.isfinite()
    p = torch.softmax(x, dim=dim).nan_to_num(nan=0.0)  # rows of NaN are compared by their pattern
    values = torch.where(finite, x, 0.0)  # for -inf any finite number will do: its p is 0
    largest = torch.where(finite, x, -math.inf).amax(dim=dim, keepdim=True)
    size = values.abs() + torch.where(largest.isfinite(), largest, 0.0).abs()
    size = torch.where(x == largest, 0.0, size)
    mean_size = (p * size).sum(dim=dim, keepdim=True)
    return Amplitude(pointwise=p * (4 + 2 * size + 2 * mean_size), reduced=p, length=x.shape[dim])


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
               eps: float = 1e-5) -> Amplitude:
    """Layer normalization over the last dimension of ``[..., C]``.

    The mean is off by the roundings of a sum of C terms of size |x|, which the reciprocal deviation
    magnifies; half of the variance's relative error arrives at each element.
    """
    x, w = x.double(), weight.double().abs()
    centered, rstd = _normalized(x, eps)
    scaled = (centered * rstd).abs() * w
    mean_size = x.abs().mean(-1, keepdim=True)
    return Amplitude(pointwise=4 * scaled + bias.double().abs(), length=x.shape[-1],
                     reduced=w * rstd * mean_size + 0.5 * scaled)


def layer_norm_backward(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor,
                        eps: float = 1e-5) -> tuple[Amplitude, Amplitude, Amplitude]:
    """Of dx, dw and db, for ``[R, C]``; dw and db are sums over the R rows.

    With g = w·dy and h the normalized x, dx = rstd·(g - mean g - h·mean(g·h)), dw = sum of dy·h,
    db = sum of dy. An error of h is what `layer_norm` says of it; its square counts too, because in
    rows of equal values h is nothing but error.
    """
    x, dy = x.double(), dy.double()
    rows, columns = x.shape
    centered, rstd = _normalized(x, eps)
    h, g = (centered * rstd).abs(), (weight.double() * dy).abs()
    summed_off = rstd * x.abs().mean(-1, keepdim=True) + 0.5 * h
    h_off = 4 * h + spread(columns) * summed_off  # in units of u
    mean_g, mean_gh = g.mean(-1, keepdim=True), (g * h).mean(-1, keepdim=True)
    inner = g + mean_g + h * mean_gh
    mean_off = (g * h_off).mean(-1, keepdim=True)
    dx = Amplitude(
        pointwise=rstd * (4 * inner + h_off * mean_gh + h * mean_off
                          + KAPPA * FLOAT32 * h_off * mean_off),
        reduced=rstd * (mean_g + h * mean_gh + 0.5 * inner), length=columns)
    # All of dw shares the roundings of a row's deviation: they count as one more term of the sum.
    dw = Amplitude((dy.abs() * h_off).sum(0), (dy.abs() * h).sum(0), 1 + rows)
    return dx, dw, Amplitude(reduced=dy.abs().sum(0), length=max(1, rows))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float | None = None,
              causal: bool = False, rounds_p: bool = False) -> Amplitude:
    """softmax(q kᵀ · scale) v for ``[..., S, D]``.

    Each score is off by its own sum of D products and by the exponent's rounding, as in `softmax`.
    ``rounds_p`` allows the weights to be rounded to the inputs' dtype before the second product.
    """
    q, k, v = q.double(), k.double(), v.double()
    width = q.shape[-1]
    scale = 1 / math.sqrt(width) if scale is None else scale
    scores = masked(q @ k.mT * scale, causal)
    p = torch.softmax(scores, -1)
    finite = torch.where(scores.isfinite(), scores, 0.0).abs()
    size = finite + finite.amax(-1, keepdim=True)
    off = (q.abs() @ k.abs().mT) * abs(scale) * (4 + spread(width)) + 4 * size
    off = torch.where(p > 0, off, 0.0)
    return Amplitude(
        pointwise=(p * (off + (p * off).sum(-1, keepdim=True))) @ v.abs(),
        reduced=p @ v.abs(), length=k.shape[-2],
        middle=((p * p) @ (v * v)).sqrt() if rounds_p else 0.0)


def adam(param: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor, exp_avg_sq: torch.Tensor,
         *, step: int, lr: float, betas: Sequence[float] = (0.9, 0.999),
         eps: float = 1e-8) -> tuple[Amplitude, Amplitude, Amplitude]:
    """Of the parameter and both moments after one step of Adam.

    The reference has to use betas that float32 holds: 1 - beta magnifies their rounding a
    thousandfold, and that is not an error of the kernel.
    """
    first = betas[0] * exp_avg.double().abs() + (1 - betas[0]) * grad.double().abs()
    second = betas[1] * exp_avg_sq.double() + (1 - betas[1]) * grad.double() ** 2
    moved = first / (1 - betas[0] ** step) / ((second / (1 - betas[1] ** step)).sqrt() + eps)
    return (Amplitude(pointwise=param.double().abs() + 8 * lr * moved),
            Amplitude(pointwise=first), Amplitude(pointwise=2 * second))


def masked(scores: torch.Tensor, causal: bool) -> torch.Tensor:
    """``[..., S, T]`` scores with -inf where a query must not look: at later keys."""
    if not causal:
        return scores
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf)


def _normalized(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The centered values and the reciprocal deviation, over the last dimension."""
    centered = x - x.mean(-1, keepdim=True)
    return centered, torch.rsqrt((centered * centered).mean(-1, keepdim=True) + eps)
