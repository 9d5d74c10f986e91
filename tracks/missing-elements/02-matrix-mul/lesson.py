"""Worked example: X.T @ X for many matrices, step by step, and two orders of the tiles."""

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
    x_ptr, out_ptr,            # [n_batch, n_rows, n_cols], [n_batch, n_cols, n_cols]
    n_rows, n_cols,
    stride_xb, stride_xr, stride_xc,  # elements from one matrix, row or column of x to the next
    ROWS: tl.constexpr,        # rows of x per step
    SIDE: tl.constexpr,        # a power of two >= n_cols: all results of a matrix in one block
    ACC: tl.constexpr,         # dtype of the accumulator: float32, or float16 to show its error
):
    """out[i, c, d] = sum_r x[i, r, c] * x[i, r, d]. One program owns all results of matrix i.

    Loads n_rows * n_cols elements and stores n_cols * n_cols.
    """
    # Who am I? One program per matrix. The id has 64 bits, since id * stride may pass 2**31.
    i = tl.program_id(axis=0).to(tl.int64)

    # What is mine? All pairs of columns, so the accumulator is a square block of zeros.
    cols = tl.arange(0, SIDE).to(tl.int64)
    acc = tl.zeros((SIDE, SIDE), dtype=ACC)

    for start in range(0, n_rows, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)

        # [:, None] makes a column of the row indices, [None, :] a row of the column indices. Their
        # sum is broadcast to a block of addresses, one for each row and each column. The same
        # happens to the two comparisons of the mask.
        x_ptrs = x_ptr + i * stride_xb + rows[:, None] * stride_xr + cols[None, :] * stride_xc
        inside = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)

        # Rows beyond the last one take part in every sum, so they are zero.
        x = tl.load(x_ptrs, mask=inside, other=0.0)

        # The sum over r needs r along the columns of the first factor: the tile is transposed.
        # SIDE x ROWS times ROWS x SIDE, added to SIDE x SIDE.
        acc = tl.dot(tl.trans(x), x, acc, input_precision="ieee", out_dtype=ACC)

    # The sums are converted to the dtype of the result once, at the end.
    out_ptrs = out_ptr + i * n_cols * n_cols + cols[:, None] * n_cols + cols[None, :]
    exists = (cols[:, None] < n_cols) & (cols[None, :] < n_cols)
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=exists)


def gram(x: torch.Tensor, acc: tl.dtype = tl.float32) -> torch.Tensor:
    """x[i].T @ x[i] for all i. Strides may be any: nothing is copied."""
    n_batch, n_rows, n_cols = x.shape
    out = torch.empty((n_batch, n_cols, n_cols), dtype=x.dtype, device=x.device)
    side = max(16, triton.next_power_of_2(n_cols))
    gram_kernel[(n_batch,)](
        x, out, n_rows, n_cols, *x.stride(), ROWS=32, SIDE=side, ACC=acc,
    )
    return out


@triton.jit
def tile_order_kernel(out_ptr, n_down, n_across, BAND: tl.constexpr):
    """Store each program's id at its tile: bands of BAND columns, row by row within a band."""
    pid = tl.program_id(axis=0)
    first_column = pid // (BAND * n_down) * BAND  # a full band has BAND * n_down tiles
    width = min(n_across - first_column, BAND)    # the last band may be narrower
    in_band = pid % (BAND * n_down)
    row = in_band // width
    column = first_column + in_band % width
    tl.store(out_ptr + row * n_across + column, pid)


@triton.jit
def show_addresses_kernel(out_ptr, stride_k, stride_n, BLOCK_K: tl.constexpr,
                          BLOCK_N: tl.constexpr):
    """Store, for each element of a tile, its offset from the first one."""
    offs_k, offs_n = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_N)
    distance = offs_k[:, None] * stride_k + offs_n[None, :] * stride_n
    offs = offs_k[:, None] * BLOCK_N + offs_n[None, :]
    tl.store(out_ptr + offs, distance)


def show_addresses() -> None:
    """Print the addresses of one tile in a matrix, in its transposed view and in a slice."""
    print("1. Addresses of a tile of 4 x 4, in elements from the first one:")
    whole = torch.zeros(4, 7)
    views = (("a matrix of 4 x 7", whole), ("its transposed view", whole.mT),
             ("every other column of the matrix", whole[:, ::2]))
    for name, view in views:
        distances = torch.zeros(4, 4, dtype=torch.int32, device=DEVICE)
        show_addresses_kernel[(1,)](distances, *view.stride(), BLOCK_K=4, BLOCK_N=4)
        print(f"   {name}, strides {tuple(view.stride())}")
        for row in distances.tolist():
            print("     " + " ".join(f"{offset:3d}" for offset in row))


