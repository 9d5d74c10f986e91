"""Three correct functions, each with one configuration and one program per piece of work.

    c[m, n] = sum_k a[m, k] * b[k, n]      out[m] = softmax(x[m])      x[m, :] *= s[m]

Shapes:  a (M, K), b (K, N) in float16 or bfloat16, of any strides; x (R, C), s (R) in float32,
         float16 or bfloat16. `scale_rows_` works in place and returns x itself.
Given:   all argument checks, and correct kernels.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question.
           search space  DECIDE 1 and 2             autotuners  DECIDE 3 and 10
           persistent product  DECIDE 4 to 7        persistent softmax  DECIDE 8 and 9
Graded:  values   correct for every number of programs and every configuration, as in the given code
         space    12 to 48 configurations, of which `prune_configs` keeps exactly those that its
                  docstring describes
         cost     the requested number of programs, one launch, tensor cores, a pipeline, no spills
         numbers  in `PREDICT`; a wrong number is explained and fails nothing

`python kernel.py` runs four public cases, `tritonlab grade track2/advanced-optimizations` runs all.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

SMEM_LIMIT = 232_448  # bytes of shared memory per program on an H100 or H200
MAX_ACCUMULATORS = 128  # per thread, which has 255 registers
SM_COUNT = 132  # SMs of an H100 or H200; used if no GPU is present
MAX_COLUMNS = 65_536  # of softmax; as float32 they fill the registers of an SM

# Replace each None by a number before you measure.
PREDICT = {
    # 1,000 tiles are numbered from 0, and each of 132 programs takes every 132nd, from its own id.
    # How many tiles does program 5 take?
    "visits": None,
    # A product of 4,096 x 4,096 times 4,096 x 4,096 has tiles of 128 x 256, one per program. How
    # many waves is that on 132 SMs that hold one such program at a time?
    "waves": None,
    # Which share of the SMs is busy in the last of these waves (0 to 1)?
    "last_wave": None,
    # How many bytes of shared memory do three stages of 128 x 256 x 64 in float16 take?
    "stage_bytes": None,
    # And how many accumulators of such a tile does each thread of 8 warps hold?
    "accumulators": None,
    # An autotuner tries four configurations, once each, of a kernel that scales x by s in place,
    # and then makes the call itself. Without precautions, x becomes x * s ** n. What is n?
    "power": None,
}


# ---------------------------------------------------------------------------------------------
# A search space


def make_configs() -> list[triton.Config]:
    """Returns 12 to 48 different configurations of the product: tiles, stages and warps.

    They include all tiles of 64 or 128 rows, 64 or 256 columns and steps of 32 or 64.
    """
    # DECIDE 1: there is one small tile and nothing to choose from. Which tiles, numbers of stages
    #           and numbers of warps are worth a trial? Which of these are parameters of the kernel,
    #           and which are options of the launch?
    return [triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}, num_stages=1, num_warps=4)]


def prune_configs(
    configs: list[triton.Config], named_args: dict[str, Any], *, smem_limit: int = SMEM_LIMIT,
    **kwargs: Any,
) -> list[triton.Config]:
    """Returns the ``configs`` that are worth a trial for this problem, in their order.

    Drops tiles with a side longer than the next power of two of the matrix side, tiles whose stages
    need more than ``smem_limit`` bytes for 2-byte elements, and tiles of which a thread would hold
    more than ``MAX_ACCUMULATORS`` accumulators. If none is left, returns the one that needs the
    least shared memory, and of several the first.

    Args:
        configs: with BLOCK_M, BLOCK_N and BLOCK_K among their kwargs.
        named_args: the kernel's arguments by name, including M, N and K.
        smem_limit: bytes of shared memory available to a program.
        kwargs: further arguments from Triton: grid, meta-parameters, launch options.
    """
    # DECIDE 2: everything is kept, including configurations that cannot run. What is each rule in
    #           numbers, and what is left for matrices that are smaller than every tile?
    return list(configs)


# ---------------------------------------------------------------------------------------------
# The matrix product


# DECIDE 3: this kernel is launched with one configuration. Which decorator chooses among those of
#           `make_configs`, what drops some of them first, and on which arguments does the choice
#           depend?
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # in elements: from row to row, from column to column
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,    # rows of a tile of C, a power of two like the next two
    BLOCK_N: tl.constexpr,    # columns of a tile of C
    BLOCK_K: tl.constexpr,    # columns of A and rows of B per step
):
    """c[m, n] = sum_k a[m, k] * b[k, n]. One program owns one tile of c.

    It loads (BLOCK_M + BLOCK_N) * K elements and stores BLOCK_M * BLOCK_N.
    """
    # DECIDE 4: a program ends after one tile, and another one starts. If 132 programs stay, which
    #           tiles does program 5 take, and which loop visits them?
    # DECIDE 5: the grid has two axes here. How does one tile number become a row and a column of
    #           tiles, and in which order are the tiles visited?
    pid_m = tl.program_id(axis=0)
    pid_n = tl.program_id(axis=1)

    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # row * stride passes 2**31
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_m = offs_m < M
    in_n = offs_n < N
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    a_step = tl.cast(BLOCK_K, tl.int64) * stride_ak  # in a transposed view that passes 2**31
    b_step = tl.cast(BLOCK_K, tl.int64) * stride_bk

    # DECIDE 6: which of these values belong to the program, which to each tile, and which to each
    #           step? Consider the accumulator, the pointers and the store.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        in_k = offs_k < K - step * BLOCK_K
        a = tl.load(a_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_k[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += a_step
        b_ptrs += b_step

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


def matmul_persistent(
    a: torch.Tensor, b: torch.Tensor, *, num_sms: int | None = None
) -> torch.Tensor:
    """Returns a @ b, computed by at most ``num_sms`` programs, as a new contiguous tensor.

    Args:
        a, b: matrices (M, K) and (K, N) of float16 or bfloat16, of any strides.
        num_sms: programs to start, if there are as many tiles; None for one per SM.

    Raises:
        TypeError: an argument is not a tensor, the dtypes are unsupported or differ, or ``num_sms``
            is not an int.
        ValueError: an argument is not a matrix, the inner sizes or devices differ, or
            ``num_sms`` is below 1.
    """
    check_matrices(a, b)
    check_count("num_sms", num_sms)
    M, K = a.shape
    N = b.shape[1]
    if M == 0 or N == 0 or K == 0:
        return torch.zeros((M, N), dtype=a.dtype, device=a.device)  # an empty sum is zero

    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    # DECIDE 7: `num_sms` is checked and then ignored. How many programs start if the number of
    #           tiles depends on a configuration that is chosen later?
    block_m, block_n, block_k = 64, 64, 32
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n))
    matmul_kernel[grid](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_stages=1, num_warps=4,
    )
    return c


# ---------------------------------------------------------------------------------------------
# Softmax


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols], each row contiguous
    n_rows, n_cols,
    stride_x, stride_out,      # in elements, from row to row
    BLOCK_SIZE: tl.constexpr,  # elements per program, a power of two >= n_cols
):
    """out[m] = exp(x[m] - max(x[m])) / sum of it. One program owns row m.

    Moves 2 * n_rows * n_cols * itemsize bytes: each element is loaded once and stored once.
    """
    # DECIDE 8: a program computes one row. Which values change with the row, and which does a
    #           program that stays compute once?
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    at = row.to(tl.int64)  # row * stride passes 2**31 in large matrices
    x = tl.load(x_ptr + at * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)

    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator * (1.0 / tl.sum(numerator, axis=0))

    tl.store(out_ptr + at * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def persistent_softmax(x: torch.Tensor, *, num_programs: int | None = None) -> torch.Tensor:
    """Returns softmax over dim 1, by at most ``num_programs`` programs, as a contiguous tensor.

    Args:
        x: a matrix of float32, float16 or bfloat16 with at most ``MAX_COLUMNS`` columns.
        num_programs: programs to start, if there are as many rows; None for as many as the SMs
            hold at a time.

    Raises:
        TypeError: x is not a tensor, its dtype is unsupported, or ``num_programs`` is not an int.
        ValueError: x is not a matrix or too wide, or ``num_programs`` is below 1.
    """
    check_rows(x)
    check_count("num_programs", num_programs)
    if x.stride(1) != 1:
        x = x.contiguous()  # the kernel takes one stride, from row to row
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)  # contiguous for any strides of x
    if out.numel() == 0:
        return out

    block_size = triton.next_power_of_2(n_cols)
    num_warps = 16 if block_size > 32_768 else max(2, block_size // 1024)
    # DECIDE 9: `num_programs` is ignored. None means as many programs as the SMs hold at a time:
    #           what limits that number?
    softmax_kernel[(n_rows,)](
        x, out, n_rows, n_cols, x.stride(0), out.stride(0),
        BLOCK_SIZE=block_size, num_warps=num_warps,
    )
    return out


# ---------------------------------------------------------------------------------------------
# Scaling in place


# DECIDE 10: an autotuner with at least four block sizes would find a better one than 128. It runs
#            each of them on the caller's tensors: what does that do to x, and what prevents it?
@triton.jit
def scale_rows_kernel(
    x_ptr, s_ptr,              # [n_rows, n_cols] with any strides, [n_rows]
    n_cols,
    stride_xm, stride_xn, stride_s,
    BLOCK_SIZE: tl.constexpr,  # columns per program, a power of two
):
    """x[m, n] *= s[m]. One program owns BLOCK_SIZE columns of row m.

    Moves 2 * n_rows * n_cols * itemsize bytes, and one factor per program.
    """
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    cols = tl.program_id(axis=1).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    x_ptrs = x_ptr + row * stride_xm + cols * stride_xn
    x = tl.load(x_ptrs, mask=mask).to(tl.float32)
    s = tl.load(s_ptr + row * stride_s).to(tl.float32)

    tl.store(x_ptrs, (x * s).to(x_ptr.dtype.element_ty), mask=mask)


def scale_rows_(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Multiplies each row of ``x`` by its factor, in place; returns ``x`` itself.

    Args:
        x: a matrix (R, C) of float32, float16 or bfloat16, of any strides without overlap.
        s: R factors of the same dtype, of any stride.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: x is not a matrix, s is not a vector with an element per row, or the devices
            differ.
    """
    check_factors(x, s)
    if x.numel() == 0:
        return x
    n_rows, n_cols = x.shape

    grid = (n_rows, triton.cdiv(n_cols, 128))
    scale_rows_kernel[grid](
        x, s, n_cols, x.stride(0), x.stride(1), s.stride(0), BLOCK_SIZE=128
    )
    return x


