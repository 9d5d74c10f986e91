"""Kernels of training, which have several results: Adam, and layer norm's backward pass."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.suite import Tolerance, error_bounds, rand, wide

from .kernel import Cases, Kernel, Run, half, in_half, in_lanes, in_sequence
from .rows import rows_and_weights

# ---------------------------------------------------------------------------------------------
# Adam: the parameter in the input's dtype, both moments in float32

LR, EPS = 1e-3, 1e-8
BETAS = tuple(float(torch.tensor(beta)) for beta in (0.9, 0.999))  # as float32 holds them


def states(dtype: str) -> Cases:
    for count in (1, 1_000, 9_973):
        for step in (1, 2, 100_000):
            for name, grad in (("ordinary gradients", rand(count, dtype=dtype)),
                               ("gradients over six decades", wide(count, dtype=dtype)),
                               ("tiny gradients", rand(count, dtype=dtype, std=1e-6))):
                first = rand(count, std=1e-2 if step > 1 else 0.0)
                second = rand(count, std=1e-2 if step > 1 else 0.0).then(torch.square)
                yield (f"{count} elements, step {step}, {name}",
                       (rand(count, dtype=dtype), grad, first, second, step))


def adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor, step: int) -> tuple[Tensor, ...]:
    """In the precision of the inputs."""
    m = BETAS[0] * m + (1 - BETAS[0]) * g
    v = BETAS[1] * v + (1 - BETAS[1]) * g * g
    first, second = m / (1 - BETAS[0] ** step), v / (1 - BETAS[1] ** step)
    return p - LR * first / (second.sqrt() + EPS), m, v


def exact_adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor, step: int) -> tuple[Tensor, ...]:
    return adam(p.double(), g.double(), m.double(), v.double(), step)


def steps(*, betas: tuple[float, ...] = BETAS, corrected: bool = True, folded: bool = False,
          inside: bool = False, stale: bool = False, state: Run = lambda x: x,
          eps: float = EPS) -> Run:
    """One step in float32; every option but ``folded`` is a mistake."""
    def run(p: Tensor, g: Tensor, m: Tensor, v: Tensor, step: int) -> tuple[Tensor, ...]:
        x, g, old = p.float(), g.float(), m
        m = state(old + (1 - betas[0]) * (g - old) if folded else
                  betas[0] * old + (1 - betas[0]) * g)
        v = state(betas[1] * v + (1 - betas[1]) * g * g)
        used = old if stale else m
        one = 1 - betas[0] ** step if corrected else 1.0
        two = 1 - betas[1] ** step if corrected else 1.0
        if folded:
            return (x - LR / one * used / (v.sqrt() / two**0.5 + eps)).to(p.dtype), m, v
        root = (v / two + eps).sqrt() if inside else (v / two).sqrt() + eps
        return (x - LR * (used / one) / root).to(p.dtype), m, v

    return run


ADAM = Kernel(
    "Adam", exact_adam,
    Tolerance(lambda p, g, m, v, step: error_bounds.adam(p, g, m, v, step=step, lr=LR, betas=BETAS,
                                                       eps=EPS)),
    states,
    right={"as written": steps(), "corrections folded into the rate": steps(folded=True)},
    wrong={
        "no bias correction": steps(corrected=False),
        "eps inside the root": steps(inside=True),
        "betas exchanged": steps(betas=BETAS[::-1]),
        "old first moment used": steps(stale=True),
        "moments in float16": steps(state=half),
        "eps of 1e-6": steps(eps=1e-6),
    },
)


# ---------------------------------------------------------------------------------------------
# The backward pass of layer normalisation: dx, dw, db


def gradients(dtype: str) -> Cases:
    for name, (x, w, _) in rows_and_weights(dtype):
        columns = w.sizes[0]
        for how, options in (("around zero", {}), ("around 1", {"mean": 1.0})):
            # As many gradients as rows, which some families fix themselves.
            count = len(x.draw(torch.Generator(), 1))
            yield f"{name}, gradients {how}", (rand(count, columns, dtype=dtype, **options), x, w)


def backward(dy: Tensor, x: Tensor, w: Tensor, *, add: Run = lambda t: t.sum(-1, keepdim=True),
             mean_g: bool = True, mean_gh: bool = True, rstd: Run = torch.rsqrt,
             rows: slice = slice(None), raw: bool = False) -> tuple[Tensor, ...]:
    """In the precision of the inputs; every option but ``add`` is a mistake."""
    n = x.shape[-1]
    centred = x - add(x) / n
    scale = rstd(add(centred * centred) / n + 1e-5)
    h, g = centred * scale, w * dy
    inner = g - mean_g * add(g) / n - mean_gh * h * (add(g * h) / n)
    down = [add(t[rows].mT.contiguous())[:, 0] for t in (dy * (x if raw else h), dy)]
    return scale * inner, *down


def backwards_by(**options: object) -> Run:
    def run(dy: Tensor, x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        results = backward(dy.float(), x.float(), w.float(), **options)
        return tuple(result.to(x.dtype) for result in results)

    return run


LAYER_NORM_BACKWARD = Kernel(
    "layer norm, backward",
    lambda dy, x, w: backward(dy.double(), x.double(), w.double()),
    Tolerance(error_bounds.layer_norm_backward), gradients,
    right={"as written": backwards_by(), "in sequence": backwards_by(add=in_sequence),
           "in lanes": backwards_by(add=in_lanes)},
    wrong={
        "mean of g missing": backwards_by(mean_g=False),
        "mean of g·h missing": backwards_by(mean_gh=False),
        "root missing": backwards_by(rstd=lambda v: 1 / v),
        "last row missing in dw and db": backwards_by(rows=slice(-1)),
        "dw from x": backwards_by(raw=True),
        "summed in float16": backwards_by(add=in_half),
    },
)

KERNELS = (ADAM, LAYER_NORM_BACKWARD)
