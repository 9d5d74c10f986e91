"""A few programs that stride over the work, blocks of several rows, windows gathered tap by tap."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

TRACE_BLOCK = 8


@dataclass(frozen=True)
class Diagnosis:
    """What was wrong with a kernel; the README lists the phases and the causes."""

    phase: str
    cause: str
    line_contains: str  # a part of the faulty line that at most one other line holds too


DIAGNOSES: dict[str, Diagnosis] = {
    "scale": Diagnosis("compile", "size-not-constexpr", "n, s, BLOCK,"),
    "col_sum": Diagnosis("compile", "loop-changes-shape", "acc = tl.zeros((BLOCK,)"),
    "clip_add": Diagnosis("boundary", "grid-too-small", "n // block"),
    "relu": Diagnosis("compile", "no-such-function", "tl.relu"),
    "masked_outer": Diagnosis("memory", "operator-precedence", "& cols[None, :] < N"),
    "row_max": Diagnosis("value", "wrong-neutral-element", "x_ptr + row * N + cols"),
    "avg_pool1d": Diagnosis("value", "truncating-division", "(padded - k) // stride"),
    "weighted_sum": Diagnosis("dtype", "operands-of-two-types", "tl.dot("),
    "first_elem": Diagnosis("compile", "element-of-a-block", "v[0]"),
}


@dataclass(frozen=True)
class Comparison:
    """How a result differs from what was expected. An index has one number for each dimension."""

    ok: bool
    n_bad: int
    n_total: int
    first_bad: tuple[int, ...] | None  # in row-major order; None where all is well
    worst: tuple[int, ...] | None  # of the bad ones, the farthest off; NaN and inf are farther
    max_abs: float  # largest |actual - expected| where both are finite, 0.0 where none is
    max_rel: float  # largest |actual - expected| / |expected| likewise, where expected is not 0
    nan_mismatch: int  # one of the two is NaN, the other is not
    inf_mismatch: int  # none is NaN, at least one is infinite, and they differ
    message: str


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, s, BLOCK: tl.constexpr):
    step = tl.num_programs(axis=0) * BLOCK
    for start in range(tl.program_id(axis=0) * BLOCK, n, step):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n)
        tl.store(out_ptr + offs, x * s, mask=offs < n)


def scale(x: torch.Tensor, s: float) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        scale_kernel[(min(8, triton.cdiv(n, 512)),)](x, out, n, s, BLOCK=512)
    return out


@triton.jit
def clip_add_kernel(
    x_ptr, y_ptr, out_ptr,  # [n]
    n, lo, hi,
    BLOCK: tl.constexpr,    # elements per program
):
    """out[i] = x[i] + y[i], kept between lo and hi. Moves 3 * n * itemsize bytes."""
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)

    total = x + y
    total = tl.where(total < lo, lo, total)  # NaN is below nothing and above nothing: it stays
    total = tl.where(total > hi, hi, total)

    tl.store(out_ptr + offs, total, mask=mask)


def clip_add(x: torch.Tensor, y: torch.Tensor, lo: float, hi: float) -> torch.Tensor:
    """x + y for two vectors, with lo below and hi above; NaN stays NaN."""
    out = torch.empty_like(x)
    n, block = x.numel(), 256
    grid = (triton.cdiv(n, block),)  # rounded up: the last program owns what is left
    clip_add_kernel[grid](x, y, out, n, lo, hi, BLOCK=block)
    return out


@triton.jit
def relu_kernel(
    x_ptr, out_ptr,       # [n]
    n,
    BLOCK: tl.constexpr,  # elements per program
):
    """out[i] = max(x[i], 0). One program owns BLOCK elements. Moves 2 * n * itemsize bytes."""
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.where(x < 0, 0.0, x)  # NaN stays NaN, which tl.maximum(x, 0.0) would turn into 0

    tl.store(out_ptr + offs, y, mask=mask)


def relu(x: torch.Tensor) -> torch.Tensor:
    """x for a vector, with 0 for every number below 0; NaN stays NaN."""
    out = torch.empty_like(x)
    n, block = x.numel(), 256
    relu_kernel[(triton.cdiv(n, block),)](x, out, n, BLOCK=block)
    return out


@triton.jit
def col_sum_kernel(
    x_ptr, out_ptr,       # [M, N] and [N]
    M, N,
    BLOCK: tl.constexpr,  # columns of one program, and rows of one step
):
    """out[n] = sum of x[:, n]. One program owns BLOCK columns. Moves (M + 1) * N * itemsize bytes.

    The rows of a step stay apart until the end: an accumulator has the shape of what is added.
    """
    cols = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)

    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, M, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
        acc += x.to(tl.float32)

    total = tl.sum(acc, axis=0)

    tl.store(out_ptr + cols, total.to(out_ptr.dtype.element_ty), mask=cols < N)


def col_sum(x: torch.Tensor) -> torch.Tensor:
    """The sum of every column of a matrix, summed in float32."""
    M, N = x.shape
    out = x.new_empty(N)
    block = 32
    col_sum_kernel[(triton.cdiv(N, block),)](x, out, M, N, BLOCK=block)
    return out


@triton.jit
def row_max_kernel(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(axis=0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=inside, other=float("-inf"))
    tl.store(out_ptr + rows, tl.max(x, axis=1), mask=rows < M)


def row_max(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = x.new_empty((M,))
    if M:
        row_max_kernel[(triton.cdiv(M, 4),)](
            x, out, M, N, ROWS=4, BLOCK=triton.next_power_of_2(N))
    return out


@triton.jit
def first_elem_kernel(x_ptr, out_ptr, N):
    row = tl.program_id(axis=0)
    tl.store(out_ptr + row, tl.load(x_ptr + row * N))


def first_elem(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.shape[0])
    if out.numel():
        first_elem_kernel[(x.shape[0],)](x, out, x.shape[1])
    return out


@triton.jit
def masked_outer_kernel(x_ptr, y_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    rows = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    x = tl.load(x_ptr + rows, mask=rows < M, other=0)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)[None, :]
        y = tl.load(y_ptr + cols, mask=cols < N, other=0)
        row_is_there = rows < M
        col_is_there = cols < N
        tl.store(out_ptr + rows * N + cols, x * y, mask=row_is_there & col_is_there)


def masked_outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    M, N = x.shape[0], y.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel():
        masked_outer_kernel[(triton.cdiv(M, 64),)](x, y, out, M, N, BLOCK=64)
    return out


@triton.jit
def avg_pool1d_kernel(x_ptr, out_ptr, n, n_out, k, stride, pad, BLOCK: tl.constexpr):
    windows = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for tap in range(k):
        place = windows * stride + tap - pad
        there = (place >= 0) & (place < n) & (windows < n_out)
        total += tl.load(x_ptr + place, mask=there, other=0.0).to(tl.float32)
    tl.store(out_ptr + windows, (total / k).to(out_ptr.dtype.element_ty), mask=windows < n_out)


def avg_pool1d(x: torch.Tensor, k: int, stride: int, pad: int) -> torch.Tensor:
    n = x.shape[0]
    n_out = (n - k + 2 * pad) // stride + 1
    out = torch.empty(n_out, dtype=x.dtype, device=x.device)
    avg_pool1d_kernel[(triton.cdiv(n_out, 128),)](x, out, n, n_out, k, stride, pad, BLOCK=128)
    return out


@triton.jit
def weighted_sum_kernel(
    p_ptr, v_ptr, out_ptr,  # [M, K], [K, N] and [M, N]
    M, N, K,
    BLOCK_M: tl.constexpr,  # rows of one tile
    BLOCK_N: tl.constexpr,  # columns of one tile
    BLOCK_K: tl.constexpr,  # weights of one step
):
    """out[m, n] = sum over k of p[m, k] * v[k, n], with float32 weights and values of 16 bits.

    One program owns one tile. Moves 4 * M * K + 2 * K * N + 4 * M * N bytes where one tile holds
    the result.
    """
    rows = tl.program_id(axis=0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(axis=1) * BLOCK_N + tl.arange(0, BLOCK_N)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        p_mask = (rows[:, None] < M) & (ks[None, :] < K)
        v_mask = (ks[:, None] < K) & (cols[None, :] < N)
        p = tl.load(p_ptr + rows[:, None] * K + ks[None, :], mask=p_mask, other=0.0)
        v = tl.load(v_ptr + ks[:, None] * N + cols[None, :], mask=v_mask, other=0.0)
        # The narrow operand is widened: that is exact, and narrowing the weights is not.
        acc += tl.dot(p, v.to(tl.float32), input_precision="ieee")

    out_mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=out_mask)


def weighted_sum(p: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """p @ v in full float32, for float32 weights p and values v in float16 or bfloat16."""
    M, K = p.shape
    N = v.shape[1]
    out = p.new_empty(M, N)
    block_m, block_n, block_k = 32, 32, 32
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n))
    weighted_sum_kernel[grid](
        p, v, out, M, N, K, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k
    )
    return out


def compare(
    actual: torch.Tensor, expected: torch.Tensor, *, rtol: float, atol: float
) -> Comparison:
    """Element by element in Python: slow, and plain."""
    if list(actual.shape) != list(expected.shape):
        raise ValueError(f"actual: shape {list(actual.shape)}, expected: {list(expected.shape)}")
    bad: list[tuple[float, int]] = []
    max_abs = max_rel = 0.0
    nans = infs = 0
    got, wanted = actual.double().flatten().tolist(), expected.double().flatten().tolist()
    for number, (a, e) in enumerate(zip(got, wanted, strict=True)):
        if a != a or e != e:
            if (a != a) != (e != e):
                nans += 1
                bad.append((float("inf"), number))
        elif float("inf") in (abs(a), abs(e)):
            if a != e:
                infs += 1
                bad.append((float("inf"), number))
        else:
            max_abs = max(max_abs, abs(a - e))
            max_rel = max(max_rel, abs(a - e) / abs(e)) if e else max_rel
            if abs(a - e) > atol + rtol * abs(e):
                bad.append((abs(a - e), number))

    def index(number: int) -> tuple[int, ...]:
        found = []
        for size in reversed(expected.shape):
            number, place = divmod(number, size)
            found.append(place)
        return tuple(reversed(found))

    first = index(bad[0][1]) if bad else None
    worst = index(max(bad, key=lambda one: one[0])[1]) if bad else None
    message = ""
    if bad:
        message = (f"bad: {len(bad)}/{len(got)}. First: index {first}, actual {got[bad[0][1]]:g}, "
                   f"expected {wanted[bad[0][1]]:g}.")
    return Comparison(not bad, len(bad), len(got), first, worst, max_abs, max_rel, nans, infs,
                      message)


@triton.jit
def trace_kernel(
    x_ptr,                # [n]
    n,
    program,              # whose block is printed
    BLOCK: tl.constexpr,  # elements per program
):
    """Print the block of one program. tl.device_print has no condition: it stands under an `if`."""
    pid = tl.program_id(axis=0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)

    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)

    if pid == program:
        tl.device_print("x =", x)


def trace_program(x: torch.Tensor, program: int) -> str:
    """What `trace_kernel` prints for one program on the vector x, and for no other.

    The text is empty if there is no such program. It is caught where the kernel is interpreted; a
    GPU prints past Python.
    """
    n = x.numel()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        trace_kernel[(triton.cdiv(n, TRACE_BLOCK),)](x, n, program, BLOCK=TRACE_BLOCK)
    return printed.getvalue()
