"""Worked example: the complementary error function, by subtraction and from the library, timed."""

from __future__ import annotations

import math
import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    # Triton's own interpreter runs no library functions. A function below stands in for the only
    # one that this file calls; on a GPU it is not used.
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"


@triton.jit
def erfc_by_subtraction_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    """out[i] = 1 - erf(x[i]), which needs nothing but the language."""
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = offs < n_elements
    x = tl.load(x_ptr + offs, mask=inside)
    tl.store(out_ptr + offs, 1.0 - tl.erf(x), mask=inside)


@triton.jit
def erfc_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    """out[i] = erfc(x[i]) = 1 - erf(x[i]), from the library."""
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = offs < n_elements

    # A library function takes float32 or float64. A float16 must be converted before the call;
    # float64 would select the function for doubles, which a GPU computes slowly.
    x = tl.load(x_ptr + offs, mask=inside)
    if x.dtype == tl.float16:
        x = x.to(tl.float32)

    # The dtype of x selects the function: libdevice.erfc calls __nv_erfcf or __nv_erfc.
    area = libdevice.erfc(x)

    tl.store(out_ptr + offs, area.to(out_ptr.dtype.element_ty), mask=inside)


def stand_in() -> None:
    """Without a GPU: let `libdevice.erfc` compute what CUDA's library would, on whole blocks."""
    from triton.runtime.interpreter import TensorHandle

    def erfc(x: tl.tensor) -> tl.tensor:
        numbers = torch.from_numpy(x.handle.data.copy())
        found = torch.special.erfc(numbers.double()).to(numbers.dtype).numpy()
        return tl.core.tensor(TensorHandle(found, x.handle.dtype), x.type)

    libdevice.erfc = erfc


def apply(kernel, x: torch.Tensor) -> torch.Tensor:
    """Launch an element-wise kernel on a contiguous tensor."""
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK_SIZE=1024)
    return out


def show_names() -> None:
    """Print which functions are where."""
    print("1. Where does a function live?")
    print("   function   tl     libdevice")
    for name in ("exp", "log", "sin", "sqrt", "erf", "tanh", "asin", "pow", "erfc", "expm1"):
        here, there = hasattr(tl, name), hasattr(libdevice, name)
        print(f"   {name:<10} {'yes' if here else 'no':<6} {'yes' if there else 'no'}")
    print("   `tl` has the functions that kernels need most; the others are in the library.")


def show_digits() -> None:
    """Print both forms for x from 0 to 5, beside float64."""
    print("\n2. 1 - erf(x) and erfc(x) in float32, beside float64:")
    print("   x      1 - erf(x)         erfc(x)    float64")
    x = torch.arange(0, 6, dtype=torch.float32, device=DEVICE)
    columns = [apply(kernel, x).tolist() for kernel in (erfc_by_subtraction_kernel, erfc_kernel)]
    for number, subtracted, found in zip(x.tolist(), *columns, strict=True):
        print(f"   {number:.0f} {subtracted:15.7g} {found:15.7g} {math.erfc(number):15.9g}")
    print("   erf(4) is 1 - 1.5e-8, and the largest float32 below 1 is 1 - 6e-8: it is rounded")
    print("   to 1, and 1 - 1 is 0. Calling the library is not only shorter, it is also more")
    print("   accurate.")



def show_types() -> None:
    """Print the error of the same kernel for three types."""
    print("\n3. One kernel, three types of x. How far off is erfc at the worst of 1,000 numbers?")
    torch.manual_seed(0)
    exact_of = torch.rand(1_000, dtype=torch.float64, device=DEVICE) * 2
    for dtype in (torch.float64, torch.float32, torch.float16):
        x = exact_of.to(dtype)
        exact = torch.special.erfc(x.double())
        off = ((apply(erfc_kernel, x).double() - exact).abs() / exact).max().item()
        print(f"   {str(dtype).removeprefix('torch.'):<8} {off:.1e}")
    print("   The store narrows what float32 has computed to float16, once.")


def measure(n_elements: int) -> None:
    """Print time and bandwidth on this GPU for three types."""
    print(f"   {n_elements:,d} elements on {torch.cuda.get_device_name()}")
    for dtype in (torch.float16, torch.float32, torch.float64):
        x = torch.rand(n_elements, device=DEVICE).to(dtype)
        ms = triton.testing.do_bench(lambda x=x: apply(erfc_kernel, x), return_mode="median")
        rate = 2 * x.nbytes / ms / 1e6
        print(f"   {str(dtype).removeprefix('torch.'):<8} {ms:7.3f} ms {rate:6.0f} GB/s")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    if not HAS_GPU:
        stand_in()
    show_names()
    show_digits()
    show_types()

    print("\n4. What does it cost? Each element is read once and written once, whatever happens")
    print("   in between. 134,217,728 elements:")
    for name, itemsize in (("float16", 2), ("float32", 4), ("float64", 8)):
        print(f"   {name:<8} {2 * itemsize * 134_217_728:14,d} bytes")
    print("\n5. How long does it take?")
    if HAS_GPU:
        measure(134_217_728)
    else:
        print("   No time is measured here: the interpreter's speed says nothing about a GPU. An")
        print("   H100 moves 3,350 GB/s and needs at least 0.32 ms for the float32 line. Its 132")
        print("   SMs issue 128 instructions each, 1.98 billion times a second: there is")
        print("   time for 80 instructions an element before memory is not the limit any more.")


if __name__ == "__main__":
    main()
