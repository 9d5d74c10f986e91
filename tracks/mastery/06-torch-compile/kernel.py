"""An operator that torch's compiler can see, a model that uses it, and what compiling costs.

    rmsnorm_gelu_linear(x, norm_w, w, b, eps)   gelu(x / rms(x) * norm_w) @ w.T + b, in one launch
    rms(x)[m]                                   sqrt(mean(x[m]^2) + eps)

Shapes:  x (M, K), norm_w (K,), w (N, K) as `F.linear` has it, b (N,); the result (M, N), contiguous.
         float32, float16 or bfloat16, one for all; any strides. GELU is the exact form, with erf.
Given:   `Attention`, the two dataclasses, the signatures and what they promise.
Missing: everything else: the kernel and its operator, the block, two ways to compile a model, the
         schedule, the folder for what was compiled, the choice of a mode, and `DESIGN`.
Judged:  values    arithmetic in float32; the activations may be rounded to the dtype of x once
         operator  registered as "tritonlab::rmsnorm_gelu_linear", describes its result, changes none
                   of its arguments, and passes `torch.library.opcheck`
         graphs    counted by a backend that generates no code: how many, what is in them, how often
                   they run, and that lengths of an input need no graph of their own
         cost      one launch
         times     by a clock that only the called function moves
         choices   ten jobs, described as a profile describes them
         errors    bad arguments are refused before anything is launched
         design    every entry of `DESIGN` for three shapes

`python kernel.py` runs four public cases, `tritonlab grade track4/torch-compile` runs all of them.
Both want every `...` gone; `raise NotImplementedError` stands for a function that you do later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

# Write this first. Each entry is a text with a Python expression, but for "bound", which is
# "memory" or "compute".
#
#   flops   operations of the product; those of norm and GELU may be added
#   bytes   that have to be read and written at least
#   grid    programs
#   tile    elements of the result that one program owns, padding included
#
# Variables: M, N, K, and e bytes an element. Functions: ceil, floor, min, max, log2, cdiv and
# next_power_of_2. Constants of this file that are written in capitals may be used by their names.
DESIGN = {
    "rmsnorm_gelu_linear": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


# ---------------------------------------------------------------------------------------------
# Given


class Attention(torch.nn.Module):
    """Stands for the attention of a real block: torch's own, without projections and heads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) -> the same shape."""
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)


@dataclass(frozen=True)
class ScheduleReport:
    """What a schedule of lengths cost: one number for each length, in its order."""

    first_ms: tuple[float, ...]   # of the first call with this length, compilation included
    steady_ms: tuple[float, ...]  # the median of the timed calls after it
    compiles: int                 # graphs that torch's compiler made in the whole schedule


@dataclass(frozen=True)
class Workload:
    """A job as a profile describes it, before anything is compiled."""

    launches: int         # kernels that one call launches
    kernel_us: float      # what the median kernel takes
    library_share: float  # of the GPU's time, in library products or in reading weights
    shapes: int           # different input shapes that will come
    calls: int            # calls before the process ends


# ---------------------------------------------------------------------------------------------
# The operator


def rmsnorm_gelu_linear(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
                        eps: float) -> torch.Tensor:
    """gelu(rmsnorm(x) * norm_w) @ w.T + b for x (M, K), norm_w (K,), w (N, K), b (N,): (M, N).

    To be registered with torch as the operator "tritonlab::rmsnorm_gelu_linear".

    Raises:
        TypeError: a dtype is not supported, or not that of x.
        ValueError: shapes do not fit, devices differ, or eps is negative.
    """
    ...


# ---------------------------------------------------------------------------------------------
# A model that uses it, compiled whole and by regions


class Block(torch.nn.Module):
    """h = x + attention(x); h + rmsnorm_gelu_linear(h), for (batch, length, width).

    Its parameters are `norm_w` (width,), `w` (width, width) and `b` (width,), in the block itself
    or in a module of it; `attention` is an `Attention`. It has one graph, without a break.
    """

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        ...

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ...


def compile_whole(
    model: torch.nn.Sequential, backend: str | Callable[..., Any] = "inductor"
) -> Callable[[torch.Tensor], torch.Tensor]:
    """What calls ``model``, a row of blocks, as one graph; two graphs serve all lengths."""
    ...


def compile_regionally(
    model: torch.nn.Sequential, backend: str | Callable[..., Any] = "inductor"
) -> Callable[[torch.Tensor], torch.Tensor]:
    """What calls ``model``, a row of blocks, with only the hot path of a block as a graph.

    The hot path is what lies behind attention. All blocks use the same graph, with their own
    weights; two graphs serve all lengths. All else runs as it is.
    """
    ...


# ---------------------------------------------------------------------------------------------
# What compiling costs, and when it pays


def run_schedule(fn: Callable[[int], Any], lengths: Sequence[int], *, warmup: int = 0,
                 iterations: int = 4) -> ScheduleReport:
    """For each length: call ``fn(length)`` once, ``warmup`` times untimed, ``iterations`` times.

    A call has ended when the GPU, if there is one, has done its work.

    Raises:
        ValueError: there is no timed call, or a negative number of calls to warm up.
    """
    ...


def keep_compiled_in(folder: str | Path) -> dict[str, str]:
    """Have Inductor and Triton keep what they compile from now on in ``folder``, or below it.

    Returns the environment variables that were set, and their values.
    """
    ...


def choose_mode(
    workload: Workload,
) -> Literal["eager", "default", "reduce-overhead", "max-autotune"]:
    """The least that takes away what the job's time is made of, if that pays for compiling it.

    Take 10 us of the host for each launch without a recorded graph, 20 s to compile, and 10 minutes
    to compile and tune.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
