"""Worked example: a Gram matrix with one `tl.dot`, what padding adds, and how sums are rounded."""

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
def gram_kernel(
    x_ptr, out_ptr,         # [n_rows, n_cols] and [n_rows, n_rows], contiguous
    n_rows, n_cols,
    PADDING: tl.constexpr,  # what elements outside of x hold
    SIDE: tl.constexpr,     # at least n_rows, n_cols and 16, a power of two
):
    """out[i, j] = sum_k x[i, k] * x[j, k], by a single program."""
    span = tl.arange(0, SIDE)

    # All of x in one block, and what is left of the block holds PADDING.
    x_mask = (span < n_rows)[:, None] & (span < n_cols)[None, :]
    x = tl.load(x_ptr + span[:, None] * n_cols + span[None, :], mask=x_mask, other=PADDING)

    # `tl.dot` sums over the columns of the first block, which are the rows of the second,
    # padding included.
    gram = tl.dot(x, tl.trans(x))  # float32 for blocks of float16

    out_mask = (span < n_rows)[:, None] & (span < n_rows)[None, :]
    tl.store(out_ptr + span[:, None] * n_rows + span[None, :], gram, mask=out_mask)


def gram(x: torch.Tensor, padding: float) -> torch.Tensor:
    """x @ x.T in float32 for a contiguous float16 matrix with at most 16 rows and columns."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_rows), dtype=torch.float32, device=x.device)
    gram_kernel[(1,)](x, out, n_rows, n_cols, PADDING=padding, SIDE=16)
    return out


def show_padding() -> None:
    """Prints a Gram matrix for two values of the padding."""
    x = torch.tensor([[1, 2, 0, 1, 3, 0, 1, 0, 2, 1],
                      [0, 1, 1, 2, 0, 1, 0, 3, 1, 0]], dtype=torch.float16, device=DEVICE)
    print("1. x has 2 rows and 10 columns, its block has 16 columns. x @ x.T:")
    print(f"   by PyTorch        {(x.float() @ x.float().T).tolist()}")
    for padding in (0.0, 1.0):
        print(f"   padding of {padding}    {gram(x, padding).tolist()}")
    print("   Six columns of padding add 6 * 1 * 1 to every sum, or 6 * 0 * 0.")


def show_sums() -> None:
    """Prints the relative error of sums of 64 products in two accumulators."""
    torch.manual_seed(0)
    a, b = torch.rand(2, 1_000, 64).half()
    exact = (a.double() * b.double()).sum(1)
    print("\n2. 1,000 sums of 64 products of float16. The average relative error:")
    for dtype in (torch.float16, torch.float32):
        acc = torch.zeros(1_000, dtype=dtype)
        for k in range(64):
            acc = (acc.double() + a[:, k].double() * b[:, k].double()).to(dtype)
        error = ((acc.double().half().double() - exact).abs() / exact).mean()
        print(f"   accumulated in {str(dtype).removeprefix('torch.')}, "
              f"returned in float16: {error:.1e}")


def show_bytes() -> None:
    """Prints how often tiles request A and B."""
    m = n = 256
    k = 64
    print(f"\n3. {m} x {k} times {k} x {n} in float16: how many bytes do the tiles request?")
    print("   tile        A is read   B is read      bytes")
    for tall, wide in ((16, 16), (32, 32), (64, 128), (256, 256)):
        of_a, of_b = triton.cdiv(n, wide), triton.cdiv(m, tall)
        total = (m * k * of_a + k * n * of_b + m * n) * 2
        print(f"   {tall:>3} x {wide:<3} {of_a:>9} x {of_b:>9} x {total:>10,d}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")
    show_padding()
    show_sums()
    show_bytes()


if __name__ == "__main__":
    main()