def show_layouts() -> None:
    """Print that one kernel is right for three layouts of the same matrices."""
    x = torch.randn(3, 100, 20, device=DEVICE)
    expected = x.double().mT @ x.double()
    print("\n2. X.T @ X for 3 matrices of 100 x 20 in float32, by one kernel:")
    padded = torch.randn(3, 100, 90, device=DEVICE)
    padded[:, :, 10:30] = x
    for name, matrices in (
        ("as they are", x),
        ("stored transposed", x.mT.contiguous().mT),
        ("columns 10 to 29 of wider ones", padded[:, :, 10:30]),
    ):
        off = (gram(matrices).double() - expected).abs().max().item()
        print(f"   {name:<31} strides {tuple(matrices.stride())!s:<14} largest error {off:.1e}")


def show_accumulators() -> None:
    """Print what the dtype of the accumulator does to the error of a long sum."""
    print("\n3. Sums of K products in float16, numbers around a half, by dtype of the accumulator:")
    print("   K            float16    float32")
    torch.manual_seed(0)
    for K in (64, 256, 1024, 4096):
        x = (torch.randn(1, K, 16) * 0.1 + 0.5).half().to(DEVICE)
        expected = x.double().mT @ x.double()
        errors = [((gram(x, acc).double() - expected).norm() / expected.norm()).item()
                  for acc in (tl.float16, tl.float32)]
        print(f"   {K:5d}      {errors[0]:9.1e}  {errors[1]:9.1e}")
    print("   Rounding the exact sums to float16 once leaves about 2e-04.")


def show_order(n_down: int, n_across: int, band: int, at_once: int) -> None:
    """Print two orders of the tiles of C, and the parts of A and B that the first programs read."""
    print(f"\n4. {n_down} x {n_across} tiles of C. If {at_once} programs run at once, what do they "
          "read?")
    for name, width in (("row by row", n_across), (f"in groups of {band} columns", band)):
        owner = torch.empty(n_down, n_across, dtype=torch.int32, device=DEVICE)
        tile_order_kernel[(n_down * n_across,)](owner, n_down, n_across, BAND=width)
        first = owner < at_once
        bands_a, bands_b = int(first.any(1).sum()), int(first.any(0).sum())
        print(f"   {name}: {bands_a} bands of A and {bands_b} of B, {bands_a + bands_b} in all")
        for row in owner.tolist():
            print("    " + "".join(f" {pid:3d}{'*' if pid < at_once else ' '}"
                                   for pid in row).rstrip())


def count_bytes(side: int, itemsize: int) -> None:
    """Print what square tiles read of two square matrices; nothing here needs a clock."""
    print(f"\n5. {side:,d} x {side:,d} times {side:,d} x {side:,d}, {itemsize} bytes per element:")
    print("   tile          bytes requested            FLOP/B")
    least = 3 * side * side * itemsize
    for tile in (1, 16, 32, 64, 128, 256):
        asked = (2 * side * side * (side // tile) + side * side) * itemsize
        print(f"   {tile:3d} x {tile:3d} {asked:17,d}  ({asked / least:6.1f}x)"
              f" {2 * side**3 / asked:8.1f}")
    print(f"   least     {least:17,d}  (   1.0x) {2 * side**3 / least:8.1f}")


def measure(n_batch: int, heights: list[int]) -> None:
    """Print time and bandwidth on this GPU, beside PyTorch."""
    print(f"   {n_batch} matrices with 64 columns in float16 on {torch.cuda.get_device_name()}")
    print("   rows    kernel                torch.bmm")
    for n_rows in heights:
        x = torch.randn(n_batch, n_rows, 64, device=DEVICE).half()
        gigabytes = (x.nbytes + n_batch * 64 * 64 * 2) / 1e9
        cells = []
        for function in (gram, lambda x: torch.bmm(x.mT, x)):
            ms = triton.testing.do_bench(lambda f=function, x=x: f(x), return_mode="median")
            cells.append(f"{ms:7.3f} ms {gigabytes / ms * 1e3:5.0f} GB/s")
        print(f"   {n_rows:5d}  {'   '.join(cells)}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    show_addresses()
    show_layouts()
    show_accumulators()
    show_order(n_down=5, n_across=7, band=3, at_once=9)
    count_bytes(side=4096, itemsize=2)

    print("\n6. How long does it take?")
    if HAS_GPU:
        measure(1024, [512, 1024, 2048])
    else:
        print("   No time is measured here. The interpreter runs the programs one after the")
        print("   other with NumPy, and its speed says nothing about a GPU. Compare the last")
        print("   column of the table with a GPU that reads 4,000 GB/s and computes 800 TFLOP/s.")
        print("   Its ridge point is 200 FLOP/B, above all tiles of the table. If each request")
        print("   went to memory, memory would limit the speed. But programs that run at the same")
        print("   time share much of their input through the L2 cache, which the table does not")
        print("   show. On an H200, tiles of 128 x 128 reach 93 % of the speed of torch.matmul.")


if __name__ == "__main__":
    main()
