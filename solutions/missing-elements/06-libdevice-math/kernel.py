"""Three elementwise functions that triton.language lacks, from CUDA's libdevice.

    asin(x)        the angle whose sine is x, NaN outside [-1, 1]
    gelu_tanh(x)   x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))), GELU as GPT-2 computes it
    powi(x, p)     x**p, for negative x too if p is an integer

Every program computes one tile of BLOCK_SIZE contiguous elements.

Cost: x is loaded once and the result is stored once: 2 * n * itemsize bytes. A library function is
inlined: about 40 PTX instructions per element for asin and GELU in float32, and 110 for pow. An
H100 can execute 80 while 8 bytes move (3,350 GB/s, 132 SMs, 128 FP32 units per SM, 1.98 GHz): the
first two are limited by memory bandwidth, pow by arithmetic.

Inputs: a tensor of any shape and layout; asin takes float32 and float64, gelu_tanh float32 and
float16, powi float32 and a number.
Result: a new contiguous tensor of that shape, dtype and device; the input is unchanged.

Precision: libdevice has each function for float and for double, and Triton selects one by the dtype
of the argument. There is none for float16, so GELU converts to float32 first. pow is accurate to a
few units in the last place, which exp(p * log(x)) is not: the relative error of the result is the
absolute error of the exponent.

Source: D. Hendrycks, K. Gimpel, Gaussian Error Linear Units, arXiv:1606.08415, for both forms of
GELU. The functions are listed in NVIDIA's libdevice User's Guide.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

# 1024: a thread moves 16 bytes per instruction, even with 2-byte elements (checked in the PTX).
BLOCK_SIZE = 1024


@triton.jit
def asin_kernel(
    x_ptr, out_ptr,            # [n_elements], contiguous
    n_elements,
    BLOCK_SIZE: tl.constexpr,  # elements per program, a power of two
):
    """out[i] = asin(x[i]). One program owns BLOCK_SIZE contiguous elements.

    Moves 2 * n_elements * itemsize bytes: one load and one store per element.
    """
    pid = tl.program_id(axis=0).to(tl.int64)  # pid * BLOCK_SIZE may exceed 2**31 - 1
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements  # the last tile may be partial

    x = tl.load(x_ptr + offs, mask=mask)

    y = libdevice.asin(x)  # __nv_asinf for float32, __nv_asin for float64

    tl.store(out_ptr + offs, y, mask=mask)


@triton.jit
def gelu_tanh_kernel(
    x_ptr, out_ptr,            # [n_elements], contiguous
    n_elements,
    BLOCK_SIZE: tl.constexpr,  # elements per program, a power of two
):
    """out[i] = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))) with x = x[i].

    One program owns BLOCK_SIZE contiguous elements. Moves 2 * n_elements * itemsize bytes.
    """
    pid = tl.program_id(axis=0).to(tl.int64)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements

    x = tl.load(x_ptr + offs, mask=mask)
    x = x.to(tl.float32)  # libdevice has no float16, and 41**3 overflows it

    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)  # sqrt(2/pi); blocks have no **
    t = libdevice.tanh(inner)  # tl has no tanh
    y = 0.5 * x * (1.0 + t)

    tl.store(out_ptr + offs, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def powi_kernel(
    x_ptr, out_ptr,            # [n_elements], contiguous
    n_elements,
    p,                         # the exponent, a float
    BLOCK_SIZE: tl.constexpr,  # elements per program, a power of two
):
    """out[i] = x[i]**p. One program owns BLOCK_SIZE contiguous elements.

    Moves 2 * n_elements * itemsize bytes: one load and one store per element.
    """
    pid = tl.program_id(axis=0).to(tl.int64)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements

    x = tl.load(x_ptr + offs, mask=mask)

    y = libdevice.pow(x, p)  # p has the dtype of x, as pow requires

    tl.store(out_ptr + offs, y, mask=mask)


def asin(x: torch.Tensor) -> torch.Tensor:
    """Returns the arc sine of each element in radians, NaN outside [-1, 1].

    Raises:
        TypeError: x is not a tensor, or neither float32 nor float64.
    """
    check_argument(x, torch.float32, torch.float64)
    return apply(asin_kernel, x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """Returns GELU in its tanh form, as ``torch.nn.GELU(approximate="tanh")``.

    Raises:
        TypeError: x is not a tensor, or neither float32 nor float16.
    """
    check_argument(x, torch.float32, torch.float16)
    return apply(gelu_tanh_kernel, x)


def powi(x: torch.Tensor, p: float) -> torch.Tensor:
    """Returns x to the power p, as ``torch.pow``: NaN for negative x unless p is an integer.

    Raises:
        TypeError: x is not a tensor, or not float32; p is not a number.
    """
    check_argument(x, torch.float32)
    if not isinstance(p, (int, float)):
        raise TypeError(f"p: expected a number, got {type(p).__name__}")
    return apply(powi_kernel, x, float(p))  # pow takes two floats or two doubles


def apply(kernel: triton.JITFunction, x: torch.Tensor, *numbers: float) -> torch.Tensor:
    """Launches an elementwise kernel on x and a new contiguous tensor of its shape and dtype."""
    x = x.contiguous()  # the kernels take no strides
    out = torch.empty_like(x)
    n_elements = out.numel()
    if n_elements == 0:
        return out  # nothing to launch

    grid = (triton.cdiv(n_elements, BLOCK_SIZE),)
    kernel[grid](x, out, n_elements, *numbers, BLOCK_SIZE=BLOCK_SIZE)
    return out


def check_argument(x: torch.Tensor, *supported: torch.dtype) -> None:
    """Rejects unsupported arguments, before anything is allocated or launched.

    Raises:
        TypeError: x is not a tensor, or its dtype is not supported.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in supported:
        names = " or ".join(str(dtype) for dtype in supported)
        raise TypeError(f"x: expected {names}, got {x.dtype}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
