"""Nine kernels of a colleague's branch, none of which works, and two tools that do not help.

Goal:    repair the nine kernels, record the cause of each failure, and make the tools useful.
Shapes:  in the docstring of each wrapper. Tensors are contiguous and have at most 2**31 - 1
         elements. Results are new tensors; inputs are not modified.
Given:   all of the code. Each kernel or its wrapper has exactly one bug. The comment above each
         kernel describes the symptom, not the cause.
Graded:  values     float32, float16, bfloat16; sizes around a block, NaN and infinities
         memory     every access is in bounds, and every element of the result is written
         cost       each input element that is needed is read once, each result written once
         DIAGNOSES  phase and cause from the tables of the README, and a part of the faulty line,
                    copied from this file before you repair it
         compare    planted differences: NaN, infinities, empty and 0-d tensors
         trace_program   the output of one program, and nothing from the others

`python kernel.py` runs four public cases, `tritonlab grade track3/basic-debugging` all of them.
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

TRACE_BLOCK = 8  # elements printed by one program of trace_kernel


@dataclass(frozen=True)
class Diagnosis:
    """What was wrong with a kernel. The README lists the phases and the causes."""

    phase: str
    cause: str
    line_contains: str  # part of the faulty line; at most one other line may contain it


DIAGNOSES: dict[str, Diagnosis] = {
    "scale": Diagnosis(phase="", cause="", line_contains=""),
    "clip_add": Diagnosis(phase="", cause="", line_contains=""),
    "relu": Diagnosis(phase="", cause="", line_contains=""),
    "col_sum": Diagnosis(phase="", cause="", line_contains=""),
    "row_max": Diagnosis(phase="", cause="", line_contains=""),
    "first_elem": Diagnosis(phase="", cause="", line_contains=""),
    "masked_outer": Diagnosis(phase="", cause="", line_contains=""),
    "avg_pool1d": Diagnosis(phase="", cause="", line_contains=""),
    "weighted_sum": Diagnosis(phase="", cause="", line_contains=""),
}


# ---------------------------------------------------------------------------------------------
# Elementwise kernels


# Symptom: does not compile. Triton reports "arange's arguments must be of type tl.constexpr",
# although the wrapper passes the constant 256.
@triton.jit
def scale_kernel(
    x_ptr, out_ptr,       # [n]
    n, s, BLOCK,          # elements, factor, elements per program
):
    """out[i] = s * x[i]. One program owns BLOCK elements. Moves 2 * n * itemsize bytes."""
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask)

    tl.store(out_ptr + offs, x * s, mask=mask)


def scale(x: torch.Tensor, s: float) -> torch.Tensor:
    """Returns s * x for a vector."""
    out = torch.empty_like(x)
    n, block = x.numel(), 256
    scale_kernel[(triton.cdiv(n, block),)](x, out, n, s, BLOCK=block)
    return out


# Symptom: right for 256, 512 and 1,024 elements. With 1,000, the first 768 are right, and the
# others look like values of another tensor. No access is out of bounds.
@triton.jit
def clip_add_kernel(
    x_ptr, y_ptr, out_ptr,  # [n]
    n, lo, hi,
    BLOCK: tl.constexpr,    # elements per program
):
    """out[i] = x[i] + y[i], clamped to [lo, hi]. Moves 3 * n * itemsize bytes."""
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)

    total = x + y
    total = tl.where(total < lo, lo, total)
    total = tl.where(total > hi, hi, total)

    tl.store(out_ptr + offs, total, mask=mask)


def clip_add(x: torch.Tensor, y: torch.Tensor, lo: float, hi: float) -> torch.Tensor:
    """Returns x + y for two vectors, clamped to [lo, hi]. NaN stays NaN."""
    out = torch.empty_like(x)
    n, block = x.numel(), 256
    clip_add_kernel[(n // block,)](x, y, out, n, lo, hi, BLOCK=block)
    return out


# Symptom: does not compile. Triton reports "module 'triton.language' has no attribute 'relu'".
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
    y = tl.relu(x)

    tl.store(out_ptr + offs, y, mask=mask)


def relu(x: torch.Tensor) -> torch.Tensor:
    """Returns a vector with its negative elements replaced by 0. NaN stays NaN."""
    out = torch.empty_like(x)
    n, block = x.numel(), 256
    relu_kernel[(triton.cdiv(n, block),)](x, out, n, BLOCK=block)
    return out


# ---------------------------------------------------------------------------------------------
# Rows and columns


# Symptom: right with TRITON_INTERPRET=1. On the GPU it does not compile: "Loop-carried variable acc
# has initial type <['32'], fp32> but is re-assigned to <['32', '32'], fp32> in loop".
@triton.jit
def col_sum_kernel(
    x_ptr, out_ptr,       # [M, N] and [N]
    M, N,
    BLOCK: tl.constexpr,  # columns per program, and rows per step
):
    """out[n] = sum of x[:, n]. One program owns BLOCK columns.

    Moves (M + 1) * N * itemsize bytes.
    """
    cols = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)

    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, M, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
        acc += x.to(tl.float32)

    total = tl.sum(acc, axis=0)

    tl.store(out_ptr + cols, total.to(out_ptr.dtype.element_ty), mask=cols < N)


def col_sum(x: torch.Tensor) -> torch.Tensor:
    """Returns the sum of each column of a matrix, accumulated in float32."""
    M, N = x.shape
    out = x.new_empty(N)
    block = 32
    col_sum_kernel[(triton.cdiv(N, block),)](x, out, M, N, BLOCK=block)
    return out


# Symptom: right for 64 columns. With 50 columns, the maximum of the row -3, -1, -2, ... is 0, which
# the row does not contain. Rows with a positive element are right.
@triton.jit
def row_max_kernel(
    x_ptr, out_ptr,       # [M, N] and [M]
    N,
    BLOCK: tl.constexpr,  # power of two >= N
):
    """out[m] = max of x[m, :]. One program owns row m. Moves M * (N + 1) * itemsize bytes."""
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK)

    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)

    tl.store(out_ptr + row, tl.max(x, axis=0))


def row_max(x: torch.Tensor) -> torch.Tensor:
    """Returns the maximum of each row of a matrix with at least one column and no NaN."""
    M, N = x.shape
    out = x.new_empty(M)
    row_max_kernel[(M,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out


# Symptom: does not run. "unsupported tensor index: constexpr[0]" on the GPU, "'int' object is not
# iterable" with TRITON_INTERPRET=1.
@triton.jit
def first_elem_kernel(
    x_ptr, out_ptr,       # [M, N] and [M]
    N,
    BLOCK: tl.constexpr,  # power of two >= N
):
    """out[m] = x[m, 0]. One program owns row m."""
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK)

    v = tl.load(x_ptr + row * N + cols, mask=cols < N)

    tl.store(out_ptr + row, v[0])


def first_elem(x: torch.Tensor) -> torch.Tensor:
    """Returns the first element of each row of a matrix with at least one column."""
    M, N = x.shape
    out = x.new_empty(M)
    first_elem_kernel[(M,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out


# ---------------------------------------------------------------------------------------------
# Tiles and windows


# Symptom: right for 64 x 64. For 33 x 60, some values change from run to run, and once the process
# crashed a few kernels later. The mask looks right.
@triton.jit
def masked_outer_kernel(
    x_ptr, y_ptr, out_ptr,  # [M], [N] and [M, N]
    M, N,
    BLOCK: tl.constexpr,    # rows and columns of a tile
):
    """out[m, n] = x[m] * y[n]. One program owns one BLOCK x BLOCK tile of the result.

    Moves (M * N + M + N) * itemsize bytes if one tile covers the result.
    """
    rows = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)

    x = tl.load(x_ptr + rows, mask=rows < M)
    y = tl.load(y_ptr + cols, mask=cols < N)

    mask = (rows[:, None] < M) & cols[None, :] < N
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], x[:, None] * y[None, :], mask=mask)


def masked_outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns the outer product of two vectors, a matrix."""
    M, N = x.numel(), y.numel()
    out = x.new_empty(M, N)
    block = 64
    grid = (triton.cdiv(M, block), triton.cdiv(N, block))
    masked_outer_kernel[grid](x, y, out, M, N, BLOCK=block)
    return out


