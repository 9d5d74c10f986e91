"""``python -m tests.evidence.dynamic_shapes``: the log of a storm, from launches of the exercise.

The given `masked_mean` is called as a service would call it, and Triton's own cache decides for
each launch whether code for it is there. What it would compile is compiled for no GPU here, since
nobody looks at the code: the log tells when it would be.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any
from unittest import mock

import torch
from triton.runtime.jit import JITFunction

from grader.engine.compiler.stub_driver import pretending
from grader.engine.compiler.targets import find

ROOT = Path(__file__).resolve().parents[2]
MODULE = Path("debugging/05-dynamic-shapes")
EXERCISE = ROOT / "tracks" / MODULE / "kernel.py"
KEPT = tuple(ROOT / folder / MODULE / "storm.log"
             for folder in ("tracks", "solutions", "grader/suites"))
REQUESTS = 120
SEED = 5


def requests() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """x and lengths of each request: two models, two dtypes, some cut out of a packed buffer."""
    random = Random(SEED)
    known: list[int] = []
    for _ in range(REQUESTS):
        if known and random.random() < 0.25:
            steps = random.choice(known)  # a length comes again
        else:
            steps = random.choice([1, 16 * random.randint(1, 30), random.randint(2, 500),
                                   random.randint(2, 500), random.randint(2, 500)])
            known.append(steps)
        columns, dtype, packed = random.choice([
            (64, torch.float16, False), (64, torch.float16, False), (64, torch.float16, True),
            (64, torch.float32, False), (40, torch.float16, False)])
        batch, start = random.randint(2, 4), 1 if packed else 0
        buffer = torch.zeros(start + batch * steps * columns, dtype=dtype)
        yield (buffer[start:].view(batch, steps, columns),
               torch.full((batch,), steps, dtype=torch.int64))


def log(path: Path = EXERCISE) -> str:
    """One line for each launch: number, what Triton did, the arguments, constexprs, options."""
    exercise = _imported(path)
    kernel = exercise.masked_mean_kernel
    lines: list[str] = []
    compiled: list[Any] = []

    def compile_(source: Any, **_: Any) -> Any:
        compiled.append(source)
        return source

    run = JITFunction.run

    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        before = len(compiled)
        run(self, *args, grid=grid, warmup=True, enable_fp_fusion=True, **kwargs)
        bound = self.signature.bind(*args, **kwargs).arguments
        did = "compiled" if len(compiled) > before else "found"
        lines.append(_line(len(lines) + 1, did, self, bound))

    with pretending(find("h100")):
        _ = kernel.device_caches[find("h100").capability]  # which sets the kernel's own `compile`
        kernel.compile = compile_
        with mock.patch.object(JITFunction, "run", launch):
            for x, lengths in requests():
                exercise.masked_mean(x, lengths)
    return "".join(f"{line}\n" for line in lines)


def _line(number: int, did: str, kernel: Any, bound: dict[str, Any]) -> str:
    constexprs = {one.name for one in kernel.params if one.is_constexpr}
    at_run_time = [_pair(name, value) for name, value in bound.items() if name not in constexprs]
    constants = [_pair(name, value) for name, value in bound.items() if name in constexprs]
    told = " ".join([kernel.fn.__name__, *at_run_time])
    return f"{number:3} {did:8} | {told} | {' '.join(constants)} | num_warps=4"


def _pair(name: str, value: Any) -> str:
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return f"{name}={dtype}@{value.data_ptr():#x}"
    return f"{name}={value}"


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("storm_exercise", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["storm_exercise"] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    text = log()
    for kept in KEPT:
        kept.write_text(text, encoding="utf-8")
    print(f"{text.count(' compiled ')} of {REQUESTS} launches compiled; {len(KEPT)} copies written")
