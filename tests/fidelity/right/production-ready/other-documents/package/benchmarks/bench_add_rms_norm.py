"""Bytes without a GPU, times with one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import addrmsnorm
import torch
import triton


def option(arguments: list[str], name: str, default: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments else default


def line(elements: int, dtype: torch.dtype, warmup: int, repeats: int) -> dict[str, Any]:
    columns = 500
    rows = elements // columns
    size = elements * dtype.itemsize
    found: dict[str, Any] = {
        "elements": elements, "rows": rows, "columns": columns, "dtype": "bfloat16",
        "bytes": 5 * size, "unfused_bytes": 6 * size, "ratio_to_unfused": 6 / 5, "note": "weights",
        "median_ms": None, "unfused_median_ms": None, "gb_per_s": None, "elements_per_s": None}
    if torch.cuda.is_available():
        x = torch.randn(rows, columns, dtype=dtype, device="cuda")
        w = x[0].clone()
        ms, unfused = (triton.testing.do_bench(run, warmup, repeats, return_mode="median")
                       for run in (lambda: addrmsnorm.add_rms_norm(x, x, w),
                                   lambda: torch.rms_norm(x + x, (columns,), w)))
        found |= {"median_ms": ms, "unfused_median_ms": unfused, "gb_per_s": 4 * size / ms / 1e6,
                  "elements_per_s": elements / ms * 1e3, "ratio_to_unfused": unfused / ms}
    return found


def main(arguments: list[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    warmup, repeats = int(option(given, "--warmup", "50")), int(option(given, "--repeats", "200"))
    on_gpu = torch.cuda.is_available()
    result = {
        "op": "add_rms_norm", "version": addrmsnorm.__version__,
        "device": torch.cuda.get_device_name() if on_gpu else "CPU",
        "measured": "time" if on_gpu else "bytes",
        "versions": {"python": sys.version, "torch": torch.__version__,
                     "triton": triton.__version__, "numpy": "none"},
        "warmup": warmup, "repeats": repeats,
        "results": [line(n, torch.bfloat16, warmup, repeats)
                    for n in (10_000, 30_000, 100_000, 1_000_000, 10_000_000)]}
    target = option(given, "--json", "-")
    if target == "-":
        print(json.dumps(result))
    else:
        Path(target).write_text(json.dumps(result), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
