"""Numbers of 8 bits: right already, multiplied as float32 and moved more often than needed.

    q[i, k], scale    = x[i, k] / scale rounded to float8,   scale = max |x| / 448
    out[m, n]         = scale_a * scale_b * sum_k a_q[m, k] * b_q_t[n, k]
    format_report     : how long a product takes in five formats, and how far off it is

Shapes:  x (M, K) in float16, bfloat16 or float32; q (M, K) in float8 e4m3, scale () or (M, 1) in
         float32; a_q (M, K) and b_q_t (N, K), both with K running through memory; out (M, N).
Given:   kernels that compute the right numbers, checks of arguments, and at the end of the file
         what a GPU is asked: `capability`, `the_gpu` and `time_ms`. Keep these three.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Write these parts anew as you like.
           quantizing     DECIDE 1 and 2       the product  DECIDE 3, 4 and 5
           formats        DECIDE 6
Judged:  values  both formulas; arguments and GPUs that do not fit are refused; this holds from the
                 start
         cost    bytes and launches of quantizing; compiled for an H100 and an RTX 4090, the product
                 of float8 runs on tensor cores as float8; with a GPU, its speed
         numbers in `PREDICT` exactly, bytes within 15 %; a wrong one is explained and fails nothing

`python kernel.py` runs the public cases, `tritonlab grade track2/fp8-matmul` all of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

LARGEST = 448.0  # of float8 e4m3: 1.75 * 2**8
QUANTISED = (torch.float16, torch.bfloat16, torch.float32)
RESULTS = (torch.float16, torch.bfloat16, torch.float32)
LEAST_CAPABILITY = (8, 9)  # of GPUs whose tensor cores multiply float8

# Write a number in place of each None, before you measure.
PREDICT = {
    # The largest number of a tensor is 896. What is its scale?
    "scale": None,
    # How far apart are two adjacent numbers of e4m3 near 400?
    "step_near_400": None,
    # How many bytes do both operands of a product of 8192 x 8192 x 8192 have in float8?
    "operand_bytes": None,
    # By how many scales does an element of the result have to be multiplied, in all?
    "multiplications_by_scales": None,
    # A sum is kept with 14 bits, and what does not fit is cut off. Ones are added to it, one after
    # the other. Which number does it never get beyond?
    "where_a_sum_stops": None,
    # How many numbers of a tile of 128 x 256 sums does each thread of 8 warps hold? (It has 255
    # registers. How many such sets fit?)
    "accumulators": None,
}


# ---------------------------------------------------------------------------------------------
# Quantizing


@triton.jit
def row_amax_kernel(
    x_ptr, amax_ptr,       # [n_rows, n_cols], and [n_rows]
    stride_xm, stride_xk,  # elements from one row to the next, and from one column
    n_cols,
    BLOCK: tl.constexpr,
):
    """amax = max |x| of each row. One program owns one row."""
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    largest = tl.zeros((BLOCK,), dtype=tl.float32)
    # DECIDE 1: one program walks through a whole row, and a matrix of few rows has few programs.
    #           Who else could look at a part of a row? A maximum may be taken in any order: which
    #           operation on memory lets several programs add to one, with one launch for all rows?
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xk, mask=cols < n_cols, other=0.0)
        size = tl.abs(x.to(tl.float32))
        largest = tl.maximum(largest, tl.where(size == size, size, 0.0))  # NaN is no size
    tl.store(amax_ptr + row, tl.max(largest, axis=0))


@triton.jit
def amax_of_rows_kernel(row_amax_ptr, amax_ptr, n_rows, BLOCK: tl.constexpr):
    """The largest of the rows' maxima. One program does it all."""
    largest = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        largest = tl.maximum(largest, tl.load(row_amax_ptr + rows, mask=rows < n_rows, other=0.0))
    tl.store(amax_ptr, tl.max(largest, axis=0))


