"""Inspections to show: real kernels compiled here, with what they move worked out by hand."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.diagnosis.perf_lints import Defect
from grader.engine.compiler.compile import address, build
from grader.engine.compiler.ptx import lines as ptx_lines
from grader.engine.compiler.targets import Target, find
from grader.executor.extract import kernels
from grader.inspect.inspection import InspectedCase, InspectedLaunch, Inspection
from grader.processes.replies import Listing
from grader.recording.compiled_kernel import Access, AccessLayout, Binary, Occupancy
from grader.recording.launch_stats import BlockRuns, Interval, Prediction, Survey, Traffic
from grader.report import Kind
from grader.suite import Cost

ROOT = Path(__file__).parents[2]
SOFTMAX = ROOT / "solutions" / "missing-elements" / "03-softmax" / "kernel.py"
COLUMN_MAJOR = '''"""Softmax over the rows of a matrix that is stored column by column."""

import torch
import triton
import triton.language as tl


@triton.jit
def column_major_softmax_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols], one column after another
    n_rows, n_cols,
    BLOCK_SIZE: tl.constexpr,  # lanes per program, a power of two >= n_cols
):
    """out[m] = exp(x[m] - max(x[m])) / sum(exp(x[m] - max(x[m])))."""
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    x = tl.load(x_ptr + row + cols * n_rows, mask=mask, other=-float("inf"))  # <script>alert(1)

    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)

    tl.store(out_ptr + row + cols * n_rows, y, mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    column_major_softmax_kernel[(x.shape[0],)](
        x, out, *x.shape, BLOCK_SIZE=triton.next_power_of_2(x.shape[1]))
    return out
'''
MATMUL = '''import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                  BLOCK_K: tl.constexpr):
    """c = a @ b, all row-major. One program owns one tile of c."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + offs_m[:, None] * K + (k + offs_k)[None, :])
        b = tl.load(b_ptr + (k + offs_k)[:, None] * N + offs_n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16))


def matmul(a, b):
    c = a.new_empty((a.shape[0], b.shape[1]))
    grid = (a.shape[0] // 128, b.shape[1] // 128)
    matmul_kernel[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], 128, 128, 64, num_warps=4)
    return c
