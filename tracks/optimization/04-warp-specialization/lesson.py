"""Worked example: a transpose with a grouped order of tiles: drawn, counted and timed."""

from __future__ import annotations

import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
AT_ONCE = 132  # programs: one for each SM of an H100 or H200


@triton.jit
def transpose_kernel(
    x_ptr, out_ptr,        # [M, N] and [N, M], contiguous
    owner_ptr,             # [tiles down, tiles across]: the program of each tile
    M, N,
    BLOCK: tl.constexpr,   # rows and columns of a tile
    GROUP: tl.constexpr,   # rows of tiles per group
):
    """out[n, m] = x[m, n]. One program owns one tile."""
    # Who am I? The grid has one axis, so the programs have one id each, and a GPU starts them
    # in the order of these ids. Division and remainder of an id give row-major order.
    pid = tl.program_id(axis=0)
    down, across = tl.cdiv(M, BLOCK), tl.cdiv(N, BLOCK)
    row, col = pid // across, pid % across

    # Triton has a function that reorders the same tiles: GROUP rows of tiles become a band,
    # and ids go down a column of the band before they continue with its next column.
    row, col = tl.swizzle2d(row, col, down, across, GROUP)
    tl.store(owner_ptr + row * across + col, pid)

    # Nothing below depends on the order. It decides which program owns a tile, and never the
    # result.
    rows = row * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = col * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (rows < M) & (cols < N)
    tile = tl.load(x_ptr + rows * N + cols, mask=inside)
    tl.store(out_ptr + cols * M + rows, tile, mask=inside)


def transpose(x: torch.Tensor, block: int, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the transpose of a contiguous matrix, and the program of each tile."""
    m, n = x.shape
    down, across = triton.cdiv(m, block), triton.cdiv(n, block)
    out = torch.empty(n, m, dtype=x.dtype, device=x.device)
    owner = torch.empty(down, across, dtype=torch.int32, device=x.device)
    transpose_kernel[(down * across,)](x, out, owner, m, n, BLOCK=block, GROUP=group)
    return out, owner


def in_groups(down: int, across: int, group: int) -> torch.Tensor:
    """Returns the program of each tile of a large field, by sorting."""
    tiles = [(row, col) for row in range(down) for col in range(across)]
    tiles.sort(key=lambda tile: (tile[0] // group, tile[1], tile[0]))  # band, column, row
    owner = torch.empty(down, across, dtype=torch.int32)
    for pid, tile in enumerate(tiles):
        owner[tile] = pid
    return owner


def panels(owner: torch.Tensor, at_once: int) -> tuple[int, int]:
    """Returns the rows and columns of tiles that the first programs touch."""
    first = owner < at_once
    return int(first.any(dim=1).sum()), int(first.any(dim=0).sum())


def draw(owner: torch.Tensor, at_once: int) -> None:
    """Prints the program of each tile; a star marks the programs that run first."""
    for line in owner.tolist():
        print("   " + "".join(f"{pid:4d}{'*' if pid < at_once else ' '}" for pid in line).rstrip())
    rows, cols = panels(owner, at_once)
    print(f"   the first {at_once} programs touch {rows} rows and {cols} columns of tiles: "
          f"{rows + cols} panels\n")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")

    x = torch.randn(48, 48, device=DEVICE)
    for number, group in enumerate((1, 3), 1):
        out, owner = transpose(x, 8, group)
        right = "equal" if torch.equal(out, x.T) else "NOT equal"
        print(f"{number}. 6 x 6 tiles in groups of {group}; the result is {right} to x.T")
        draw(owner, 9)

    print(f"3. 32 x 32 tiles: what do the first {AT_ONCE} programs of a matrix product need?")
    print("   group   rows of tiles   columns   panels   first wave needs")
    for group in (1, 2, 4, 8, 16, 32):
        rows, cols = panels(in_groups(32, 32, group), AT_ONCE)
        megabytes = (rows + cols) * 128 * 4096 * 2 / 1e6
        print(f"   {group:5d} {rows:15d} {cols:9d} {rows + cols:8d} {megabytes:12.0f} MB")
    print("   A panel here is 128 rows of 4,096 numbers in float16: 1 MB.")
    print("   4 x 32 tiles are 128 programs. The other 4 start the next group, with further rows:")
    print("   a group that looks narrow enough wraps around at 132.")

    print("\n4. How long does it take?")
    if HAS_GPU:
        x = torch.randn(8192, 8192, device=DEVICE)
        for group in (1, 4, 8, 16):
            ms = triton.testing.do_bench(lambda g=group: transpose(x, 64, g), return_mode="median")
            print(f"   groups of {group:2d}: {ms:.3f} ms, {2 * x.nbytes / ms / 1e6:.0f} GB/s")
        print("   A transpose reads each tile once. Panels are not shared; order hardly matters.")
    else:
        print("   No time is measured here: the interpreter runs programs one after another. A")
        print("   transpose would gain little anyway. It reads each tile once; a matrix product")
        print("   reads each panel once for every program that needs it.")


if __name__ == "__main__":
    main()
