"""Kernels whose structure is known, and hand-made surveys of them, for the tests of the clock."""

# A jit function has no Python types: its parameters are pointers and blocks.
from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl

from grader.engine.compiler.compile import address, build
from grader.engine.compiler.kernel_reader import binary_of
from grader.engine.compiler.sass import Code, code_of
from grader.engine.compiler.targets import Target, find
from grader.engine.compiler.timing_model.prediction import predict, predict_call
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import Interval, Prediction, Survey, Traffic

H200 = find("h200")
SECTOR = 32
N = 1 << 26


@triton.jit
def exponential(x):
    return tl.exp(x)


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    offs = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) * STRIDE
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    z = exponential(x) + y
    tl.store(z_ptr + offs, z, mask=mask)


@triton.jit
def sum_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + offs, mask=offs < n, other=0.0)
        acc += x
    total = tl.sum(acc, axis=0)
    tl.store(y_ptr + row, total)


@triton.jit
def chain_kernel(x_ptr, y_ptr, n, TIMES: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    for _ in range(TIMES):
        x = x * 1.0001 + 0.5
    tl.store(y_ptr + offs, x, mask=offs < n)


@triton.jit
def sine_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.sin(tl.load(x_ptr + offs)))


@triton.jit
def hashes_kernel(x_ptr, y_ptr, n, HASHES: tl.constexpr, BLOCK: tl.constexpr):
    """Every lane loads all elements of a block."""
    least = tl.full((HASHES,), 1 << 30, tl.int32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + start + tl.arange(0, BLOCK))
        least = tl.minimum(least, tl.min(x[:, None] ^ tl.arange(0, HASHES)[None, :], axis=0))
    tl.store(y_ptr + tl.arange(0, HASHES), least)


@triton.jit
def count_kernel(x_ptr, y_ptr):
    tl.load(x_ptr)
    tl.atomic_add(y_ptr, 1)


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + offs, mask=offs < n, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    x = x / tl.sum(x, axis=0)
    tl.store(y_ptr + tl.program_id(0) * n + offs, x, mask=offs < n)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr,
                  K: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, n, K):
        a = tl.load(a_ptr + rows[:, None] * n + (inner + k)[None, :])
        b = tl.load(b_ptr + (inner + k)[:, None] * n + columns[None, :])
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def persistent_kernel(x_ptr, y_ptr, rows, n, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, PROGRAMS):
        acc = tl.zeros([BLOCK], tl.float32)
        for start in tl.range(0, n, BLOCK, num_stages=3):
            offs = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n + offs, mask=offs < n, other=0.0)
            acc += x
        tl.store(y_ptr + row, tl.sum(acc, axis=0))


def line(kernel: Any, text: str) -> int:
    """Where the only line of a kernel that holds ``text`` stands in this file."""
    lines, first = inspect.getsourcelines(kernel.fn)
    found, = (number for number, one in enumerate(lines) if text in one)
    return first + found


def target(capability: int) -> Target:
    return dataclasses.replace(H200, capability=capability)


@functools.cache
def made(name: str, capability: int = 90, **choice: Any) -> tuple[Binary, Code]:
    """Compile one of the kernels above, as ``CALLS`` says and ``choice`` changes."""
    compiled, options = compiled_call(name, capability, **choice)
    return binary_of(compiled, target(capability), name, options), code_of(compiled)


def compiled_call(name: str, capability: int = 90, **choice: Any) -> tuple[Any, dict[str, Any]]:
    """The same as Triton's CompiledKernel, and the options of its launch."""
    kernel, usual = CALLS[name]
    chosen = usual | choice
    dtype = chosen.pop("dtype", "float32")
    options = {key: chosen.pop(key) for key in ("num_warps", "num_stages") if key in chosen}
    arguments = {key: chosen.get(key, address(dtype, 0)) for key in kernel.arg_names}
    return build(kernel, arguments, options, target(capability)), options


CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "add": (add_kernel, {"n": N, "STRIDE": 1, "BLOCK": 1024}),
    "sum": (sum_kernel, {"stride": 8192, "n": 8192, "BLOCK": 1024}),
    "chain": (chain_kernel, {"n": N, "TIMES": 256, "BLOCK": 1024}),
    "persistent": (persistent_kernel, {"rows": 65536, "n": 8192, "PROGRAMS": 132,
                                       "BLOCK": 1024}),
    "sine": (sine_kernel, {"BLOCK": 1024}),
    "hashes": (hashes_kernel, {"n": 4096, "HASHES": 128, "BLOCK": 16, "dtype": "int32"}),
    "count": (count_kernel, {"dtype": "int32"}),
    "softmax": (softmax_kernel, {"n": 32768, "BLOCK": 32768, "num_warps": 16}),
    "matmul": (matmul_kernel, {"n": 8192, "M": 128, "N": 128, "K": 64, "dtype": "float16",
                               "PRECISION": "tf32", "num_warps": 8}),
}


def row(at: int, kind: str, tensor: str, lanes: int, size: int = 4, sectors: int | None = None,
        unique: int | None = None) -> Traffic:
    """``sectors`` are as few as can be, and all of them different, unless told otherwise."""
    ideal = lanes * size // SECTOR
    counted = ideal if sectors is None else sectors
    return Traffic(at, kind, tensor, lanes, lanes * size, counted, ideal,
                   counted if unique is None else unique)


def predict_launches(launches: Sequence[tuple[Binary, Code, Survey]],
                     target: Target) -> Prediction:
    """The predicted time of one call, whose first launch finds a cold L2."""
    return predict_call([predict(*launch, target, cold=number == 0)
                         for number, launch in enumerate(launches)], target)


def survey(programs: int, rows: Sequence[Traffic], executions: dict[int, float] | None = None,
           loaded: int | None = None, **more: int) -> Survey:
    """Everything is read and written once, and each line is passed once, unless told otherwise."""
    read = sum(one.unique_sectors for one in rows if one.kind != "store") * SECTOR
    read = read if loaded is None else loaded
    written = sum(one.unique_sectors for one in rows if one.kind == "store") * SECTOR
    passes = {one.line: 1.0 for one in rows if one.line is not None} | (executions or {})
    counts = {"atomics": 0, "hottest": 0, "flops": 0} | more
    return Survey("kernel", (programs, 1, 1), programs, programs, tuple(rows), passes,
                  Interval(read, read), Interval(written, written), **counts)


def add_survey(elements: int = N, block: int = 1024, stride: int = 1) -> Survey:
    """``stride``: elements from one to the next, 1 or at least 8: a sector for each lane."""
    apart = None if stride == 1 else elements
    return survey(-(-elements // block), [
        row(line(add_kernel, text), kind, tensor, elements, 4, apart) for text, kind, tensor in (
            ("x = tl.load", "load", "x_ptr"), ("y = tl.load", "load", "y_ptr"),
            ("tl.store", "store", "z_ptr"))])


def matmul_survey(n: int, m: int, columns: int, k: int, size: int = 2) -> Survey:
    a, b, c = (line(matmul_kernel, text) for text in ("a = tl.load", "b = tl.load", "tl.store"))
    programs, rounds, whole = (n // m) * (n // columns), n // k, n * n * size // SECTOR
    return survey(programs, [
        row(a, "load", "a_ptr", programs * rounds * m * k, size, unique=whole),
        row(b, "load", "b_ptr", programs * rounds * columns * k, size, unique=whole),
        row(c, "store", "c_ptr", n * n, size),
    ], {a: rounds, b: rounds}, loaded=2 * n * n * size, flops=2 * n**3)
