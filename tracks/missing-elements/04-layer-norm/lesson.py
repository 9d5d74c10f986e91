"""Worked example: the standard deviation of every row, in one pass and in two, then timed."""

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


@triton.jit
def row_std_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols] and [n_rows]
    stride_x,                  # elements from one row of x to the next
    n_cols, divisor,           # divisor: n_cols, or n_cols - 1 for a sample
    BLOCK_SIZE: tl.constexpr,  # elements per block, a power of two >= n_cols
    REPAIR: tl.constexpr,      # False leaves the padding as it is after the subtraction
    ONE_PASS: tl.constexpr,    # True: sum of the squares minus C times the squared mean
):
    """out[m] = sqrt(sum((x[m] - mean(x[m]))**2) / divisor). One program owns row m.

    Moves n_rows * (n_cols + 1) * itemsize bytes: each element is loaded once, each result stored.
    """
    # Who am I? One program per row, so my number is the number of my row.
    row = tl.program_id(axis=0).to(tl.int64)

    # What is mine? The padding of the block gets 0, which adds nothing to the first sum.
    cols = tl.arange(0, BLOCK_SIZE)
    inside = cols < n_cols
    values = tl.load(x_ptr + row * stride_x + cols, mask=inside, other=0.0).to(tl.float32)

    # The first reduction. It divides by the number of columns, not the block size: the padding adds
    # nothing to the sum and must not be counted.
    average = tl.sum(values, axis=0) / n_cols

    # The second reduction depends on the first one. Here the padding is no longer neutral: it was 0
    # and is -average now, and its square is not 0. So it is set to 0 a second time.
    if ONE_PASS:
        total = tl.sum(values * values, axis=0) - n_cols * average * average
    else:
        away = values - average
        if REPAIR:
            away = tl.where(inside, away, 0.0)
        total = tl.sum(away * away, axis=0)

    tl.store(out_ptr + row, tl.sqrt(total / divisor))


