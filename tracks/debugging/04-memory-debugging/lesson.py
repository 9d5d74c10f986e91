"""Worked example: a copy with a planted bug, its report, the repair, and the proof."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported

import triton  # noqa: E402 - after TRITON_INTERPRET is set
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
ROWS, COLS, BLOCK = 5, 6, 8
SPARE = 16  # elements of the arena before and after each tensor
UNTOUCHED = -7.0  # their initial value


@triton.jit
def mirror_columns_kernel(
    x_ptr, out_ptr,          # [n_rows, n_cols]
    n_cols,
    BLOCK_SIZE: tl.constexpr,  # power of two >= n_cols
    REPAIRED: tl.constexpr,    # False keeps the bug
):
    """out[m, n] = x[m, n_cols - 1 - n]. One program owns row m."""
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    x = tl.load(x_ptr + row * n_cols + cols, mask=mask)

    target = n_cols - 1 - cols  # below 0 for the elements without a column
    if REPAIRED:
        tl.store(out_ptr + row * n_cols + target, x, mask=mask)
    else:
        tl.store(out_ptr + row * n_cols + target, x, mask=target < n_cols)


class Arena:
    """A tensor inside a longer one, which shows writes outside the tensor."""

    def __init__(self, count: int) -> None:
        self.whole = torch.full((SPARE + count + SPARE,), UNTOUCHED, device=DEVICE)
        self.tensor = self.whole[SPARE:SPARE + count]

    def written_beside(self) -> list[int]:
        """Returns the changed positions outside the tensor, relative to its first element."""
        changed = (self.whole != UNTOUCHED).nonzero().flatten() - SPARE
        return [place for place in changed.tolist() if not 0 <= place < self.tensor.numel()]


def mirror(x: torch.Tensor, out: torch.Tensor, repaired: bool) -> torch.Tensor:
    mirror_columns_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK_SIZE=BLOCK, REPAIRED=repaired)
    return out


def run(columns: int, repaired: bool) -> tuple[int, list[int]]:
    """Returns the number of wrong elements, and the positions written outside the result."""
    x = torch.arange(1.0, ROWS * columns + 1, device=DEVICE).view(ROWS, columns)
    arena = Arena(ROWS * columns)
    out = mirror(x, arena.tensor.view(ROWS, columns), repaired)
    return int((out != x.flip(1)).sum()), arena.written_beside()


def table(repaired: bool) -> None:
    print("   columns   wrong results   places written beside the result")
    for columns in (8, 7, 6, 5):
        wrong, beside = run(columns, repaired)
        print(f"   {columns:7d}   {wrong:6d} of {ROWS * columns:2d}   "
              f"{', '.join(map(str, beside)) or 'none'}")


def step(number: int, title: str, body: Callable[[], None]) -> None:
    print(f"\n{number}. {title}")
    body()


def report() -> None:
    """Prints a report of the out-of-bounds stores, without the kernel's source."""
    _, beside = run(COLS, repaired=False)
    first, last = beside[0], beside[-1]
    print(f"   result   {ROWS} x {COLS} float32, {ROWS * COLS * 4} bytes")
    print(f"   store    {len(beside)} elements before the start, from element {first} to {last}")
    print(f"   distance {-first * 4} bytes below the first byte; a block has {BLOCK * 4}")


def elements() -> None:
    print("   element   " + " ".join(f"{element:3d}" for element in range(BLOCK)))
    targets = [COLS - 1 - element for element in range(BLOCK)]
    print("   target    " + " ".join(f"{target:3d}" for target in targets))
    for name, kept in (("as it was", [target < COLS for target in targets]),
                       ("repaired", [element < COLS for element in range(BLOCK)])):
        print(f"   {name:<9} " + " ".join("yes" if keep else " no" for keep in kept))


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.")
    step(1, "The symptom: for which widths, and where?", lambda: table(repaired=False))
    print("   In a tensor of its own, nobody would have seen the last column of this table: what")
    print("   lies before it in memory was written, and the call returned as ever.")
    step(2, "The report, for 6 columns.", report)
    print("   Near the edge, and before the start: no mask that is too long at the end, and no")
    print("   offset beyond 2**31. One went below 0, by fewer elements than a block has.")
    step(3, "Which elements may store, and where to?", elements)
    print("   The mask compares the target with the upper end only, where it is always below it.")
    print("   Row 0 writes before the result; every later row writes into the row above, whose")
    print("   program may have stored its own numbers before or after.")
    step(4, "Repaired: the mask tests for a column of x.", lambda: table(repaired=True))


if __name__ == "__main__":
    main()