'''
SECTOR = 32  # bytes


@dataclass(frozen=True)
class Job:
    """One launch of a kernel, and what is known of it without compiling."""

    kernel: str
    grid: tuple[int, int, int]
    arguments: dict[str, Any]
    survey: Survey
    seconds: float
    occupancy: Occupancy
    options: dict[str, Any] = field(default_factory=dict)
    defects: tuple[Defect, ...] = ()
    binary: dict[str, Any] = field(default_factory=dict)


def line_of(text: str, words: str) -> int:
    """The first line that holds the words."""
    return next(n for n, line in enumerate(text.split("\n"), 1) if words in line)


def predicted(seconds: float) -> Prediction:
    """A prediction with the bound DRAM."""
    parts = {"dram": 0.9, "l2": 0.4, "latency": 0.6, "compute": 0.1, "programs": 0.0,
             "atomics": 0.0}
    return Prediction(seconds, "dram", "latency", {
        **{name: share * seconds for name, share in parts.items()}, "launch": 2.5e-6},
        {"xu": 0.1 * seconds, "fma": 0.002 * seconds})


def launch(text: str, job: Job, target: Target, path: str) -> InspectedLaunch:
    """Compile one launch; widths and counts are read off its PTX."""
    kernel = kernels.load(kernels.extract(text), path)[job.kernel]
    made = build(kernel, job.arguments, job.options, target)
    listing = tuple(ptx_lines(made.asm["ptx"]))
    return InspectedLaunch(
        job.kernel, job.grid, line_of(text, f"{job.kernel}["),
        Binary(job.kernel, target.name, target.capability, 32, 0, made.metadata.shared,
               made.metadata.num_warps, job.occupancy, accesses(listing, job.survey),
               layouts=(AccessLayout(None, "load", (128,), 32, 4, (1, 2), (4, 8, 16, 32, 64), ()),),
               ptx_sha256=hashlib.sha256(made.asm["ptx"].encode()).hexdigest(), **job.binary),
        job.survey, predicted(job.seconds),
        ptx=listing, sass=tuple((line, f"/*{16 * n:04x}*/ {code.strip()}")
                                for n, (line, code) in enumerate(listing[-8:])))


def accesses(listing: Listing, survey: Survey) -> tuple[Access, ...]:
    """Instructions of the PTX that reach global memory, at the nearest line of the survey."""
    lines = sorted(row.line for row in survey.traffic if row.line)
    found: Counter[tuple[int, str, int]] = Counter()
    for line, text in listing:
        at = re.search(r"(ld|st)\.global(?:\.\w+)*?(?:\.v(\d))?\.b(\d+)", text)
        copied = re.search(r"cp\.async\.c[ag]\.shared\.global .*, (?:0x)?(\d+), ", text)
        near = min(lines, key=lambda known: abs(known - (line or 0)))
        if at:
            kind = "load" if at[1] == "ld" else "store"
            found[near, kind, int(at[2] or 1) * int(at[3])] += 1
        elif copied:
            found[near, "async copy", int(copied[1], 16) * 8] += 1
    return tuple(Access(line, kind, bits, count) for (line, kind, bits), count in found.items())


def traffic(line: int, kind: str, tensor: str, bytes_: int, times: float = 1.0,
            spread: int = 1) -> Traffic:
    """``times``: how often the tensor is asked for; ``spread``: sectors moved for each needed."""
    ideal = bytes_ // SECTOR
    return Traffic(line, kind, tensor, bytes_ // 4, bytes_, ideal * spread, ideal,
                   int(ideal / times))


def softmax_job(rows: int, cols: int) -> Job:
    text = SOFTMAX.read_text()
    size = 4 * rows * cols
    load, store = line_of(text, "tl.load("), line_of(text, "tl.store(")
    warps = 4 if cols <= 2048 else 8
    return Job(
        "softmax_kernel", (rows, 1, 1),
        {"x_ptr": address("float32", 0), "out_ptr": address("float32", 0), "n_cols": cols,
         "stride_x": cols, "stride_out": cols, "BLOCK_SIZE": cols},
        Survey("softmax_kernel", (rows, 1, 1), rows, 8,
               (traffic(load, "load", "x_ptr", size), traffic(store, "store", "out_ptr", size)),
               {load: 1.0, store: 1.0}, Interval(size, size), Interval(size, size), 0, 0, 0),
        2.5e-6 + 2 * size / 2.9e12, Occupancy(64 // warps, 64, 64, "warps"),
        options={"num_warps": warps})


def softmax(target: str = "h100", path: Path = SOFTMAX) -> Inspection:
    """The reference softmax on a small and on a large matrix."""
    text, where = path.read_text(), find(target)
    cases = [case(f"{rows:,} x {cols:,} floats", text, [softmax_job(rows, cols)], where,
                  Cost(8 * rows * cols, 5 * rows * cols), str(path))
             for rows, cols in ((64, 1024), (16_384, 4_096))]
    return inspection(text, where, cases)


def column_major(target: str = "h100") -> Inspection:
    """A softmax whose lanes lie a column apart: every element costs a sector, both ways."""
    text, where, rows, cols = COLUMN_MAJOR, find(target), 16_384, 2_048
    size = 4 * rows * cols
    load, store = line_of(text, "tl.load("), line_of(text, "tl.store(")
    seen = ("This {} spreads over 8 times as many sectors as its bytes fill: consecutive "
            "elements are 65,536 bytes apart.")
    advice = "Make the access coalesced: give each program several rows."
    job = Job(
        "column_major_softmax_kernel", (rows, 1, 1),
        {"x_ptr": address("float32", 0), "out_ptr": address("float32", 0), "n_rows": rows,
         "n_cols": cols, "BLOCK_SIZE": cols},
        Survey("column_major_softmax_kernel", (rows, 1, 1), rows, 8,
               (traffic(load, "load", "x_ptr", size, spread=8),
                traffic(store, "store", "out_ptr", size, spread=8)),
               {load: 1.0, store: 1.0}, Interval(size, 3 * size), Interval(size, size), 0, 0, 0,
               blocks=(BlockRuns((), 1, 90, 0, 1.0, 1.0),)),
        4.1e-4, Occupancy(16, 64, 64, "warps"), defects=(
            Defect("uncoalesced load", "T02", load, seen.format("load"), advice),
            Defect("uncoalesced store", "T02", store, seen.format("store"), advice)))
    return inspection(text, where, [
        case("16,384 x 2,048 floats, column by column", text, [job], where,
             Cost(2 * size, 5 * rows * cols))])


def matmul(target: str = "h100") -> Inspection:
    """A product of two 2048 x 2048 matrices in tiles of 128 x 128."""
    text, where, size = MATMUL, find(target), 2_048
    a, b, c = (line_of(text, f"tl.{call}({name}") for call, name in (
        ("load", "a_ptr"), ("load", "b_ptr"), ("store", "c_ptr")))
    whole, dot = 2 * size * size, line_of(text, "tl.dot(")
    job = Job(
        "matmul_kernel", (16, 16, 1),
        {**{name: address("float16", 0) for name in ("a_ptr", "b_ptr", "c_ptr")},
         "M": size, "N": size, "K": size, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        Survey("matmul_kernel", (16, 16, 1), 256, 3,
               (traffic(a, "load", "a_ptr", 16 * whole, times=16),
                traffic(b, "load", "b_ptr", 16 * whole, times=16),
                traffic(c, "store", "c_ptr", whole)),
               {a: 32.0, b: 32.0, c: 1.0}, Interval(2 * whole, 3 * whole), Interval(whole, whole),
               0, 0, 2 * size**3),
        3.4e-5, Occupancy(2, 8, 64, "shared memory"), {"num_warps": 4},
        binary={"dot": True, "tensor_cores": "wgmma", "factors": ("fp16",), "stages": 3,
                "products": ((dot, "wgmma", 4),)})
    return inspection(text, where, [case("2,048 x 2,048 in float16", text, [job], where,
                                         Cost(3 * whole, 2 * size**3))])


def case(name: str, text: str, jobs: Sequence[Job], target: Target, least: Cost,
         path: str = "/course/kernel.py") -> InspectedCase:
    return InspectedCase(name, Kind.PERFORMANCE, ("x: float32",), least,
                         tuple(launch(text, job, target, path) for job in jobs),
                         tuple(defect for job in jobs for defect in job.defects),
                         prediction=predicted(sum(job.seconds for job in jobs)))


def inspection(text: str, target: Target, cases: Sequence[InspectedCase]) -> Inspection:
    return Inspection("missing-elements/03-softmax", text,
                      hashlib.sha256(text.encode()).hexdigest(), target, tuple(cases),
                      {"triton": "3.9.0"})