@triton.jit
def divide_kernel(
    x_ptr, amax_ptr, scaled_ptr, scale_ptr,  # scaled is float32 without gaps
    stride_xm, stride_xk,
    n_cols,
    LARGEST: tl.constexpr,
    PER_ROW: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """scaled = x / scale, scale = amax / LARGEST. One program owns one row."""
    row = tl.program_id(axis=0).to(tl.int64)
    own = row if PER_ROW else 0
    scale = tl.load(amax_ptr + own) / LARGEST
    scale = tl.where(scale > 0.0, scale, 1.0)  # of zeros, and of what is too small to divide by
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xk, mask=mask, other=0.0)
        # DECIDE 2: the quotient goes to memory in 4 bytes, and another kernel reads it to make 1
        #           byte of it. In which type is it while it is still in a register?
        tl.store(scaled_ptr + row * n_cols + cols, x.to(tl.float32) / scale, mask=mask)
    if PER_ROW or row == 0:
        tl.store(scale_ptr + own, scale)


@triton.jit
def round_kernel(scaled_ptr, q_ptr, n, BLOCK: tl.constexpr):
    """q = scaled in float8. One program owns BLOCK elements."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    # What is beyond LARGEST by a rounding becomes LARGEST; NaN stays NaN.
    q = tl.load(scaled_ptr + offs, mask=mask, other=0.0).to(q_ptr.dtype.element_ty)
    tl.store(q_ptr + offs, q, mask=mask)


def quantize_fp8(x: torch.Tensor, *, per_row: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """x as float8 e4m3 and the scale to multiply it by: x is about q * scale.

    Args:
        x: a matrix (M, K) of float16, bfloat16 or float32 with any strides.
        per_row: one scale for each row, or else one for all.

    Returns:
        q (M, K) without gaps, and the scale in float32 of shape (M, 1), or () for all rows.
        A scale is max |x| / 448, and 1 where all numbers are zero. NaN stays NaN, and counts for
        no maximum.

    Raises:
        TypeError: x is no tensor of these dtypes.
        ValueError: x does not have two dimensions.
    """
    check_matrix("x", x, QUANTISED)
    n_rows, n_cols = x.shape
    q = torch.empty((n_rows, n_cols), dtype=torch.float8_e4m3fn, device=x.device)
    shape = (n_rows, 1) if per_row else ()
    if q.numel() == 0:
        return q, torch.ones(shape, dtype=torch.float32, device=x.device)

    amax = torch.empty((n_rows, 1), dtype=torch.float32, device=x.device)
    scaled = torch.empty((n_rows, n_cols), dtype=torch.float32, device=x.device)
    scale = torch.empty(shape, dtype=torch.float32, device=x.device)
    row_amax_kernel[(n_rows,)](x, amax, x.stride(0), x.stride(1), n_cols, BLOCK=128)
    if not per_row:
        row_amax, amax = amax, torch.empty((), dtype=torch.float32, device=x.device)
        amax_of_rows_kernel[(1,)](row_amax, amax, n_rows, BLOCK=128)
    divide_kernel[(n_rows,)](
        x, amax, scaled, scale, x.stride(0), x.stride(1), n_cols,
        LARGEST=LARGEST, PER_ROW=per_row, BLOCK=128,
    )
    round_kernel[(triton.cdiv(q.numel(), 128),)](scaled, q, q.numel(), BLOCK=128)
    return q, scale


# ---------------------------------------------------------------------------------------------
# The product


@triton.jit
def matmul_fp8_kernel(
    a_ptr, b_ptr, c_ptr,          # [M, K], [N, K], both float8, and [M, N] without gaps
    scale_a_ptr, scale_b_ptr,     # of each row of a and of b, or of all
    stride_am, stride_bn,         # elements from one row to the next; within rows are no gaps
    stride_sm, stride_sn,         # from one scale to the next, 0 where there is only one
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """c = scale_a * scale_b * (a @ b.T). One program owns BLOCK_M x BLOCK_N elements of c."""
    num_pid_n = tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(axis=0)
    offs_m = (pid // num_pid_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = (pid % num_pid_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    in_m, in_n = offs_m < M, offs_n < N
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * stride_bn + offs_k[:, None]
    scale_a = tl.load(scale_a_ptr + offs_m * stride_sm, mask=in_m, other=0.0)
    scale_b = tl.load(scale_b_ptr + offs_n * stride_sn, mask=in_n, other=0.0)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        in_k = offs_k < K - step * BLOCK_K
        a = tl.load(a_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_k[:, None] & in_n[None, :], other=0.0)
        # DECIDE 3: every element is multiplied by its scale in every step. A scale has no k: where
        #           else may it stand in the sum, and how often is it needed there?
        a_wide = a.to(tl.float32) * scale_a[:, None]
        b_wide = b.to(tl.float32) * scale_b[None, :]
        # DECIDE 4: tensor cores never see these 8 bits. Which two types may the operands of a dot
        #           have, so that they do? How many numbers may they add up before the sum goes on
        #           in float32: what do `max_num_imprecise_acc` of None, 0 and BLOCK_K say?
        acc = tl.dot(a_wide, b_wide, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


def matmul_fp8(
    a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor,
    out_dtype: torch.dtype = torch.float16,
) -> torch.Tensor:
    """(a_q * scale_a) @ (b_q_t * scale_b).T as a new contiguous tensor (M, N) of ``out_dtype``.

    Args:
        a_q, b_q_t: matrices (M, K) and (N, K) of float8 e4m3, rows without gaps.
        scale_a, scale_b: float32, () or (M, 1) and () or (N, 1), as ``quantize_fp8`` makes them.
        out_dtype: float16, bfloat16 or float32.

    Raises:
        TypeError: an argument is no tensor or of another dtype.
        ValueError: the shapes do not fit, the devices differ, or rows have gaps.
        RuntimeError: the GPU here cannot multiply float8.
    """
    check_product(a_q, b_q_t, scale_a, scale_b, out_dtype)
    check_gpu()
    (M, K), N = a_q.shape, b_q_t.shape[0]
    c = torch.empty((M, N), dtype=out_dtype, device=a_q.device)
    if c.numel() == 0:
        return c
    # DECIDE 5: a step of 32 numbers is 32 bytes of a row, and a tile of 32 x 32 reads each operand
    #           M / 32 or N / 32 times. Which sides suit numbers of one byte, with how many warps and
    #           stages, and in which order do programs take tiles?
    block_m, block_n, block_k = 32, 32, 32
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    matmul_fp8_kernel[grid](
        a_q, b_q_t, c, scale_a, scale_b, a_q.stride(0), b_q_t.stride(0),
        scale_a.stride(0) if scale_a.dim() else 0, scale_b.stride(0) if scale_b.dim() else 0,
        M, N, K, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
    )
    return c


# ---------------------------------------------------------------------------------------------
# Formats beside each other


@dataclass(frozen=True)
class FormatRow:
    """One format: its product's time, its rate, and its error as a share of the exact result."""

    name: str  # fp32, tf32, fp16, bf16 or fp8
    ms: float
    tflops: float
    error: float


