"""Worked example: windows of an image through a descriptor, inside and across the border."""

from __future__ import annotations

import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"


@triton.jit
def window_kernel(
    x_ptr, out_ptr,          # [n_rows, n_cols] and [BLOCK_M, BLOCK_N], contiguous
    n_rows, n_cols,
    row, col,                # start of the window, which may be outside
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    PADDING: tl.constexpr,   # "zero" or "nan"
):
    """out = x[row : row + BLOCK_M, col : col + BLOCK_N], padded. One program."""
    # Four facts: the base, the numbers of rows and columns, their strides, and the block.
    x_desc = tl.make_tensor_descriptor(
        x_ptr, shape=[n_rows, n_cols], strides=[n_cols, 1], block_shape=[BLOCK_M, BLOCK_N],
        padding_option=PADDING)

    # No pointers and no mask: an offset in elements.
    window = x_desc.load([row, col])

    rows, cols = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, BLOCK_N)[None, :]
    tl.store(out_ptr + rows * BLOCK_N + cols, window)


@triton.jit
def stamp_kernel(x_desc, row, col, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """x[row : row + BLOCK_M, col : col + BLOCK_N] = 9 inside of x. One program."""
    # This descriptor was created on the host, and is an argument of the launch.
    x_desc.store([row, col], tl.full((BLOCK_M, BLOCK_N), 9, x_desc.dtype))


def scratch(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Allocates GPU memory for the descriptors that a kernel creates."""
    return torch.empty(size, dtype=torch.int8, device=DEVICE)


def show(matrix: torch.Tensor) -> None:
    for line in matrix.tolist():
        print("   " + " ".join(f"{value:4.0f}" for value in line))


def try_to_describe(name: str, tensor: torch.Tensor, block: list[int]) -> None:
    """Prints the result of Triton's checks of a tensor, and its strides."""
    try:
        TensorDescriptor.from_tensor(tensor, block)
        said = "taken"
    except AssertionError as error:
        said = str(error)
    steps = [step * tensor.element_size() for step in tensor.stride()]
    print(f"   {name:25} {steps!s:9} {said}")


def measure(n: int) -> None:
    """Prints the time to double a matrix through pointers and through descriptors."""
    x = torch.randn(n, n, device=DEVICE, dtype=torch.float16)
    out = torch.empty_like(x)
    for name, run in (("pointers", double_by_pointers), ("descriptors", double_by_descriptors)):
        ms = triton.testing.do_bench(lambda r=run: r(x, out), return_mode="median")
        print(f"   {name:12} {ms:.3f} ms, {2 * x.nbytes / ms / 1e6:.0f} GB/s")


@triton.jit
def by_pointers_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    cols = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    mask = (rows < M) & (cols < N)
    x = tl.load(x_ptr + rows * N + cols, mask=mask)
    tl.store(out_ptr + rows * N + cols, 2 * x, mask=mask)


@triton.jit
def by_descriptors_kernel(x_desc, out_desc, BM: tl.constexpr, BN: tl.constexpr):
    corner = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    out_desc.store(corner, 2 * x_desc.load(corner))


def double_by_pointers(x: torch.Tensor, out: torch.Tensor) -> None:
    m, n = x.shape
    by_pointers_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 128))](x, out, m, n, BM=64, BN=128)


def double_by_descriptors(x: torch.Tensor, out: torch.Tensor) -> None:
    m, n = x.shape
    by_descriptors_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 128))](
        TensorDescriptor.from_tensor(x, [64, 128]), TensorDescriptor.from_tensor(out, [64, 128]),
        BM=64, BN=128)


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    triton.set_allocator(scratch)

    x = torch.arange(6 * 12, dtype=torch.float32, device=DEVICE).view(6, 12)
    print("1. A matrix of 6 x 12, and its window of 4 x 8 at [1, 4]:")
    out = torch.empty(4, 8, device=DEVICE)
    window_kernel[(1,)](x, out, 6, 12, 1, 4, BLOCK_M=4, BLOCK_N=8, PADDING="zero")
    show(out)

    print("\n2. At [4, 8] it crosses two borders, at [-2, -4] the other two:")
    for row, col in ((4, 8), (-2, -4)):
        window_kernel[(1,)](x, out, 6, 12, row, col, BLOCK_M=4, BLOCK_N=8, PADDING="zero")
        show(out)
        print()

    print("3. A store across the border, at [4, 8]: elements outside are dropped.")
    stamp_kernel[(1,)](TensorDescriptor.from_tensor(x, [4, 8]), 4, 8, BLOCK_M=4, BLOCK_N=8)
    show(x)

    print("\n4. Tensors that Triton's class accepts, and their strides in bytes:")
    wide = torch.zeros(32, 64, dtype=torch.float16, device=DEVICE)
    try_to_describe("32 x 64 in float16", wide, [16, 16])
    try_to_describe("its columns 0 to 49", wide[:, :50], [16, 16])
    try_to_describe("its columns 1 to 48", wide[:, 1:49], [16, 16])
    try_to_describe("its transposed view", wide.T, [16, 16])
    try_to_describe("32 x 50 in float16", torch.zeros(32, 50, dtype=torch.float16,
                                                      device=DEVICE), [16, 16])
    try_to_describe("its first row, 32 times", wide[:1].expand(32, 64), [16, 16])
    print("   The class checks a few rules. Its error names the broken rule and not the number,")
    print("   and it accepts the last line, which the hardware does not support.")

    print("\n5. How long does it take?")
    if HAS_GPU:
        measure(16_384)
    else:
        print("   No time is measured here: the interpreter has no TMA. `tritonlab inspect`")
        print("   shows whether the code for a GPU that you name uses it.")


if __name__ == "__main__":
    main()
