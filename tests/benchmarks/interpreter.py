"""The engine, with every check and the traffic count on, beside Triton's own interpreter.

    python -m tests.benchmarks.interpreter [--json FILE] [--repeats 5] [--only NAME ...]
    python -m tests.benchmarks.interpreter --profile NAME

Triton decides when it is imported whether it interprets, so each side is a process of its own. The
two run the same kernels on the same numbers in turn, one repeat each, so that noise hits both
alike. Times are milliseconds of one launch and of allocating its results, the median of the
repeats; ratios are stock over ours. Every repeat is checked against PyTorch. Exits with 1 where a
floor is missed. Triton 3.6 with NumPy 2.4 cannot run loops with a bound known only at run time;
those rows have no ratio.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import datetime
import json
import os
import platform
import pstats
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from tests.benchmarks.text import json_text

ROOT = Path(__file__).parents[2]
SIDES = ("stock", "ours")
NO_RUNTIME_BOUND = "only 0-dimensional arrays can be converted to Python scalars"  # Triton 3.6


# ---------------------------------------------------------------------------------------------
# Kernels


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)

    tl.store(out_ptr + offs, x + y, mask=mask)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride_m, n_cols, BLOCK_SIZE: tl.constexpr):
    """One row per program."""
    row = tl.program_id(axis=0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols

    x = tl.load(x_ptr + row * stride_m + offs, mask=mask, other=-float("inf"))

    e = tl.exp(x - tl.max(x, axis=0))

    tl.store(out_ptr + row * stride_m + offs, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, stride_m, n_cols, eps,
                      BLOCK_SIZE: tl.constexpr):
    """One row per program."""
    row = tl.program_id(axis=0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols

    x = tl.load(x_ptr + row * stride_m + offs, mask=mask, other=0.0)
    w = tl.load(w_ptr + offs, mask=mask)
    b = tl.load(b_ptr + offs, mask=mask)

    centred = tl.where(mask, x - tl.sum(x, axis=0) / n_cols, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_cols
    y = centred * tl.rsqrt(variance + eps) * w + b

    tl.store(out_ptr + row * stride_m + offs, y, mask=mask)


@triton.jit
def matmul_tile(a_ptr, b_ptr, c_ptr, pid_m, pid_n, M, N, K,
                BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """One tile of c = a @ b, all row-major."""
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + offs_m[:, None] * K + (k + offs_k)[None, :],
                    mask=(offs_m[:, None] < M) & ((k + offs_k)[None, :] < K), other=0.0)
        b = tl.load(b_ptr + (k + offs_k)[:, None] * N + offs_n[None, :],
                    mask=((k + offs_k)[:, None] < K) & (offs_n[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")

    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc,
             mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """One tile per program."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(axis=0)
    matmul_tile(a_ptr, b_ptr, c_ptr, pid // tiles_n, pid % tiles_n, M, N, K,
                BLOCK_M, BLOCK_N, BLOCK_K)