def format_report(m: int, n: int, k: int) -> list[FormatRow]:
    """The product of the same random matrices (m, k) and (k, n) in five formats, on this GPU.

    Timed is the product alone: operands have their format before. The error is the norm of the
    difference from the product of the unrounded matrices over the norm of that, so it holds what
    was lost by rounding the operands too. A GPU that cannot multiply float8 has four rows.

    Raises:
        ValueError: a size is below 1.
        RuntimeError: there is no GPU: nothing else tells how long a product takes.
    """
    for name, size in (("m", m), ("n", n), ("k", k)):
        if size < 1:
            raise ValueError(f"{name}: expected at least 1, got {size}")
    device = the_gpu()
    a, b_t = torch.randn(m, k, device=device), torch.randn(n, k, device=device)
    exact = a.double() @ b_t.double().mT

    works: list[tuple[str, bool, Callable[[], torch.Tensor]]] = [
        ("fp32", False, lambda: a @ b_t.mT), ("tf32", True, lambda: a @ b_t.mT)]
    for name, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
        works.append((name, False, in_16_bits(a.to(dtype), b_t.to(dtype))))
    if capability() is None or capability() >= LEAST_CAPABILITY:
        works.append(("fp8", False, in_8_bits(a, b_t)))

    rows = []
    for name, tf32, work in works:
        with tf32_allowed(tf32):
            off = work().double() - exact
            ms = time_ms(work)
        rows.append(FormatRow(name, ms, 2 * m * n * k / ms / 1e9, float(off.norm() / exact.norm())))
    return rows


def in_16_bits(a: torch.Tensor, b_t: torch.Tensor) -> Callable[[], torch.Tensor]:
    return lambda: a @ b_t.mT


