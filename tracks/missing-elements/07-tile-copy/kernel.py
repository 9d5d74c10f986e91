"""Copying a matrix by tiles: out[m, n] = x[m, n], whatever the strides of x.

Shapes:  x is (M, N) in float32, float16, bfloat16, int32 or int64, with any strides; the result is
         a new contiguous matrix of that shape, dtype and device, like `x.contiguous()`.
Given:   imports, signatures, the size of a tile, the load and the store, and the argument checks.
Missing: 8 blanks, in three steps with one idea each.
           A which tile              TODO 1 to 3
           B addresses and mask      TODO 4 to 6
           C host                    TODO 7 and 8
         A blank is three dots, `...`.
Graded:  values  every element is copied bit for bit, for every size, layout and dtype
         memory  no program touches an element outside the matrix; each is written once
         cost    one launch, 2 * M * N * itemsize bytes, in whole 32-byte sectors
         errors  bad arguments are refused before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/tile-copy` runs all of them.
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
    pid_n = ...  # TODO 1: in which column of tiles is this program? (64 bits, as above)

    offs_m = ...  # TODO 2: which rows of the matrix does the tile cover?
    offs_n = ...  # TODO 3: which columns of the matrix does it cover?

    x_ptrs = ...  # TODO 4: what is the address in x of the element at each row and column?
    out_ptrs = ...  # TODO 5: what is its address in out?
    mask = ...  # TODO 6: which elements of the tile are inside the matrix?

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
    grid = ...  # TODO 7: how many rows and how many columns of tiles are there?
    # The kernel takes two tensors, two sizes, two strides of each tensor, and the size of a tile.
    ...  # TODO 8: how is it launched on that grid?
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
