"""From a profile to the bottleneck to the repair: the arithmetic, a benchmark, findings, a kernel.

    out[m, n] = x[m, n] / max(sqrt(sum_k x[m, k]**2), eps)

A profile is counts and a time. Each count has an ideal: the bytes of the job, whole sectors, one
launch, no stack. The one that is furthest from its ideal, and whose distance explains the time, is
the bottleneck; how far it is, is how much there is to gain.

Cost of row_l2_normalize: one program holds a row in one block, so that it is read once and written
once, 2 * n_rows * n_cols * itemsize bytes in one launch.

Source: the roofline is that of Williams, Waterman and Patterson, Communications of the ACM 52(4),
2009; scaling by the largest number before squaring is as old as Blue, ACM TOMS 4(1), 1978.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
LEAST_EPS = 2.0**-126  # the smallest float32 with all its digits


@dataclass(frozen=True)
class Roofline:
    """What a job can reach on a device: seconds, flop per byte, and flop per second."""

    bound: Literal["memory", "compute"]
    t_min_s: float
    intensity: float
    ridge: float
    attainable_flops: float


@dataclass(frozen=True)
class Stats:
    """The samples of a benchmark, in milliseconds: median, 20 % and 80 % points, how many."""

    median_ms: float
    p20_ms: float
    p80_ms: float
    n: int


@dataclass(frozen=True)
class Finding:
    """What slows a kernel down, the number that shows it, and how many times faster it could be."""

    bottleneck: Bottleneck
    evidence_metric: str
    predicted_speedup: float


FINDINGS: dict[str, Finding] = {
    # 4 of each 32 bytes that move are used; on top of that, scattered sectors are slow to look up.
    "A": Finding("uncoalesced", "sector_efficiency", 8.0),
    # Rows of half a megabyte are read three times and written once: 4 instead of 2.
    "B": Finding("redundant-traffic", "issued_ratio", 2.0),
    # 0.944 ms, where the bytes take 0.012 ms: what is left of one launch counts too.
    "C": Finding("launch-bound", "launches", 62.0),
    # Bytes and sectors are as few as can be, and 0.770 ms are 4 times those of a copy.
    "D": Finding("spills", "stack_bytes", 4.0),
    # 90 % of the speed of a copy: nothing to gain that is worth a change.
    "E": Finding("at-roofline", "share_of_copy", 1.0),
}

# Of the repaired row_l2_normalize, for 16,384 x 4,096 floats.
PREDICTION: dict[str, float] = {
    "issued_bytes_ratio": 1.0,
    "launches": 1,
    "sector_efficiency": 1.0,
}


def bandwidth_gbps(nbytes: int, ms: float) -> float:
    """How fast bytes moved, in GB/s: 10**9 bytes per second.

    Raises:
        ValueError: ``nbytes`` is negative, or ``ms`` is not above 0.
    """
    if nbytes < 0:
        raise ValueError(f"nbytes: expected at least 0, got {nbytes}")
    check_positive("ms", ms)
    return nbytes / 1e9 / (ms / 1e3)


def tflops(flops: int, ms: float) -> float:
    """How fast operations were done, in TFLOP/s: 10**12 per second.

    Raises:
        ValueError: ``flops`` is negative, or ``ms`` is not above 0.
    """
    if flops < 0:
        raise ValueError(f"flops: expected at least 0, got {flops}")
    check_positive("ms", ms)
    return flops / 1e12 / (ms / 1e3)


def roofline(flops: int, nbytes: int, peak_flops: float, peak_bytes: float) -> Roofline:
    """What bounds a job that overlaps its arithmetic with its traffic.

    Args:
        flops: operations of the job.
        nbytes: bytes that it has to move.
        peak_flops: operations per second of the unit that does them.
        peak_bytes: bytes per second of the memory.

    Raises:
        ValueError: one of the four is not above 0.
    """
    for name, value in (("flops", flops), ("nbytes", nbytes), ("peak_flops", peak_flops),
                        ("peak_bytes", peak_bytes)):
        check_positive(name, value)
    intensity, ridge = flops / nbytes, peak_flops / peak_bytes  # flop per byte
    return Roofline(
        bound="compute" if intensity > ridge else "memory",
        t_min_s=max(flops / peak_flops, nbytes / peak_bytes),
        intensity=intensity,
        ridge=ridge,
        attainable_flops=min(peak_flops, intensity * peak_bytes),
    )


def benchmark(fn: Callable[[], object], device: Device, *, warmup: int = 10,
              repeat: int = 100) -> Stats:
    """Time ``repeat`` calls of ``fn`` after ``warmup`` others, each with a cold cache.

    Raises:
        ValueError: ``warmup`` is negative, or ``repeat`` is not above 0.
    """
    if warmup < 0:
        raise ValueError(f"warmup: expected at least 0, got {warmup}")
    check_positive("repeat", repeat)
    for _ in range(warmup):
        fn()
    samples = []
    for _ in range(repeat):
        device.flush_cache()
        device.synchronize()  # neither flushing nor what came before belongs to the sample
        start = device.now()
        fn()
        device.synchronize()  # fn returns long before its work is done
        samples.append(device.now() - start)
    samples.sort()
    return Stats(quantile(samples, 0.5), quantile(samples, 0.2), quantile(samples, 0.8),
                 len(samples))


def quantile(ordered: Sequence[float], share: float) -> float:
    """The number below which this share lies, between two samples where it falls there."""
    place = share * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (place - math.floor(place)) * (above - below)


def check_positive(name: str, value: float) -> None:
    if not value > 0:  # as NaN is not
        raise ValueError(f"{name}: expected more than 0, got {value}")


@triton.jit
def row_l2_normalize_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols], rows without gaps
    stride_xm, stride_om,      # elements from one row to the next
    n_cols,
    eps,
    BLOCK_SIZE: tl.constexpr,  # elements of a program, a power of two >= n_cols
):
    """out[m] = x[m] / max(norm of x[m], eps). One program owns row m.

    Moves 2 * n_rows * n_cols * itemsize bytes: the row stays in registers from load to store.
    """
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    # Padding adds nothing, neither to the maximum of sizes nor to a sum of squares.
    x = tl.load(x_ptr + row * stride_xm + cols, mask=mask, other=0.0).to(tl.float32)

    # Squares of 1e30 and 1e-30 leave the range of float32; those of shares of the largest do not.
    largest = tl.max(tl.abs(x), axis=0)
    scale = tl.where(largest > 0.0, largest, 1.0)
    share = x / scale
    norm = tl.sqrt(tl.sum(share * share, axis=0))
    least = eps / scale
    out = share / tl.where(norm < least, least, norm)  # a maximum would drop a norm of NaN

    tl.store(out_ptr + row * stride_om + cols, out.to(out_ptr.dtype.element_ty), mask=mask)


def row_l2_normalize(x: torch.Tensor, eps: float = 1e-12) -> torch.Tensor:
    """Every row divided by its Euclidean norm, or by ``eps`` where the norm is smaller.

    Args:
        x: [n_rows, n_cols] with at most 16,384 columns.
        eps: from 2**-126 on.

    Raises:
        TypeError: x is no tensor of a supported dtype.
        ValueError: x is no matrix, or has too many columns, or eps is out of range.
    """
    check_arguments(x, eps)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    block_size = triton.next_power_of_2(n_cols)
    num_warps = min(16, max(1, block_size // 512))  # 16 floats a thread, 32 in the widest rows
    row_l2_normalize_kernel[(n_rows,)](x, out, x.stride(0), out.stride(0), n_cols, eps,
                                       BLOCK_SIZE=block_size, num_warps=num_warps)
    return out


def check_arguments(x: torch.Tensor, eps: float) -> None:
    """Refuse what the contract does not cover, before anything is allocated or launched.

    Raises:
        TypeError: x is no tensor of a supported dtype.
        ValueError: x is no matrix, or has too many columns, or eps is out of range.
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
