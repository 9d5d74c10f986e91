"""An operator that torch.compile can trace, a model that uses it, and the cost of compiling.

    rmsnorm_gelu_linear(x, norm_w, w, b, eps)   gelu(x / rms(x) * norm_w) @ w.T + b, in one launch
    rms(x)[m]                                   sqrt(mean(x[m]^2) + eps)

Shapes:  x (M, K), norm_w (K,), w (N, K) as for `F.linear`, b (N,); the result (M, N), contiguous.
         float32, float16 or bfloat16, the same for all; any strides. GELU is exact, with erf.
Given:   `Attention`, the two dataclasses, the signatures and their contracts.
Missing: everything else: the kernel and its operator, the block, two ways to compile a model, the
         schedule, the cache folder, the choice of a mode, and `DESIGN`.
Graded:  values    float32 arithmetic; the activations may be rounded to the dtype of x once
         operator  registered as "tritonlab::rmsnorm_gelu_linear", has a fake implementation,
                   mutates no argument, and passes `torch.library.opcheck`
         graphs    counted by a backend that generates no code: how many, what is in them, how often
                   they run, and that lengths of an input do not need graphs of their own
         cost      one launch
         times     with a clock that only the called function advances
         choices   ten workloads, described by the numbers of a profile
         errors    invalid arguments are rejected before any launch
         design    every entry of `DESIGN` for three shapes

`python kernel.py` runs four public cases, `tritonlab grade track4/torch-compile` runs all of them.
Both require that no `...` is left; use `raise NotImplementedError` for functions that come later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

# Write this first. Each entry is a string with a Python expression; "bound" is "memory" or
# "compute".
#
#   flops   FLOP of the product; those of norm and GELU may be added
#   bytes   the minimum that must be read and written
#   grid    programs
#   tile    elements of the result that one program owns, padding included
#
# Variables: M, N, K, and e bytes per element. Functions: ceil, floor, min, max, log2, cdiv and
# next_power_of_2. Entries may name the upper-case constants of this file.
DESIGN = {
    "rmsnorm_gelu_linear": {"flops": "", "bytes": "", "bound": "", "grid": "", "tile": ""},
}


# ---------------------------------------------------------------------------------------------
# Given


class Attention(torch.nn.Module):
    """Stand-in for the attention of a real block, without projections and heads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) -> the same shape."""
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)


@dataclass(frozen=True)
class ScheduleReport:
    """Times of a schedule of lengths: one number per length, in order."""

    first_ms: tuple[float, ...]   # first call with this length, including compilation
    steady_ms: tuple[float, ...]  # median of the timed calls after it
    compiles: int                 # graphs compiled during the whole schedule


@dataclass(frozen=True)
class Workload:
    """A workload in numbers of a profile, before anything is compiled."""

    launches: int         # launches per call
    kernel_us: float      # time of the median kernel
    library_share: float  # of GPU time: library matmuls, or reading weights
    shapes: int           # number of distinct input shapes
    calls: int            # calls before the process ends


# ---------------------------------------------------------------------------------------------
# The operator


def rmsnorm_gelu_linear(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
                        eps: float) -> torch.Tensor:
    """Returns gelu(rmsnorm(x) * norm_w) @ w.T + b, (M, N), for x (M, K), w (N, K), b (N,).

    Register it with torch as the operator "tritonlab::rmsnorm_gelu_linear".

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
    or in a submodule; `attention` is an `Attention`. It compiles to one graph without breaks.
    """

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        ...

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ...


def compile_whole(
    model: torch.nn.Sequential, backend: str | Callable[..., Any] = "inductor"
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns a callable that runs ``model`` as one graph; two graphs serve all lengths."""
    ...


def compile_regionally(
    model: torch.nn.Sequential, backend: str | Callable[..., Any] = "inductor"
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns a callable that runs ``model`` with only the hot path of a block compiled.

    The hot path is the part after attention. All blocks use the same graph with their own weights,
    and two graphs serve all lengths. Everything else runs eagerly.
    """
    ...


# ---------------------------------------------------------------------------------------------
# The cost of compiling, and when it pays


def run_schedule(fn: Callable[[int], Any], lengths: Sequence[int], *, warmup: int = 0,
                 iterations: int = 4) -> ScheduleReport:
    """For each length: call ``fn(length)`` once, ``warmup`` times untimed, ``iterations`` times.

    A call ends when the GPU, if any, has finished its work.

    Raises:
        ValueError: iterations is below 1, or warmup is negative.
    """
    ...


def keep_compiled_in(folder: str | Path) -> dict[str, str]:
    """Makes Inductor and Triton cache compiled code in ``folder``, or below it, from now on.

    Returns the environment variables that were set, and their values.
    """
    ...


def choose_mode(
    workload: Workload,
) -> Literal["eager", "default", "reduce-overhead", "max-autotune"]:
    """Returns the cheapest mode that removes the bottleneck, if that pays for compiling.

    Assume 10 us of host time per launch without a CUDA graph, 20 s to compile, and 10 minutes to
    compile and tune.
    """
    ...


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