@triton.jit
def show_block_kernel(x_ptr, block_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    """Stores every element: as loaded, minus the mean, and with the padding set to 0 again."""
    cols = tl.arange(0, BLOCK_SIZE)
    inside = cols < n_cols
    values = tl.load(x_ptr + cols, mask=inside, other=0.0)
    away = values - tl.sum(values, axis=0) / n_cols
    tl.store(block_ptr + cols, values)
    tl.store(block_ptr + BLOCK_SIZE + cols, away)
    tl.store(block_ptr + 2 * BLOCK_SIZE + cols, tl.where(inside, away, 0.0))


def row_std(x: torch.Tensor, correction: int = 0, repair: bool = True,
            one_pass: bool = False) -> torch.Tensor:
    """Standard deviation of every row of a matrix whose column stride is 1.

    Args:
        correction: 0 to divide by n_cols, 1 to divide by n_cols - 1, as for a sample.
    """
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    num_warps = 4 if block_size <= 2048 else 8
    row_std_kernel[(n_rows,)](
        x, out, x.stride(0), n_cols, n_cols - correction, BLOCK_SIZE=block_size, REPAIR=repair,
        ONE_PASS=one_pass, num_warps=num_warps,
    )
    return out


def show_padding(values: list[float]) -> None:
    """Print all elements of one row at three moments, and the sum of squares at each of them."""
    x = torch.tensor(values, device=DEVICE)
    width = triton.next_power_of_2(len(values))
    blocks = torch.empty(3, width, device=DEVICE)
    show_block_kernel[(1,)](x, blocks, len(values), BLOCK_SIZE=width)
    print(f"1. A row of {len(values)} columns in a block of {width}. p marks the padding.")
    for name, numbers in zip(("as loaded", "less the mean", "set to 0 again"), blocks.tolist(),
                             strict=True):
        shown = " ".join(f"{number:5.1f}{'p' if index >= len(values) else ' '}"
                         for index, number in enumerate(numbers))
        print(f"   {name:>14} {shown}")
    right = x.double().std(correction=0).item()
    for name, numbers in (("without", blocks[1]), ("with", blocks[2])):
        total = numbers.square().sum().item()
        print(f"   {name:>14} the last step: squares sum to {total:5.1f}, deviation "
              f"{(total / len(values)) ** 0.5:.3f}   (right: {right:.3f})")


def show_widths(widths: list[int]) -> None:
    """Print by how much the deviation is off without the repair, for rows around 3."""
    torch.manual_seed(0)
    print("\n2. Rows of normal numbers around 3 with a deviation of 2. How far off is it?")
    print("   columns    block   without the repair   with")
    for n_cols in widths:
        x = 2 * torch.randn(8, n_cols, device=DEVICE) + 3
        exact = x.double().std(dim=1, correction=0)
        off = [((row_std(x, repair=repair).double() - exact).abs() / exact).max().item()
               for repair in (False, True)]
        print(f"   {n_cols:7,d} {triton.next_power_of_2(n_cols):8,d} {off[0]:20.2%} {off[1]:8.0e}")


def show_passes(n_rows: int, n_cols: int) -> None:
    """Print how far off both forms of the variance are, for rows at several distances from zero."""
    torch.manual_seed(0)
    print(f"\n3. {n_rows} rows of {n_cols:,d} columns with a deviation of 1. Largest error:")
    print("   mean         two passes   one pass   NaN in one pass")
    for mean in (0, 100, 1_000, 10_000):
        x = torch.randn(n_rows, n_cols, device=DEVICE) + mean
        exact = x.double().std(dim=1, correction=0)
        with np.errstate(invalid="ignore"):  # the interpreter computes with NumPy
            two, one = ((row_std(x, one_pass=one_pass).double() - exact).abs()
                        for one_pass in (False, True))
        lost = int(one.isnan().sum())
        print(f"   {mean:6,d} {two.max().item():16.0e} {one.nan_to_num(nan=0.0).max().item():10.0e}"
              f" {lost:9d} of {n_rows} rows")
    print("   At 10,000 the mean of the squares is 100,000,001 and the square of the mean is")
    print("   100,000,000. float32 has only multiples of 8 there: the difference of 1 is lost.")
    print("   In some rows the computed variance is negative, and its square root is NaN.")


def show_divisors(widths: list[int]) -> None:
    """Print what dividing by one less does to the deviation."""
    print("\n4. The sum of squares of a row, divided by C and by C - 1:")
    print("   columns   quotient of the two deviations")
    for n_cols in widths:
        x = torch.randn(1, n_cols, device=DEVICE)
        quotient = (row_std(x) / row_std(x, correction=1)).item()
        print(f"   {n_cols:7,d} {quotient:10.4f}")


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
    print("   columns      kernel               torch.std")
    for n_cols in widths:
        x = torch.randn(n_rows, n_cols, device=DEVICE)
        gigabytes = n_rows * (n_cols + 1) * 4 / 1e9
        cells = []
        for function in (row_std, lambda x: torch.std(x, dim=1, correction=0)):
            ms = triton.testing.do_bench(lambda f=function, x=x: f(x), return_mode="median")
            cells.append(f"{ms:7.3f} ms {gigabytes / ms * 1e3:5.0f} GB/s")
        print(f"   {n_cols:7,d}  {'   '.join(cells)}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    show_padding([2.0, 4.0, 6.0, 8.0, 10.0])
    show_widths([127, 128, 129, 768, 1_000, 1_024])
    show_passes(n_rows=16, n_cols=1_000)
    show_divisors([3, 30, 300, 3_000])

    n_rows, widths = 16_384, [768, 1_024, 4_096, 4_097, 8_192]
    print(f"\n5. What does it cost? Every element is read once, one number per row is written. "
          f"{n_rows:,d} rows:")
    count_bytes(n_rows, widths)

    print("\n6. How long does it take?")
    if HAS_GPU:
        measure(n_rows, widths)
    else:
        print("   No time is measured here: the interpreter's speed says nothing about a GPU. The")
        print("   bytes are the same on both. Each row is reduced twice and read once, because the")
        print("   block stays in registers: a GPU that reads 1,000 GB/s needs at least 0.54 ms for")
        print("   the last line of the table.")


if __name__ == "__main__":
    main()