# ---------------------------------------------------------------------------------------------
# Helpers


def sm_count(x: torch.Tensor) -> int:
    """Returns the SMs of the GPU of x, or those of an H100 if x is on the CPU."""
    if x.is_cuda:
        return torch.cuda.get_device_properties(x.device).multi_processor_count
    return SM_COUNT


def check_count(name: str, count: int | None) -> None:
    """Refuses a number of programs that cannot be started.

    Raises:
        TypeError: it is neither None nor an int.
        ValueError: it is below 1.
    """
    if count is None:
        return
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{name}: expected an int or None, got {type(count).__name__}")
    if count < 1:
        raise ValueError(f"{name}: expected at least 1, got {count}")


def check_tensor(name: str, x: torch.Tensor, supported: tuple[torch.dtype, ...], dims: int) -> None:
    """Refuses arguments that are not a tensor of these dtypes with ``dims`` dimensions.

    Raises:
        TypeError: it is not a tensor, or of another dtype.
        ValueError: it has another number of dimensions.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in supported:
        names = ", ".join(str(dtype) for dtype in supported)
        raise TypeError(f"{name}: expected one of {names}, got {x.dtype}")
    if x.dim() != dims:
        raise ValueError(f"{name}: expected {dims} dimension{'s' * (dims > 1)}, got {x.dim()} in "
                         f"shape {tuple(x.shape)}")


def check_alike(name: str, x: torch.Tensor, other_name: str, other: torch.Tensor) -> None:
    """Refuses a tensor whose dtype or device differs from another one's.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the devices differ.
    """
    if x.dtype != other.dtype:
        raise TypeError(f"{name}: expected {other.dtype} like {other_name}, got {x.dtype}")
    if x.device != other.device:
        raise ValueError(f"{name}: expected device {other.device} like {other_name}, got "
                         f"{x.device}")


def check_matrices(a: torch.Tensor, b: torch.Tensor) -> None:
    """Refuses arguments outside the contract of ``matmul_persistent``."""
    check_tensor("a", a, (torch.float16, torch.bfloat16), 2)
    check_tensor("b", b, (torch.float16, torch.bfloat16), 2)
    if b.shape[0] != a.shape[1]:
        raise ValueError(f"b: expected {a.shape[1]} rows, as many as a has columns, got shape "
                         f"{tuple(b.shape)} for a of shape {tuple(a.shape)}")
    check_alike("b", b, "a", a)


def check_rows(x: torch.Tensor) -> None:
    """Refuses arguments outside the contract of ``persistent_softmax``."""
    check_tensor("x", x, (torch.float32, torch.float16, torch.bfloat16), 2)
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"x: expected at most {MAX_COLUMNS} columns, got {x.shape[1]}")


def check_factors(x: torch.Tensor, s: torch.Tensor) -> None:
    """Refuses arguments outside the contract of ``scale_rows_``."""
    supported = (torch.float32, torch.float16, torch.bfloat16)
    check_tensor("x", x, supported, 2)
    check_tensor("s", s, supported, 1)
    if s.shape[0] != x.shape[0]:
        raise ValueError(f"s: expected {x.shape[0]} factors, as many as x has rows, got shape "
                         f"{tuple(s.shape)} for x of shape {tuple(x.shape)}")
    check_alike("s", s, "x", x)


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
