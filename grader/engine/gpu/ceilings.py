"""What this GPU reaches at its best: copying memory, and multiplying matrices."""

from __future__ import annotations

import datetime
from typing import Any

import torch
import triton

from grader.engine.gpu import nvml
from grader.engine.gpu.clock import Cuda, TimingJob, measure, milliseconds, uuid_of
from grader.engine.gpu.measurement import Ceilings, Gpu

COPY_BYTES = 1 << 30  # from one place to another, so that twice as many move
SIDE = 8192  # of the matrices
FP8_CAPABILITY = (8, 9)  # the least one whose tensor cores multiply float8
_PROBES_MS = 6.0  # of a short look whether a copy is as fast as it was
_FULL_MS = 60.0


def look() -> Gpu:
    """What the driver and torch tell of the current device."""
    properties = torch.cuda.get_device_properties()
    return Gpu(
        name=properties.name, uuid=uuid_of(properties), driver=nvml.driver_version(),
        capability=(properties.major, properties.minor), l2_bytes=properties.L2_cache_size,
        multiprocessors=properties.multi_processor_count, memory_bytes=properties.total_memory)


def measured(device: Cuda) -> Ceilings:
    """Measure all of them; some seconds the first time, as the library for products is loaded."""
    gpu = look()
    nbytes = copied_bytes()
    return Ceilings(
        gpu, copy_gb_s(device, nbytes), matmul_tflops(device, torch.float16),
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%S%z}", versions(gpu.driver),
        matmul_tflops(device, torch.float32, tf32=True), matmul_tflops(device, torch.float32),
        nbytes, fp8_tflops(device) if gpu.capability >= FP8_CAPABILITY else 0.0)


def versions(driver: str) -> dict[str, str]:
    """On what the rates may depend beside the device."""
    return {"torch": torch.__version__, "triton": triton.__version__, "driver": driver}


def copied_bytes() -> int:
    """How much is copied: 1 GiB, and less where a quarter of the free memory is less."""
    free, _ = torch.cuda.mem_get_info()
    return int(min(COPY_BYTES, max(1 << 24, free // 4)))


def copy_gb_s(device: Cuda, nbytes: int, *, probe: bool = False) -> float:
    """GB/s of a copy on the device, bytes read and written; ``probe`` takes a tenth of the time.

    A graph may copy in another way than a call does: the faster one counts.
    """
    source = torch.empty(nbytes, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    target.copy_(source)
    in_graph = measure([TimingJob(lambda: target.copy_(source))], device,
                       budget_ms=_PROBES_MS if probe else _FULL_MS)
    called = milliseconds(lambda: target.copy_(source),
                          budget_ms=_PROBES_MS if probe else _FULL_MS)
    return 2 * nbytes / min(in_graph.ms, called["median"]) / 1e6


def matmul_tflops(device: Cuda, dtype: torch.dtype, *, tf32: bool = False) -> float:
    """TFLOP/s of ``torch.matmul`` on random square matrices; zeros would draw less power.

    Full precision is a tenth as fast, so it gets smaller ones; so does a GPU with little memory.
    """
    free, _ = torch.cuda.mem_get_info()
    side = SIDE if dtype.itemsize == 2 or tf32 else SIDE // 2
    while side > 1024 and 4 * side * side * dtype.itemsize > free // 2:
        side //= 2
    a, b = (torch.randn(side, side, device="cuda", dtype=dtype) for _ in range(2))
    out = torch.empty(side, side, device="cuda", dtype=dtype)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        def work() -> Any:
            return torch.matmul(a, b, out=out)

        work()
        return 2 * side**3 / measure([TimingJob(work)], device, budget_ms=_FULL_MS).ms / 1e9
    finally:
        torch.set_float32_matmul_precision(before)


def fp8_tflops(device: Cuda) -> float:
    """TFLOP/s of the library's product of float8, with sums that go on in float32; 0 without one.

    The second factor lies in memory column by column, the only order that the library takes.
    """
    free, _ = torch.cuda.mem_get_info()
    side = SIDE
    while side > 1024 and 8 * side * side > free // 2:
        side //= 2
    a, b_t = (torch.randn(side, side, device="cuda", dtype=torch.float16).to(torch.float8_e4m3fn)
              for _ in range(2))
    scale = torch.ones((), device="cuda")

    def work() -> Any:
        return torch._scaled_mm(a, b_t.mT, scale, scale, out_dtype=torch.float16,
                                use_fast_accum=False)

    try:
        work()
        return 2 * side**3 / measure([TimingJob(work)], device, budget_ms=_FULL_MS).ms / 1e9
    except (RuntimeError, AttributeError):  # no such product in this torch, or for this GPU
        return 0.0
