"""Matrix multiplication: C = A @ B for matrices of any size and strides, accumulated in float32.

    c[m, n] = sum_k a[m, k] * b[k, n]

Every program owns one tile of C. In each step along K it loads a tile of A and a tile of B and adds
their product to an accumulator, which is stored once at the end.

Cost: 2 * M * N * K FLOP. A is loaded once per column of tiles and B once per row of tiles:
(M * K * ceil(N / BLOCK_N) + K * N * ceil(M / BLOCK_M) + M * N) * itemsize bytes. A tile of
128 x 256 in float16 has an arithmetic intensity of 85 FLOP/B; a tile of one element, 0.5 FLOP/B.

Inputs: a of shape (M, K) and b of shape (K, N) in float16, bfloat16 or float32, with any strides;
nothing is copied. If M or N is 0 the result is empty; if K is 0 it is zero.
Result: a new contiguous tensor of shape (M, N) with that dtype and device.

Precision: products and sums are float32, rounded once at the store. Tensor cores would round
float32 inputs to TF32, with a 10-bit mantissa, so they are multiplied in full precision instead.

Source: the third tutorial of Triton's documentation (tiles, grouped order, advancing pointers),
with masks instead of wrapped indices, 64-bit offsets and full float32 precision, so that it is
correct for every matrix.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # elements from one row, or column, to the next
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,    # rows of a tile of C; all three are powers of two
    BLOCK_N: tl.constexpr,    # columns of a tile of C
    BLOCK_K: tl.constexpr,    # columns of A and rows of B per step, at least 16
    GROUP_M: tl.constexpr,    # rows of tiles per group; programs go down the columns of a group
):
    """c[m, n] = sum_k a[m, k] * b[k, n]. One program owns BLOCK_M x BLOCK_N elements of c.

    It loads (BLOCK_M + BLOCK_N) * K elements and stores BLOCK_M * BLOCK_N.
    """
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    group_tiles = GROUP_M * num_pid_n
    first_pid_m = pid // group_tiles * GROUP_M
    group_height = min(num_pid_m - first_pid_m, GROUP_M)  # the last group may have fewer rows
    local = pid % group_tiles
    pid_m = first_pid_m + local % group_height
    pid_n = local // group_height

    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # row * stride may reach 2**31
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)

    # Everything that all steps share is computed before the loop; the loop only advances pointers.
    steps = tl.cdiv(K, BLOCK_K)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    in_m = offs_m < M
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    in_n = offs_n < N
    a_step = tl.cast(BLOCK_K, tl.int64) * stride_ak  # may exceed 2**31 - 1 in a transposed view
    b_step = tl.cast(BLOCK_K, tl.int64) * stride_bk

    for step in range(steps):
        in_k = offs_k < K - step * BLOCK_K
        a = tl.load(a_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0)  # neutral for a sum
        b = tl.load(b_ptrs, mask=in_k[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")  # not TF32; no effect in 16 bits
        a_ptrs += a_step
        b_ptrs += b_step

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    c_mask = in_m[:, None] & in_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=c_mask)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns a @ b for two matrices, as a new contiguous tensor of their dtype and device.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: an argument is not a matrix, or the inner sizes or the devices differ.
    """
    check_arguments(a, b)
    M, K = a.shape
    N = b.shape[1]

    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel() == 0:
        return c  # no rows or no columns, nothing to launch

    # Each thread keeps its part of the accumulator in registers: 128 float32 numbers for a tile of
    # 128 x 256 and 8 warps. Without tensor cores, a and b need registers as well, so the tiles of
    # float32 are smaller. The largest tiles pay off once there are enough of them, 128 here, to
    # keep all SMs busy.
    if a.dtype == torch.float32:
        block_m, block_n, block_k = 128, 64, 16
    elif M * N < 2_048 * 2_048:
        block_m, block_n, block_k = 128, 128, 64
    else:
        block_m, block_n, block_k = 128, 256, 64
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    matmul_kernel[grid](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8, num_warps=8,
    )
    return c


