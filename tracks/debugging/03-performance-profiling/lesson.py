"""Worked example: the vector addition of track1/vector-add, profiled at four sizes."""

from __future__ import annotations

import os
import time

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported

import triton  # noqa: E402 - after TRITON_INTERPRET is set
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
BLOCK_SIZE = 1024
SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 27)

# One H200, as in `profiles.json`; FLOP/s from the data sheet.
COPY = 4.229e12  # bytes per second
FP32 = 67e12
LAUNCH_MS = 0.0034  # an empty kernel
MEASURED_MS = 0.37155  # the largest size


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    """out[i] = x[i] + y[i]. One program owns BLOCK_SIZE contiguous elements."""
    # Adjacent threads access contiguous elements, so each 32-byte sector is fully used (8 floats),
    # and each element is accessed once. These four lines show it without a profiler.
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns x + y for two contiguous float32 vectors."""
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, BLOCK_SIZE),)](x, y, out, n, BLOCK_SIZE=BLOCK_SIZE)
    return out


def count() -> None:
    """Prints bytes and FLOP of each size, and the time of each alone."""
    print("          n      bytes       flop   flop/byte   bytes alone   flop alone")
    for n in SIZES:
        moved, flop = 3 * 4 * n, n
        print(f"   {n:11,d} {moved / 1e6:7.2f} MB {flop / 1e6:7.2f} M {flop / moved:9.3f} "
              f"{1e3 * moved / COPY:11.5f} ms {1e3 * flop / FP32:9.6f} ms")
    print(f"   In float32 an H200 has its ridge at {FP32 / COPY:.1f} flop/byte. The addition lies")
    print("   190 times below it, at every size: what it computes costs nothing.")


def predict() -> None:
    """Prints the expected time of each size before measuring."""
    print("             n   bytes alone    a launch   expected   share of copy   decides")
    for n in SIZES:
        least = 1e3 * 12 * n / COPY
        ms = max(least, LAUNCH_MS)  # the launch of the next kernel hides behind this one
        says = "launch" if least < LAUNCH_MS else "bytes"
        print(f"   {n:11,d} {least:10.5f} ms {LAUNCH_MS:8.4f} ms {ms:7.4f} ms {least / ms:15.1%}   "
              f"{says}")
    print("   Three of the four sizes say nothing about the kernel: 12 MB fit the L2, too.")


def measure() -> None:
    """Prints each size on this GPU, timed naively and with do_bench."""
    print(f"   {torch.cuda.get_device_name()}")
    print("          n    clock around the call    do_bench, median")
    for n in SIZES:
        x, y = torch.randn(2, n, device=DEVICE)
        add(x, y)
        torch.cuda.synchronize()
        start = time.perf_counter()
        add(x, y)
        naive = 1e3 * (time.perf_counter() - start)  # wrong: does not wait for the GPU
        ms = triton.testing.do_bench(lambda x=x, y=y: add(x, y), return_mode="median")
        print(f"   {n:11,d} {naive:8.4f} ms {12 * n / naive / 1e6:8,.0f} GB/s {ms:8.4f} ms "
              f"{12 * n / ms / 1e6:6,.0f} GB/s")


def recall() -> None:
    """Prints the largest size as measured on an H200."""
    n = SIZES[-1]
    print("   No GPU is here. On an H200 the largest size was measured:")
    print(f"   {n:11,d} in {MEASURED_MS} ms: {12 * n / MEASURED_MS / 1e6:,.0f} GB/s, "
          f"{12 * n / COPY / MEASURED_MS * 1e3:.0%} of a copy.")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")
    print("1. Count, by hand:")
    count()
    print("\n2. Predict, for an H200:")
    predict()
    print("\n3. Is it right?")
    x, y = torch.randn(2, 10_000, device=DEVICE)
    print(f"   10,000 elements: {'equal' if torch.equal(add(x, y), x + y) else 'NOT equal'}")
    print("\n4. Measure:")
    if HAS_GPU:
        measure()
    else:
        recall()
    print("\n5. Look back: a copy reads and writes as much and is not faster. There is nothing to")
    print("   repair, and the profile said so: every count is at its ideal.")


if __name__ == "__main__":
    main()
