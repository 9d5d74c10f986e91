"""Worked example: scale_shift, out[i] = a * x[i] + b, step by step, then timed."""

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
def scale_shift_kernel(
    x_ptr, out_ptr,            # [n_elements], contiguous
    n_elements,
    a, b,                      # two numbers
    BLOCK_SIZE: tl.constexpr,  # elements per program, a power of two
):
    """out[i] = a * x[i] + b. One program owns BLOCK_SIZE contiguous elements.

    Moves 2 * n_elements * itemsize bytes: one load and one store per element.
    """
    # Who am I? The same code runs once per program; only this number differs.
    pid = tl.program_id(axis=0).to(tl.int64)

    # Which elements are mine? `arange` is a whole block of numbers, 0 to BLOCK_SIZE - 1, and adding
    # one number to a block adds it to every element.
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)

    # Which of them exist? A block of True and False, one per element.
    mask = offs < n_elements

    # Pointer + block of offsets = block of addresses. Where the mask is False, nothing is read, and
    # the value is undefined afterwards.
    x = tl.load(x_ptr + offs, mask=mask)

    # Arithmetic works on all elements at once. `a` and `b` are scalars, the same for all of them.
    result = a * x + b

    # The same mask again, so that undefined values never reach memory.
    tl.store(out_ptr + offs, result, mask=mask)


def scale_shift(x: torch.Tensor, a: float, b: float, block_size: int = 1024) -> torch.Tensor:
    """a * x + b for a contiguous tensor of float32."""
    out = torch.empty_like(x)
    tiles = triton.cdiv(x.numel(), block_size)  # division, rounded up
    if tiles:
        scale_shift_kernel[(tiles,)](x, out, x.numel(), a, b, BLOCK_SIZE=block_size)
    return out


def walk_through(n_elements: int, width: int, a: float, b: float) -> None:
    """Print who owns what, and what memory holds after one, two … programs."""
    x = torch.arange(n_elements, dtype=torch.float32, device=DEVICE)
    programs = triton.cdiv(n_elements, width)
    print(f"out[i] = {a} * x[i] + {b} for {n_elements} elements in tiles of {width}")
    print("\n1. How many programs?")
    print(f"   {n_elements} / {width} = {n_elements / width}, rounded up: {programs}")

    print("\n2. Which elements does each program own?")
    for pid in range(programs):
        owned = range(pid * width, (pid + 1) * width)
        numbers = " ".join(f"{i:2d}" for i in owned)
        missing = [str(i) for i in owned if i >= n_elements]
        note = f"masked off: {', '.join(missing)}" if missing else "all of them exist"
        print(f"   program {pid}: {pid} * {width} + (0 to {width - 1}) = {numbers}   {note}")

    print("\n3. What does memory hold afterwards? (? = not yet written)")
    for count in range(programs + 1):
        out = torch.full_like(x, float("nan"))
        if count:
            scale_shift_kernel[(count,)](x, out, n_elements, a, b, BLOCK_SIZE=width)
        shown = " ".join("   ?" if value != value else f"{value:4.1f}" for value in out.tolist())
        print(f"   {count} program{'s' if count != 1 else ' '}: {shown}")

    same = torch.equal(scale_shift(x, a, b, width), a * x + b)  # these values need no rounding
    print(f"\n4. Is it what PyTorch computes? {'yes, bit for bit' if same else 'no'}")


def count_bytes(sizes: list[int]) -> None:
    """Print what each size costs at least, by the formula; nothing here needs a clock."""
    print("   elements      bytes read   bytes written   programs of 1024")
    for n in sizes:
        read = written = n * 4  # float32
        print(f"   {n:11,d} {read:13,d}   {written:13,d}   {triton.cdiv(n, 1024):16,d}")


def measure(n: int) -> None:
    """Print time and bandwidth on this GPU for several tile widths, and for a plain copy."""
    x = torch.randn(n, device=DEVICE)
    target = torch.empty_like(x)
    gigabytes = 2 * x.nbytes / 1e9
    print(f"   {n:,d} elements on {torch.cuda.get_device_name()}, {gigabytes:.2f} GB moved")
    copy_ms = triton.testing.do_bench(lambda: target.copy_(x), return_mode="median")
    print(f"   a plain copy      {copy_ms:7.3f} ms {gigabytes / copy_ms * 1e3:6.0f} GB/s")
    for width in (64, 256, 1024, 4096):
        ms = triton.testing.do_bench(lambda w=width: scale_shift(x, 2.0, 0.5, w),
                                     return_mode="median")
        rate = gigabytes / ms * 1e3
        print(f"   tiles of {width:4d}     {ms:7.3f} ms {rate:6.0f} GB/s"
              f"   {copy_ms / ms:4.0%} of the copy")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")
    walk_through(n_elements=10, width=4, a=2.0, b=0.5)

    print("\n5. What does it cost? One load and one store per element, 4 bytes each:")
    count_bytes([10, 10_000, 262_144, 2**27])

    print("\n6. How long does it take?")
    if HAS_GPU:
        measure(2**27)
    else:
        print("   No time is measured here. The interpreter runs the programs one after")
        print("   another with NumPy, and its speed says nothing about a GPU. The bytes are the")
        print("   same on both: a GPU that moves 1,000 GB/s needs at least 1.07 ms for the")
        print("   1.07 GB of the last line.")


if __name__ == "__main__":
    main()