@triton.jit
def persistent_matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr,
                             BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Each program takes every n-th tile; some take one more than others."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(axis=0), tl.cdiv(M, BLOCK_M) * tiles_n, tl.num_programs(0)):
        matmul_tile(a_ptr, b_ptr, c_ptr, tile // tiles_n, tile % tiles_n, M, N, K,
                    BLOCK_M, BLOCK_N, BLOCK_K)


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, scale, length, D: tl.constexpr,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Causal. One block of queries of one head per program; [heads, length, D], contiguous."""
    pid_m, head = tl.program_id(axis=0), tl.program_id(axis=1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n, offs_d = tl.arange(0, BLOCK_N), tl.arange(0, D)
    base = head * length * D

    q = tl.load(q_ptr + base + offs_m[:, None] * D + offs_d[None, :])

    peak = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, (pid_m + 1) * BLOCK_M, BLOCK_N):
        rows = start + offs_n
        k = tl.load(k_ptr + base + rows[:, None] * D + offs_d[None, :])
        v = tl.load(v_ptr + base + rows[:, None] * D + offs_d[None, :])
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(offs_m[:, None] >= rows[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        p = tl.exp(scores - new_peak[:, None])
        shrink = tl.exp(peak - new_peak)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        peak = new_peak

    tl.store(out_ptr + base + offs_m[:, None] * D + offs_d[None, :], acc / total[:, None])


@triton.jit
def then(a, x, b, y):
    """First h -> a h + x, then h -> b h + y."""
    return a * b, b * x + y


@triton.jit
def recurrence_kernel(a_ptr, x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """h[i] = a[i] h[i - 1] + x[i] along each row."""
    offs = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]

    a = tl.load(a_ptr + offs)
    x = tl.load(x_ptr + offs)

    _, h = tl.associative_scan((a, x), axis=1, combine_fn=then)

    tl.store(out_ptr + offs, h)


@triton.jit
def spin_lock_kernel(lock_ptr, total_ptr, x_ptr, BLOCK_SIZE: tl.constexpr):
    """Every program adds its block to the total while it holds the lock."""
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + tl.program_id(axis=0) * BLOCK_SIZE + offs)

    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(total_ptr + offs, tl.load(total_ptr + offs) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n

    bins = tl.load(x_ptr + offs, mask=mask, other=0)

    tl.atomic_add(counts_ptr + bins, 1, mask=mask)


# ---------------------------------------------------------------------------------------------
# Workloads


@dataclass(frozen=True)
class Workload:
    """``work`` allocates the results and launches; ``reference`` is what it must return."""

    work: Callable[[], Tensor]
    reference: Tensor
    tolerance: float = 0.0  # absolute


@dataclass(frozen=True)
class Entry:
    """``floor``: the ratio that the engine must reach."""

    build: Callable[[], Workload]
    floor: float | None = None


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def adding(programs: int, block: int) -> Workload:
    n = programs * block - block // 3
    x, y = random(n), random(n + 1)[1:]

    def work() -> Tensor:
        out = torch.empty_like(x)
        add_kernel[(programs,)](x, y, out, n, BLOCK_SIZE=block)
        return out

    return Workload(work, x + y)


def softmax() -> Workload:
    x = random(4096, 1000)

    def work() -> Tensor:
        out = torch.empty_like(x)
        softmax_kernel[(4096,)](x, out, x.stride(0), 1000, BLOCK_SIZE=1024)
        return out

    return Workload(work, x.softmax(1), 1e-6)


def layer_norm() -> Workload:
    x, w, b = random(1024, 1000), random(1000), random(1001)[1:]

    def work() -> Tensor:
        out = torch.empty_like(x)
        layer_norm_kernel[(1024,)](x, w, b, out, x.stride(0), 1000, 1e-5, BLOCK_SIZE=1024)
        return out

    return Workload(work, torch.nn.functional.layer_norm(x, (1000,), w, b), 1e-4)


def matmul(kernel: Any, programs: int, depth: int) -> Workload:
    a, b = random(512, depth), random(depth, 512)

    def work() -> Tensor:
        c = torch.empty(512, 512)
        kernel[(programs,)](a, b, c, 512, 512, depth, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
        return c

    return Workload(work, a @ b, 1e-3)


def attention() -> Workload:
    """Eight heads; the blocks of queries see 1 to 8 blocks of keys."""
    q, k, v = (random(8, 512, 32 + i)[:, :, :32].contiguous() for i in range(3))

    def work() -> Tensor:
        out = torch.empty_like(q)
        attention_kernel[(8, 8)](q, k, v, out, 32**-0.5, 512, D=32, BLOCK_M=64, BLOCK_N=64)
        return out

    reference = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return Workload(work, reference, 1e-5)


def recurrence() -> Workload:
    a, x = random(16, 512).sigmoid(), random(16, 513)[:, 1:].contiguous()

    def work() -> Tensor:
        out = torch.empty_like(x)
        recurrence_kernel[(1,)](a, x, out, ROWS=16, COLUMNS=512)
        return out

    states = [torch.zeros(16, dtype=torch.float64)]
    for column in range(512):
        states.append(a[:, column] * states[-1] + x[:, column])
    return Workload(work, torch.stack(states[1:], 1), 1e-5)


def spin_lock() -> Workload:
    x = random(32, 64)

    def work() -> Tensor:
        lock, total = torch.zeros(1, dtype=torch.int32), torch.zeros(64)
        spin_lock_kernel[(32,)](lock, total, x, BLOCK_SIZE=64)
        return total

    return Workload(work, x.sum(0), 1e-5)


def histogram() -> Workload:
    n = 128 * 1024 - 300
    x = torch.randint(256, (n,), generator=torch.Generator().manual_seed(n), dtype=torch.int32)

    def work() -> Tensor:
        counts = torch.zeros(256, dtype=torch.int32)
        histogram_kernel[(128,)](x, counts, n, BLOCK_SIZE=1024)
        return counts

    return Workload(work, x.bincount(minlength=256))


WORKLOADS: dict[str, Entry] = {
    "add": Entry(lambda: adding(256, 1024), floor=8),
    "small-blocks": Entry(lambda: adding(8192, 64)),
    "softmax": Entry(softmax, floor=18),
    "layer-norm": Entry(layer_norm),
    "matmul": Entry(lambda: matmul(matmul_kernel, 64, 512), floor=16),
    "persistent-matmul": Entry(lambda: matmul(persistent_matmul_kernel, 24, 256)),
    "attention": Entry(attention, floor=6),
    "scan": Entry(recurrence, floor=60),
    "histogram": Entry(histogram),
    "spin-lock": Entry(spin_lock, floor=0.5),
}


# ---------------------------------------------------------------------------------------------
# One side: answers each name on its input with the seconds of one repeat


def serve(side: str) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a kernel prints is no answer
    built: dict[str, Workload] = {}
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in built:
                built[name] = WORKLOADS[name].build()
                repeat(side, built[name])  # the first repeat reads and rewrites the kernel
            answer: dict[str, Any] = {"seconds": repeat(side, built[name])}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=answers)


def repeat(side: str, workload: Workload) -> float:
    """Seconds; raises when the result is wrong or something was found."""
    watched, findings = watching() if side == "ours" else (contextlib.nullcontext(), [])
    started = time.perf_counter()
    with watched:
        result = workload.work()
    seconds = time.perf_counter() - started
    difference = (result.double() - workload.reference.double()).abs().max().item()
    if not difference <= workload.tolerance:
        raise ValueError(f"the result is off by {difference}")
    if findings:
        raise ValueError(f"the engine found {findings}")
    return seconds


def watching() -> tuple[contextlib.AbstractContextManager[None], list[Any]]:
    """What our launches run under, and what was found once it is over."""
    from grader.engine.interpreter.eager import interpreted

    findings: list[Any] = []

    @contextlib.contextmanager
    def watched() -> Iterator[None]:
        with interpreted() as trace:
            yield
            findings.extend(trace.findings)

    return watched(), findings


# ---------------------------------------------------------------------------------------------
# The parent: asks both sides in turn


class Side:
    """A process that runs workloads one way."""

    def __init__(self, name: str) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("TRITON_INTERPRET", None)
        if name == "stock":
            environment["TRITON_INTERPRET"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.interpreter", "--side", name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=ROOT,
            env=environment)

    def ask(self, workload: str) -> dict[str, Any]:
        print(workload, file=self._pipe(self._process.stdin))
        line = self._pipe(self._process.stdout).readline()
        return json.loads(line) if line else {"error": "the process ended"}

    def close(self) -> None:
        self._pipe(self._process.stdin).close()
        self._process.wait()
        self._pipe(self._process.stdout).close()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


def measure(sides: dict[str, Side], name: str, repeats: int) -> dict[str, Any]:
    """One row of the result."""
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    row: dict[str, Any] = {"workload": name, "floor": WORKLOADS[name].floor}
    for _ in range(repeats):
        for side in SIDES:
            if f"{side}_fails" in row:
                continue
            answer = sides[side].ask(name)
            if "error" in answer:
                row[f"{side}_fails"] = answer["error"]
            else:
                times[side].append(answer["seconds"] * 1e3)
    for side in SIDES:
        if f"{side}_fails" not in row:
            row[f"{side}_ms"] = round(statistics.median(times[side]), 3)
            row[f"{side}_range_ms"] = [round(min(times[side]), 3), round(max(times[side]), 3)]
    if "stock_ms" in row and "ours_ms" in row:
        row["ratio"] = round(row["stock_ms"] / row["ours_ms"], 2)
    row["met"] = met(row)
    return row


def met(row: dict[str, Any]) -> bool:
    if "ours_fails" in row:
        return False
    if "stock_fails" in row:
        return NO_RUNTIME_BOUND in row["stock_fails"]
    return row["floor"] is None or row["ratio"] >= row["floor"]


def shown(row: dict[str, Any]) -> str:
    def time_of(side: str) -> str:
        return f"{side} fails" if f"{side}_fails" in row else f"{row[f'{side}_ms']:.2f} ms"

    ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
    floor = "-" if row["floor"] is None else f"{row['floor']:g}"
    why = " ".join(f"{side}: {row[f'{side}_fails']}" for side in SIDES if f"{side}_fails" in row)
    return (f"{row['workload']:<18} {time_of('stock'):>12} {time_of('ours'):>12} {ratio:>8} "
            f"{floor:>6} {'' if row['met'] else 'MISSED'} {why}").rstrip()


def processor() -> str:
    """The name of this machine's processor."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def compare(names: list[str], repeats: int) -> dict[str, Any]:
    sides = {side: Side(side) for side in SIDES}
    print(f"{'workload':<18} {'stock':>12} {'ours':>12} {'ratio':>8} {'floor':>6}")
    rows = []
    try:
        for name in names:
            rows.append(measure(sides, name, repeats))
            print(shown(rows[-1]), flush=True)
    finally:
        for side in sides.values():
            side.close()
    return {
        "date": f"{datetime.date.today():%Y-%m-%d}",
        "device": processor(),
        "versions": {"python": platform.python_version(),
                     **{name: version(name) for name in ("triton", "torch", "numpy")}},
        "repeats": repeats,
        "rows": rows,
    }


def profile(name: str) -> None:
    """Where our side spends its time, by function."""
    workload = WORKLOADS[name].build()
    repeat("ours", workload)
    seconds = repeat("ours", workload)
    profiler = cProfile.Profile()
    profiler.runcall(repeat, "ours", workload)
    print(f"{name}: {seconds * 1e3:.2f} ms without the profiler")
    stats = pstats.Stats(profiler).strip_dirs()
    stats.sort_stats("tottime").print_stats(30)
    stats.sort_stats("cumulative").print_stats(30)


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", type=Path, help="write the result to this file too")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    options.add_argument("--profile", choices=WORKLOADS)
    options.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.side:
        serve(chosen.side)
        return 0
    if chosen.profile:
        profile(chosen.profile)
        return 0
    result = compare(chosen.only, chosen.repeats)
    if chosen.json:
        chosen.json.write_text(json_text(result) + "\n")
    return 0 if all(row["met"] for row in result["rows"]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
