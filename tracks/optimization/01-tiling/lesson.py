"""Worked example: a copy into padded rows, with sectors counted and times measured per tile."""

from __future__ import annotations

import os

import numpy as np
import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
SECTOR = 32  # bytes


@triton.jit
def pad_rows_kernel(
    x_ptr, out_ptr,                  # [n_rows, n_cols] and [n_rows, width], contiguous
    n_rows, n_cols, width,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,  # rows and columns of a tile
):
    """out[m, n] = x[m, n] if x has that column, otherwise 0. One program owns one tile of out.

    Loads n_rows * n_cols and stores n_rows * width elements.
    """
    # Who am I? The grid has two axes here, so a program has two ids: one for rows, one for
    # columns, and needs no division.
    row_tile = tl.program_id(axis=0)
    col_tile = tl.program_id(axis=1)

    # What is mine? Two vectors describe a tile: the indices of its rows and those of its columns.
    rows = row_tile * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = col_tile * BLOCK_N + tl.arange(0, BLOCK_N)

    # [:, None] makes a column of the first vector and [None, :] a row of the second. Wherever the
    # two meet in an operation, both are broadcast to a block of BLOCK_M x BLOCK_N.
    rows = rows[:, None]
    cols = cols[None, :]

    # Two masks: the elements of x and those of the result. Both are blocks, too.
    in_x = (rows < n_rows) & (cols < n_cols)
    in_out = (rows < n_rows) & (cols < width)

    # Along `cols` addresses grow by one element, along `rows` by a whole row of the matrix. This
    # decides which sectors move: a step of `cols` usually stays within a sector, a step of `rows`
    # rarely does.
    x = tl.load(x_ptr + rows * n_cols + cols, mask=in_x, other=0.0)
    tl.store(out_ptr + rows * width + cols, x, mask=in_out)


def pad_rows(x: torch.Tensor, width: int, block_m: int, block_n: int) -> torch.Tensor:
    """Returns the rows of a contiguous matrix, padded with zeros to ``width`` columns."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, width, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(n_rows, block_m), triton.cdiv(width, block_n))
    pad_rows_kernel[grid](x, out, n_rows, n_cols, width, BLOCK_M=block_m, BLOCK_N=block_n)
    return out


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """out[i] = 2 * x[i], for the experiment with block sizes."""
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, 2 * x, mask=offs < n)


def sectors_of_a_tile(width: int, itemsize: int, block_m: int, block_n: int) -> int:
    """Returns the number of sectors of a whole tile in the corner of a matrix."""
    rows, cols = np.meshgrid(np.arange(block_m), np.arange(block_n), indexing="ij")
    addresses = (rows * width + cols) * itemsize
    return len(np.unique(addresses // SECTOR))


def show_tiles(width: int) -> None:
    """Prints a corner of a float32 matrix and the sectors of three small tiles."""
    print(f"1. A matrix of float32, {width} columns wide: a row is {width * 4 // SECTOR} sectors "
          f"of 32 bytes.")
    print("   # is in the tile, + shares a sector with it and moves too.")
    for block_m, block_n in ((1, 8), (8, 1), (4, 4)):
        print(f"\n   a tile of {block_m} x {block_n}")
        for row in range(8):
            marks = []
            for col in range(width):
                sector_used = row < block_m and col // 8 * 8 < block_n
                marks.append("#" if row < block_m and col < block_n
                             else "+" if sector_used else ".")
            pieces = ["".join(marks[start:start + 8]) for start in range(0, width, 8)]
            print(f"   row {row}  {' '.join(pieces)}")
        sectors = sectors_of_a_tile(width, 4, block_m, block_n)
        print(f"   {block_m * block_n * 4} bytes wanted, {sectors} x 32 = {sectors * SECTOR} bytes "
              f"moved: {block_m * block_n * 4 / (sectors * SECTOR):.1%}")


def count_shares(width: int, tiles: list[tuple[int, int]]) -> None:
    """Prints the share of their sectors' bytes that tiles use, by dtype."""
    print("   tile          " + "".join(f"{name:>10}" for name in ("int8", "float16", "float32",
                                                                  "int64")))
    for block_m, block_n in tiles:
        cells = []
        for itemsize in (1, 2, 4, 8):
            sectors = sectors_of_a_tile(width, itemsize, block_m, block_n)
            cells.append(f"{block_m * block_n * itemsize / (sectors * SECTOR):10.1%}")
        print(f"   {block_m:4d} x {block_n:<4d}   {''.join(cells)}")


