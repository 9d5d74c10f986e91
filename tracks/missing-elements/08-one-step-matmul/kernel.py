"""A matrix product in one step: C = A @ B where all of K, at most 64, fits into one block.

    c[m, n] = a[m, 0] * b[0, n] + a[m, 1] * b[1, n] + ... + a[m, K - 1] * b[K - 1, n]

Shapes:  a is (M, K) and b is (K, N) in float16 or bfloat16, K at most 64, with any strides; the
         result is a new contiguous matrix of shape (M, N) with that dtype and device.
Given:   imports, signatures, which rows and columns a program owns, the addresses in C, the host
         function.
Missing: 8 blanks, in three steps with one idea each.
           A the block of A          TODO 1 to 3
           B the block of B          TODO 4 to 6
           C product and result      TODO 7 and 8
         A blank is three dots, `...`.
Graded:  values  as accurate as float32 sums and one rounding allow, for all sizes and strides
         memory  no program touches an element outside a matrix; each element of C is written once
         cost    one launch, tensor cores, no more bytes than tiles of 64 x 128 request
         errors  bad arguments are refused before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/one-step-matmul` runs all.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

MAX_K = 64  # columns of a, rows of b: what one block holds


@triton.jit
def one_step_matmul_kernel(
    a_ptr, b_ptr, c_ptr,       # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,      # distances in elements to the next row, to the next column
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,     # rows of a tile of C, a power of two like the next two
    BLOCK_N: tl.constexpr,     # columns of a tile of C
    BLOCK_K: tl.constexpr,     # at least K, and at least 16
):
    """c[m, n] = sum_k a[m, k] * b[k, n]. One program owns BLOCK_M x BLOCK_N elements of c.

    It reads (BLOCK_M + BLOCK_N) * K elements and stores BLOCK_M * BLOCK_N elements of c.
    """
    pid_m = tl.program_id(axis=0).to(tl.int64)  # row * stride may exceed 2**31 - 1
    pid_n = tl.program_id(axis=1).to(tl.int64)

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)

    a_ptrs = ...  # TODO 1: what is the address of the element at each row m and column k of A?
    a_mask = ...  # TODO 2: which elements of this block exist?
    a = ...  # TODO 3: what is loaded there, and which number do the other elements hold?

    b_ptrs = ...  # TODO 4: what is the address of the element at each row k and column n of B?
    b_mask = ...  # TODO 5: which elements of this block exist?
    b = ...  # TODO 6: what is loaded there, and which number do the other elements hold?

    acc = ...  # TODO 7: what is the product of the two blocks, summed in float32?

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    c_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    ...  # TODO 8: what is stored at c_ptrs, in which dtype, and which elements?


def one_step_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b for two matrices with K <= 64, as a new contiguous matrix of their dtype and device.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: an argument is not a matrix, the inner sizes differ or exceed 64, or the devices
            differ.
    """
    check_arguments(a, b)
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel() == 0:
        return c  # no row or no column: no program, no launch

    block_m, block_n = 64, 128
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n))
    one_step_matmul_kernel[grid](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=MAX_K,
    )
    return c


def check_arguments(a: torch.Tensor, b: torch.Tensor) -> None:
    """Refuses what the contract does not cover, before anything is allocated or launched.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: an argument is not a matrix, the inner sizes differ or exceed 64, or the devices
            differ.
    """
    for name, tensor in (("a", a), ("b", b)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
        if tensor.dtype not in (torch.float16, torch.bfloat16):
            raise TypeError(f"{name}: expected torch.float16 or torch.bfloat16, got {tensor.dtype}")
        if tensor.dim() != 2:
            raise ValueError(f"{name}: expected 2 dimensions, got {tensor.dim()} in shape "
                             f"{tuple(tensor.shape)}")
    if b.dtype != a.dtype:
        raise TypeError(f"b: expected {a.dtype} like a, got {b.dtype}")
    if b.shape[0] != a.shape[1]:
        raise ValueError(f"b: expected {a.shape[1]} rows, as many as a has columns, got shape "
                         f"{tuple(b.shape)} for a of shape {tuple(a.shape)}")
    if a.shape[1] > MAX_K:
        raise ValueError(f"a: expected at most {MAX_K} columns, got shape {tuple(a.shape)}")
    if b.device != a.device:
        raise ValueError(f"b: expected device {a.device} like a, got {b.device}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
