"""From a profile to the bottleneck to the repair: a normalization that became slow.

    out[m, n] = x[m, n] / max(sqrt(sum_k x[m, k]**2), eps)

Given:   `profiles.json`, the profiles of five kernels on an H200; `devices.py`, the devices to
         measure on; `benchmark` and `row_l2_normalize` as a colleague left them. The checks in
         `check_arguments` are right.
Symptom: `benchmark` reports 0.002 ms and 60,000 GB/s for the normalization. No GPU reaches that, and
         users report that it is slow. For rows with elements near 1e30, the result is all zeros.
Tasks:   1  `bandwidth_gbps`, `tflops`, `roofline`: the arithmetic of profiles
         2  `benchmark`: reliable timings
         3  `FINDINGS`: the bottleneck of each of the kernels A to E, and the possible speedup
         4  `PREDICTION`, before you change the kernel: the metrics of the repaired one
         5  `row_l2_normalize`: the repair
Graded:  tools   on devices whose calls take a known time
         values  as accurate as float32 allows, also near 1e30 and 1e-30
         cost    one launch, at most one program per row, 2 * R * C * itemsize bytes, at least 95 %
                 of each sector used; at 16,384 x 4,096 floats, 75 % of the speed of a copy

`python kernel.py` runs the public cases, `tritonlab grade track3/performance-profiling` runs all of
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from devices import Device

Bottleneck = Literal["uncoalesced", "redundant-traffic", "launch-bound", "spills", "at-roofline",
                     "compute-bound"]

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
MAX_COLUMNS = 16_384
LEAST_EPS = 2.0**-126  # the smallest normal float32
BLOCK = 32


@dataclass(frozen=True)
class Roofline:
    """The roofline of a kernel: seconds, arithmetic intensity in FLOP/B, rates in FLOP/s."""

    bound: Literal["memory", "compute"]
    t_min_s: float
    intensity: float
    ridge: float
    attainable_flops: float


@dataclass(frozen=True)
class Stats:
    """Samples of a benchmark: median, 20th and 80th percentile in ms, and their number."""

    median_ms: float
    p20_ms: float
    p80_ms: float
    n: int


@dataclass(frozen=True)
class Finding:
    """The bottleneck of a kernel, the metric that shows it, and the speedup without it."""

    bottleneck: Bottleneck
    evidence_metric: str
    predicted_speedup: float


# A Finding for each letter of profiles.json. The README lists the names.
FINDINGS: dict[str, Finding] = {}

# Metrics of your repaired row_l2_normalize for 16,384 x 4,096 floats. Replace None by numbers before
# you measure.
PREDICTION: dict[str, float | None] = {
    # Bytes that all programs request, over the compulsory bytes.
    "issued_bytes_ratio": None,
    "launches": None,
    # Used bytes over the bytes of all moved sectors.
    "sector_efficiency": None,
}


def bandwidth_gbps(nbytes: int, ms: float) -> float:
    """Returns the bandwidth in GB/s, 10**9 bytes per second.

    Raises:
        ValueError: ``nbytes`` is negative, or ``ms`` is not above 0.
    """
    raise NotImplementedError


def tflops(flops: int, ms: float) -> float:
    """Returns the arithmetic throughput in TFLOP/s, 10**12 FLOP per second.

    Raises:
        ValueError: ``flops`` is negative, or ``ms`` is not above 0.
    """
    raise NotImplementedError


def roofline(flops: int, nbytes: int, peak_flops: float, peak_bytes: float) -> Roofline:
    """Returns the roofline of a kernel that overlaps arithmetic and memory traffic.

    Args:
        flops: FLOP of the kernel.
        nbytes: bytes that it must move.
        peak_flops: FLOP/s of the unit that executes them.
        peak_bytes: bytes/s of the memory.

    Raises:
        ValueError: one of the four is not above 0.
    """
    raise NotImplementedError


def benchmark(fn: Callable[[], object], device: Device, *, warmup: int = 10,
              repeat: int = 100) -> Stats:
    """Times ``repeat`` calls of ``fn`` after ``warmup`` others, each with a cold cache.

    Raises:
        ValueError: ``warmup`` is negative, or ``repeat`` is not above 0.
    """
    start = device.now()
    for _ in range(repeat):
        fn()
    mean = (device.now() - start) / repeat
    return Stats(mean, mean, mean, repeat)


@triton.jit
def square_kernel(x_ptr, square_ptr, stride_xm, n_rows, n_cols, BLOCK: tl.constexpr):
    """square[m, n] = x[m, n]**2. One program owns a block of rows of one column."""
    offs_m = (tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    col = tl.program_id(axis=1)
    mask = offs_m < n_rows

    x = tl.load(x_ptr + offs_m * stride_xm + col, mask=mask).to(tl.float32)

    tl.store(square_ptr + offs_m * n_cols + col, x * x, mask=mask)


@triton.jit
def sum_kernel(square_ptr, total_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    """total[m] = sum of square[m]. One program owns a block of rows, in steps of BLOCK columns."""
    offs_m = (tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    mask_m = offs_m < n_rows

    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, n_cols, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        mask = mask_m[:, None] & (cols < n_cols)[None, :]
        squares = tl.load(square_ptr + offs_m[:, None] * n_cols + cols[None, :], mask=mask,
                          other=0.0)
        total += tl.sum(squares, axis=1)

    tl.store(total_ptr + offs_m, total, mask=mask_m)


@triton.jit
def divide_kernel(x_ptr, total_ptr, out_ptr, stride_xm, n_rows, n_cols, eps, BLOCK: tl.constexpr):
    """out[m, n] = x[m, n] / max(sqrt(total[m]), eps). One program owns a block of rows in a column.
    """
    offs_m = (tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    col = tl.program_id(axis=1)
    mask = offs_m < n_rows

    x = tl.load(x_ptr + offs_m * stride_xm + col, mask=mask).to(tl.float32)
    total = tl.load(total_ptr + offs_m, mask=mask, other=1.0)
    out = x / tl.maximum(tl.sqrt(total), eps)

    tl.store(out_ptr + offs_m * n_cols + col, out.to(out_ptr.dtype.element_ty), mask=mask)


def row_l2_normalize(x: torch.Tensor, eps: float = 1e-12) -> torch.Tensor:
    """Divides each row by its Euclidean norm, or by ``eps`` if the norm is smaller.

    Args:
        x: [n_rows, n_cols] with at most 16,384 columns.
        eps: at least 2**-126.

    Raises:
        TypeError: x is not a tensor of a supported dtype.
        ValueError: x is not a matrix or has too many columns, or eps is out of range.
    """
    check_arguments(x, eps)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    blocks = triton.cdiv(n_rows, BLOCK)
    square = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    total = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    square_kernel[(blocks, n_cols)](x, square, x.stride(0), n_rows, n_cols, BLOCK=BLOCK)
    sum_kernel[(blocks,)](square, total, n_rows, n_cols, BLOCK=BLOCK)
    divide_kernel[(blocks, n_cols)](x, total, out, x.stride(0), n_rows, n_cols, eps, BLOCK=BLOCK)
    return out


def check_arguments(x: torch.Tensor, eps: float) -> None:
    """Rejects invalid arguments before anything is allocated or launched.

    Raises:
        TypeError: x is not a tensor of a supported dtype.
        ValueError: x is not a matrix or has too many columns, or eps is out of range.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in SUPPORTED:
        names = ", ".join(str(dtype) for dtype in SUPPORTED)
        raise TypeError(f"x: expected one of {names}, got {x.dtype}")
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got shape {tuple(x.shape)}")
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"x: expected at most {MAX_COLUMNS} columns, got {x.shape[1]}")
    if not LEAST_EPS <= eps < math.inf:
        raise ValueError(f"eps: expected a finite number from 2**-126 on, got {eps}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
