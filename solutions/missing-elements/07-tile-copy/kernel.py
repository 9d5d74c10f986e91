"""Copying a matrix by tiles: out[m, n] = x[m, n], whatever the strides of x.

Every program copies one tile of BLOCK_M x BLOCK_N elements; a mask cuts the tiles at the lower and
the right edge.

Cost: every element is read once and written once: 2 * M * N * itemsize bytes and no arithmetic.

Inputs: a matrix with any strides, in float32, float16, bfloat16, int32 or int64. The second axis
of the grid has at most 65,535 programs, so there are at most 4,194,240 columns.
Result: a new contiguous matrix of that shape, dtype and device, like ``x.contiguous()``.

Source: the two-dimensional block of pointers is that of the third tutorial in Triton's
documentation.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def tile_copy_kernel(
    x_ptr, out_ptr,            # [M, N]
    M, N,
    stride_xm, stride_xn,      # distances in elements to the next row, to the next column
    stride_om, stride_on,
    BLOCK_M: tl.constexpr,     # rows of a tile, a power of two
    BLOCK_N: tl.constexpr,     # columns of a tile, a power of two
):
    """out[m, n] = x[m, n]. One program owns a tile of BLOCK_M x BLOCK_N elements.

    Moves 2 * M * N * itemsize bytes: one load and one store per element.
    """
    pid_m = tl.program_id(axis=0).to(tl.int64)  # row * stride may exceed 2**31 - 1
    pid_n = tl.program_id(axis=1).to(tl.int64)

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)

    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn
    out_ptrs = out_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)

    tile = tl.load(x_ptrs, mask=mask)

    tl.store(out_ptrs, tile, mask=mask)


def tile_copy(x: torch.Tensor) -> torch.Tensor:
    """A contiguous copy of a matrix with any strides.

    Raises:
        TypeError: x is not a tensor, or its dtype is unsupported.
        ValueError: x does not have two dimensions.
    """
    check_argument(x)
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out  # no row or no column: no program, no launch

    # At least 16 elements each way: with 2-byte elements that is a whole 32-byte sector in a row
    # of a row-major matrix, and in a column of a transposed one.
    block_m, block_n = 32, 64
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n))
    tile_copy_kernel[grid](
        x, out, M, N, x.stride(0), x.stride(1), out.stride(0), out.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n,
    )
    return out


def check_argument(x: torch.Tensor) -> None:
    """Refuses what the contract does not cover, before anything is allocated or launched.

    Raises:
        TypeError: x is not a tensor, or its dtype is unsupported.
        ValueError: x does not have two dimensions.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a torch.Tensor, got {type(x).__name__}")
    supported = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)
    if x.dtype not in supported:
        names = ", ".join(str(dtype) for dtype in supported)
        raise TypeError(f"x: expected one of {names}, got {x.dtype}")
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got {x.dim()} in shape {tuple(x.shape)}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
