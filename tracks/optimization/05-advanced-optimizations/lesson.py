"""Worked example: scaling a vector with persistent programs, waves, and trials of an autotuner."""

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
def scale_kernel(
    x_ptr, out_ptr,            # [n]
    factor, n,
    BLOCK_SIZE: tl.constexpr,  # elements per block
):
    """out[i] = factor * x[i]. One program owns every num_programs-th block.

    Moves 8 * n bytes for float32, however many programs there are.
    """
    # Who am I, and how many programs are there? Both numbers come from the launch.
    pid = tl.program_id(axis=0)
    programs = tl.num_programs(axis=0)
    blocks = tl.cdiv(n, BLOCK_SIZE)

    # Values that do not depend on the block are computed once.
    lanes = tl.arange(0, BLOCK_SIZE)

    # Program 2 of 5 takes blocks 2, 7, 12 and so on. With as many programs as blocks, each
    # takes one, as in every kernel so far: the usual grid is a special case of this loop.
    for block in tl.range(pid, blocks, programs):
        offs = block * BLOCK_SIZE + lanes
        x = tl.load(x_ptr + offs, mask=offs < n)
        tl.store(out_ptr + offs, factor * x, mask=offs < n)


def scale(x: torch.Tensor, factor: float, programs: int, block_size: int) -> torch.Tensor:
    """Returns factor * x for a contiguous vector, by at most ``programs`` programs."""
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), block_size)
    scale_kernel[(min(programs, blocks),)](x, out, factor, x.numel(), BLOCK_SIZE=block_size)
    return out


@triton.jit
def add_to_kernel(x_ptr, total_ptr, n, BLOCK_SIZE: tl.constexpr):
    """total[0] += sum(x): the result depends on the previous value."""
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.atomic_add(total_ptr, tl.sum(x, axis=0))


def show_owners(blocks: int, programs: int) -> None:
    """Prints the blocks of each program."""
    for pid in range(programs):
        mine = list(range(pid, blocks, programs))
        print(f"   program {pid}: blocks {', '.join(map(str, mine))}   ({len(mine)} of {blocks})")


def show_waves(tiles: int, at_once: int) -> None:
    """Prints how busy a GPU is wave by wave, with one tile per program and time step."""
    full, rest = divmod(tiles, at_once)
    for wave in range(full + (rest > 0)):
        busy = at_once if wave < full else rest
        bar = "#" * round(40 * busy / at_once)
        print(f"   step {wave + 1}  {bar:.<40}  {busy} of {at_once} busy")
    steps = full + (rest > 0)
    print(f"   {tiles} tiles take {steps} steps, for which {tiles / at_once:.2f} would do: "
          f"{tiles / (at_once * steps):.0%} efficiency.")


def check(n: int, programs: list[int], block_size: int) -> None:
    """Prints whether every number of programs gives the same bits."""
    x = torch.randn(n, device=DEVICE)
    for count in programs:
        same = torch.equal(scale(x, 3.0, count, block_size), 3.0 * x)
        print(f"   {count:4d} programs   {'equal' if same else 'NOT equal'} to 3 * x")


def show_trials(sizes: list[int]) -> None:
    """Prints a total after trials of all block sizes, with and without clearing it."""
    x = torch.ones(1000, device=DEVICE)
    for clears in (False, True):
        total = torch.zeros(1, device=DEVICE)
        for size in sizes:  # the trials
            if clears:
                total.zero_()
            add_to_kernel[(triton.cdiv(1000, size),)](x, total, 1000, BLOCK_SIZE=size)
        if clears:
            total.zero_()
        size = sizes[-1]  # the call itself, with the fastest size
        add_to_kernel[(triton.cdiv(1000, size),)](x, total, 1000, BLOCK_SIZE=size)
        how = "cleared before each" if clears else "as they come     "
        print(f"   {len(sizes)} trials, {how}: the sum of 1,000 ones is {total.item():,.0f}")


def measure(n: int, programs: list[int], block_size: int) -> None:
    """Prints time and bandwidth for several numbers of programs on this GPU."""
    x = torch.randn(n, device=DEVICE)
    for count in programs:
        ms = triton.testing.do_bench(
            lambda c=count: scale(x, 3.0, c, block_size), return_mode="median")
        print(f"   {count:8,d} programs {ms:8.3f} ms {8 * n / 1e6 / ms:6.0f} GB/s")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")

    print("1. Blocks of each program. 13 blocks, 5 programs that start at their id and step by 5:")
    show_owners(13, 5)

    print("\n2. The number of programs does not change the result. 10,000 floats, blocks of 512:")
    check(10_000, [1, 3, 20, 100], 512)

    print("\n3. Waves. 512 tiles, 132 SMs, each of which holds one program at a time:")
    show_waves(512, 132)
    print("   And 133 tiles:")
    show_waves(133, 132)
    print("   A persistent grid of 132 programs has the same steps, as long as tiles stay whole.")
    print("   It saves time between two tiles: no program ends and none starts there,")
    print("   and the loads of the next tile may start before the previous one is stored.")

    print("\n4. Trials. A kernel adds to a total; an autotuner tries four block sizes:")
    show_trials([64, 128, 256, 512])
    print("   `reset_to_zero=[\"total_ptr\"]` clears it before every trial, and after the last.")
    print("   A kernel that reads the tensor it changes needs `restore_value` instead.")

    print("\n5. How many programs should there be?")
    if HAS_GPU:
        multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
        counts = [multiprocessors * each for each in (1, 2, 4, 8, 16)]
        measure(1 << 27, [*counts, triton.cdiv(1 << 27, 1024)], 1024)
        print("   The last line has a program for each block.")
    else:
        print("   No time is measured here: the interpreter runs programs one after another.")
        print("   A waiting program of 4 warps leaves its SM idle, which has")
        print("   room for 64 warps: a persistent memory-bound kernel needs several")
        print("   programs per SM. `tritonlab bench` measures your kernel on a GPU.")


if __name__ == "__main__":
    main()
