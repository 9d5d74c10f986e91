"""What compute-sanitizer says on a GPU of the kernels behind memory-debugging's reports.

    python -m tests.benchmarks.sanitizer --out FILE [--simulate]

Each job runs in a process of its own under `compute-sanitizer --tool memcheck`: the five kernels of
`tests.evidence.memory_debugging`, of which three leave their tensors, and the four functions of the
reference solution, which must not. PyTorch asks for memory without its cache, so that every tensor
is an allocation of its own. `agrees` is whether the tool finds what this project's engine found:
invalid reads or writes where it noted M01, M02 or M05, and none elsewhere. Races between programs
are not what the tool looks for, and R5 has no mistake that it could see.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import triton

from tests.benchmarks.text import json_text

TOOL = "compute-sanitizer"
ROOT = Path(__file__).parents[2]
INVALID = re.compile(r"Invalid __global__ (\w+) of size (\d+) bytes")
TOTAL = re.compile(r"ERROR SUMMARY: (\d+) error")


def of_report(name: str, device: str) -> None:
    """The launch behind a report, with tensors of its sizes."""
    from tests.evidence import memory_debugging as made

    threads = made.THREADS
    if name == "R1":
        x, bias = (torch.ones(300, device=device) for _ in range(2))
        made.add_bias_kernel[(3,)](x, bias, torch.empty_like(x), 300, BLOCK=threads)
    elif name == "R2":
        x = torch.ones(1_000, dtype=torch.float16, device=device)
        made.negate_kernel[(8,)](x, torch.empty_like(x), 1_000, BLOCK=threads)
    elif name == "R3":
        rows, columns, stride = 1_664, 64, 1_300_000
        whole = torch.empty((rows - 1) * stride + columns, device=device)
        x = whole.as_strided((rows, columns), (stride, 1))
        made.row_sums_kernel[(rows,)](x, torch.empty(rows, device=device), stride, columns,
                                      BLOCK=threads)
    elif name == "R4":
        accounts = torch.tensor([4, 7, 2, 0, 7, 5], device=device)
        made.totals_kernel[(6,)](torch.ones(6, device=device), accounts,
                                 torch.zeros(8, device=device))
    else:
        x = torch.ones(4_097, device=device)[1:]
        made.scale_kernel[(triton.cdiv(4_096, threads),)](x, torch.empty_like(x), 4_096,
                                                          BLOCK=threads)


def of_solution(name: str, device: str) -> None:
    """A function of the reference solution on what its contract allows, ragged and strided."""
    from tests.benchmarks.modules import solution

    module = solution("memory-debugging")
    x = torch.arange(37.0 * 205, device=device).reshape(37, 205)
    jobs: dict[str, Callable[[], torch.Tensor]] = {
        "gather_rows": lambda: module.gather_rows(
            x[:, ::2], torch.tensor([36, 0, 5, 36], device=device)),
        "shift_right": lambda: module.shift_right(x.flatten()[1:], 1_000, 0.5),
        "bincount": lambda: module.bincount(
            torch.arange(5_001, device=device) % 7, 7),
        "copy_rows": lambda: module.copy_rows(x[:, :101]),
    }
    jobs[name]()


JOBS = {**{name: (of_report, found) for name, found in (
    ("R1", "reads"), ("R2", "writes"), ("R3", "reads"), ("R4", ""), ("R5", ""))},
    **dict.fromkeys(("gather_rows", "shift_right", "bincount", "copy_rows"), (of_solution, ""))}
WORDS = {"read": "reads", "write": "writes"}


def examined(name: str) -> dict[str, Any]:
    """Run a job under the tool, and count what it says."""
    command = [TOOL, "--tool", "memcheck", "--print-limit", "200", "--target-processes", "all",
               sys.executable, "-m", __spec__.name, "--job", name]
    surroundings = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True,
                          timeout=240)
    text = done.stdout + done.stderr
    kinds = Counter(f"{WORDS.get(kind, kind)} of {size} bytes" for kind, size in
                    INVALID.findall(text))
    total = TOTAL.search(text)
    expected = JOBS[name][1]
    found = {kind.split()[0] for kind in kinds}
    return {"kinds": dict(kinds), "errors": int(total[1]) if total else None,
            "engine": expected or "nothing outside",
            "agrees": total is not None and found == ({expected} if expected else set()),
            "said": text[-3_000:] if total is None else
            "\n".join(line for line in text.splitlines() if line.startswith("===="))[:1_200]}


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--out", type=Path)
    options.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    options.add_argument("--simulate", action="store_true", help="no GPU: run right jobs alone")
    chosen = options.parse_args()
    if chosen.job:
        JOBS[chosen.job][0](chosen.job, "cuda")
        torch.cuda.synchronize()
        return 0
    if chosen.simulate:
        from grader.engine.interpreter.eager import interpreted

        with interpreted():
            for name, (job, found) in JOBS.items():
                if not found:
                    job(name, "cpu")
        return 0
    if not torch.cuda.is_available() or shutil.which(TOOL) is None:
        print(f"This needs a GPU and {TOOL}, and one of them was not found.", file=sys.stderr)
        return 2
    version = subprocess.run([TOOL, "--version"], capture_output=True, text=True).stdout
    with ThreadPoolExecutor(len(JOBS)) as pool:
        jobs = dict(zip(JOBS, pool.map(examined, JOBS), strict=True))
    result = {"date": f"{datetime.date.today():%Y-%m-%d}", "device": torch.cuda.get_device_name(),
              "versions": {"torch": torch.__version__, "triton": triton.__version__,
                           TOOL: version.strip().splitlines()[-1]}, "jobs": jobs}
    for name, one in jobs.items():
        print(f"{name:<12} {'agrees' if one['agrees'] else 'DIFFERS'}: {one['kinds'] or 'nothing'}"
              f" ({one['errors']} errors)", flush=True)
    if chosen.out:
        chosen.out.write_text(json_text(result) + "\n")
    return 0 if all(one["agrees"] for one in jobs.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
