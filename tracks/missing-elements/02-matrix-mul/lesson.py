"""Worked example: many rows times many matrices, tile by tile, and the order of tiles in memory."""

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
def vecmat_kernel(
    x_ptr, w_ptr, out_ptr,     # [n_batch, K], [n_batch, K, N], [n_batch, N]
    N, K,
    stride_xb, stride_xk,      # elements from one entry to the next along each dimension
    stride_wb, stride_wk, stride_wn,
    stride_ob, stride_on,
    BLOCK_N: tl.constexpr,     # results that one program owns
    BLOCK_K: tl.constexpr,     # products per result and step
    ACC: tl.constexpr,         # dtype of the accumulator; not float32 only to show the error
):
    """out[i, n] = sum_k x[i, k] * w[i, k, n]. One program owns BLOCK_N results of one row i.

    Reads K * (BLOCK_N + 1) elements and stores BLOCK_N of them.
    """
    # Who am I? The grid has one dimension, the results have two: which row, which part of it?
    # Numbering the parts row by row, the row is the quotient and the part is the remainder.
    pid = tl.program_id(axis=0).to(tl.int64)
    parts = tl.cdiv(N, BLOCK_N)
    i = pid // parts
    part = pid % parts

    # What is mine? A block of columns. The sums begin at zero, one for each column.
    offs_n = part * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N,), dtype=ACC)

    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)

        # A piece of the row x[i]: one dimension, one stride along it.
        x_ptrs = x_ptr + i * stride_xb + offs_k * stride_xk
        x = tl.load(x_ptrs, mask=offs_k < K, other=0.0)

        # A tile of the matrix w[i]. [:, None] makes a column of the numbers k, [None, :] a row of
        # the numbers n. Adding a column and a row broadcasts them to a block of addresses: each k
        # with each n. The same happens where their comparisons meet in a mask.
        w_ptrs = w_ptr + i * stride_wb + offs_k[:, None] * stride_wk + offs_n[None, :] * stride_wn
        w_mask = (offs_k[:, None] < K) & (offs_n[None, :] < N)
        w = tl.load(w_ptrs, mask=w_mask, other=0.0)

        # Multiply each row of the tile with its x, then sum over k. Elements beyond K are zero in
        # both factors: a product of zeros changes no sum. Those beyond N are never stored.
        products = x[:, None].to(ACC) * w.to(ACC)
        acc += tl.sum(products, axis=0)

    # The sums are float32. They are converted to the dtype of the result once, at the end.
    out_ptrs = out_ptr + i * stride_ob + offs_n * stride_on
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=offs_n < N)


def vecmat(x: torch.Tensor, w: torch.Tensor, acc: tl.dtype = tl.float32) -> torch.Tensor:
    """Row i of x times matrix i of w, for all i. Strides may be any: nothing is copied."""
    n_batch, K, N = w.shape
    out = torch.empty((n_batch, N), dtype=x.dtype, device=x.device)
    block_n, block_k = 64, 32
    grid = (n_batch * triton.cdiv(N, block_n),)
    vecmat_kernel[grid](
        x, w, out, N, K, *x.stride(), *w.stride(), *out.stride(),
        BLOCK_N=block_n, BLOCK_K=block_k, ACC=acc,
    )
    return out


@triton.jit
def show_addresses_kernel(out_ptr, stride_k, stride_n, BLOCK_K: tl.constexpr,
                          BLOCK_N: tl.constexpr):
    """Store, for each element of a tile, its offset from the first one."""
    offs_k, offs_n = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_N)
    field = offs_k[:, None] * stride_k + offs_n[None, :] * stride_n
    offs = offs_k[:, None] * BLOCK_N + offs_n[None, :]
    tl.store(out_ptr + offs, field)


def show_addresses() -> None:
    """Print the addresses of one tile in a matrix, in its transposed view and in a slice."""
    print("1. Addresses of a tile of 4 x 4, in elements behind the first:")
    whole = torch.zeros(4, 7)
    views = (("a matrix of 4 x 7", whole), ("its transposed view", whole.mT),
             ("every other column of it", whole[:, ::2]))
    for name, view in views:
        field = torch.zeros(4, 4, dtype=torch.int32, device=DEVICE)
        show_addresses_kernel[(1,)](field, *view.stride(), BLOCK_K=4, BLOCK_N=4)
        print(f"   {name}, strides {tuple(view.stride())}")
        for row in field.tolist():
            print("     " + " ".join(f"{offset:3d}" for offset in row))


def show_layouts() -> None:
    """Print that one kernel is right for three layouts of the same matrices."""
    x, w = torch.randn(3, 100, device=DEVICE), torch.randn(3, 100, 70, device=DEVICE)
    expected = torch.einsum("bk,bkn->bn", x.double(), w.double())
    print("\n2. 3 rows of 100 numbers times 3 matrices of 100 x 70, by one kernel:")
    padded = torch.randn(3, 100, 90, device=DEVICE)
    padded[:, :, 10:80] = w
    for name, matrices in (
        ("as they are", w),
        ("stored transposed", w.mT.contiguous().mT),
        ("columns 10 to 79 of wider ones", padded[:, :, 10:80]),
    ):
        off = (vecmat(x, matrices).double() - expected).abs().max().item()
        print(f"   {name:<31} strides {tuple(matrices.stride())!s:<14} largest error {off:.1e}")


