"""Squares in float64 need no scaling; a benchmark by `statistics`, results as named tuples.
"""

del quantile

import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple


class Roofline(NamedTuple):
    """What a job can reach on a device: seconds, flop per byte, and flop per second."""

    bound: Literal["memory", "compute"]
    t_min_s: float
    intensity: float
    ridge: float
    attainable_flops: float


class Stats(NamedTuple):
    """The samples of a benchmark, in milliseconds: median, 20 % and 80 % points, how many."""

    median_ms: float
    p20_ms: float
    p80_ms: float
    n: int


def benchmark(fn: Callable[[], object], device: Device, *, warmup: int = 10,
              repeat: int = 100) -> Stats:
    """Time ``repeat`` calls of ``fn`` after ``warmup`` others, each with a cold cache.

    Raises:
        ValueError: ``warmup`` is negative, or ``repeat`` is not above 0.
    """
    if warmup < 0:
        raise ValueError(f"warmup: expected at least 0, got {warmup}")
    check_positive("repeat", repeat)
    times = []
    for call in range(warmup + repeat):
        device.flush_cache()
        device.synchronize()
        before = device.now()
        fn()
        device.synchronize()
        if call >= warmup:
            times.append(device.now() - before)
    if repeat == 1:
        return Stats(times[0], times[0], times[0], 1)
    fifths = statistics.quantiles(times, n=5, method="inclusive")
    return Stats(statistics.median(times), fifths[0], fifths[3], repeat)


@triton.jit
def row_l2_normalize_kernel(x_ptr, out_ptr, stride_xm, stride_om, n_cols, eps,
                            BLOCK_SIZE: tl.constexpr):
    """out[m] = x[m] / max(norm of x[m], eps). One program owns row m."""
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_xm + cols, mask=mask, other=0.0).to(tl.float64)
    norm = tl.sqrt(tl.sum(x * x, axis=0))
    y = x / tl.where(norm < eps, eps, norm)
    tl.store(out_ptr + row * stride_om + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
