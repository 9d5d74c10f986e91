"""Ceilings of this GPU: the rates at which it copies memory and multiplies matrices."""

import datetime
from collections.abc import Callable
from functools import partial

import torch
import triton

from grader.engine.gpu import nvml
from grader.engine.gpu.clock import Cuda, TimingJob, measure, milliseconds, uuid_of
from grader.engine.gpu.measurement import Ceilings, Gpu

COPY_BYTES = 1 << 30  # twice as many move: each is read and written
SIDE = 8192  # of the matrices
FP8_CAPABILITY = (8, 9)  # the least one whose tensor cores multiply float8
_PROBES_MS = 6.0  # to check whether a copy is as fast as it was
_FULL_MS = 60.0


def look() -> Gpu:
    """Describes the current device, from torch and its driver."""
    properties = torch.cuda.get_device_properties()
    return Gpu(
        name=properties.name, uuid=uuid_of(properties), driver=nvml.driver_version(),
        capability=(properties.major, properties.minor), l2_bytes=properties.L2_cache_size,
        multiprocessors=properties.multi_processor_count, memory_bytes=properties.total_memory)


def measured(device: Cuda) -> Ceilings:
    """Measures all ceilings; loading the library for products takes seconds the first time."""
    gpu = look()
    nbytes = copied_bytes()
    return Ceilings(
        gpu, copy_gb_s(device, nbytes), matmul_tflops(device, torch.float16),
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%S%z}", versions(gpu.driver),
        matmul_tflops(device, torch.float32, tf32=True), matmul_tflops(device, torch.float32),
        nbytes, fp8_tflops(device) if gpu.capability >= FP8_CAPABILITY else 0.0)


def versions(driver: str) -> dict[str, str]:
    """Versions that the rates may depend on."""
    return {"torch": torch.__version__, "triton": triton.__version__, "driver": driver}


def copied_bytes() -> int:
    """Bytes that are copied: 1 GiB, or a quarter of the free memory if that is less."""
    free, _ = torch.cuda.mem_get_info()
    return int(min(COPY_BYTES, max(1 << 24, free // 4)))


def copy_gb_s(device: Cuda, nbytes: int, *, probe: bool = False) -> float:
    """GB/s of a copy on the device, bytes read and written; ``probe`` takes a tenth of the time.

    A graph may copy in another way than a call does: the faster one counts.
    """
    source = torch.empty(nbytes, dtype=torch.uint8, device="cuda").random_()
    copy = partial(torch.empty_like(source).copy_, source)
    copy()
    budget_ms = _PROBES_MS if probe else _FULL_MS
    in_graph = measure([TimingJob(copy)], device, budget_ms=budget_ms)
    called = milliseconds(copy, budget_ms=budget_ms)
    return 2 * nbytes / min(in_graph.ms, called["median"]) / 1e6


def matmul_tflops(device: Cuda, dtype: torch.dtype, *, tf32: bool = False) -> float:
    """TFLOP/s of ``torch.matmul`` on random square matrices; zeros would draw less power.

    Full precision is a tenth as fast, so it gets smaller ones; so does a GPU with little memory.
    """
    side = _side(SIDE if dtype.itemsize == 2 or tf32 else SIDE // 2, 4 * dtype.itemsize)
    a, b = (torch.randn(side, side, device="cuda", dtype=dtype) for _ in range(2))
    out = torch.empty(side, side, device="cuda", dtype=dtype)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        return _tflops(device, side, lambda: torch.matmul(a, b, out=out))
    finally:
        torch.set_float32_matmul_precision(before)


def fp8_tflops(device: Cuda) -> float:
    """TFLOP/s of the library's product of float8, with sums that go on in float32; 0 without one.

    The second factor lies in memory column by column, the only order that the library takes.
    """
    side = _side(SIDE, 8)
    a, b_t = (torch.randn(side, side, device="cuda", dtype=torch.float16).to(torch.float8_e4m3fn)
              for _ in range(2))
    scale = torch.ones((), device="cuda")
    try:
        return _tflops(device, side, lambda: torch._scaled_mm(
            a, b_t.mT, scale, scale, out_dtype=torch.float16, use_fast_accum=False))
    except (RuntimeError, AttributeError):  # no such product in this torch, or for this GPU
        return 0.0


def _side(most: int, nbytes: int) -> int:
    """The side of matrices that take ``nbytes`` an element and half of the free memory at most."""
    free, _ = torch.cuda.mem_get_info()
    while most > 1024 and nbytes * most * most > free // 2:
        most //= 2
    return most


def _tflops(device: Cuda, side: int, multiply: Callable[[], object]) -> float:
    multiply()
    measurement = measure([TimingJob(multiply)], device, budget_ms=_FULL_MS)
    return 2 * side**3 / measurement.ms / 1e9
