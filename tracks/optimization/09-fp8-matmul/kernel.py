"""A correct FP8 product that multiplies in float32 and moves more bytes than necessary.

    q[i, k], scale    = x[i, k] / scale rounded to float8,   scale = max |x| / 448
    out[m, n]         = scale_a * scale_b * sum_k a_q[m, k] * b_q_t[n, k]
    format_report     : time and error of a product in five formats

Shapes:  x (M, K) in float16, bfloat16 or float32; q (M, K) in float8 e4m3, scale () or (M, 1) in
         float32; a_q (M, K) and b_q_t (N, K), both with K contiguous; out (M, N).
Given:   correct kernels, argument checks, and at the end of the file the functions that query and
         time a GPU: `capability`, `the_gpu` and `time_ms`. Keep these three.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Rewrite these parts as you like.
           quantizing     DECIDE 1 and 2       the product  DECIDE 3 to 5
           formats        DECIDE 6
Graded:  values  both formulas, and refusals of arguments and GPUs outside the contract, as in the
                 given code
         cost    bytes and launches of quantizing; compiled for an H100 and an RTX 4090, tensor
                 cores multiply float8; with a GPU, the speed of the product
         numbers in `PREDICT` exactly, bytes within 15 %; a wrong number is explained and fails
                 nothing

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
QUANTIZED = (torch.float16, torch.bfloat16, torch.float32)
RESULTS = (torch.float16, torch.bfloat16, torch.float32)
LEAST_CAPABILITY = (8, 9)  # of GPUs with float8 tensor cores

# Replace each None by a number before you measure.
PREDICT = {
    # The largest magnitude of a tensor is 896. What is its scale?
    "scale": None,
    # How far apart are adjacent e4m3 numbers near 400?
    "step_near_400": None,
    # How many bytes do both operands of an 8,192 x 8,192 x 8,192 product have in float8?
    "operand_bytes": None,
    # By how many scales must an element of the result be multiplied in total?
    "multiplications_by_scales": None,
    # A sum has 14 significant bits, and further bits are truncated. Ones are added to it, one at a
    # time. Which number does it never exceed?
    "where_a_sum_stops": None,
    # How many accumulators of a 128 x 256 tile does each thread of 8 warps hold? (A thread has 255
    # registers. How many such sets fit?)
    "accumulators": None,
}


# ---------------------------------------------------------------------------------------------
# Quantizing


@triton.jit
def row_amax_kernel(
    x_ptr, amax_ptr,       # [n_rows, n_cols], and [n_rows]
    stride_xm, stride_xk,  # in elements: from row to row, from column to column
    n_cols,
    BLOCK: tl.constexpr,
):
    """amax = max |x| of each row. One program owns one row."""
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    largest = tl.zeros((BLOCK,), dtype=tl.float32)
    # DECIDE 1: one program reads a whole row, so a matrix of few rows has few programs. How can
    #           several programs share a row? A maximum can be taken in any order: which memory
    #           operation combines their results, with one launch for all rows?
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xk, mask=cols < n_cols, other=0.0)
        size = tl.abs(x.to(tl.float32))
        largest = tl.maximum(largest, tl.where(size == size, size, 0.0))  # NaN is ignored
    tl.store(amax_ptr + row, tl.max(largest, axis=0))


@triton.jit
def amax_of_rows_kernel(row_amax_ptr, amax_ptr, n_rows, BLOCK: tl.constexpr):
    """amax = the largest of the row maxima. One program."""
    largest = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        largest = tl.maximum(largest, tl.load(row_amax_ptr + rows, mask=rows < n_rows, other=0.0))
    tl.store(amax_ptr, tl.max(largest, axis=0))


@triton.jit
def divide_kernel(
    x_ptr, amax_ptr, scaled_ptr, scale_ptr,  # scaled is contiguous float32
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
    scale = tl.where(scale > 0.0, scale, 1.0)  # for amax of 0, or too small
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xk, mask=mask, other=0.0)
        # DECIDE 2: the quotient goes to memory in 4 bytes, and another kernel loads it to make 1
        #           byte of it. In which dtype can a register hold it?
        tl.store(scaled_ptr + row * n_cols + cols, x.to(tl.float32) / scale, mask=mask)
    if PER_ROW or row == 0:
        tl.store(scale_ptr + own, scale)


@triton.jit
def round_kernel(scaled_ptr, q_ptr, n, BLOCK: tl.constexpr):
    """q = scaled in float8. One program owns BLOCK elements."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    # Values that rounding takes beyond LARGEST become LARGEST; NaN stays NaN.
    q = tl.load(scaled_ptr + offs, mask=mask, other=0.0).to(q_ptr.dtype.element_ty)
    tl.store(q_ptr + offs, q, mask=mask)