# Symptom: right for stride 1 with any padding. With k = 3, stride = 2 and pad = 1, the first mean
# is too small and all others are right.
@triton.jit
def avg_pool1d_kernel(
    x_ptr, out_ptr,       # [n] and [n_out]
    n, n_out,
    k, stride, pad,       # elements per window, between windows, and of padding at either end
    BLOCK: tl.constexpr,  # windows per program
    SPAN: tl.constexpr,   # power of two >= the elements that BLOCK windows cover
):
    """out[w] = mean of k elements starting at x[w * stride - pad]; x is padded with zeros.

    One program owns BLOCK windows and loads the elements that they cover once. Moves
    (n + n_out) * itemsize bytes if windows of different programs do not overlap.
    """
    first_window = tl.program_id(axis=0) * BLOCK
    windows = first_window + tl.arange(0, BLOCK)
    padded = first_window * stride + tl.arange(0, SPAN)  # positions in the padded vector
    places = padded - pad
    end = (first_window + BLOCK - 1) * stride + k
    mask = (places >= 0) & (places < n) & (padded < end)

    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)

    first = (padded - k) // stride + 1  # first window that contains this position
    last = padded // stride  # last window that contains it
    inside = (first[None, :] <= windows[:, None]) & (windows[:, None] <= last[None, :])
    total = tl.sum(tl.where(inside, x[None, :], 0.0), axis=1)

    mean = (total / k).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + windows, mean, mask=windows < n_out)


