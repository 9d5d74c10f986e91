"""Kernels that reduce rows: sum, mean, softmax, layer normalisation."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
from torch import Tensor

from grader.suite import (
    Input,
    Tolerance,
    equal_rows,
    error_bounds,
    extremes,
    rand,
    row,
    row_with,
    rows,
    special,
    spike,
)

from .kernel import LANES, SUMS, Cases, Kernel, Run, brain, half, in_half, in_lanes

WIDTHS = (3, 129, 1_000)
BLOCK = 1_024  # what a kernel pads a row to, at these widths


def families(columns: int, dtype: str = "float32", count: int = 4) -> list[tuple[str, Input]]:
    """Matrices that make mistakes of a reduction over rows visible, each with a name.

    Values around zero alone hide a missing maximum, mean, mask or eps. Each family was added for a
    wrong kernel that passed the others.
    """
    far = rows(*(row(columns, mean=-400.0) if number == count // 2 else row(columns)
                 for number in range(count)), dtype=dtype)
    holes = rows(*(row_with(columns, -math.inf, number, columns - 1 - number)
                   for number in range(count)), dtype=dtype)
    return [
        ("values around zero", rand(count, columns, dtype=dtype)),
        ("values around 60", rand(count, columns, dtype=dtype, mean=60.0)),
        ("values around -110", rand(count, columns, dtype=dtype, mean=-110.0)),
        ("values around -400", rand(count, columns, dtype=dtype, mean=-400.0)),
        ("one row around -400", far),
        ("values spread by 30", rand(count, columns, dtype=dtype, std=30.0)),
        ("values spread by a thousandth", rand(count, columns, dtype=dtype, std=1e-3)),
        ("values spread by a thousandth around 1",
         rand(count, columns, dtype=dtype, mean=1.0, std=1e-3)),
        ("one value far above all others", spike(columns, dtype)),
        ("equal rows", equal_rows(count, columns, dtype)),
        ("-inf beside finite values", holes),
        ("one column", rand(count, 1, dtype=dtype)),
        ("values at the largest number",
         special(count, columns, values=extremes(dtype), dtype=dtype)),
    ]


def rows_of(dtype: str) -> Cases:
    for width in WIDTHS:
        # Short rows come in numbers: there the aggregate check sees a factor near 1.
        for name, spec in families(width, dtype, count=40 if width < 10 else 4):
            yield f"{name}, {width} columns", (spec,)


def finite_rows_of(dtype: str) -> Cases:
    """Without what overflows in float32, or is NaN, in every right kernel."""
    for name, (spec,) in rows_of(dtype):
        if "-inf" not in name and ("largest" not in name or dtype == "float16"):
            yield name, (spec,)


def rounds(run: Callable[..., Tensor]) -> Run:
    """Load as float32, compute, store in the input's dtype."""
    @functools.wraps(run)
    def whole(x: Tensor, *more: Tensor) -> Tensor:
        return run(x.float(), *(m.float() for m in more)).to(x.dtype)

    return whole


# ---------------------------------------------------------------------------------------------
# Sum and mean


def summed(add: Run) -> Run:
    return rounds(lambda x: add(x)[..., 0])


def averaged(add: Run) -> Run:
    return rounds(lambda x: (add(x) / x.shape[-1])[..., 0])


