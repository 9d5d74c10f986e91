"""Nine repaired kernels, the diagnosis of each, and two debugging tools.

Each kernel has one small task, so that its one bug stands out:

    scale          s * x                          masked_outer   x[m] * y[n]
    col_sum        sum of each column             row_max        maximum of each row
    clip_add       x + y, clamped to [lo, hi]     avg_pool1d     mean of each window
    relu           max(x, 0)                      weighted_sum   p @ v, two dtypes
                                                  first_elem     first element of each row

Cost: each kernel reads every input element that it needs once and stores each result once, for
shapes that one block covers. All are memory-bound.

Inputs: contiguous tensors of at most 2**31 - 1 elements. Results are new tensors; inputs are not
modified. Sums are accumulated in float32 for every dtype.
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


# ---------------------------------------------------------------------------------------------
# Elementwise kernels


@triton.jit
def scale_kernel(
    x_ptr, out_ptr,       # [n]
    n, s,
    BLOCK: tl.constexpr,  # elements per program; tl.arange needs it at compile time
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
    total = tl.where(total < lo, lo, total)  # comparisons with NaN are false, so NaN stays
    total = tl.where(total > hi, hi, total)

    tl.store(out_ptr + offs, total, mask=mask)


def clip_add(x: torch.Tensor, y: torch.Tensor, lo: float, hi: float) -> torch.Tensor:
    """Returns x + y for two vectors, clamped to [lo, hi]. NaN stays NaN."""
    out = torch.empty_like(x)
    n, block = x.numel(), 256
    grid = (triton.cdiv(n, block),)  # rounded up: the last program owns the rest
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
    y = tl.where(x < 0, 0.0, x)  # keeps NaN; tl.maximum(x, 0.0) would return 0

    tl.store(out_ptr + offs, y, mask=mask)


def relu(x: torch.Tensor) -> torch.Tensor:
    """Returns a vector with its negative elements replaced by 0. NaN stays NaN."""
    out = torch.empty_like(x)
    n, block = x.numel(), 256
    relu_kernel[(triton.cdiv(n, block),)](x, out, n, BLOCK=block)
    return out


# ---------------------------------------------------------------------------------------------
# Rows and columns


@triton.jit
def col_sum_kernel(
    x_ptr, out_ptr,       # [M, N] and [N]
    M, N,
    BLOCK: tl.constexpr,  # columns per program, and rows per step
):
    """out[n] = sum of x[:, n]. One program owns BLOCK columns. Moves (M + 1) * N * itemsize bytes.

    The accumulator has the shape of the loaded tile; its rows are reduced once, after the loop.
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
    """Returns the sum of each column of a matrix, accumulated in float32."""
    M, N = x.shape
    out = x.new_empty(N)
    block = 32
    col_sum_kernel[(triton.cdiv(N, block),)](x, out, M, N, BLOCK=block)
    return out


@triton.jit
def row_max_kernel(
    x_ptr, out_ptr,       # [M, N] and [M]
    N,
    BLOCK: tl.constexpr,  # power of two >= N
):
    """out[m] = max of x[m, :]. One program owns row m. Moves M * (N + 1) * itemsize bytes."""
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK)

    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))  # neutral for max

    tl.store(out_ptr + row, tl.max(x, axis=0))


def row_max(x: torch.Tensor) -> torch.Tensor:
    """Returns the maximum of each row of a matrix with at least one column and no NaN."""
    M, N = x.shape
    out = x.new_empty(M)
    row_max_kernel[(M,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out


@triton.jit
def first_elem_kernel(
    x_ptr, out_ptr,       # [M, N] and [M]
    M, N,
    BLOCK: tl.constexpr,  # rows per program
):
    """out[m] = x[m, 0]. One program owns BLOCK rows. Moves 2 * M * itemsize bytes.

    A block cannot be indexed by a number, so only the elements that are needed are loaded.
    """
    rows = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < M

    first = tl.load(x_ptr + rows * N, mask=mask)

    tl.store(out_ptr + rows, first, mask=mask)


def first_elem(x: torch.Tensor) -> torch.Tensor:
    """Returns the first element of each row of a matrix with at least one column."""
    M, N = x.shape
    out = x.new_empty(M)
    block = 64
    first_elem_kernel[(triton.cdiv(M, block),)](x, out, M, N, BLOCK=block)
    return out


# ---------------------------------------------------------------------------------------------
# Tiles and windows


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

    mask = (rows[:, None] < M) & (cols[None, :] < N)  # `&` binds tighter than `<`
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], x[:, None] * y[None, :], mask=mask)


def masked_outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns the outer product of two vectors, a matrix."""
    M, N = x.numel(), y.numel()
    out = x.new_empty(M, N)
    block = 64
    grid = (triton.cdiv(M, block), triton.cdiv(N, block))
    masked_outer_kernel[grid](x, y, out, M, N, BLOCK=block)
    return out


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

    # Compares products instead of quotients: in a kernel, `//` truncates toward 0, which rounds
    # negative quotients up.
    begin = windows * stride
    inside = (begin[:, None] <= padded[None, :]) & (padded[None, :] < begin[:, None] + k)
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
        # Widening v is exact; narrowing the weights is not.
        acc += tl.dot(p, v.to(tl.float32), input_precision="ieee")

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


def compare(
    actual: torch.Tensor, expected: torch.Tensor, *, rtol: float, atol: float
) -> Comparison:
    """Compares elementwise: an element is good if |actual - expected| <= atol + rtol * |expected|.

    NaN equals NaN, and infinities of one sign are equal. Differences are computed in float64.

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
    message = f"all {n_total} elements are within tolerance"
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
    """Returns the index of the first True in row-major order. There is at least one."""
    return tuple(int(i) for i in where.nonzero()[0])


def _largest(values: torch.Tensor) -> float:
    return values.max().item() if values.numel() else 0.0


@triton.jit
def trace_kernel(
    x_ptr,                # [n]
    n,
    program,              # the program that prints
    BLOCK: tl.constexpr,  # elements per program
):
    """Prints the block of one program. tl.device_print takes no condition, hence the `if`."""
    pid = tl.program_id(axis=0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)

    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)

    if pid == program:
        tl.device_print("x =", x)


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
