"""An emulated kernel: what it computes, right ways to compute it, wrong ways, and inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grader.suite import Tolerance

DTYPES = ("float32", "float16", "bfloat16")
Run = Callable[..., Any]
Cases = Iterator[tuple[str, tuple[Any, ...]]]


@dataclass(frozen=True)
class Kernel:
    """``right`` and ``wrong`` map the inputs to results in the inputs' dtype, computed in float32.

    ``inputs`` yields named inputs for a dtype. ``blind`` names dtypes in which a wrong variant is
    no mistake, because the result's own rounding or an allowed one hides it.
    """

    name: str
    reference: Run
    tolerance: Tolerance
    inputs: Callable[[str], Cases]
    right: dict[str, Run]
    wrong: dict[str, Run]
    dtypes: tuple[str, ...] = DTYPES
    blind: dict[str, tuple[str, ...]] = field(default_factory=dict)


def half(x: Tensor) -> Tensor:
    """Rounded to float16, in float32."""
    return x.half().float()


def brain(x: Tensor) -> Tensor:
    """Rounded to bfloat16, in float32."""
    return x.bfloat16().float()


# ---------------------------------------------------------------------------------------------
# Orders of summation, over the last dimension, keeping it

LANES = 128


def in_sequence(x: Tensor) -> Tensor:
    """One accumulator, from the first element to the last."""
    return torch.from_numpy(np.add.accumulate(x.numpy(), axis=-1, dtype=np.float32))[..., -1:]


def backwards(x: Tensor) -> Tensor:
    return in_sequence(x.flip(-1))


def as_tree(x: Tensor) -> Tensor:
    """Halves added to halves, as `tl.sum` does within a block."""
    width = 1 << max(0, x.shape[-1] - 1).bit_length()
    x = torch.nn.functional.pad(x, (0, width - x.shape[-1]))
    while x.shape[-1] > 1:
        middle = x.shape[-1] // 2
        x = x[..., :middle] + x[..., middle:]
    return x


def in_lanes(x: Tensor) -> Tensor:
    """Block after block into one accumulator for each lane, and the lanes as a tree."""
    total = torch.zeros(*x.shape[:-1], LANES)
    for part in x.split(LANES, -1):
        total = total + torch.nn.functional.pad(part, (0, LANES - part.shape[-1]))
    return as_tree(total)


def in_two_stages(x: Tensor) -> Tensor:
    """Partial sums of two programs or more, added by another."""
    return in_sequence(torch.cat([as_tree(part) for part in x.split(LANES, -1)], -1))


SUMS: dict[str, Run] = {
    "in sequence": in_sequence, "backwards": backwards, "as a tree": as_tree,
    "in lanes": in_lanes, "in two stages": in_two_stages,
}


def in_half(x: Tensor) -> Tensor:
    """A sum that is kept in float16."""
    with np.errstate(over="ignore", invalid="ignore"):  # the very mistake
        total = np.add.accumulate(half(x).half().numpy(), axis=-1, dtype=np.float16)
    return torch.from_numpy(total)[..., -1:].float()
