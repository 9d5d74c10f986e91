"""Reference solutions on a real GPU: right by their own suites, timed beside PyTorch in one run.

    python -m tests.benchmarks.solutions [--out results.json] [--quick]

Times are medians of ``triton.testing.do_bench`` (events, L2 flushed before each repeat) in
milliseconds. ``of_copy`` is the job's least bytes per second over the copy bandwidth that this run
measured on this GPU. Ratios compare within the run; absolute figures move from run to run.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton

import grader
from grader import compare
from grader.suite import Case, Input, Sparse, Suite

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.parent.relative_to(ROOT / "tracks")
                 for path in (ROOT / "tracks").glob("*/*/module.toml"))
GIB = 1 << 30


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path)
    options.add_argument("--quick", action="store_true", help="small sizes, to try the script")
    chosen = options.parse_args()
    if not torch.cuda.is_available():
        print("This benchmark measures a GPU, and no GPU was found.", file=sys.stderr)
        return 2
    copy_gb_s = copy_bandwidth(GIB // (16 if chosen.quick else 1))
    result = {
        "date": f"{datetime.date.today():%Y-%m-%d}",
        "device": torch.cuda.get_device_name(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__,
                     "triton": triton.__version__},
        "copy_gb_s": round(copy_gb_s, 1),
        "correctness": {str(module): correctness(module) for module in MODULES},
        "timing": [*vector_add(copy_gb_s, chosen.quick), *softmax(copy_gb_s, chosen.quick)],
    }
    text = json.dumps(result, indent=1)
    print(text)
    if chosen.out:
        chosen.out.write_text(text + "\n")
    return 1 if any(c["failed"] for c in result["correctness"].values()) else 0


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"kernel_{path.stem}_{path.parent.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))  # a file may be the door of a package beside it
    spec.loader.exec_module(module)
    sys.path.pop(0)
    return module


def solution(slug: str) -> ModuleType:
    [module] = [module for module in MODULES if module.name.endswith(f"-{slug}")]
    return load(ROOT / "solutions" / module / "kernel.py")


# ---------------------------------------------------------------------------------------------
# Correctness: the suites' own inputs, references and tolerances, through the real compiler


def correctness(module: Path) -> dict[str, Any]:
    """Every case with a result for the solution, and every fourth for the variants.

    A variant compiles anew for most shapes, and compiling is what this part spends its time on.
    """
    suite = grader.load_suite(ROOT / "grader" / "suites" / module / "suite.py")
    right = ROOT / "tests" / "fidelity" / "right" / module.name.split("-", 1)[1]
    kernels = {"solution": ROOT / "solutions" / module / "kernel.py",
               **{path.stem: path for path in sorted(right.glob("*.py"))}}
    passed, failed = 0, []
    for name, path in kernels.items():
        loaded = load(path)
        cases = [(part, case) for part in suite.parts for case in part.cases if has_result(case)]
        for part, case in cases if name == "solution" else cases[::4]:
            problem = on_gpu(getattr(loaded, part.entry), part, case)
            if problem:
                failed.append(f"{name}: {case.name}: {problem}")
            else:
                passed += 1
    return {"kernels": len(kernels), "passed": passed, "failed": failed}


def has_result(case: Case) -> bool:
    """Whether a case asks for a result that fits into memory."""
    measured = case.limits is not None and case.limits.pass_at is not None
    sparse = any(isinstance(spec, Sparse) for spec in case.inputs)
    return not (measured or sparse or case.raises or case.call or case.reading)


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
        results = [result.cpu() for result in compare.as_tuple(returned)]
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    shapes = [tuple(right.shape) for right in compare.as_tuple(suite.reference(*inputs))]
    if [tuple(result.shape) for result in results] != shapes:
        return f"shapes {[tuple(result.shape) for result in results]}"
    found = compare.judge(results, inputs, suite.reference, suite.tolerance)
    return str(found[0]) if found else ""


def on_device_like(tensor: torch.Tensor) -> torch.Tensor:
    """The same values with the same strides and offset on the GPU."""
    memory = tensor.conj() if tensor.is_conj() else tensor
    whole = torch.empty(0, dtype=tensor.dtype).set_(memory.untyped_storage())
    moved = whole.cuda().as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return moved.conj() if tensor.is_conj() else moved


# ---------------------------------------------------------------------------------------------
# Timing


def milliseconds(work: Callable[[], Any]) -> float:
    return float(triton.testing.do_bench(work, warmup=30, rep=120, return_mode="median"))


def copy_bandwidth(nbytes: int) -> float:
    """GB/s of a device-to-device copy, bytes read and written."""
    source = torch.empty(nbytes, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * nbytes / milliseconds(lambda: target.copy_(source)) / 1e6


def row(case: str, who: str, ms: float, nbytes: int, copy_gb_s: float) -> dict[str, Any]:
    rate = nbytes / ms / 1e6
    return {"case": case, "who": who, "ms": round(ms, 5), "gb_s": round(rate, 1),
            "of_copy": round(rate / copy_gb_s, 4)}


def vector_add(copy_gb_s: float, quick: bool) -> Iterator[dict[str, Any]]:
    module = solution("vector-add")
    n = 1 << (20 if quick else 27)
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    case, nbytes = f"vector-add float32 {n}", 3 * x.nbytes
    yield row(case, "solution", milliseconds(lambda: module.vector_add(x, y)), nbytes, copy_gb_s)
    yield row(case, "torch", milliseconds(lambda: torch.add(x, y)), nbytes, copy_gb_s)
    for block in (64, 128, 256, 512, 1024, 2048, 4096):
        grid = (triton.cdiv(n, block),)
        ms = milliseconds(
            lambda grid=grid, block=block: module.vector_add_kernel[grid](
                x, y, out, n, BLOCK_SIZE=block))
        yield row(case, f"BLOCK_SIZE={block}", ms, nbytes, copy_gb_s)


SOFTMAX_SHAPES = (
    (262144, 128), (32768, 1024), (32768, 2048), (16384, 3000), (16384, 4096), (16384, 4097),
    (16384, 6000), (8192, 8192), (8192, 12345), (8192, 16384), (4096, 30001), (4096, 32768),
    (2048, 65536),
)


def softmax(copy_gb_s: float, quick: bool) -> Iterator[dict[str, Any]]:
    module = solution("softmax")
    compiled = torch.compile(lambda x: torch.softmax(x, dim=1))
    for rows, columns in SOFTMAX_SHAPES:
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(rows // (64 if quick else 1), columns, device="cuda").to(dtype)
            out = torch.empty_like(x)
            case = f"softmax {str(dtype).removeprefix('torch.')} {rows}x{columns}"
            nbytes = 2 * x.nbytes
            torch._dynamo.reset()
            for who, work in (
                ("solution", lambda x=x: module.softmax(x)),
                ("torch", lambda x=x: torch.softmax(x, dim=1)),
                ("torch.compile", lambda x=x: compiled(x)),
            ):
                yield row(case, who, milliseconds(work), nbytes, copy_gb_s)
            for options in ({"num_warps": 2}, {"num_warps": 4}, {"num_warps": 8},
                            {"num_warps": 16}, {"num_warps": 32},
                            {"num_warps": 16, "maxnreg": 64}):
                def launch(x=x, out=out, options=options) -> Any:
                    return module.softmax_kernel[(len(x),)](
                        x, out, x.shape[1], x.stride(0), out.stride(0),
                        BLOCK_SIZE=triton.next_power_of_2(x.shape[1]), **options)

                registers = launch().n_regs
                who = " ".join(f"{name}={value}" for name, value in options.items())
                measured = row(case, who, milliseconds(launch), nbytes, copy_gb_s)
                yield {**measured, "registers": registers}


if __name__ == "__main__":
    raise SystemExit(main())
