"""What a GPU does at best: launches, empty programs, atomics, L2, latencies, copies, products.

From these come the parameters of ``targets.toml`` that are called measured.
"""

from __future__ import annotations

import time
from typing import Any

import torch
import triton
import triton.language as tl

from tests.benchmarks.clock import milliseconds

MILLION = 1 << 20
GIB = 1 << 30
_STEP = 32  # elements of 4 bytes between two places of a chase: a cache line
_ROUNDS = 64  # how often L2's 16 MiB are read
_LAUNCHES = 1000
_CHASES = {"128 KiB": 128 << 10, "16 MiB": 16 << 20, "2 GiB": 2 << 30}


@triton.jit
def empty_kernel():
    pass


@triton.jit
def increment_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr) + 1)


@triton.jit
def atomic_kernel(x_ptr):
    tl.atomic_add(x_ptr, 1)


@triton.jit
def read_kernel(x_ptr, out_ptr, blocks, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + (pid % blocks) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE))
    tl.store(out_ptr + pid, tl.sum(x, axis=0))


@triton.jit
def chase_kernel(next_ptr, out_ptr, steps):
    at = 0
    for _ in range(steps):
        at = tl.load(next_ptr + at)
    tl.store(out_ptr, at)


def measured() -> dict[str, Any]:
    """Every calibration case. Times in ms, rates per second."""
    made: dict[str, Any] = {"clock_khz": torch.cuda.get_device_properties(0).clock_rate
                            if hasattr(torch.cuda.get_device_properties(0), "clock_rate") else None}
    made["launch_from_host_us"] = _from_host(lambda: empty_kernel[(1,)]())
    made["dependent_launch_from_host_us"] = _dependent()
    made["launch_in_graph_us"] = _in_graph()
    for warps in (1, 4):
        timed = milliseconds(lambda w=warps: empty_kernel[(MILLION,)](num_warps=w))
        made[f"empty_programs_{warps}_warps"] = {
            "ms": timed, "programs_per_second": MILLION / timed["median"] * 1e3}
    made["one_empty_program"] = {"ms": milliseconds(lambda: empty_kernel[(1,)]())}
    made["atomics_on_one_address"] = _atomics()
    made["l2_read_16_mib"] = _l2()
    for name, size in _CHASES.items():
        made[f"chase_{name}"] = _chase(size)
    made |= _memory() | _products()
    torch.cuda.empty_cache()
    return made


def _from_host(launch: Any) -> float:
    """Microseconds from one launch to the next, where Python makes them."""
    for _ in range(20):
        launch()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(_LAUNCHES):
        launch()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / _LAUNCHES * 1e6


def _dependent() -> float:
    x = torch.zeros(1, device="cuda")
    return _from_host(lambda: increment_kernel[(1,)](x))


def _in_graph() -> dict[str, float]:
    x = torch.zeros(1, device="cuda")
    made = {}
    for name, launch in (("empty", lambda: empty_kernel[(1,)]()),
                         ("dependent", lambda: increment_kernel[(1,)](x))):
        launch()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(_LAUNCHES):
                launch()
        made[name] = milliseconds(graph.replay)["median"] / _LAUNCHES * 1e3
    return made


def _atomics() -> dict[str, Any]:
    x = torch.zeros(1, dtype=torch.int32, device="cuda")
    timed = milliseconds(lambda: atomic_kernel[(MILLION,)](x, num_warps=1))
    return {"ms": timed, "atomics_per_second": MILLION / timed["median"] * 1e3}


def _l2() -> dict[str, Any]:
    block, count = 8192, (16 << 20) // 4
    x = torch.zeros(count, device="cuda")
    programs = count // block * _ROUNDS
    out = torch.empty(programs, device="cuda")
    timed = milliseconds(
        lambda: read_kernel[(programs,)](x, out, count // block, BLOCK_SIZE=block, num_warps=8))
    return {"ms": timed, "bytes_per_second": 4 * count * _ROUNDS / timed["median"] * 1e3}


def _chase(nbytes: int) -> dict[str, Any]:
    """One lane that goes from line to line; each address is what the last load brought."""
    lines = nbytes // (4 * _STEP)
    order = torch.randperm(lines, device="cuda", dtype=torch.int32)
    order = torch.cat([order[order != 0].new_zeros(1), order[order != 0]])  # begins at element 0
    places = torch.zeros(lines * _STEP, dtype=torch.int32, device="cuda")
    places[order.long() * _STEP] = order.roll(-1) * _STEP
    out = torch.empty(1, dtype=torch.int32, device="cuda")
    short, long = 20_000, 60_000  # the difference has no launch and no first misses in it
    times = [milliseconds(lambda n=n: chase_kernel[(1,)](places, out, n, num_warps=1),
                          flush=nbytes > 64 << 20) for n in (short, long)]
    each = (times[1]["median"] - times[0]["median"]) / (long - short)
    return {"ms": times[1], "steps": long, "nanoseconds_per_load": each * 1e6}


def _memory() -> dict[str, Any]:
    x = torch.zeros(GIB // 4, device="cuda")
    y = torch.empty_like(x)
    jobs = {"copy": (2 * GIB, lambda: y.copy_(x)), "read": (GIB, lambda: x.sum()),
            "fill": (GIB, lambda: y.fill_(1.0))}
    made = {}
    for name, (nbytes, job) in jobs.items():
        timed = milliseconds(job)
        made[name] = {"ms": timed, "bytes_per_second": nbytes / timed["median"] * 1e3}
    return made


def _products() -> dict[str, Any]:
    made = {}
    for name, dtype, side in (("fp16", torch.float16, 8192), ("bf16", torch.bfloat16, 8192),
                              ("tf32", torch.float32, 8192), ("fp32", torch.float32, 4096)):
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        a, b = (torch.randn(side, side, device="cuda", dtype=dtype) for _ in range(2))
        timed = milliseconds(lambda a=a, b=b: a @ b)
        made[f"matmul_{name}"] = {"ms": timed, "side": side,
                                  "flops_per_second": 2 * side**3 / timed["median"] * 1e3}
    return made
