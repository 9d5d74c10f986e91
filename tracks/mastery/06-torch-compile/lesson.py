"""Worked example: add_one, out[i] = x[i] + 1, step by step and then by the clock."""
# WRITE ME: another kernel with the idea of this module, every line explained; never the solution.

from __future__ import annotations

import os
import time

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"


@triton.jit
def add_one_kernel(
    x_ptr, out_ptr,            # [n_elements], contiguous
    n_elements,
    BLOCK_SIZE: tl.constexpr,  # elements per program, a power of two
):
    """out[i] = x[i] + 1. One program owns BLOCK_SIZE neighbouring elements."""
    # Who am I? The same code runs once per program; only this number differs.
    pid = tl.program_id(axis=0)

    # Which elements are mine, and which of them exist?
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements

    # Load, add, store: lanes that are masked off touch no memory.
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + 1, mask=mask)


def add_one(x: torch.Tensor, block_size: int) -> torch.Tensor:
    """x + 1 for a contiguous tensor."""
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), block_size),)
    add_one_kernel[grid](x, out, x.numel(), BLOCK_SIZE=block_size)
    return out


def main() -> None:
    x = torch.arange(10.0, device=DEVICE)
    print("x    ", x.tolist())
    print("x + 1", add_one(x, block_size=4).tolist())

    x = torch.rand(100_000, device=DEVICE)
    print("\nelements per program   programs   ms")
    for block_size in (1_024, 4_096, 16_384):
        add_one(x, block_size)  # compiled, where there is a GPU
        started = time.perf_counter()
        add_one(x, block_size)
        if HAS_GPU:
            torch.cuda.synchronize()
        took = (time.perf_counter() - started) * 1e3
        print(f"{block_size:>20}   {triton.cdiv(x.numel(), block_size):>8}   {took:.1f}")


if __name__ == "__main__":
    main()