def check(n_rows: int, n_cols: int, width: int, tiles: list[tuple[int, int]]) -> None:
    """Prints whether every tile gives the right result."""
    x = torch.randn(n_rows, n_cols, device=DEVICE)
    expected = torch.zeros(n_rows, width, device=DEVICE)
    expected[:, :n_cols] = x
    for block_m, block_n in tiles:
        programs = triton.cdiv(n_rows, block_m) * triton.cdiv(width, block_n)
        same = torch.equal(pad_rows(x, width, block_m, block_n), expected)
        print(f"   {block_m:4d} x {block_n:<4d} {programs:6,d} programs   "
              f"{'equal' if same else 'NOT equal'} to the copy that PyTorch makes")


def count_blocks(n: int, sizes: list[int]) -> None:
    """Prints the programs and the elements per thread of each block size."""
    print("   block   programs   threads of a program   elements of a thread")
    for block in sizes:
        share = f"{block // 128}" if block >= 128 else f"1, held by {128 // block} threads"
        print(f"   {block:5d} {triton.cdiv(n, block):10,d} {128:22d}   {share:>20}")


def measure_tiles(n_rows: int, n_cols: int, width: int, tiles: list[tuple[int, int]]) -> None:
    """Prints time and bandwidth of each tile on this GPU."""
    x = torch.randn(n_rows, n_cols, device=DEVICE)
    gigabytes = n_rows * (n_cols + width) * 4 / 1e9
    print(f"   {n_rows:,d} x {n_cols:,d} floats into {width:,d} columns on "
          f"{torch.cuda.get_device_name()}")
    for block_m, block_n in tiles:
        ms = triton.testing.do_bench(
            lambda m=block_m, n=block_n: pad_rows(x, width, m, n), return_mode="median")
        print(f"   {block_m:4d} x {block_n:<4d} {ms:8.3f} ms {gigabytes / ms * 1e3:6.0f} GB/s")


def measure_blocks(n: int, sizes: list[int]) -> None:
    """Prints time and bandwidth of each block size on this GPU."""
    x = torch.randn(n, device=DEVICE)
    out = torch.empty_like(x)
    for block in sizes:
        grid = (triton.cdiv(n, block),)
        ms = triton.testing.do_bench(
            lambda b=block, g=grid: scale_kernel[g](x, out, n, BLOCK_SIZE=b),
            return_mode="median")
        print(f"   {block:5d} {ms:8.3f} ms {8 * n / 1e6 / ms:6.0f} GB/s")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    show_tiles(width=16)

    tiles = [(1, 1024), (1024, 1), (2, 512), (8, 128), (32, 32), (128, 8), (256, 4)]
    print("\n2. What share of the bytes of its sectors does a tile of 1,024 elements use?")
    count_shares(4096, tiles)
    print("   A tile may have few rows, as long as each fills sectors. A copy both")
    print("   loads and stores along rows. A transpose needs tiles that fill sectors both ways.")

    print("\n3. Every tile gives the same result. A matrix of 100 x 90, padded to 96 columns:")
    check(100, 90, 96, [(1, 64), (64, 1), (8, 32), (32, 32)])

    n, sizes = 1 << 24, [64, 128, 256, 512, 1024, 2048]
    print(f"\n4. Block sizes of a kernel over {n:,d} elements, with 4 warps:")
    count_blocks(n, sizes)
    print("   A GPU allows 1,024 threads per program. That limits warps to 32. It does not")
    print("   limit a Triton block, whose elements are distributed over the threads.")

    print("\n5. How long does it take?")
    if HAS_GPU:
        measure_tiles(16_384, 4_000, 4_096, tiles)
        print()
        measure_blocks(1 << 27, sizes)
    else:
        print("   No time is measured here: the interpreter runs programs one after another")
        print("   with NumPy. The sectors are the same on a GPU. `tritonlab inspect` counts those")
        print("   of your kernel line by line, and predicts a time for a GPU that you name.")


if __name__ == "__main__":
    main()
