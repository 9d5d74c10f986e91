"""Worked example: a dot product of two long vectors, in a loop whose loads run ahead."""

from __future__ import annotations

import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
BLOCK_SIZE = 1024


@triton.jit
def dot_kernel(
    x_ptr, y_ptr, out_ptr,     # [n], [n], [number of programs]
    n,
    BLOCK_SIZE: tl.constexpr,
    STAGES: tl.constexpr,      # a compile-time constant: it changes the generated code
):
    """out[p] = the sum of x[i] * y[i] over blocks p, p + P, p + 2 P, … of P programs."""
    # Who am I, and how far away is my next block? The programs interleave their blocks.
    pid = tl.program_id(axis=0)
    step = tl.num_programs(axis=0) * BLOCK_SIZE

    # Each element has its own running sum until the end, so no thread waits for another one inside
    # the loop.
    running = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)

    # tl.range counts like range, and states how many iterations loads may be ahead. With STAGES = 1
    # each iteration requests its blocks and waits for them. With STAGES = 4 the compiler emits code
    # before the loop that requests the blocks of three iterations, and each iteration requests the
    # blocks of the third one after it. Blocks stay in shared memory until their iteration.
    for base in tl.range(pid * BLOCK_SIZE, n, step, num_stages=STAGES):
        offs = base + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
        y = tl.load(y_ptr + offs, mask=offs < n, other=0.0)
        running += x * y

    tl.store(out_ptr + pid, tl.sum(running, axis=0))


def dot(x: torch.Tensor, y: torch.Tensor, programs: int, stages: int) -> torch.Tensor:
    """Returns the dot product of two contiguous float32 vectors; PyTorch adds the partial sums."""
    out = torch.empty(programs, dtype=torch.float32, device=x.device)
    dot_kernel[(programs,)](x, y, out, x.numel(), BLOCK_SIZE=BLOCK_SIZE, STAGES=stages)
    return out.sum()


def timeline(stages: int, rounds: int, copy: int, work: int) -> tuple[list[str], int]:
    """Returns a line per iteration with its copy and its work, one character per unit of time.

    A copy starts as soon as one of ``stages`` buffers is free. Copies overlap with each other and
    with work; works do not overlap with each other.
    """
    asked, arrived, done = [], [], []
    for number in range(rounds):
        asked.append(done[number - stages] if number >= stages else 0)
        arrived.append(asked[number] + copy)
        start = max(arrived[number], done[-1] if done else 0)
        done.append(start + work)
    lines = []
    for number in range(rounds):
        start = done[number] - work
        line = " " * asked[number] + "." * copy + " " * (start - arrived[number]) + "#" * work
        lines.append(line)
    return lines, done[-1]


def show_timelines(copy: int, work: int, rounds: int) -> None:
    """Prints the iterations of a loop with one stage and with four."""
    print(f"1. {rounds} iterations, each a copy of {copy} units (.) and work of {work} units (#):")
    for stages in (1, 4):
        lines, end = timeline(stages, rounds, copy, work)
        print(f"\n   {stages} stage{'s' * (stages > 1)}, {end} units")
        for number, line in enumerate(lines):
            print(f"   iter {number}  {line}")
    print("\n   stages     1     2     3     4     5     6     8")
    ends = [timeline(stages, 64, copy, work)[1] for stages in (1, 2, 3, 4, 5, 6, 8)]
    print("   64 iters  " + "".join(f"{end:4d}  " for end in ends) + "units")
    print(f"   From {1 + -(-copy // work)} stages on, the work is the limit; more do not help.")


def show_bytes() -> None:
    """Prints how many bytes are in flight, and how many are needed."""
    print("   An SM of an H200 gets 18 bytes per cycle of 4.2 TB/s. They arrive 600 to 800 cycles")
    print("   after the request, so about 11 to 14 KB have to be in flight at any time.")
    print("   stages   buffers   in flight, one program   two programs")
    for stages in (1, 2, 3, 4, 5):
        ahead = max(1, stages - 1)  # with one stage an iteration waits for its own blocks
        under_way = ahead * 2 * BLOCK_SIZE * 4
        print(f"   {stages:6d} {stages - 1:9d} {under_way:17,d} B {2 * under_way:14,d} B")


def show_limits() -> None:
    """Prints how many stages of several tiles fit in shared memory, in float16."""
    limits = {"H100": 232_448, "A100": 166_912, "RTX 4090": 101_376}
    print("   tile               bytes per iter  " + "".join(f"{name:>10}" for name in limits))
    for m, n, k in ((64, 64, 32), (128, 128, 32), (128, 128, 64), (128, 256, 64), (256, 256, 64)):
        tiles = (m * k + k * n) * 2
        most = "".join(f"{limit // tiles:10d}" for limit in limits.values())
        print(f"   {m:3d} x {n:3d} x {k:2d} {tiles:19,d}  {most}")


def check(n: int, programs: int) -> None:
    """Prints the result for every number of stages."""
    x, y = torch.randn(n, device=DEVICE), torch.randn(n, device=DEVICE)
    exact = float(x.double() @ y.double())
    first = dot(x, y, programs, 1)
    for stages in (1, 2, 3, 4):
        got = dot(x, y, programs, stages)
        same = "the same bits" if torch.equal(got, first) else "OTHER bits"
        print(f"   {stages} stages: {float(got):12.6f}, exact {exact:12.6f}   {same}")


def measure(n: int) -> None:
    """Prints time and bandwidth of each depth on this GPU, with few programs and with many."""
    x, y = torch.randn(n, device=DEVICE), torch.randn(n, device=DEVICE)
    multiprocessors = torch.cuda.get_device_properties(x.device).multi_processor_count
    print(f"   two vectors of {n:,d} floats on {torch.cuda.get_device_name()}")
    print("   programs per SM                     1 stage   2 stages   3 stages   4 stages")
    for each in (1, 2, 4, 8):
        rates = []
        for stages in (1, 2, 3, 4):
            ms = triton.testing.do_bench(
                lambda p=each * multiprocessors, s=stages: dot(x, y, p, s), return_mode="median")
            rates.append(f"{8 * n / ms / 1e6:11,.0f}")
        print(f"   {each:32d} {''.join(rates)}   GB/s")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")
    show_timelines(copy=9, work=3, rounds=6)
    print("\n2. How many bytes are in flight? Iterations of two blocks of 1,024 floats:")
    show_bytes()
    print("\n3. How many stages fit? Each holds the tiles of one iteration.")
    show_limits()
    print("\n4. Stages change when data arrives, never the result:")
    check(100_000, 8)
    print("\n5. How long does it take?")
    if HAS_GPU:
        measure(1 << 27)
    else:
        print("   No time is measured here: the interpreter has no asynchronous loads. A compiler")
        print("   generates the same code without a GPU: `tritonlab inspect` shows")
        print("   stages, shared memory and asynchronous copies, and predicts a time.")


if __name__ == "__main__":
    main()
