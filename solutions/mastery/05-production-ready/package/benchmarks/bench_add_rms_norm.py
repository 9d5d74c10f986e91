"""Times `add_rms_norm` and the two PyTorch operations that it replaces.

    python -m benchmarks.bench_add_rms_norm --json out.json      from the package folder

On a GPU, it reports the median of many runs with a cold L2 cache, and the rates derived from it.
Small sizes are replayed from a CUDA graph, since launching them takes longer than running them.
Without a GPU, times are meaningless, so it reports the bytes that both versions move.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import triton
from addrmsnorm import __version__, add_rms_norm

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)  # elements of x
WIDTHS = (1_000, 1_000, 1_000, 4_000)             # columns: the rest are rows
GRAPH_BELOW = 2_000_000  # elements; below, a launch takes about as long as its run
EPS = 1e-6


def unfused(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
            ) -> tuple[torch.Tensor, torch.Tensor]:
    """The two PyTorch operations: an addition, then `rms_norm`."""
    s = x + residual
    return torch.nn.functional.rms_norm(s, (s.shape[-1],), weight, EPS), s


def least_bytes(rows: int, columns: int, itemsize: int) -> int:
    """Returns the minimum bytes: x, residual, y and s once each, and the weight once."""
    return (4 * rows * columns + columns) * itemsize


def unfused_bytes(rows: int, columns: int, itemsize: int) -> int:
    """Returns the bytes of an addition (two reads, a write) and a norm (a read, a write)."""
    return (5 * rows * columns + columns) * itemsize


def median_ms(function: Callable[[], Any], *, graph: bool, warmup: int, repeats: int) -> float:
    """Returns the median of `repeats` runs after `warmup` others, in ms."""
    if graph:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(warmup):
                function()
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            function()
        function = captured.replay
    cold = torch.empty(256_000_000, dtype=torch.int8, device="cuda")  # more than any L2 holds
    for _ in range(warmup):
        function()
    pairs = []
    for _ in range(repeats):
        cold.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    times = sorted(start.elapsed_time(end) for start, end in pairs)
    return times[len(times) // 2]


def measure(elements: int, columns: int, dtype: torch.dtype, *, on_gpu: bool, warmup: int,
            repeats: int) -> dict[str, Any]:
    """Returns one entry of `results`."""
    rows = elements // columns
    itemsize = dtype.itemsize
    moved = least_bytes(rows, columns, itemsize)
    line: dict[str, Any] = {
        "elements": rows * columns, "rows": rows, "columns": columns,
        "dtype": str(dtype).removeprefix("torch."), "bytes": moved,
        "unfused_bytes": unfused_bytes(rows, columns, itemsize),
        "median_ms": None, "unfused_median_ms": None, "gb_per_s": None, "elements_per_s": None,
        "ratio_to_unfused": unfused_bytes(rows, columns, itemsize) / moved,
    }
    if on_gpu:
        x, residual = (torch.randn(rows, columns, device="cuda", dtype=dtype) for _ in range(2))
        weight = torch.rand(columns, device="cuda", dtype=dtype)
        ours, theirs = (
            median_ms(lambda f=function: f(x, residual, weight), graph=elements < GRAPH_BELOW,
                      warmup=warmup, repeats=repeats)
            for function in (add_rms_norm, unfused))
        line |= {"median_ms": ours, "unfused_median_ms": theirs,
                 "gb_per_s": moved / ours / 1e6, "elements_per_s": rows * columns / ours * 1e3,
                 "ratio_to_unfused": theirs / ours}
    return line


def run(*, warmup: int = 10, repeats: int = 100,
        dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Returns all results, with versions and settings to compare them later."""
    on_gpu = torch.cuda.is_available()
    return {
        "op": "add_rms_norm",
        "version": __version__,
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "measured": "time" if on_gpu else "bytes",
        "versions": {"python": platform.python_version(), "torch": torch.__version__,
                     "triton": triton.__version__},
        "warmup": warmup,
        "repeats": repeats,
        "results": [measure(elements, columns, dtype, on_gpu=on_gpu, warmup=warmup,
                            repeats=repeats)
                    for elements, columns in zip(SIZES, WIDTHS, strict=True)],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line; `--json -` writes to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", default="-", help="the file to write, or - for standard output")
    parser.add_argument("--warmup", type=int, default=10, help="runs before the first that counts")
    parser.add_argument("--repeats", type=int, default=100, help="runs that count")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float16", "bfloat16"))
    chosen = parser.parse_args(arguments)
    if chosen.warmup < 10 or chosen.repeats < 100:
        parser.error("fewer than 10 runs to warm up or 100 to count give no median to rely on")

    text = json.dumps(run(warmup=chosen.warmup, repeats=chosen.repeats,
                          dtype=getattr(torch, chosen.dtype)), indent=2)
    if chosen.json == "-":
        sys.stdout.write(text + "\n")
    else:
        Path(chosen.json).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
