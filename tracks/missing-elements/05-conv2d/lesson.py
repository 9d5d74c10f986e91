"""Worked example: a sliding mean over rows: the matrix of windows, the borders, and times."""

from __future__ import annotations

import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
NAN = float("nan")


@triton.jit
def sliding_mean_kernel(
    x_ptr, out_ptr,            # [n_rows, n] and [n_rows, n_out], both contiguous
    n_rows, n, n_out,
    taps, stride, pad,         # width of a window, distance between windows, padding at both ends
    BLOCK_M: tl.constexpr,     # windows per program, a power of two
    BLOCK_K: tl.constexpr,     # elements per window, a power of two >= taps
):
    """out[r, p] = mean over k of x[r, p * stride - pad + k], with 0 outside of the row.

    One program owns BLOCK_M windows. Loads `taps` elements per window, but nothing outside the row.
    """
    # Who am I? The windows of all rows are numbered consecutively, row after row. This program owns
    # BLOCK_M of them.
    number = tl.program_id(axis=0) * BLOCK_M + tl.arange(0, BLOCK_M)

    # Which window is number 37 if a row has 12? Three complete rows and one more window: row 3,
    # place 1. A quotient and a remainder, for a whole block of numbers at once.
    row = number // n_out
    place = number % n_out

    # Where does it begin? Windows are a stride apart, and the first one begins in the padding,
    # before the first element of the row: at -pad.
    begin = place * stride - pad

    # What does it cover? A column of beginnings plus a row of steps is a matrix: the column number
    # of every element of every window. It is never stored; each program computes its own part.
    step = tl.arange(0, BLOCK_K)
    col = begin[:, None] + step[None, :]

    # Which of them exist? Those within a window, in a row that exists, not before its beginning and
    # not after its end. The padding is just elements that are masked off and replaced by 0.
    inside = (step[None, :] < taps) & (row[:, None] < n_rows) & (col >= 0) & (col < n)
    x = tl.load(x_ptr + row[:, None] * n + col, mask=inside, other=0.0)

    # One number per window: the sum along the second axis of the matrix.
    mean = tl.sum(x.to(tl.float32), axis=1) / taps

    tl.store(out_ptr + number, mean, mask=row < n_rows)


