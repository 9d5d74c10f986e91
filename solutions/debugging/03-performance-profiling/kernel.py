"""From a profile to the bottleneck to the repair: the arithmetic, a benchmark, findings, a kernel.

    out[m, n] = x[m, n] / max(sqrt(sum_k x[m, k]**2), eps)

A profile is a set of counts and a time. Each count has an ideal: the compulsory bytes, full
sectors, one launch, no stack. The count that is furthest from its ideal and explains the time is
the bottleneck, and the distance is the possible speedup.

Cost of row_l2_normalize: one program holds a row in one block, so each row is read once and written
once: 2 * n_rows * n_cols * itemsize bytes in one launch.

Source: Williams, Waterman and Patterson, "Roofline", Communications of the ACM 52(4), 2009; scaling
by the largest magnitude before squaring: Blue, ACM TOMS 4(1), 1978.
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
LEAST_EPS = 2.0**-126  # the smallest normal float32


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


FINDINGS: dict[str, Finding] = {
    # 4 of 32 bytes of each sector are used, and scattered sectors cost more lookups.
    "A": Finding("uncoalesced", "sector_efficiency", 8.0),
    # Rows of 0.5 MB are read three times and written once: 4 transfers instead of 2.
    "B": Finding("redundant-traffic", "issued_ratio", 2.0),
    # 0.944 ms, where the bytes take 0.012 ms. One launch remains and adds its time.
    "C": Finding("launch-bound", "launches", 62.0),
    # Bytes and sectors are minimal, and 0.770 ms is 4 times the time of a copy.
    "D": Finding("spills", "stack_bytes", 4.0),
    # 90 % of the speed of a copy: nothing to gain.
    "E": Finding("at-roofline", "share_of_copy", 1.0),
}

# Metrics of the repaired row_l2_normalize for 16,384 x 4,096 floats.
PREDICTION: dict[str, float] = {
    "issued_bytes_ratio": 1.0,
    "launches": 1,
    "sector_efficiency": 1.0,
}


def bandwidth_gbps(nbytes: int, ms: float) -> float:
    """Returns the bandwidth in GB/s, 10**9 bytes per second.

    Raises:
        ValueError: ``nbytes`` is negative, or ``ms`` is not above 0.
    """
    if nbytes < 0:
        raise ValueError(f"nbytes: expected at least 0, got {nbytes}")
    check_positive("ms", ms)
    return nbytes / 1e9 / (ms / 1e3)


def tflops(flops: int, ms: float) -> float:
    """Returns the arithmetic throughput in TFLOP/s, 10**12 FLOP per second.

    Raises:
        ValueError: ``flops`` is negative, or ``ms`` is not above 0.
    """
    if flops < 0:
        raise ValueError(f"flops: expected at least 0, got {flops}")
    check_positive("ms", ms)
    return flops / 1e12 / (ms / 1e3)


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
    """Times ``repeat`` calls of ``fn`` after ``warmup`` others, each with a cold cache.

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
        device.synchronize()  # flushing and earlier work are not part of the sample
        start = device.now()
        fn()
        device.synchronize()  # fn returns before its work is done
        samples.append(device.now() - start)
    samples.sort()
    return Stats(quantile(samples, 0.5), quantile(samples, 0.2), quantile(samples, 0.8),
                 len(samples))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Returns a quantile of sorted samples, interpolated linearly."""
    place = share * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (place - math.floor(place)) * (above - below)


def check_positive(name: str, value: float) -> None:
    if not value > 0:  # includes NaN
        raise ValueError(f"{name}: expected more than 0, got {value}")


@triton.jit
def row_l2_normalize_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols], contiguous within a row
    stride_xm, stride_om,      # elements from one row to the next
    n_cols,
    eps,
    BLOCK_SIZE: tl.constexpr,  # power of two >= n_cols
):
    """out[m] = x[m] / max(norm of x[m], eps). One program owns row m.

    Moves 2 * n_rows * n_cols * itemsize bytes: the row stays in registers from load to store.
    """
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    # 0 is neutral for the maximum of magnitudes and for the sum of squares.
    x = tl.load(x_ptr + row * stride_xm + cols, mask=mask, other=0.0).to(tl.float32)

    # Squares of 1e30 and 1e-30 leave the range of float32; after scaling by the maximum they fit.
    largest = tl.max(tl.abs(x), axis=0)
    scale = tl.where(largest > 0.0, largest, 1.0)
    share = x / scale
    norm = tl.sqrt(tl.sum(share * share, axis=0))
    least = eps / scale
    out = share / tl.where(norm < least, least, norm)  # tl.maximum would drop a norm of NaN

    tl.store(out_ptr + row * stride_om + cols, out.to(out_ptr.dtype.element_ty), mask=mask)


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
    block_size = triton.next_power_of_2(n_cols)
    num_warps = min(16, max(1, block_size // 512))  # 16 floats a thread, 32 in the widest rows
    row_l2_normalize_kernel[(n_rows,)](x, out, x.stride(0), out.stride(0), n_cols, eps,
                                       BLOCK_SIZE=block_size, num_warps=num_warps)
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
