"""Worked example: log-sum-exp of every row, with and without the shift, then timed."""

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
INF = float("inf")


@triton.jit
def logsumexp_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols] and [n_rows]
    stride_x,                  # elements from one row of x to the next
    n_cols,
    BLOCK_SIZE: tl.constexpr,  # elements per block, a power of two >= n_cols
    SHIFT: tl.constexpr,       # False omits the shift, to show the overflow
):
    """out[m] = log(sum(exp(x[m]))). One program owns row m and reduces it to a number.

    Moves n_rows * (n_cols + 1) * itemsize bytes: each element is loaded once, each result stored.
    """
    # Who am I? One program per row, so my number is the number of my row.
    row = tl.program_id(axis=0).to(tl.int64)

    # What is mine? The row begins `row` strides after the first one, and its columns follow.
    offs = tl.arange(0, BLOCK_SIZE)
    inside = offs < n_cols

    # A block is a power of two wide and a row need not be. The padding gets a number that
    # changes no result below: no maximum is smaller than -inf, and exp(-inf) adds 0 to a sum.
    x = tl.load(x_ptr + row * stride_x + offs, mask=inside, other=-float("inf")).to(tl.float32)

    # A reduction returns one scalar per block, which then broadcasts to all elements again.
    # log(sum(exp(x))) and m + log(sum(exp(x - m))) are equal for every m. With the maximum for m,
    # no exponent is above 0, and one of them is 0: the sum lies between 1 and n_cols.
    if SHIFT:
        largest = tl.max(x, axis=0)
        result = largest + tl.log(tl.sum(tl.exp(x - largest), axis=0))
    else:
        result = tl.log(tl.sum(tl.exp(x), axis=0))

    # One number, one address: a store without a block needs no mask.
    tl.store(out_ptr + row, result)


@triton.jit
def show_block_kernel(x_ptr, block_ptr, n_cols, padding, BLOCK_SIZE: tl.constexpr):
    """Stores every element of a block with its padding: the row as loaded, and exp(x - max)."""
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n_cols, other=padding)
    tl.store(block_ptr + offs, x)
    tl.store(block_ptr + BLOCK_SIZE + offs, tl.exp(x - tl.max(x, axis=0)))


