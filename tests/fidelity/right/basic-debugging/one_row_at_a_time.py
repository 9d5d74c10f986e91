"""Column sums row by row, maxima in a loop over columns, products without tl.dot."""

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
def scale_kernel(
    x_ptr, out_ptr,       # [n]
    n, s,
    BLOCK: tl.constexpr,  # elements per program; tl.arange needs it while compiling
):
    """out[i] = s * x[i]. One program owns BLOCK elements. Moves 2 * n * itemsize bytes."""
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask)

    tl.store(out_ptr + offs, x * s, mask=mask)


def scale(x: torch.Tensor, s: float) -> torch.Tensor:
    """s * x for a vector."""
    out = torch.empty_like(x)
    n, block = x.numel(), 256
    scale_kernel[(triton.cdiv(n, block),)](x, out, n, s, BLOCK=block)
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
def col_sum_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    cols = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(M):
        acc += tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + cols, acc.to(out_ptr.dtype.element_ty), mask=mask)


def col_sum(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = x.new_empty(N)
    col_sum_kernel[(triton.cdiv(N, 128),)](x, out, M, N, BLOCK=128)
    return out


@triton.jit
def row_max_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
        largest = tl.maximum(largest, x.to(tl.float32))
    tl.store(out_ptr + row, tl.max(largest, axis=0).to(out_ptr.dtype.element_ty))


def row_max(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = torch.empty(M, dtype=x.dtype, device=x.device)
    row_max_kernel[(M,)](x, out, N, BLOCK=128)
    return out


@triton.jit
def first_elem_kernel(
    x_ptr, out_ptr,       # [M, N] and [M]
    M, N,
    BLOCK: tl.constexpr,  # rows per program
):
    """out[m] = x[m, 0]. One program owns BLOCK rows. Moves 2 * M * itemsize bytes.

    A block has no elements that could be taken out of it: what is needed is loaded, and only that.
    """
    rows = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < M

    first = tl.load(x_ptr + rows * N, mask=mask)

    tl.store(out_ptr + rows, first, mask=mask)


def first_elem(x: torch.Tensor) -> torch.Tensor:
    """The first number of every row of a matrix with at least one column."""
    M, N = x.shape
    out = x.new_empty(M)
    block = 64
    first_elem_kernel[(triton.cdiv(M, block),)](x, out, M, N, BLOCK=block)
    return out


@triton.jit
def masked_outer_kernel(
    x_ptr, y_ptr, out_ptr,  # [M], [N] and [M, N]
    M, N,
    BLOCK: tl.constexpr,    # rows and columns of one tile
):
    """out[m, n] = x[m] * y[n]. One program owns one tile of BLOCK x BLOCK results.

    Moves (M * N + M + N) * itemsize bytes where one tile holds the result.
    """
    rows = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)

    x = tl.load(x_ptr + rows, mask=rows < M)
    y = tl.load(y_ptr + cols, mask=cols < N)

    mask = (rows[:, None] < M) & (cols[None, :] < N)  # `&` binds tighter than `<`
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], x[:, None] * y[None, :], mask=mask)


def masked_outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The product of every number of x with every number of y, as a matrix."""
    M, N = x.numel(), y.numel()
    out = x.new_empty(M, N)
    block = 64
    grid = (triton.cdiv(M, block), triton.cdiv(N, block))
    masked_outer_kernel[grid](x, y, out, M, N, BLOCK=block)
    return out


@triton.jit
def avg_pool1d_kernel(x_ptr, out_ptr, n, n_out, k, stride, pad, BLOCK: tl.constexpr):
    window = tl.program_id(axis=0)
    taps = tl.arange(0, BLOCK)
    place = window * stride - pad + taps
    mask = (taps < k) & (place >= 0) & (place < n)
    x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + window, tl.sum(x) / k)


def avg_pool1d(x: torch.Tensor, k: int, stride: int, pad: int) -> torch.Tensor:
    n = x.numel()
    n_out = (n + 2 * pad - k) // stride + 1
    out = x.new_empty(n_out)
    avg_pool1d_kernel[(n_out,)](
        x, out, n, n_out, k, stride, pad, BLOCK=triton.next_power_of_2(k))
    return out


@triton.jit
def weighted_sum_kernel(
    p_ptr, v_ptr, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(axis=0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(axis=1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(K):
        p = tl.load(p_ptr + rows * K + k, mask=rows < M, other=0.0)
        v = tl.load(v_ptr + k * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        acc += p[:, None] * v[None, :]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


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
    """Compare element by element: |actual - expected| <= atol + rtol * |expected| is near enough.

    NaN equals NaN, and an infinity equals one of the same sign. All is computed in float64.

    Raises:
        ValueError: the shapes differ.
    """
    if actual.shape != expected.shape:
        raise ValueError(
            f"actual: expected shape {tuple(expected.shape)}, got {tuple(actual.shape)}"
        )
    a, e = actual.detach().double().cpu(), expected.detach().double().cpu()
    off = (a - e).abs()
    finite = a.isfinite() & e.isfinite()
    nan = a.isnan() != e.isnan()
    infinite = ~(finite | a.isnan() | e.isnan()) & (a != e)
    bad = nan | infinite | (finite & (off > atol + rtol * e.abs()))

    n_bad, n_total = int(bad.sum()), bad.numel()
    first = worst = None
    message = f"all {n_total} elements are near enough"
    if n_bad:
        farness = torch.where(finite, off, float("inf")).where(bad, -1.0)
        first, worst = _first(bad), _first(farness == farness.max())
        message = (
            f"{n_bad} of {n_total} elements differ; the first is {list(first)}: "
            f"got {a[first].item():.9g}, expected {e[first].item():.9g}"
        )
    divisible = finite & (e != 0)
    return Comparison(
        ok=n_bad == 0,
        n_bad=n_bad,
        n_total=n_total,
        first_bad=first,
        worst=worst,
        max_abs=_largest(off[finite]),
        max_rel=_largest(off[divisible] / e[divisible].abs()),
        nan_mismatch=int(nan.sum()),
        inf_mismatch=int(infinite.sum()),
        message=message,
    )


def _first(where: torch.Tensor) -> tuple[int, ...]:
    """The index of the first True in row-major order; there is one."""
    return tuple(int(i) for i in where.nonzero()[0])


def _largest(values: torch.Tensor) -> float:
    return values.max().item() if values.numel() else 0.0


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
    printed = io.StringIO()
    count = triton.cdiv(x.numel(), TRACE_BLOCK)
    if 0 <= program < count:
        with contextlib.redirect_stdout(printed):
            trace_kernel[(count,)](x, x.numel(), program, BLOCK=TRACE_BLOCK)
    return printed.getvalue()