def avg_pool1d(x: torch.Tensor, k: int, stride: int, pad: int) -> torch.Tensor:
    """Returns the means of windows of k elements, `stride` apart, with `pad` zeros at either end.

    There is at least one window; k is at most 64, stride at most 16, and pad less than k.
    """
    n = x.numel()
    n_out = (n + 2 * pad - k) // stride + 1
    out = x.new_empty(n_out)
    block = 32
    span = triton.next_power_of_2((block - 1) * stride + k)
    avg_pool1d_kernel[(triton.cdiv(n_out, block),)](
        x, out, n, n_out, k, stride, pad, BLOCK=block, SPAN=span
    )
    return out


# Symptom: does not compile. Triton reports "Both operands must be same dtype. Got fp32 and fp16".
@triton.jit
def weighted_sum_kernel(
    p_ptr, v_ptr, out_ptr,  # [M, K], [K, N] and [M, N]
    M, N, K,
    BLOCK_M: tl.constexpr,  # rows of a tile
    BLOCK_N: tl.constexpr,  # columns of a tile
    BLOCK_K: tl.constexpr,  # elements along K per step
):
    """out[m, n] = sum over k of p[m, k] * v[k, n], with float32 weights and 16-bit values.

    One program owns one tile. Moves 4 * M * K + 2 * K * N + 4 * M * N bytes if one tile covers
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
        acc += tl.dot(p, v, input_precision="ieee")

    out_mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=out_mask)


def weighted_sum(p: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Returns p @ v in full float32, for float32 p and float16 or bfloat16 v."""
    M, K = p.shape
    N = v.shape[1]
    out = p.new_empty(M, N)
    block_m, block_n, block_k = 32, 32, 32
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n))
    weighted_sum_kernel[grid](
        p, v, out, M, N, K, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k
    )
    return out


# ---------------------------------------------------------------------------------------------
# Tools


@dataclass(frozen=True)
class Comparison:
    """Differences between an actual and an expected tensor. An index has one int per dimension."""

    ok: bool
    n_bad: int
    n_total: int
    first_bad: tuple[int, ...] | None  # in row-major order; None if no element is bad
    worst: tuple[int, ...] | None  # bad element with the largest error; NaN and inf exceed all
    max_abs: float  # largest |actual - expected| where both are finite; 0.0 if none are
    max_rel: float  # largest |actual - expected| / |expected|, likewise, where expected is not 0
    nan_mismatch: int  # elements of which exactly one is NaN
    inf_mismatch: int  # differing elements, neither NaN, at least one infinite
    message: str


# Symptom: it reports "not close" without a position. Two equal tensors with NaN at the same index
# are "not close". Empty tensors raise an exception, and some different shapes do not.
def compare(
    actual: torch.Tensor, expected: torch.Tensor, *, rtol: float, atol: float
) -> Comparison:
    """Compares elementwise: an element is good if |actual - expected| <= atol + rtol * |expected|.

    NaN equals NaN, and infinities of one sign are equal. Differences are computed in float64.

    Raises:
        ValueError: the shapes differ.
    """
    ok = torch.allclose(actual, expected, rtol=rtol, atol=atol)
    off = (actual - expected).abs()
    return Comparison(
        ok=ok,
        n_bad=0 if ok else off.numel(),
        n_total=off.numel(),
        first_bad=None,
        worst=None,
        max_abs=off.max().item(),
        max_rel=(off / expected.abs()).max().item(),
        nan_mismatch=0,
        inf_mismatch=0,
        message="close" if ok else "not close",
    )


# Symptom: for program 3, it prints the blocks of all four programs, each followed by False or True.
@triton.jit
def trace_kernel(
    x_ptr,                # [n]
    n,
    program,              # the program that prints
    BLOCK: tl.constexpr,  # elements per program
):
    """Prints the block of one program."""
    pid = tl.program_id(axis=0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)

    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)

    tl.device_print("x =", x, pid == program)


def trace_program(x: torch.Tensor, program: int) -> str:
    """Returns what one program of `trace_kernel` prints for the vector x.

    The text is empty if the program does not exist. Only the interpreter's output is captured; a
    GPU does not print through Python's stdout.
    """
    n = x.numel()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        trace_kernel[(triton.cdiv(n, TRACE_BLOCK),)](x, n, program, BLOCK=TRACE_BLOCK)
    return printed.getvalue()


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
