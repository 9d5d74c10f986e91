"""Worked example: the largest element of a vector and its count, computed by many programs."""

from __future__ import annotations

import itertools
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
def maximum_kernel(x_ptr, largest_ptr, n, BLOCK_SIZE: tl.constexpr):
    """largest = max(largest, x). One atomic maximum per program of BLOCK_SIZE elements."""
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=-float("inf"))

    # The elements of this program are reduced to one number, and one atomic. A maximum does not
    # round, so the result has the same bits for every order of programs.
    tl.atomic_max(largest_ptr, tl.max(x, axis=0))


@triton.jit
def count_kernel(x_ptr, largest_ptr, count_ptr, n, BLOCK_SIZE: tl.constexpr):
    """count += elements equal to the largest: a second launch, which starts after the first."""
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)

    # In the first launch this number would be the maximum of the programs so far. Only the end of
    # a launch guarantees that all of its programs have contributed.
    largest = tl.load(largest_ptr)
    found = tl.sum((mask & (x == largest)).to(tl.int32), axis=0)
    if found > 0:  # most programs have nothing to add
        tl.atomic_add(count_ptr, found)


def maximum_and_count(x: torch.Tensor, block_size: int = 1024) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the largest element of a float32 vector and its count, as scalar tensors."""
    largest = torch.full((), -float("inf"), device=x.device)
    count = torch.zeros((), dtype=torch.int32, device=x.device)
    grid = (triton.cdiv(x.numel(), block_size),)
    maximum_kernel[grid](x, largest, x.numel(), BLOCK_SIZE=block_size)
    count_kernel[grid](x, largest, count, x.numel(), BLOCK_SIZE=block_size)
    return largest, count


def show_orders() -> None:
    """Prints the float32 sums of four numbers in every order, and their maximum."""
    numbers = [np.float32(value) for value in (1e8, 3.0, -1e8, 4.0)]
    sums: dict[float, int] = {}
    for order in itertools.permutations(numbers):
        total = np.float32(0)
        for number in order:
            total = np.float32(total + number)
        sums[float(total)] = sums.get(float(total), 0) + 1
    for total, orders in sorted(sums.items()):
        print(f"   sum {total:4.0f}   in {orders:2d} of 24 orders")
    print(f"   max {max(numbers):4.0g}  in 24 of 24 orders")


def show_lost_update() -> None:
    """Prints how two programs without a lock lose one of two additions."""
    print("   program A          program B          in memory")
    for a, b, memory in (("load   0", "", 0), ("", "load   0", 0), ("add 5, store 5", "", 5),
                         ("", "add 7, store 7", 7)):
        print(f"   {a:<18} {b:<18} {memory}")
    print("   12 was expected. An atomic addition, or a lock around all three steps, gives 12.")


def check(sizes: list[int]) -> None:
    """Prints whether maximum and count equal those of PyTorch."""
    for n in sizes:
        x = torch.randint(0, 50, (n,), device=DEVICE).float()
        largest, count = maximum_and_count(x)
        same = largest == x.max() and count == (x == x.max()).sum()
        print(f"   {n:7,d} elements: {int(count):5d} times {largest.item():3.0f}   "
              f"{'equal' if same else 'NOT equal'}")


def count_queues(n: int) -> None:
    """Prints the number of atomics for several block sizes."""
    print("   elements of a program   atomics       bytes of atomics beside 4 n")
    for share in (1, 64, 1024, 16_384):
        atomics = triton.cdiv(n, share)
        print(f"   {share:21,d}   {atomics:11,d}   {8 * atomics / (4 * n):8.3%}")


def measure(n: int) -> None:
    """Prints the time of several block sizes on this GPU."""
    x = torch.randn(n, device=DEVICE)
    print(f"   {n:,d} floats on {torch.cuda.get_device_name()}")
    for block in (256, 1024, 4096):
        ms = triton.testing.do_bench(lambda b=block: maximum_and_count(x, b), return_mode="median")
        print(f"   block {block:5d} {ms:8.3f} ms {8 * n / ms / 1e6:6.0f} GB/s")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")

    print("1. 1e8, 3, -1e8 and 4, added one after the other in float32:")
    show_orders()
    print("   Programs arrive in any order. A sum of floats depends on it, a maximum does not.")

    print("\n2. Two programs, no lock; both add to a number that is 0:")
    show_lost_update()

    print("\n3. Two launches: the maximum, then its count:")
    check([1, 1_000, 1_024, 100_000])

    n = 1 << 24
    print(f"\n4. The queue for one number, for {n:,d} floats:")
    count_queues(n)

    print("\n5. How long does it take?")
    if HAS_GPU:
        measure(1 << 28)
    else:
        print("   No time is measured here: the interpreter runs programs one after another, so no")
        print("   program ever waits. `tritonlab grade` runs programs forward and in reverse and")
        print("   checks the order of their memory accesses.")


if __name__ == "__main__":
    main()