@triton.jit
def show_windows_kernel(
    x_ptr, seen_ptr, n, n_out, taps, stride, pad, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Stores every element of the matrix of windows; NaN stands for those masked off."""
    number = tl.arange(0, BLOCK_M)
    step = tl.arange(0, BLOCK_K)
    col = (number * stride - pad)[:, None] + step[None, :]
    inside = (step[None, :] < taps) & (number[:, None] < n_out) & (col >= 0) & (col < n)
    x = tl.load(x_ptr + col, mask=inside, other=float("nan"))
    tl.store(seen_ptr + number[:, None] * BLOCK_K + step[None, :], x)


@triton.jit
def divide_kernel(x_ptr, quotient_ptr, remainder_ptr, by, BLOCK_SIZE: tl.constexpr):
    """x // by and x % by, as a kernel computes them."""
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    tl.store(quotient_ptr + offs, x // by)
    tl.store(remainder_ptr + offs, x % by)


def places(n: int, taps: int, stride: int, pad: int) -> int:
    """Returns how many windows fit: one, and one more for every whole stride that is left."""
    return (n + 2 * pad - taps) // stride + 1


def sliding_mean(x: torch.Tensor, taps: int, stride: int = 1, pad: int = 0) -> torch.Tensor:
    """Returns the mean of every window of every row of a contiguous matrix, bordered by zeros."""
    n_rows, n = x.shape
    n_out = places(n, taps, stride, pad)
    out = torch.empty(n_rows, n_out, dtype=x.dtype, device=x.device)
    block_k = triton.next_power_of_2(taps)
    block_m = max(1, 2048 // block_k)
    grid = (triton.cdiv(n_rows * n_out, block_m),)
    sliding_mean_kernel[grid](
        x, out, n_rows, n, n_out, taps, stride, pad, BLOCK_M=block_m, BLOCK_K=block_k
    )
    return out


def show_numbers(n_out: int, numbers: list[int]) -> None:
    """Prints the row and place for some flat window numbers."""
    print(f"1. Rows of {n_out} windows each, numbered consecutively:")
    print(f"   number   row = number // {n_out}   place = number % {n_out}")
    for number in numbers:
        print(f"   {number:6d} {number // n_out:20d} {number % n_out:21d}")


def show_windows(values: list[float], taps: int, stride: int, pad: int) -> None:
    """Prints the matrix of windows of one row, as a program holds it, and the means."""
    x = torch.tensor(values, device=DEVICE)
    n_out = places(len(values), taps, stride, pad)
    rows, width = triton.next_power_of_2(n_out), triton.next_power_of_2(taps)
    seen = torch.empty(rows, width, device=DEVICE)
    show_windows_kernel[(1,)](
        x, seen, len(values), n_out, taps, stride, pad, BLOCK_M=rows, BLOCK_K=width
    )
    means = sliding_mean(x[None, :], taps, stride, pad)[0].tolist()
    print(f"\n2. {len(values)} numbers: {' '.join(f'{value:.0f}' for value in values)}. "
          f"Windows of {taps}, {stride} apart, a border of {pad}.")
    print(f"   A dot marks a masked-off element. The program has a block of {rows} x {width}: "
          f"{n_out} x {taps}, each rounded up to a power of two.")
    print("   window   begins at   elements               mean")
    for number, row in enumerate(seen.tolist()):
        shown = " ".join("   ." if value != value else f"{value:4.0f}" for value in row)
        mean = f"{means[number]:6.2f}" if number < n_out else "  none"
        print(f"   {number:6d} {number * stride - pad:11d}   {shown:<20} {mean}")
    begins = [number * stride - pad for number in range(n_out)]
    fetched = sum(0 <= begin + k < len(values) for begin in begins for k in range(taps))
    print(f"   {fetched} loads read {len(values)} distinct numbers. A stored matrix would "
          f"have {n_out * taps} elements.")


def show_precedence() -> None:
    """Prints the value of two conditions with and without parentheses."""
    print("\n3. Two conditions, with and without parentheses: is a column in a row of 4?")
    for col in (2, 5):
        right, wrong = (col >= 0) & (col < 4), (col >= 0) & col < 4
        print(f"   col = {col}:   (col >= 0) & (col < 4) is {right!s:<5}   "
              f"(col >= 0) & col < 4 is {wrong}")
    print("   `&` binds tighter than `<`: the second compares (True & 5), which is 1, with 4.")


def show_division() -> None:
    """Prints // and % of negative numbers, in a kernel and in Python."""
    numbers = [-4, -3, -1, 0, 3, 7, 8, 9]
    x = torch.tensor(numbers, dtype=torch.int32, device=DEVICE)
    quotient, remainder = torch.empty_like(x), torch.empty_like(x)
    divide_kernel[(1,)](x, quotient, remainder, 3, BLOCK_SIZE=len(numbers))
    print("\n4. Division by 3. A kernel cuts the fraction off, as C does; Python rounds down.")
    rows = {
        "number": numbers,
        "kernel  //": quotient.tolist(), "Python  //": [number // 3 for number in numbers],
        "kernel  %": remainder.tolist(), "Python  %": [number % 3 for number in numbers],
    }
    for name, row in rows.items():
        print(f"   {name:<10} {' '.join(f'{value:4d}' for value in row)}")
    print("   So divide numbers first, and subtract the border afterwards.")


def count_bytes(n_rows: int, n: int, windows: list[tuple[int, int]]) -> None:
    """Prints the loads and bytes of windows, by counting."""
    print("   taps   stride   loads per element        bytes loaded           bytes at least")
    for taps, stride in windows:
        n_out = places(n, taps, stride, taps // 2)
        begins = torch.arange(n_out) * stride - taps // 2
        cols = begins[:, None] + torch.arange(taps)
        loads = int(((cols >= 0) & (cols < n)).sum())
        print(f"   {taps:4d} {stride:8d} {loads / n:19.2f} {n_rows * loads * 4:19,d} "
              f"{n_rows * n * 4:24,d}")


def measure(n_rows: int, n: int, windows: list[tuple[int, int]]) -> None:
    """Prints times on this GPU, beside PyTorch."""
    print(f"   {n_rows:,d} rows of {n:,d} on {torch.cuda.get_device_name()}")
    print("   taps   stride      kernel   avg_pool1d")
    x = torch.randn(n_rows, n, device=DEVICE)
    for taps, stride in windows:
        cells = []
        for function in (
            lambda t=taps, s=stride: sliding_mean(x, t, s, t // 2),
            lambda t=taps, s=stride: torch.nn.functional.avg_pool1d(x[:, None], t, s, t // 2),
        ):
            ms = triton.testing.do_bench(function, return_mode="median")
            cells.append(f"{ms:7.3f} ms")
        print(f"   {taps:4d} {stride:8d}  {'   '.join(cells)}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    show_numbers(12, [0, 1, 11, 12, 37])
    show_windows([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], taps=3, stride=2, pad=1)
    show_precedence()
    show_division()

    x = torch.randn(5, 100, device=DEVICE)
    right = torch.nn.functional.avg_pool1d(x[:, None], 7, 2, 3)[:, 0]
    close = torch.allclose(sliding_mean(x, 7, 2, 3), right, rtol=1e-6, atol=1e-6)
    print("\n5. Five rows of 100 numbers, windows of 7, 2 apart, a border of 3.")
    print(f"   Does the kernel agree with avg_pool1d? {'yes' if close else 'no'}")

    n_rows, n, windows = 4_096, 4_096, [(3, 1), (7, 1), (7, 2), (31, 1), (31, 31)]
    print(f"\n6. What does it cost? {n_rows:,d} rows of {n:,d} floats:")
    count_bytes(n_rows, n, windows)

    print("\n7. How long does it take?")
    if HAS_GPU:
        measure(n_rows, n, windows)
    else:
        print("   No time is measured here. The interpreter runs the programs one after the")
        print("   other with NumPy, and its speed says nothing about a GPU. The loads are the same")
        print("   on both. On a GPU most of the repeated ones are answered by a cache, but each")
        print("   still takes an instruction, a mask and an address for every element.")


if __name__ == "__main__":
    main()