def quantize_fp8(x: torch.Tensor, *, per_row: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns x as float8 e4m3 and its scale: x is approximately q * scale.

    Args:
        x: a matrix (M, K) of float16, bfloat16 or float32 with any strides.
        per_row: one scale per row instead of one for all.

    Returns:
        Contiguous q (M, K), and the scale in float32 with shape (M, 1), or () for all rows. A scale
        is max |x| / 448, or 1 if all values are zero. NaN stays NaN, and is ignored in the maximum.

    Raises:
        TypeError: x is not a tensor of these dtypes.
        ValueError: x does not have two dimensions.
    """
    check_matrix("x", x, QUANTIZED)
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
    a_ptr, b_ptr, c_ptr,          # [M, K], [N, K], both float8, and contiguous [M, N]
    scale_a_ptr, scale_b_ptr,     # per row of a and of b, or one for all
    stride_am, stride_bn,         # in elements, from row to row; rows are contiguous
    stride_sm, stride_sn,         # from scale to scale, 0 for a single one
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
        # DECIDE 3: every element is multiplied by its scale in every step. A scale does not depend
        #           on k: where else in the sum can it be, and how often is it needed there?
        a_wide = a.to(tl.float32) * scale_a[:, None]
        b_wide = b.to(tl.float32) * scale_b[None, :]
        # DECIDE 4: tensor cores never see these 8 bits. Which dtypes may the operands of `tl.dot`
        #           have for that? How many products may tensor cores sum before the sum continues
        #           in float32: what do `max_num_imprecise_acc` of None, 0 and BLOCK_K mean?
        acc = tl.dot(a_wide, b_wide, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


def matmul_fp8(
    a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor,
    out_dtype: torch.dtype = torch.float16,
) -> torch.Tensor:
    """Returns (a_q * scale_a) @ (b_q_t * scale_b).T, contiguous (M, N) of ``out_dtype``.

    Args:
        a_q, b_q_t: matrices (M, K) and (N, K) of float8 e4m3 with contiguous rows.
        scale_a, scale_b: float32, () or (M, 1) and () or (N, 1), as ``quantize_fp8`` returns them.
        out_dtype: float16, bfloat16 or float32.

    Raises:
        TypeError: an argument is not a tensor, or has another dtype.
        ValueError: the shapes do not match, the devices differ, or rows are not contiguous.
        RuntimeError: this GPU cannot multiply float8.
    """
    check_product(a_q, b_q_t, scale_a, scale_b, out_dtype)
    check_gpu()
    (M, K), N = a_q.shape, b_q_t.shape[0]
    c = torch.empty((M, N), dtype=out_dtype, device=a_q.device)
    if c.numel() == 0:
        return c
    # DECIDE 5: a step of 32 elements is 32 bytes of a row, and 32 x 32 tiles load each operand M /
    #           32 or N / 32 times. Which tile suits one-byte elements, with how many warps and
    #           stages, and in which order are the tiles computed?
    block_m, block_n, block_k = 32, 32, 32
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    matmul_fp8_kernel[grid](
        a_q, b_q_t, c, scale_a, scale_b, a_q.stride(0), b_q_t.stride(0),
        scale_a.stride(0) if scale_a.dim() else 0, scale_b.stride(0) if scale_b.dim() else 0,
        M, N, K, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
    )
    return c


# ---------------------------------------------------------------------------------------------
# Formats compared


@dataclass(frozen=True)
class FormatRow:
    """One format: time and rate of its product, and its relative error."""

    name: str  # fp32, tf32, fp16, bf16 or fp8
    ms: float
    tflops: float
    error: float


def format_report(m: int, n: int, k: int) -> list[FormatRow]:
    """Compares products of the same random (m, k) and (k, n) in five formats on this GPU.

    The time is that of the product alone: operands are converted before. The error is the norm of
    the difference from the product of the unrounded matrices over the norm of that product, so it
    includes the rounding of the operands. A GPU that cannot multiply float8 has four rows.

    Raises:
        ValueError: a size is below 1.
        RuntimeError: there is no GPU to measure.
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
        # DECIDE 6: operands of 16 bits are converted before the clock starts. Which work is timed
        #           for these operands, and is that the time of a product?
        a_q, scale_a = quantize_fp8(a, per_row=True)
        b_q_t, scale_b = quantize_fp8(b_t, per_row=True)
        return matmul_fp8(a_q, b_q_t, scale_a, scale_b)

    return work


@contextmanager
def tf32_allowed(allowed: bool) -> Iterator[None]:
    """Sets whether torch may round float32 operands to TF32, inside the context."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def capability() -> tuple[int, int] | None:
    """Returns the compute capability of this GPU, such as (9, 0); None without a GPU."""
    return torch.cuda.get_device_capability() if torch.cuda.is_available() else None


def the_gpu() -> torch.device:
    """Returns this GPU.

    Raises:
        RuntimeError: there is none.
    """
    if not torch.cuda.is_available():
        raise RuntimeError("format_report measures a GPU, and no GPU was found.")
    return torch.device("cuda")


def time_ms(work: Callable[[], torch.Tensor], repeats: int = 20) -> float:
    """Returns the median time of ``repeats`` runs in ms, after a warm-up run."""
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
# Argument checks


def check_gpu() -> None:
    """Refuses a GPU without float8 tensor cores, with a clearer error than the compiler's."""
    found = capability()
    if found is not None and found < LEAST_CAPABILITY:
        least, own = (".".join(map(str, version)) for version in (LEAST_CAPABILITY, found))
        raise RuntimeError(f"float8 products need a GPU of compute capability {least} or higher, "
                           f"and this GPU has {own}.")


def check_product(
    a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor,
    out_dtype: torch.dtype,
) -> None:
    """Refuses arguments outside the contract of ``matmul_fp8``."""
    for name, tensor in (("a_q", a_q), ("b_q_t", b_q_t)):
        check_matrix(name, tensor, (torch.float8_e4m3fn,))
        if tensor.shape[1] > 1 and tensor.stride(1) != 1:
            raise ValueError(f"{name}: expected contiguous rows, so that K is contiguous, "
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
    """Refuses arguments that are not a matrix of one of these dtypes."""
    check_tensor(name, tensor, dtypes)
    if tensor.dim() != 2:
        raise ValueError(f"{name}: expected 2 dimensions, got {tensor.dim()} in shape "
                         f"{tuple(tensor.shape)}")


def check_tensor(name: str, tensor: torch.Tensor, dtypes: tuple[torch.dtype, ...]) -> None:
    """Refuses arguments that are not a tensor of one of these dtypes."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    if tensor.dtype not in dtypes:
        raise TypeError(f"{name}: expected {names(dtypes)}, got {tensor.dtype}")


def names(dtypes: tuple[torch.dtype, ...]) -> str:
    return ", ".join(str(dtype) for dtype in dtypes)


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
