"""Worked example: the Huber loss from formula to kernel, with its design sheet, and by the clock.
"""

from __future__ import annotations

import os

import numpy as np
import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
BLOCK = 1024

# The design, before any code. With r = x - y and |r| <= delta, the loss is r^2 / 2; beyond, it is
# linear: delta (|r| - delta / 2). Per element: a difference, a magnitude, a square, a half, a
# comparison, a difference and a product: 7 FLOP for either branch.
DESIGN = {
    "flops": "7 * n",
    "bytes": "3 * n * e",         # two operands are read, one result is written
    "bound": "memory",            # 7 FLOP per 12 bytes in float32
    "grid": "ceil(n / BLOCK)",
    "tile": "BLOCK",
}


@triton.jit
def huber_kernel(x_ptr, y_ptr, out_ptr, n, delta, BLOCK: tl.constexpr):
    """out[i] = huber(x[i] - y[i]). One program owns BLOCK elements."""
    # Tile and indices as designed: one axis, 64-bit offsets, a mask for the last program.
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    # Intermediates are float32 for every dtype. A difference of two
    # float16 numbers is exact in float32; its square may pass 65,504, the largest float16.
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    r = tl.abs(x - y)

    # Both branches are computed for every element and one is selected: that costs FLOPs, of which a
    # memory-bound kernel has enough. `where` does not skip the other branch: the square of a large
    # r overflows to infinity, harmlessly, because the result is discarded.
    inner = 0.5 * r * r
    outer = delta * (r - 0.5 * delta)
    loss = tl.where(r <= delta, inner, outer)

    tl.store(out_ptr + offs, loss.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def huber_in_16_bits_kernel(x_ptr, y_ptr, out_ptr, n, delta, BLOCK: tl.constexpr):
    """The same without widening, for comparison."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    r = tl.abs(tl.load(x_ptr + offs, mask=mask) - tl.load(y_ptr + offs, mask=mask))
    delta = tl.full([BLOCK], delta, r.dtype)
    loss = tl.where(r <= delta, 0.5 * r * r, delta * (r - 0.5 * delta))
    tl.store(out_ptr + offs, loss, mask=mask)


def huber(x: torch.Tensor, y: torch.Tensor, delta: float = 1.0, kernel=huber_kernel):
    """Returns the Huber loss of x - y, elementwise.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the shapes differ.
    """
    if x.dtype != y.dtype:
        raise TypeError(f"y: expected dtype {x.dtype}, got {y.dtype}")
    if x.shape != y.shape:
        raise ValueError(f"y: expected shape {tuple(x.shape)}, got {tuple(y.shape)}")
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        grid = (triton.cdiv(out.numel(), BLOCK),)
        kernel[grid](x, y, out, out.numel(), delta, BLOCK=BLOCK)
    return out


def show_design(shapes: list[dict[str, int]]) -> None:
    """Prints the value of each entry of the design."""
    print("1. The design, for three shapes:")
    print("   n              e        flops          bytes       grid     flops per byte")
    for shape in shapes:
        known = {"ceil": lambda q: -int(-q // 1), "BLOCK": BLOCK, **shape}
        flops, nbytes, grid = (eval(DESIGN[what], {}, known)
                               for what in ("flops", "bytes", "grid"))
        print(f"   {shape['n']:<12,d} {shape['e']:3d} {flops:12,d} {nbytes:14,d} {grid:10,d} "
              f"{flops / nbytes:12.2f}")
    print("   A GPU does 14 operations of float32 or more in the time in which one byte comes from")
    print("   memory (an H200: 67 TFLOP/s, 4.8 TB/s). Less than 2 are asked for: memory decides.")


def show_values(delta: float) -> None:
    """Print the loss for a few differences, beside PyTorch and the form in 16 bits."""
    differences = [0.0, 0.5, 1.0, 3.0, 300.0, 65_000.0]
    x = torch.tensor(differences, device=DEVICE)
    zero = torch.zeros_like(x)
    exact = torch.nn.functional.huber_loss(x.double(), zero.double(), "none", delta)
    with np.errstate(over="ignore"):  # the interpreter computes with NumPy
        wide = huber(x.half(), zero.half(), delta)
        narrow = huber(x.half(), zero.half(), delta, kernel=huber_in_16_bits_kernel)
    print(f"\n2. The loss of float16 numbers, delta = {delta}:")
    print("   difference        exact   in float32   in float16")
    for row in zip(differences, exact.tolist(), wide.tolist(), narrow.tolist(), strict=True):
        print("   {:10,.1f} {:12,.3f} {:12,.3f} {:12,.3f}".format(*row))
    close = torch.allclose(huber(x, zero, delta).double(), exact, rtol=1e-6)
    print(f"   And in float32 throughout, equal to torch.nn.functional.huber_loss? "
          f"{'yes' if close else 'no'}")


def count_roundings(n: int, delta: float) -> None:
    """Print how many results of float16 are not the nearest ones, with and without widening."""
    torch.manual_seed(1)
    x, y = (torch.randn(n, device=DEVICE).half() for _ in range(2))
    exact = torch.nn.functional.huber_loss(x.double(), y.double(), "none", delta)
    print(f"\n3. Of {n:,} random float16 pairs, results that are not the nearest float16:")
    for name, kernel in (("float32 between load and store", huber_kernel),
                         ("float16 throughout", huber_in_16_bits_kernel)):
        other = int((huber(x, y, delta, kernel=kernel) != exact.half()).sum())
        print(f"   {name:<34} {other:6,d}")


def show_refusals() -> None:
    """Prints the messages of two calls with invalid arguments."""
    print("\n4. Bad arguments, refused before anything is launched:")
    x = torch.zeros(8, device=DEVICE)
    for y in (torch.zeros(9, device=DEVICE), torch.zeros(8, device=DEVICE).half()):
        try:
            huber(x, y)
        except (TypeError, ValueError) as error:
            print(f"   {type(error).__name__}: {error}")


def measure(sizes: list[int]) -> None:
    """Print time and bandwidth on this GPU for several sizes, beside PyTorch."""
    print(f"   {torch.cuda.get_device_name()}, bytes as designed")
    print("   elements            kernel          torch.nn.functional.huber_loss")
    for n in sizes:
        x, y = (torch.randn(n, device=DEVICE) for _ in range(2))
        cells = []
        for function in (huber, lambda x, y: torch.nn.functional.huber_loss(x, y, "none")):
            ms = triton.testing.do_bench(lambda f=function, x=x, y=y: f(x, y),
                                         return_mode="median")
            cells.append(f"{ms:7.3f} ms {12 * n / 1e6 / ms:5.0f} GB/s")
        print(f"   {n:12,d}  {'   '.join(cells)}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    show_design([{"n": 1_000, "e": 4}, {"n": 1_000_000, "e": 2}, {"n": 1 << 26, "e": 4}])
    show_values(delta=1.0)
    count_roundings(10_000, delta=1.0)
    show_refusals()

    print("\n5. How long does it take?")
    if HAS_GPU:
        measure([1 << 16, 1 << 20, 1 << 24, 1 << 27])
    else:
        n = 1 << 27
        print("   No time is measured here: the interpreter runs programs one after the other")
        print(f"   with NumPy. By the design, {n:,} elements of float32 move {12 * n:,} bytes;")
        print(f"   a GPU that moves 3,000 GB/s needs at least {12 * n / 3e9:.2f} ms.")


if __name__ == "__main__":
    main()