def without_last_block(x: Tensor) -> Tensor:
    return in_lanes(x[..., :max(1, x.shape[-1] - 1) // LANES * LANES])


WRONG_SUMS = {
    "summed in float16": in_half,
    "last block missing": without_last_block,
    "last element missing": lambda x: in_lanes(x[..., :-1]),
    "padding loaded as 1": lambda x: in_lanes(x) + (BLOCK - x.shape[-1]),
    "inputs rounded to bfloat16": lambda x: in_lanes(brain(x)),
    "first element twice": lambda x: in_lanes(torch.cat([x, x[..., :1]], -1)),
}

SUM = Kernel(
    "sum", lambda x: x.double().sum(-1), Tolerance(error_bounds.total), finite_rows_of,
    right={name: summed(add) for name, add in SUMS.items()},
    wrong={name: summed(add) for name, add in WRONG_SUMS.items()},
    blind={"inputs rounded to bfloat16": ("bfloat16",)},
)

MEAN = Kernel(
    "mean", lambda x: x.double().mean(-1), Tolerance(error_bounds.mean), finite_rows_of,
    right={name: averaged(add) for name, add in SUMS.items()},
    wrong={name: averaged(add) for name, add in WRONG_SUMS.items()} | {
        "mean over the block": rounds(lambda x: in_lanes(x)[..., 0] / BLOCK),
    },
    blind={"inputs rounded to bfloat16": ("bfloat16",)},
)


# ---------------------------------------------------------------------------------------------
# Softmax


def shifted(add: Run, most: Run = lambda x: x.amax(-1, keepdim=True),
            exp: Run = torch.exp) -> Run:
    def run(x: Tensor) -> Tensor:
        e = exp(x - most(x))
        return e / add(e)

    return rounds(run)


def online(x: Tensor, rescale: bool = True) -> Tensor:
    """One pass for maximum and denominator, in blocks, and a second for the shares."""
    most = torch.full((*x.shape[:-1], 1), -math.inf)
    total = torch.zeros_like(most)
    for part in x.split(LANES, -1):
        now = torch.maximum(most, part.amax(-1, keepdim=True))
        safe = torch.where(now == -math.inf, 0.0, now)
        old = torch.exp(most - safe) if rescale else torch.ones_like(total)
        total = total * old + in_lanes(torch.exp(part - safe))
        most = now
    return torch.exp(x - most) / total


def folded(x: Tensor) -> Tensor:
    """exp2(x·log2(e) - m·log2(e)), each exponent with one rounding, as a GPU contracts it.

    It overflows for the largest numbers, where no such kernel is right.
    """
    scale = torch.tensor(math.log2(math.e))
    most = torch.full((*x.shape[:-1], 1), -math.inf)  # times the scale
    total = torch.zeros_like(most)

    def exp2(values: Tensor, top: Tensor) -> Tensor:
        return torch.exp2((values.double() * scale.double() - top.double()).float())

    for part in x.split(LANES, -1):
        now = torch.maximum(most, part.amax(-1, keepdim=True) * scale)
        safe = torch.where(now == -math.inf, 0.0, now)
        total = total * torch.exp2(most - safe) + in_lanes(exp2(part, safe))
        most = now
    return exp2(x, most) / total


def in_float16(x: Tensor) -> Tensor:
    x = half(x)
    e = half(torch.exp(half(x - x.amax(-1, keepdim=True))))
    return half(e / in_half(e))


def padded_with_zeros(x: Tensor) -> Tensor:
    x_all = torch.nn.functional.pad(x, (0, BLOCK - x.shape[-1]))
    return torch.softmax(x_all, -1)[..., :x.shape[-1]]


def last_block_missing(x: Tensor) -> Tensor:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / without_last_block(e)


SOFTMAX = Kernel(
    "softmax", lambda x: torch.softmax(x.double(), -1), Tolerance(error_bounds.softmax), rows_of,
    right={name: shifted(add) for name, add in SUMS.items()} | {
        "online": rounds(online),
        "torch": lambda x: torch.softmax(x, -1),
    },
    wrong={
        "no maximum": shifted(in_lanes, lambda x: torch.zeros(*x.shape[:-1], 1)),
        "maximum of the first 8": shifted(in_lanes, lambda x: x[..., :8].amax(-1, keepdim=True)),
        "maximum clamped at 0": shifted(in_lanes,
                                        lambda x: x.amax(-1, keepdim=True).clamp(min=0)),
        "padding loaded as 0": rounds(padded_with_zeros),
        "last block missing": rounds(last_block_missing),
        "float16 throughout": rounds(in_float16),
        "summed in float16": shifted(in_half),
        "exp in bfloat16": shifted(in_lanes, exp=lambda x: brain(torch.exp(x))),
        "online without rescaling": rounds(lambda x: online(x, rescale=False)),
        "1e-6 in the denominator": shifted(lambda e: in_lanes(e) + 1e-6),
        "exp2 without scale": shifted(in_lanes, exp=torch.exp2),
    },
    # 1e-6 is far below what the result keeps; a bfloat16 result hides a float16 sum of few terms
    blind={"1e-6 in the denominator": ("float16", "bfloat16")},
)


SOFTMAX_BY_EXP2 = Kernel(
    "softmax by exp2", SOFTMAX.reference, SOFTMAX.tolerance, finite_rows_of,
    right={"online, scale folded in": rounds(folded)}, wrong={},
)


# ---------------------------------------------------------------------------------------------
# Layer normalisation


def normalised(add: Run = in_lanes, *, centre: Run | None = None, variance: Run | None = None,
               rstd: Run = lambda v: 1 / torch.sqrt(v + 1e-5)) -> Run:
    """Two passes over a row that is held; ``variance`` gets the centred values."""
    def run(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        n = x.shape[-1]
        centred = x - (centre(x) if centre else add(x) / n)
        v = variance(centred, x) if variance else add(centred * centred) / n
        return centred * rstd(v) * w + b

    return rounds(run)


def welford(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """Mean and sum of squares of blocks, merged one after another."""
    count, mean, squares = 0, torch.zeros(len(x), 1), torch.zeros(len(x), 1)
    for part in x.split(LANES, -1):
        n = part.shape[-1]
        own = in_lanes(part) / n
        apart = own - mean
        squares = squares + in_lanes((part - own) ** 2) + apart * apart * (count * n / (count + n))
        mean = mean + apart * (n / (count + n))
        count += n
    return (x - mean) / torch.sqrt(squares / count + 1e-5) * w + b


def rows_and_weights(dtype: str) -> Cases:
    for name, (spec,) in finite_rows_of(dtype):
        columns = 1 if "one column" in name else int(name.split()[-2])
        weight = rand(columns, dtype=dtype, mean=1.0)
        yield name, (spec, weight, rand(columns, dtype=dtype))


def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, w.shape, w, b, 1e-5)


LAYER_NORM = Kernel(
    "layer norm", lambda x, w, b: layer_norm(x.double(), w.double(), b.double()),
    Tolerance(error_bounds.layer_norm), rows_and_weights,
    right={f"two passes, {name}": normalised(add) for name, add in SUMS.items()} | {
        "merged from blocks": rounds(welford), "torch": layer_norm,
    },
    wrong={
        "eps outside the root": normalised(rstd=lambda v: 1 / (torch.sqrt(v) + 1e-5)),
        "eps of 1e-6": normalised(rstd=lambda v: 1 / torch.sqrt(v + 1e-6)),
        "no eps": normalised(rstd=lambda v: 1 / torch.sqrt(v)),
        "unbiased variance": normalised(
            variance=lambda c, x: in_lanes(c * c) / max(1, c.shape[-1] - 1)),
        "padding in the variance": normalised(
            variance=lambda c, x: (in_lanes(c * c) + (BLOCK - c.shape[-1]) *
                                   (in_lanes(x) / x.shape[-1]) ** 2) / c.shape[-1]),
        "mean over the block": normalised(centre=lambda x: in_lanes(x) / BLOCK),
        "mean in float16": normalised(centre=lambda x: half(in_half(x) / x.shape[-1])),
        "variance in float16": normalised(
            variance=lambda c, x: half(in_half(c * c) / c.shape[-1])),
        "last block missing": normalised(without_last_block),
        "no mean": normalised(centre=lambda x: torch.zeros(len(x), 1)),
        "variance by cancellation": normalised(
            variance=lambda c, x: in_lanes(x * x) / x.shape[-1] - (in_lanes(x) / x.shape[-1]) ** 2),
    },
)

KERNELS = (SUM, MEAN, SOFTMAX, SOFTMAX_BY_EXP2, LAYER_NORM)