def logsumexp(x: torch.Tensor, shift: bool = True) -> torch.Tensor:
    """log(sum(exp(x))) of every row of a matrix whose column stride is 1."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    num_warps = 4 if block_size <= 2048 else 8
    logsumexp_kernel[(n_rows,)](
        x, out, x.stride(0), n_cols, BLOCK_SIZE=block_size, SHIFT=shift, num_warps=num_warps
    )
    return out


def show_padding(values: list[float]) -> None:
    """Print all elements of one row for two kinds of padding, and the sum that each leads to."""
    x = torch.tensor(values, device=DEVICE)
    width = triton.next_power_of_2(len(values))
    print(f"1. A row of {len(values)} columns in a block of {width}. p marks the padding.")
    right = torch.logsumexp(x, dim=0).item()
    for padding in (-INF, 0.0):
        block = torch.empty(2, width, device=DEVICE)
        show_block_kernel[(1,)](x, block, len(values), padding, BLOCK_SIZE=width)
        print(f"\n   padded with {padding}")
        for name, numbers in zip(("x", "exp(x - max)"), block.tolist(), strict=True):
            shown = " ".join(f"{number:7.3f}{'p' if index >= len(values) else ' '}"
                             for index, number in enumerate(numbers))
            print(f"   {name:>12} {shown}")
        largest, total = block[0].max().item(), block[1].sum().item()
        result = largest + np.log(total)
        print(f"   {'':>12} maximum {largest:.3f}, sum {total:.3f}, log-sum-exp {result:.3f}"
              f"   (right: {right:.3f})")


def show_overflow() -> None:
    """Print both forms for rows inside and outside the range of exp in float32."""
    print("\n2. The same rows without and with the shift, in float32:")
    print("   row                     without      with   float64")
    for first in (1, 50, 100, -200):
        row = [float(first + step) for step in range(3)]
        x = torch.tensor([row], device=DEVICE)
        with np.errstate(over="ignore", divide="ignore"):  # the interpreter computes with NumPy
            naive, stable = logsumexp(x, shift=False).item(), logsumexp(x).item()
        exact = torch.logsumexp(x.double(), dim=1).item()
        numbers = ", ".join(f"{value:.0f}" for value in row)
        print(f"   {numbers:<20} {naive:>10.4f} {stable:>9.4f} {exact:>9.4f}")
    print("   In float32, exp(89) is inf and exp(-104) is 0.")


def show_rows(n_rows: int, width: int, start: int, stop: int) -> None:
    """Print where the rows of a slice begin: a stride apart, which is not their width."""
    whole = torch.randn(n_rows, width, device=DEVICE)
    part = whole[::2, start:stop]
    close = torch.allclose(logsumexp(part), torch.logsumexp(part, dim=1), rtol=1e-6, atol=1e-6)
    begins = [part.storage_offset() + row * part.stride(0) for row in range(part.shape[0])]
    print(f"\n3. Every other row of {n_rows} x {width} numbers, columns {start} to {stop - 1}:")
    print(f"   {part.shape[0]} rows, {part.shape[1]} wide, {part.stride(0)} elements apart; they "
          f"begin at {', '.join(map(str, begins))}")
    print(f"   Does the kernel agree with torch.logsumexp? {'yes' if close else 'no'}")


def count_bytes(n_rows: int, widths: list[int]) -> None:
    """Print what each width costs at least, by the formula; nothing here needs a clock."""
    print("   columns    block   padding     bytes read   bytes written")
    for n_cols in widths:
        block = triton.next_power_of_2(n_cols)
        read, written = n_rows * n_cols * 4, n_rows * 4
        print(f"   {n_cols:7,d} {block:8,d} {1 - n_cols / block:9.0%} {read:14,d} {written:15,d}")


def measure(n_rows: int, widths: list[int]) -> None:
    """Print time and bandwidth on this GPU for several widths, beside PyTorch."""
    print(f"   {n_rows:,d} rows on {torch.cuda.get_device_name()}, bytes by the formula above")
    print("   columns      kernel            torch.logsumexp")
    for n_cols in widths:
        x = torch.randn(n_rows, n_cols, device=DEVICE)
        gigabytes = n_rows * (n_cols + 1) * 4 / 1e9
        cells = []
        for function in (logsumexp, lambda x: torch.logsumexp(x, dim=1)):
            ms = triton.testing.do_bench(lambda f=function, x=x: f(x), return_mode="median")
            cells.append(f"{ms:7.3f} ms {gigabytes / ms * 1e3:5.0f} GB/s")
        print(f"   {n_cols:7,d}  {'   '.join(cells)}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    show_padding([1.0, 2.0, 0.5, -1.0, 0.0])
    show_overflow()
    show_rows(n_rows=6, width=200, start=50, stop=150)

    n_rows, widths = 16_384, [1_000, 1_024, 4_096, 4_097, 8_192]
    print(f"\n4. What does it cost? Every element is read once, one number per row is written. "
          f"{n_rows:,d} rows:")
    count_bytes(n_rows, widths)

    print("\n5. How long does it take?")
    if HAS_GPU:
        measure(n_rows, widths)
    else:
        print("   No time is measured here. The interpreter runs the programs one after the")
        print("   other with NumPy, and its speed says nothing about a GPU. The bytes are the")
        print("   same on both: a GPU that reads 1,000 GB/s needs at least 0.54 ms for the last")
        print("   line of the table. Padding reads nothing, but it takes part in the")
        print("   arithmetic and occupies registers.")


if __name__ == "__main__":
    main()
