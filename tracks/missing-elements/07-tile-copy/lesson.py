"""Worked example: a map of owners, the addresses of three layouts, and the sectors of a tile."""

from __future__ import annotations

import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
SECTOR = 32  # bytes


@triton.jit
def owner_map_kernel(
    out_ptr,                                 # [n_rows, n_cols], contiguous
    n_rows, n_cols,
    TALL: tl.constexpr, WIDE: tl.constexpr,  # rows and columns of a tile
):
    """out[r, c] = 10 * i + j, where the program with ids (i, j) owns row r and column c."""
    # Who am I? The grid has two axes, so a program has two ids.
    i = tl.program_id(axis=0)
    j = tl.program_id(axis=1)

    # Which rows and which columns are mine? One range for each direction.
    rows = i * TALL + tl.arange(0, TALL)
    cols = j * WIDE + tl.arange(0, WIDE)

    # A column of row numbers and a row of column numbers: together, a block of addresses. In a
    # contiguous matrix, a row begins n_cols elements after the one above it.
    places = out_ptr + rows[:, None] * n_cols + cols[None, :]

    # An element exists if its row exists and its column exists.
    inside = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]

    tl.store(places, 10 * i + j, mask=inside)


def owner_map(n_rows: int, n_cols: int, tall: int, wide: int) -> torch.Tensor:
    """Returns the owner of each element, as 10 * i + j."""
    out = torch.full((n_rows, n_cols), -1, dtype=torch.int32, device=DEVICE)
    grid = (triton.cdiv(n_rows, tall), triton.cdiv(n_cols, wide))
    owner_map_kernel[grid](out, n_rows, n_cols, TALL=tall, WIDE=wide)
    return out


def show_owners(n_rows: int, n_cols: int, side: int) -> None:
    """Prints the grid, and the ids of the program that owns each element."""
    grid = (triton.cdiv(n_rows, side), triton.cdiv(n_cols, side))
    print(f"1. {n_rows} x {n_cols} elements in tiles of {side} x {side}: the grid is {grid}.")
    print("   The ids (i, j) of the owner of each element, as two digits:")
    for row in owner_map(n_rows, n_cols, side, side).tolist():
        print("   " + " ".join(f"{owner:02d}" for owner in row))


def show_addresses() -> None:
    """Prints where the elements of three views of one matrix are in memory."""
    x = torch.arange(12).view(3, 4)  # its values are its places in memory
    print("\n2. Places in memory: row * stride(0) + column * stride(1)")
    for name, view in (("x", x), ("x.T", x.T), ("x[:, ::2]", x[:, ::2])):
        down, right = view.stride()
        m, n = (size - 1 for size in view.shape)
        print(f"   {name:<10} {view.shape[0]} x {view.shape[1]}, strides ({down}, {right}): "
              f"element ({m}, {n}) is at {m} * {down} + {n} * {right} = {m * down + n * right}")


def sectors(tall: int, wide: int, down: int, right: int) -> int:
    """Returns the number of sectors that a tile of float32 touches."""
    return len({(m * down + n * right) * 4 // SECTOR for m in range(tall) for n in range(wide)})


def show_sectors() -> None:
    """Prints the sectors of tiles of 1,024 floats in two layouts."""
    print("\n3. Sectors of 32 bytes that a tile of 1,024 floats touches; 128 would hold them:")
    print("   tile         row-major   transposed")
    for tall, wide in ((1, 1_024), (8, 128), (32, 32), (128, 8), (1_024, 1)):
        counts = sectors(tall, wide, 1_024, 1), sectors(tall, wide, 1, 1_024)
        print(f"   {tall:>4} x {wide:<5} {counts[0]:>10} {counts[1]:>12}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")
    show_owners(n_rows=6, n_cols=10, side=4)
    show_addresses()
    show_sectors()


if __name__ == "__main__":
    main()
