"""FP8 matrices: scaled into the range of e4m3, multiplied on tensor cores, summed in float32.

    q[i, k], scale    = x[i, k] / scale rounded to float8,   scale = max |x| / 448
    out[m, n]         = scale_a * scale_b * sum_k a_q[m, k] * b_q_t[n, k]
    format_report     : how long a product takes in five formats, and how far off it is

float8 here is e4m3: a sign, 4 bits of exponent, 3 bits of mantissa. It has no infinities, its
largest number is 448, its smallest is 2**-9, and adjacent numbers differ by 1/16 to 1/8. So a
tensor is divided by a scale that takes its largest magnitude to 448, and a product is multiplied
by the scales of both operands at the end. A scale belongs to a whole tensor or to a row.

Cost: quantizing stores a byte per element. It loads x twice, or once for a scale per row of at most
``WIDEST`` columns, which a program holds in registers. The product loads at least (M + N) * K
bytes, for 2 * M * N * K FLOP, and stores its result once.

Precision: products of float8 are exact in float32. Hopper's tensor cores keep fewer than 24 bits of
a running sum, so the sum is promoted to float32 after every step of the loop.

Source: P. Micikevicius and others, "FP8 formats for deep learning", 2022; promotion every 128
products, from DeepSeek-AI, "DeepSeek-V3 technical report", 2024, 3.3.2.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LARGEST = 448.0  # of float8 e4m3: 1.75 * 2**8
QUANTIZED = (torch.float16, torch.bfloat16, torch.float32)
RESULTS = (torch.float16, torch.bfloat16, torch.float32)
LEAST_CAPABILITY = (8, 9)  # of GPUs with float8 tensor cores
WIDEST = 32_768  # columns of a row that one program quantizes
LARGE = 512  # rows and columns; from this size on, TMA copies the tiles

PREDICT = {
    "scale": 896 / LARGEST,
    "step_near_400": 256 / 8,
    "operand_bytes": 2 * 8192 * 8192,
    "multiplications_by_scales": 2,
    "where_a_sum_stops": 2**14,
    "accumulators": 128 * 256 // (8 * 32),
}


# ---------------------------------------------------------------------------------------------
# Quantizing


@triton.jit
def amax_kernel(
    x_ptr, amax_ptr,        # [n_rows, n_cols], and [n_rows] or [1], initially 0
    stride_xm, stride_xk,   # in elements: from row to row, from column to column
    n_cols,
    PER_ROW: tl.constexpr,  # a maximum per row, or one for all
    BLOCK: tl.constexpr,
):
    """amax = max |x|, of each row or of all. One program owns BLOCK elements of one row."""
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    cols = tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)

    x = tl.load(x_ptr + row * stride_xm + cols * stride_xk, mask=cols < n_cols, other=0.0)

    size = tl.abs(x.to(tl.float32))
    largest = tl.max(tl.where(size == size, size, 0.0), axis=0)  # NaN is ignored

    tl.atomic_max(amax_ptr + (row if PER_ROW else 0), largest, sem="relaxed")


@triton.jit
def quantize_kernel(
    x_ptr, amax_ptr,        # [n_rows, n_cols], and [n_rows] or [1]
    q_ptr, scale_ptr,       # like x but contiguous, and like amax
    stride_xm, stride_xk,
    n_cols,
    LARGEST: tl.constexpr,
    PER_ROW: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """q = x / scale, scale = amax / LARGEST. One program owns BLOCK elements of one row."""
    row = tl.program_id(axis=0).to(tl.int64)
    block = tl.program_id(axis=1)
    cols = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    own = row if PER_ROW else 0

    x = tl.load(x_ptr + row * stride_xm + cols * stride_xk, mask=mask, other=0.0)
    scale = tl.load(amax_ptr + own) / LARGEST
    scale = tl.where(scale > 0.0, scale, 1.0)  # for amax of 0, or too small

    # Values that rounding takes beyond LARGEST become LARGEST; NaN stays NaN.
    q = (x.to(tl.float32) / scale).to(q_ptr.dtype.element_ty)

    tl.store(q_ptr + row * n_cols + cols, q, mask=mask)
    if block == 0 and (PER_ROW or row == 0):
        tl.store(scale_ptr + own, scale)


@triton.jit
def quantize_row_kernel(
    x_ptr, q_ptr, scale_ptr,  # [n_rows, n_cols], like x but contiguous, and [n_rows]
    stride_xm, stride_xk,
    n_cols,
    ALIGN: tl.constexpr,      # a power of two that divides n_cols and stride_xm
    LARGEST: tl.constexpr,
    BLOCK: tl.constexpr,      # a power of two >= n_cols
):
    """q = x / scale, scale = max |x| / LARGEST, of each row. One program owns a row.

    It loads the row once: 3 bytes move per element of 16 bits, instead of 5 in two launches.
    """
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    in_row = tl.max_constancy(cols < n_cols, ALIGN)  # the hints keep loads wide for 5,000 columns
    x_row = x_ptr + tl.multiple_of(row * stride_xm, ALIGN)

    x = tl.load(x_row + cols.to(tl.int64) * stride_xk, mask=in_row, other=0.0).to(tl.float32)

    finite = tl.where(x == x, tl.abs(x), 0.0)  # NaN is ignored
    scale = tl.max(finite, axis=0) / LARGEST
    scale = tl.where(scale > 0.0, scale, 1.0)
    q = (x / scale).to(q_ptr.dtype.element_ty)

    tl.store(q_ptr + tl.multiple_of(row * n_cols, ALIGN) + cols, q, mask=in_row)
    tl.store(scale_ptr + row, scale)


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

    scale = torch.empty(shape, dtype=torch.float32, device=x.device)
    if per_row and n_cols <= WIDEST:
        width = triton.next_power_of_2(n_cols)
        quantize_row_kernel[(n_rows,)](
            x, q, scale, x.stride(0), x.stride(1), n_cols, ALIGN=math.gcd(16, n_cols, x.stride(0)),
            LARGEST=LARGEST, BLOCK=width, num_warps=min(16, max(4, width // 1024)),
        )
        return q, scale

    amax = torch.zeros(shape, dtype=torch.float32, device=x.device)
    block = min(4096, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, block))
    amax_kernel[grid](x, amax, x.stride(0), x.stride(1), n_cols, PER_ROW=per_row, BLOCK=block)
    quantize_kernel[grid](
        x, amax, q, scale, x.stride(0), x.stride(1), n_cols,
        LARGEST=LARGEST, PER_ROW=per_row, BLOCK=block,
    )
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
    GROUP_M: tl.constexpr,        # rows of tiles per group of the tile order
    IMPRECISE: tl.constexpr,      # products that tensor cores may sum before promotion
):
    """c = scale_a * scale_b * (a @ b.T). One program owns BLOCK_M x BLOCK_N elements of c.

    It loads (BLOCK_M + BLOCK_N) * K bytes and the scales of its rows and columns.
    """
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(axis=0)
    pid_m, pid_n = tl.swizzle2d(
        pid // num_pid_n, pid % num_pid_n, num_pid_m, num_pid_n, GROUP_M)
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # row * stride passes 2**31
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    in_m, in_n = offs_m < M, offs_n < N

    # K is contiguous in both, the only layout in which Hopper's tensor cores read 8 bits.
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * stride_bn + offs_k[:, None]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        in_k = offs_k < K - step * BLOCK_K
        a = tl.load(a_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_k[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc, max_num_imprecise_acc=IMPRECISE)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    # Once, after the loop, and one by one: the product of two scales may underflow in float32.
    scale_a = tl.load(scale_a_ptr + offs_m * stride_sm, mask=in_m, other=0.0)
    scale_b = tl.load(scale_b_ptr + offs_n * stride_sn, mask=in_n, other=0.0)
    acc = acc * scale_a[:, None] * scale_b[None, :]
    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


@triton.jit
def persistent_fp8_kernel(
    a_desc, b_desc, c_desc,    # descriptors of a, b and half a tile of c
    scale_a_ptr, scale_b_ptr,  # per row of a and of b, or one for all
    stride_sm, stride_sn,      # from scale to scale, 0 for a single one
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """c = scale_a * scale_b * (a @ b.T). One program owns every num_programs-th tile of c."""
    HALF: tl.constexpr = BLOCK_N // 2
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        tile_m, tile_n = tl.swizzle2d(tile // tiles_n, tile % tiles_n, tiles_m, tiles_n, GROUP_M)
        row, col = tile_m * BLOCK_M, tile_n * BLOCK_N

        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for step in range(tl.cdiv(K, BLOCK_K)):
            a = a_desc.load([row, step * BLOCK_K])
            b = b_desc.load([col, step * BLOCK_K]).T
            acc = tl.dot(a, b, acc, max_num_imprecise_acc=BLOCK_K)

        rows = row + tl.arange(0, BLOCK_M)
        by_row = tl.load(scale_a_ptr + rows * stride_sm, mask=rows < M, other=0.0)
        halves = acc.reshape(BLOCK_M, 2, HALF).permute(0, 2, 1).split()
        for half in tl.static_range(2):  # each needs half the registers
            cols = col + half * HALF + tl.arange(0, HALF)
            by_col = tl.load(scale_b_ptr + cols * stride_sn, mask=cols < N, other=0.0)
            c = halves[half] * by_row[:, None] * by_col[None, :]
            c_desc.store([row, col + half * HALF], c.to(c_desc.dtype))


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
    block_m, block_n, block_k = 128, 128, 128
    tiles = triton.cdiv(M, block_m) * triton.cdiv(N, block_n)
    steps = [scale.stride(0) if scale.dim() else 0 for scale in (scale_a, scale_b)]
    has_tma = (capability() or (9, 0)) >= (9, 0)
    if has_tma and min(M, N) >= LARGE and all(map(is_described, (a_q, b_q_t, c))):
        # With 4 warps, two programs fit on an SM: while one promotes its sums, the other
        # multiplies. Persistent ones are 5 % faster at 8,192 than a program per tile, on an H200.
        persistent_fp8_kernel[(min(tiles, 2 * sm_count(a_q)),)](
            TensorDescriptor.from_tensor(a_q, [block_m, block_k]),
            TensorDescriptor.from_tensor(b_q_t, [block_n, block_k]),
            TensorDescriptor.from_tensor(c, [block_m, block_n // 2]),
            scale_a, scale_b, *steps, M, N, K,
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8,
            num_warps=4, num_stages=3,
        )
        return c
    # Pointers take registers, so that the accumulators need twice the warps.
    matmul_fp8_kernel[(tiles,)](
        a_q, b_q_t, c, scale_a, scale_b, a_q.stride(0), b_q_t.stride(0), *steps, M, N, K,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8, IMPRECISE=block_k,
        num_warps=8, num_stages=3,
    )
    return c


def sm_count(x: torch.Tensor) -> int:
    """Returns the SMs of the GPU of x, or those of an H100 if x is on the CPU."""
    if x.is_cuda:
        return torch.cuda.get_device_properties(x.device).multi_processor_count
    return 132


def is_described(x: torch.Tensor) -> bool:
    """Returns whether TMA can copy x: contiguous rows, aligned to 16 bytes."""
    return x.numel() > 0 and x.stride(1) == 1 and x.data_ptr() % 16 == 0 and (
        x.stride(0) > 0 and x.stride(0) * x.element_size() % 16 == 0)


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
    """Returns a function that multiplies the matrices, which are quantized here, before it."""
    a_q, scale_a = quantize_fp8(a, per_row=True)
    b_q_t, scale_b = quantize_fp8(b_t, per_row=True)
    return lambda: matmul_fp8(a_q, b_q_t, scale_a, scale_b)


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
