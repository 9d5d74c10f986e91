"""Every suite on a real GPU: reference solutions, and kernels that are right but different.

    python -m tests.benchmarks.solutions [--out results.json] [--only solution right]

The suites' own inputs, references and tolerances, through the real compiler and nothing else of the
grader; `tests.benchmarks.gpu` goes the grader's own way, with solutions and mutants. Each file runs
in a process of its own, some side by side; a fault ends only that.
"""

from __future__ import annotations

import argparse
import datetime
import multiprocessing
import os
import platform
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton

import grader
from grader.diagnosis.difference import as_tuple
from grader.judge import compare
from grader.suite import Case, Input, Sparse, Suite
from tests.benchmarks.modules import MODULES, ROOT, load
from tests.benchmarks.text import json_text
from tests.fidelity import variants

_FORK = multiprocessing.get_context("fork")  # the parent never touches CUDA
KINDS = ("solution", "right")


@dataclass(frozen=True)
class Task:
    """One file, and which of the cases it runs: every so many-th."""

    module: Path
    kind: str
    name: str
    path: Path
    every: int = 1


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--out", type=Path)
    options.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    options.add_argument("--modules", nargs="+", help="only those whose path holds one of these")
    options.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1))
    options.add_argument("--seconds", type=float, default=300.0, help="when to stop")
    chosen = options.parse_args()
    begun = time.monotonic()
    modules = [module for module in MODULES
               if not chosen.modules or any(text in str(module) for text in chosen.modules)]
    result: dict[str, Any] = {
        "date": f"{datetime.date.today():%Y-%m-%d}",
        "versions": {"python": platform.python_version(), "torch": torch.__version__,
                     "triton": triton.__version__},
        "modules": {str(module): {} for module in modules},
    }
    with tempfile.TemporaryDirectory() as folder:
        tasks = [task for module in modules
                 for task in tasks_of(module, chosen.only, Path(folder))]
        for task, found in outcomes(tasks, chosen.jobs, begun + chosen.seconds):
            result.setdefault("device", found.pop("device", None))
            result["modules"][str(task.module)].setdefault(task.kind, {})[task.name] = found
            if chosen.out:
                chosen.out.write_text(json_text(result) + "\n")
    wrong = summed_up(result)
    print(f"seconds {time.monotonic() - begun:.0f}")
    return 1 if wrong else 0


def tasks_of(module: Path, kinds: Sequence[str], folder: Path) -> Iterator[Task]:
    """A variant compiles anew for most shapes, so it gets every fourth case."""
    solution = ROOT / "solutions" / module / "kernel.py"
    if "solution" in kinds:
        yield Task(module, "solution", "solution", solution)
    if "right" in kinds:
        for path in variants.of(module.name.partition("-")[2]):
            kernel = variants.whole(path, solution, folder / module.name / path.stem)
            yield Task(module, "right", path.stem, kernel, every=4)


# ---------------------------------------------------------------------------------------------
# Processes


def outcomes(tasks: Sequence[Task], jobs: int, until: float
             ) -> Iterator[tuple[Task, dict[str, Any]]]:
    """What became of each task, as it ends."""
    waiting = deque(tasks)
    active: dict[Connection, tuple[Any, Task]] = {}
    while waiting or active:
        if time.monotonic() > until:
            for child, task in active.values():
                child.kill()
                child.join()
                waiting.append(task)
            yield from ((task, {"passed": 0, "failed": ["not reached"]}) for task in waiting)
            return
        while waiting and len(active) < jobs:
            ours, theirs = _FORK.Pipe(duplex=False)
            child = _FORK.Process(target=_run, args=(waiting[0], theirs), daemon=True)
            child.start()
            theirs.close()
            active[ours] = (child, waiting.popleft())
        for ready in wait(list(active), timeout=1.0):
            assert isinstance(ready, Connection)
            child, task = active.pop(ready)
            try:
                found = ready.recv()
            except EOFError:
                child.join()
                found = {"passed": 0, "failed": [f"the process ended with {child.exitcode}"]}
            yield task, found


