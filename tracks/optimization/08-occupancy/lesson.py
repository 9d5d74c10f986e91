"""Worked example: occupancy computed by hand, and a kernel in grids of any size."""

from __future__ import annotations

import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
TILE = 1024


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, TILE: tl.constexpr):
    """out[i] = 3 * x[i]. One program owns every num_programs-th tile."""
    # A program starts at the tile of its own id and advances by the number of programs. The tiles
    # in between belong to the other programs, which run at the same time, so adjacent programs
    # always access adjacent tiles.
    number = tl.program_id(axis=0)
    programs = tl.num_programs(axis=0)
    turn = number
    while turn * TILE < n:
        lanes = turn * TILE + tl.arange(0, TILE)
        x = tl.load(x_ptr + lanes, mask=lanes < n)
        tl.store(out_ptr + lanes, 3.0 * x, mask=lanes < n)
        turn += programs


def scale(x: torch.Tensor, programs: int) -> torch.Tensor:
    """Returns 3 * x for a contiguous float32 vector, by ``programs`` programs."""
    out = torch.empty_like(x)
    scale_kernel[(programs,)](x, out, x.numel(), TILE=TILE, num_warps=4)
    return out


def count_by_hand() -> None:
    """Prints the four limits of a layer norm with 42 registers and 8 warps on an RTX 4090."""
    print("   A layer norm uses 42 registers per thread, 2,100 bytes of shared memory and 8 warps.")
    print("   An RTX 4090 has 65,536 registers, 102,400 bytes, 48 warps and 24 blocks.\n")
    asked = 42 * 32
    given = -(-asked // 256) * 256
    print(f"   registers  a warp needs {asked:,} and gets {given:,}; "
          f"{65_536 // given} warps have room, ")
    print(f"              {65_536 // 4 // given} in each quarter: "
          f"{65_536 // 4 // given * 4 // 8} blocks")
    taken = -(-(2_100 + 1_024) // 128) * 128
    print(f"   shared     a block takes {taken:,} bytes with the reserved ones: "
          f"{102_400 // taken} blocks")
    print(f"   warps      48 // 8: {48 // 8} blocks")
    print("   blocks     24 at most")
    print("   The scarcest are registers and warps, 5 and 6 blocks. 5 blocks are 40 warps of 48.")


def show_waves(at_once: int) -> None:
    """Prints the waves of a grid with one program per tile."""
    print(f"   A GPU holds {at_once} programs at once. With one program per tile:")
    print("   tiles    waves   places of the last wave that stay empty")
    for tiles in (100, 396, 397, 792, 1_000, 10_000):
        waves = -(-tiles // at_once)
        empty = waves * at_once - tiles
        print(f"   {tiles:6,d} {waves:7d}   {empty:5d} of {at_once}, "
              f"{empty / (waves * at_once):.0%} of the time of all")


def show_bytes_under_way() -> None:
    """Prints how many bytes of a copy are in flight at each occupancy."""
    print("   An SM of an H200 needs 11 to 15 KB of loads in flight. A block of 4")
    print("   warps whose threads load 8 floats has 4 KB:")
    print("   blocks   warps of 64   in flight   enough")
    for blocks in (1, 2, 4, 8, 16):
        kib = 4 * blocks
        enough = "no" if kib < 11 else "maybe" if kib < 15 else "yes"
        print(f"   {blocks:6d} {blocks * 4 / 64:13.0%} {kib:8d} KB   {enough}")


def check(n: int) -> None:
    """Prints whether grids of any size give the same result."""
    x = torch.randn(n, device=DEVICE)
    for programs in (1, 3, 10, 100):
        same = "equal" if torch.equal(scale(x, programs), 3 * x) else "NOT equal"
        print(f"   {programs:4d} programs for {-(-n // TILE)} tiles: {same}")


def measure(n: int) -> None:
    """Prints the bandwidth for several numbers of programs per SM."""
    x = torch.randn(n, device=DEVICE)
    sms = torch.cuda.get_device_properties(x.device).multi_processor_count
    print(f"   {n:,d} floats on {torch.cuda.get_device_name()}, {sms} SMs")
    for each in (1, 2, 3, 4, 6, 8, 12, 16):
        ms = triton.testing.do_bench(lambda p=each * sms: scale(x, p), return_mode="median")
        print(f"   {each:3d} programs each, {4 * each:3d} warps: {8 * n / ms / 1e6:6,.0f} GB/s")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")
    print("1. How many blocks fit?")
    count_by_hand()
    print("\n2. What are waves?")
    show_waves(396)
    print("\n3. How much occupancy does a copy need?")
    show_bytes_under_way()
    print("\n4. A grid may have any size:")
    check(20_000)
    print("\n5. How fast is it?")
    if HAS_GPU:
        measure(1 << 27)
    else:
        print("   No time is measured here. `tritonlab inspect` prints registers, shared memory,")
        print("   occupancy and the limiting resource of your kernels for a GPU that you name.")


if __name__ == "__main__":
    main()