def show_accumulators() -> None:
    """Print what the type of the accumulator does to the error of a long sum."""
    print("\n3. Sums of K products in float16, numbers around a half, by type of the accumulator:")
    print("   K            float16    float32")
    torch.manual_seed(0)
    for K in (64, 256, 1024, 4096):
        x = (torch.randn(1, K) * 0.1 + 0.5).half().to(DEVICE)
        w = (torch.randn(1, K, 64) * 0.1 + 0.5).half().to(DEVICE)
        expected = torch.einsum("bk,bkn->bn", x.double(), w.double())
        errors = [((vecmat(x, w, acc).double() - expected).norm() / expected.norm()).item()
                  for acc in (tl.float16, tl.float32)]
        print(f"   {K:5d}      {errors[0]:9.1e}  {errors[1]:9.1e}")
    print("   Rounding the exact sums to float16 once leaves about 2e-04.")


def show_order(rows: int, columns: int, group: int, at_once: int) -> None:
    """Print two orders of the tiles of C, and what the first programs need of A and B."""
    print(f"\n4. {rows} x {columns} tiles of C. If {at_once} programs run at once, what do they "
          "read?")
    for name, height in (("row by row", 1), (f"in groups of {group} rows", group)):
        places = [
            (m, n)
            for first in range(0, rows, height)  # a group of rows of tiles after another
            for n in range(columns)              # in it, a column after another
            for m in range(first, min(first + height, rows))  # in that, from top to bottom
        ]
        numbers = [[places.index((m, n)) for n in range(columns)] for m in range(rows)]
        seen = places[:at_once]
        bands_a, bands_b = len({m for m, _ in seen}), len({n for _, n in seen})
        print(f"   {name}: {bands_a} bands of A and {bands_b} of B, {bands_a + bands_b} in all")
        for row in numbers:
            print("     " + " ".join(f"{pid:3d}{'*' if pid < at_once else ' '}" for pid in row))


def count_bytes(side: int, itemsize: int) -> None:
    """Print what square tiles read of two square matrices; nothing here needs a clock."""
    print(f"\n5. {side:,d} x {side:,d} times the same, {itemsize} bytes an element:")
    print("   tile          bytes requested            FLOP/B")
    least = 3 * side * side * itemsize
    for tile in (1, 16, 32, 64, 128, 256):
        asked = (2 * side * side * (side // tile) + side * side) * itemsize
        print(f"   {tile:3d} x {tile:3d} {asked:17,d}  ({asked / least:6.1f}x)"
              f" {2 * side**3 / asked:8.1f}")
    print(f"   least     {least:17,d}  (   1.0x) {2 * side**3 / least:8.1f}")


def measure(n_batch: int, sizes: list[int]) -> None:
    """Print time and bandwidth on this GPU, beside PyTorch."""
    print(f"   {n_batch} rows and matrices in float16 on {torch.cuda.get_device_name()}")
    print("   K = N        kernel              torch.bmm")
    for size in sizes:
        x = torch.randn(n_batch, size, device=DEVICE).half()
        w = torch.randn(n_batch, size, size, device=DEVICE).half()
        gigabytes = (w.nbytes + 2 * x.nbytes) / 1e9
        cells = []
        for function in (vecmat, lambda x, w: torch.bmm(x[:, None, :], w)):
            ms = triton.testing.do_bench(lambda f=function, x=x, w=w: f(x, w),
                                         return_mode="median")
            cells.append(f"{ms:7.3f} ms {gigabytes / ms * 1e3:5.0f} GB/s")
        print(f"   {size:5d}  {'   '.join(cells)}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    show_addresses()
    show_layouts()
    show_accumulators()
    show_order(rows=5, columns=6, group=3, at_once=9)
    count_bytes(side=4096, itemsize=2)

    print("\n6. How long does it take?")
    if HAS_GPU:
        measure(64, [512, 1024, 2048])
    else:
        print("   No time is measured here. The interpreter runs the programs one after the")
        print("   other with NumPy, and its speed says nothing about a GPU. But the last column")
        print("   of the table shows what to expect. A GPU that reads 4,000 GB/s and computes 800")
        print("   TFLOP/s has its ridge point at 200 FLOP/B. What many programs read at about")
        print("   the same time comes from its L2 cache, which is faster than memory; so tiles of")
        print("   128 are enough. A row times a matrix has an intensity of 1 FLOP/B in float16,")
        print("   whatever its tiles: there, memory alone decides.")


if __name__ == "__main__":
    main()