def _run(task: Task, channel: Connection) -> None:
    try:
        found = correctness(task) | {"device": torch.cuda.get_device_name()}
    except Exception:
        found = {"passed": 0, "failed": [traceback.format_exc(limit=-3)]}
    channel.send(found)


# ---------------------------------------------------------------------------------------------
# Results


def correctness(task: Task) -> dict[str, Any]:
    """How many of the cases that have a result are right, and why the others are not."""
    suite = grader.load_suite(ROOT / "grader" / "suites" / task.module / "suite.py")
    loaded = load(task.path)
    passed, failed = 0, []
    cases = [(part, case) for part in suite.parts for case in part.cases if has_result(case)]
    for part, case in cases[::task.every]:
        problem = on_gpu(called(loaded, part), part, case)
        if problem:
            failed.append(f"{case.name}: {problem}")
        else:
            passed += 1
    return {"passed": passed, "failed": failed}


def called(loaded: ModuleType, part: Suite) -> Callable[..., Any]:
    """The function that a case calls: the file's own, or a driver of the suite."""
    if not part.drives:
        return getattr(loaded, part.entry)
    drivers: dict[str, Any] = {}
    exec(compile(part.calls, "calls.py", "exec"), drivers)
    return partial(drivers[part.entry], loaded)


def has_result(case: Case) -> bool:
    """Whether a case asks for a result that fits into memory."""
    measured = case.limits is not None and case.limits.pass_at is not None
    sparse = any(isinstance(spec, Sparse) for spec in case.inputs)
    return not (measured or sparse or case.raises or case.call or case.reading or case.sizes)


def on_gpu(entry: Callable[..., Any], suite: Suite, case: Case) -> str:
    """Why the result is wrong, or nothing."""
    generator = torch.Generator().manual_seed(7)
    inputs = [spec.draw(generator, 1024) if isinstance(spec, Input) else spec
              for spec in case.inputs]
    on_device = [on_device_like(value) if isinstance(value, torch.Tensor) else value
                 for value in inputs]
    split = len(suite.parameters)
    try:
        returned = entry(*on_device[:split],
                         **dict(zip(suite.keyword_only, on_device[split:], strict=False)))
        if suite.in_place:
            returned = tuple(on_device[position] for position in suite.in_place_at())
        results = [result.cpu() for result in as_tuple(returned)]
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    shapes = [tuple(right.shape) for right in as_tuple(suite.reference(*inputs))]
    if [tuple(result.shape) for result in results] != shapes:
        return f"shapes {[tuple(result.shape) for result in results]}"
    tolerance = suite.tolerance.of_a_gpu()
    differences = compare.judge(results, inputs, suite.reference, tolerance)
    return str(differences[0]) if differences else ""


def on_device_like(tensor: torch.Tensor) -> torch.Tensor:
    """The same values with the same strides and offset on the GPU."""
    memory = tensor.conj() if tensor.is_conj() else tensor
    whole = torch.empty(0, dtype=tensor.dtype).set_(memory.untyped_storage())
    moved = whole.cuda().as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return moved.conj() if tensor.is_conj() else moved


def summed_up(result: dict[str, Any]) -> int:
    """Prints what became of each module; returns how many kernels failed."""
    wrong = 0
    for module, kinds in result["modules"].items():
        for kind in KINDS:
            kernels = kinds.get(kind, {})
            passed = sum(found["passed"] for found in kernels.values())
            bad = {name: found["failed"] for name, found in kernels.items() if found["failed"]}
            wrong += len(bad)
            if kernels:
                print(f"{module}: {kind}: {len(kernels)} kernels, {passed} cases passed, "
                      f"{sum(map(len, bad.values()))} failed")
            for name, problems in bad.items():
                print(f"  {name}: {problems[0].strip().splitlines()[-1][:200]}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
