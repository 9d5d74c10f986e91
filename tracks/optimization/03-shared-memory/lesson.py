"""Worked example: the largest element of each row and its index, by a custom reduction."""

from __future__ import annotations

import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"


@triton.jit
def larger(value_a, place_a, value_b, place_b):
    """Returns the larger of two values with its index; of equal ones, the smaller index.

    This is all that a tree needs. It is applied in any order and in any grouping, so the result
    must not depend on either: larger(a, larger(b, c)) is larger(larger(a, b), c).
    """
    take_b = (value_b > value_a) | ((value_b == value_a) & (place_b < place_a))
    return tl.where(take_b, value_b, value_a), tl.where(take_b, place_b, place_a)


@triton.jit
def row_argmax_kernel(
    x_ptr,                     # [n_rows, n_cols] contiguous
    value_ptr, place_ptr,      # [n_rows]
    n_cols,
    BLOCK_SIZE: tl.constexpr,  # elements per step, a power of two
):
    """Largest element of each row and its column. One program owns one row.

    Loads n_rows * n_cols elements and stores two numbers a row.
    """
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK_SIZE)

    # Every element keeps its own winner in registers: threads exchange nothing in this loop.
    # The neutral element must lose against every value, and its index against every index.
    best = tl.full((BLOCK_SIZE,), -float("inf"), dtype=tl.float32)
    place = tl.full((BLOCK_SIZE,), 2**31 - 1, dtype=tl.int32)
    for start in range(0, n_cols, BLOCK_SIZE):
        x = tl.load(x_ptr + row * n_cols + start + cols, mask=start + cols < n_cols,
                    other=-float("inf"))
        here = tl.where(start + cols < n_cols, start + cols, 2**31 - 1)
        best, place = larger(best, place, x, here)

    # Now the winners are merged. The tree halves their number at each level: first within a thread,
    # then between the lanes of a warp, and finally between warps, through shared memory.
    value, col = tl.reduce((best, place), 0, larger)

    tl.store(value_ptr + row, value)
    tl.store(place_ptr + row, col)


def row_argmax(x: torch.Tensor, block_size: int = 128) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the largest element and its column for every row of a contiguous matrix."""
    n_rows, n_cols = x.shape
    value = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    place = torch.empty(n_rows, dtype=torch.int32, device=x.device)
    row_argmax_kernel[(n_rows,)](x, value, place, n_cols, BLOCK_SIZE=block_size)
    return value, place


def draw_tree(values: list[int]) -> None:
    """Prints the levels of a tree over eight values, each with its index."""
    level = [(value, place) for place, value in enumerate(values)]
    while level:
        width = 64 // len(level)
        print("   " + "".join(f"{value} at {place}".center(width) for value, place in level))
        if len(level) == 1:
            break
        half = len(level) // 2
        level = [max(a, b, key=lambda one: (one[0], -one[1]))
                 for a, b in zip(level[:half], level[half:], strict=True)]


def count_fetches(side: int) -> None:
    """Prints the loads and the shared memory of tiles of a square product."""
    print("   tile        fetches of     bytes moved     buffers of 3 stages")
    print("               an element                     64 deep, 2 bytes")
    for tile in (16, 32, 64, 128, 256):
        fetched = side // tile
        moved = (2 * side * side * fetched + side * side) * 2
        print(f"   {tile:3d} x {tile:<3d}   {fetched:8d}   {moved / 1e6:12.1f} MB   "
              f"{3 * 2 * tile * 64 * 2:12,d} bytes")


def check(n_rows: int, widths: list[int]) -> None:
    """Prints whether values and indices equal those of PyTorch."""
    for width in widths:
        x = torch.randint(-9, 10, (n_rows, width), device=DEVICE).float()  # with many equal ones
        value, place = row_argmax(x)
        first = (x == x.amax(1, keepdim=True)).int().argmax(1).int()
        same = torch.equal(value, x.amax(1)) and torch.equal(place, first)
        print(f"   {n_rows} rows of {width:5d}: {'equal' if same else 'NOT equal'}")


def measure(n_rows: int, n_cols: int) -> None:
    """Prints time and bandwidth for several blocks on this GPU."""
    x = torch.randn(n_rows, n_cols, device=DEVICE)
    gigabytes = x.numel() * 4 / 1e9
    print(f"   {n_rows:,d} x {n_cols:,d} floats on {torch.cuda.get_device_name()}")
    for block in (128, 512, 2048):
        ms = triton.testing.do_bench(lambda b=block: row_argmax(x, b), return_mode="median")
        print(f"   block {block:5d} {ms:8.3f} ms {gigabytes / ms * 1e3:6.0f} GB/s")
    ms = triton.testing.do_bench(lambda: x.max(dim=1), return_mode="median")
    print(f"   x.max(dim=1) {ms:7.3f} ms {gigabytes / ms * 1e3:6.0f} GB/s")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")

    print("1. A tree over eight values. Each level compares the left half with the right half:")
    draw_tree([3, 7, 1, 7, 2, 5, 0, 6])
    print("   Seven comparisons, as in a loop, but three levels instead of seven steps. The two 7s")
    print("   are compared at the end, and the smaller index wins.")

    print("\n2. The kernel agrees with PyTorch, also for rows that do not fill a block:")
    check(8, [1, 100, 128, 1000])

    print("\n3. Tiles of a product of two 4,096 x 4,096 matrices of 2-byte elements:")
    count_fetches(4096)
    print("   A program has up to 99 KiB of shared memory on a consumer GPU, 163 on an A100 and")
    print("   227 on an H100. Twice the side is half the traffic and twice the shared memory.")

    print("\n4. How long does it take?")
    if HAS_GPU:
        measure(16_384, 8_192)
    else:
        print("   No time is measured here: the interpreter runs programs one after another")
        print("   with NumPy. `tritonlab inspect` shows the shared memory and the registers of")
        print("   your own kernels, compiled for a GPU that you name.")


if __name__ == "__main__":
    main()