def check_arguments(a: torch.Tensor, b: torch.Tensor) -> None:
    """Rejects unsupported arguments, before anything is allocated or launched.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: an argument is not a matrix, or the inner sizes or the devices differ.
    """
    supported = (torch.float16, torch.bfloat16, torch.float32)
    for name, tensor in (("a", a), ("b", b)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
        if tensor.dtype not in supported:
            names = ", ".join(str(dtype) for dtype in supported)
            raise TypeError(f"{name}: expected one of {names}, got {tensor.dtype}")
        if tensor.dim() != 2:
            raise ValueError(f"{name}: expected 2 dimensions, got {tensor.dim()} in shape "
                             f"{tuple(tensor.shape)}")
    if b.dtype != a.dtype:
        raise TypeError(f"b: expected {a.dtype} like a, got {b.dtype}")
    if b.shape[0] != a.shape[1]:
        raise ValueError(f"b: expected {a.shape[1]} rows, as many as a has columns, got shape "
                         f"{tuple(b.shape)} for a of shape {tuple(a.shape)}")
    if b.device != a.device:
        raise ValueError(f"b: expected device {a.device} like a, got {b.device}")


# ---------------------------------------------------------------------------------------------
# Going further: rows that are not multiples of 16 elements
#
# A thread copies 16 bytes of a row at once only if Triton knows that rows start at multiples of 16
# bytes, which it does not of sizes such as 5,000 = 8 * 625. Since Hopper, GPUs have a unit that
# copies whole tiles, the Tensor Memory Accelerator (TMA). It needs a descriptor of the matrix, rows
# that start at multiples of 16 bytes, and no masks: elements outside are loaded as zero and not
# stored. See track2/tensor-descriptors. Rows of 4,101 elements do not start there. Copies with a
# gap after each row do, and cost little beside M * N * K products.


@triton.jit
def described_kernel(
    a_desc, b_desc, c_desc,   # descriptors of tiles of [M, K], [K, N] and [M, N]
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """c = a @ b. One program owns BLOCK_M x BLOCK_N elements of c."""
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(axis=0)
    tile_m, tile_n = tl.swizzle2d(pid // tiles_n, pid % tiles_n, tiles_m, tiles_n, GROUP_M)
    row, col = tile_m * BLOCK_M, tile_n * BLOCK_N

    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([row, k])
        b = b_desc.load([k, col])
        acc = tl.dot(a, b, acc)

    c_desc.store([row, col], acc.to(c_desc.dtype))


def matmul_any_size(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns ``matmul(a, b)``, also fast for large 16-bit matrices of any size.

    Share of the speed of torch.matmul in `matmul` and here, H200, float16: 4,096 x 6,000 by
    6,000 x 5,000, 29 % and 85 %; 8,192 x 512 by 512 x 8,192, 76 % and 91 %.
    """
    check_arguments(a, b)
    (M, K), N = a.shape, b.shape[1]
    strided = a.stride(1) != 1 or b.stride(1) != 1
    if a.dtype == torch.float32 or min(M, N, K) < 512 or strided or not has_tma(a):
        return matmul(a, b)

    if not on_16_bytes(a):
        a = with_gaps(a, M, K).copy_(a)
    if not on_16_bytes(b):
        b = with_gaps(b, K, N).copy_(b)
    c = with_gaps(a, M, N)
    # A program with a wide tile has an SM to itself, and nothing multiplies while it stores. That
    # is worth it for long sums: with 512 terms, smaller tiles are 12 % faster.
    block_m, block_n, block_k, num_warps, num_stages = 128, 128, 64, 4, 3
    if K >= 1024 and M * N >= 2_048 * 2_048:
        block_n, num_warps, num_stages = 256, 8, 4
    described_kernel[(triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)](
        TensorDescriptor.from_tensor(a, [block_m, block_k]),
        TensorDescriptor.from_tensor(b, [block_k, block_n]),
        TensorDescriptor.from_tensor(c, [block_m, block_n]),
        M, N, K, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=4,
        num_warps=num_warps, num_stages=num_stages,
    )
    return c.contiguous()


def on_16_bytes(x: torch.Tensor) -> bool:
    """Returns whether the rows of a 16-bit matrix start at different multiples of 16 bytes."""
    return x.data_ptr() % 16 == 0 and x.stride(0) % 8 == 0 and x.stride(0) > 0


def with_gaps(like: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Returns a new 16-bit matrix whose rows start at multiples of 16 bytes."""
    return like.new_empty((rows, triton.cdiv(columns, 8) * 8))[:, :columns]


def has_tma(x: torch.Tensor) -> bool:
    """Returns whether the GPU of x has TMA (Hopper or later); True if x is on the CPU."""
    return not x.is_cuda or torch.cuda.get_device_capability(x.device) >= (9, 0)


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