def in_8_bits(a: torch.Tensor, b_t: torch.Tensor) -> Callable[[], torch.Tensor]:
    def work() -> torch.Tensor:
        # DECIDE 6: operands of 16 bits were converted before the clock started. What does the clock
        #           see of these ones, and is that the time of a product?
        a_q, scale_a = quantize_fp8(a, per_row=True)
        b_q_t, scale_b = quantize_fp8(b_t, per_row=True)
        return matmul_fp8(a_q, b_q_t, scale_a, scale_b)

    return work


@contextmanager
def tf32_allowed(allowed: bool) -> Iterator[None]:
    """Whether torch may round float32 operands to TF32, inside."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def capability() -> tuple[int, int] | None:
    """Compute capability of the GPU here, such as (9, 0); None where there is none."""
    return torch.cuda.get_device_capability() if torch.cuda.is_available() else None


def the_gpu() -> torch.device:
    """The GPU here.

    Raises:
        RuntimeError: there is none.
    """
    if not torch.cuda.is_available():
        raise RuntimeError("format_report measures a GPU, and no GPU was found here.")
    return torch.device("cuda")


def time_ms(work: Callable[[], torch.Tensor], repeats: int = 20) -> float:
    """Milliseconds that a work takes on this GPU: the median of ``repeats`` runs after a first."""
    work()
    taken = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        taken.append(start.elapsed_time(end))
    return statistics.median(taken)


# ---------------------------------------------------------------------------------------------
# What is refused


def check_gpu() -> None:
    """Refuse a GPU without tensor cores for float8, before its compiler does in other words."""
    found = capability()
    if found is not None and found < LEAST_CAPABILITY:
        least, own = (".".join(map(str, version)) for version in (LEAST_CAPABILITY, found))
        raise RuntimeError(f"float8 products need a GPU of compute capability {least} or higher, "
                           f"and this one has {own}.")


def check_product(
    a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor,
    out_dtype: torch.dtype,
) -> None:
    """Refuse what the contract of ``matmul_fp8`` does not cover."""
    for name, tensor in (("a_q", a_q), ("b_q_t", b_q_t)):
        check_matrix(name, tensor, (torch.float8_e4m3fn,))
        if tensor.shape[1] > 1 and tensor.stride(1) != 1:
            raise ValueError(f"{name}: expected rows without gaps, so that K runs through memory, "
                             f"got strides {tensor.stride()} for shape {tuple(tensor.shape)}")
    if b_q_t.shape[1] != a_q.shape[1]:
        raise ValueError(f"b_q_t: expected {a_q.shape[1]} columns like a_q, got shape "
                         f"{tuple(b_q_t.shape)}")
    for name, scale, rows in (("scale_a", scale_a, a_q.shape[0]),
                              ("scale_b", scale_b, b_q_t.shape[0])):
        check_tensor(name, scale, (torch.float32,))
        if tuple(scale.shape) not in ((), (rows, 1)):
            raise ValueError(f"{name}: expected shape () or {(rows, 1)}, got {tuple(scale.shape)}")
    for name, tensor in (("b_q_t", b_q_t), ("scale_a", scale_a), ("scale_b", scale_b)):
        if tensor.device != a_q.device:
            raise ValueError(f"{name}: expected device {a_q.device} like a_q, got {tensor.device}")
    if out_dtype not in RESULTS:
        raise TypeError(f"out_dtype: expected one of {names(RESULTS)}, got {out_dtype}")


def check_matrix(name: str, tensor: torch.Tensor, dtypes: tuple[torch.dtype, ...]) -> None:
    """Refuse what is no matrix of one of these dtypes."""
    check_tensor(name, tensor, dtypes)
    if tensor.dim() != 2:
        raise ValueError(f"{name}: expected 2 dimensions, got {tensor.dim()} in shape "
                         f"{tuple(tensor.shape)}")


def check_tensor(name: str, tensor: torch.Tensor, dtypes: tuple[torch.dtype, ...]) -> None:
    """Refuse what is no tensor of one of these dtypes."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    if tensor.dtype not in dtypes:
        raise TypeError(f"{name}: expected {names(dtypes)}, got {tensor.dtype}")


def names(dtypes: tuple[torch.dtype, ...]) -> str:
    return ", ".join(str(dtype) for dtype in dtypes)


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
