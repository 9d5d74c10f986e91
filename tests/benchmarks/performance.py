"""The performance set on a real GPU, and beside it what is said of it without one.

    python -m tests.benchmarks.performance --out h200.json     on the GPU, under 5 minutes
    python -m tests.benchmarks.performance --compare h200.json  on any machine with the same Triton;
                                                                --out keeps both in one file
    python -m tests.benchmarks.performance --dry --out dry.json  all but the GPU, to try the script

The first measures: for every case what the GPU's own compiler made of each launch (a hash of the
PTX, registers, shared memory) and how long a call takes (L2 flushed between repeats, events), and
the calibration cases, from which the parameters of a target come. The second compiles the same
launches offline and prints both side by side. No case of the set is used for calibration.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import triton
from triton.runtime.jit import JITFunction

from grader.engine.compiler.kernel_reader import binary_of
from grader.engine.compiler.targets import find
from grader.recording.compiled_kernel import Binary
from tests.benchmarks import calibration, comparison
from tests.benchmarks.clock import milliseconds
from tests.benchmarks.text import json_text
from tests.fidelity.performance.analysing import compiled
from tests.fidelity.performance.case import Case
from tests.fidelity.performance.every import CASES, HELD_OUT
from tests.fidelity.performance.recorded import record

TARGET = "h200"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path)
    options.add_argument("--only", default="", help="a part of a case's name")
    options.add_argument("--held-out", action="store_true",
                         help="only kernels that the timing model was not fitted to")
    options.add_argument("--target", default=TARGET, help="the GPU's name in targets.toml")
    options.add_argument("--dry", action="store_true", help="compile offline, measure nothing")
    options.add_argument("--compare", type=Path, metavar="FILE")
    chosen = options.parse_args()
    if chosen.compare:
        return comparison.compare(json.loads(chosen.compare.read_text()), chosen.only, chosen.out)
    if not chosen.dry and not torch.cuda.is_available():
        print("This benchmark measures a GPU, and no GPU was found. --dry tries the rest.",
              file=sys.stderr)
        return 2
    result: dict[str, Any] = {
        "date": f"{datetime.date.today():%Y-%m-%d}", "target": chosen.target, "dry": chosen.dry,
        "device": None if chosen.dry else torch.cuda.get_device_name(),
        "driver": None if chosen.dry else _smi("driver_version"),
        "versions": {"python": platform.python_version(), "torch": torch.__version__,
                     "cuda": torch.version.cuda, "triton": triton.__version__},
        "calibration": {} if chosen.dry else calibration.measured(),
        "cases": {},
    }
    for case in HELD_OUT if chosen.held_out else CASES:
        if chosen.only in case.name:
            result["cases"][case.name] = _tried(case, chosen.target, dry=chosen.dry)
            print(f"{case.name}: {_short(result['cases'][case.name])}", file=sys.stderr, flush=True)
    if not chosen.dry:
        result["clock_mhz_at_end"] = _smi("clocks.sm")
    text = json_text(result)
    if chosen.out:
        chosen.out.write_text(text + "\n")
    else:
        print(text)
    return 1 if any("error" in case for case in result["cases"].values()) else 0


def _tried(case: Case, target: str, *, dry: bool) -> dict[str, Any]:
    """One case; an error of one does not end the run."""
    try:
        return _offline(case, target) if dry else _on_gpu(case, target)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def _short(made: dict[str, Any]) -> str:
    if "error" in made:
        return str(made["error"])
    return "not measured" if made["ms"] is None else f"{made['ms']['median']:.4f} ms"


def _offline(case: Case, target: str) -> dict[str, Any]:
    binaries = [binary for _, binary in compiled(record(case), find(target))]
    return {"moves": case.moves, "flops": case.flops, "launches": _listed(binaries), "ms": None}


def _on_gpu(case: Case, target: str) -> dict[str, Any]:
    tensors = case.tensors("cuda")
    try:
        with _watched(target) as binaries:
            case.body(*tensors)
            torch.cuda.synchronize()
        return {"moves": case.moves, "flops": case.flops, "launches": _listed(binaries),
                "ms": milliseconds(lambda: case.body(*tensors))}
    finally:
        tensors.clear()
        torch.cuda.empty_cache()


@contextlib.contextmanager
def _watched(target: str) -> Iterator[list[Binary]]:
    """Notes what the launches inside are compiled to."""
    run: Callable[..., Any] = JITFunction.run
    binaries: list[Binary] = []

    def watching(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        code = run(self, *args, grid=grid, warmup=warmup, **kwargs)
        names = {parameter.name for parameter in self.params}
        options = {name: value for name, value in kwargs.items() if name not in names}
        binaries.append(binary_of(code, find(target), self.fn.__name__, options))
        return code

    with mock.patch.object(JITFunction, "run", watching):
        yield binaries


def _listed(binaries: list[Binary]) -> list[dict[str, Any]]:
    """Facts of different launches, with how often each was made."""
    found: dict[str, dict[str, Any]] = {}
    for binary in binaries:
        one = found.setdefault(binary.ptx_sha256, {
            "kernel": binary.kernel, "ptx_sha256": binary.ptx_sha256,
            "registers": binary.registers, "spill_bytes": binary.spill_bytes,
            "shared": binary.shared, "warps": binary.warps, "launches": 0})
        one["launches"] += 1
    return list(found.values())


def _smi(what: str) -> str | None:
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.splitlines()[0].strip()


if __name__ == "__main__":
    raise SystemExit(main())
