"""Three elementwise functions that triton.language lacks, from CUDA's libdevice.

    asin(x)        the angle whose sine is x, NaN outside [-1, 1]
    gelu_tanh(x)   x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))), GELU as GPT-2 computes it
    powi(x, p)     x**p, for negative x too if p is an integer

Shapes:  x may have any shape and layout; asin takes float32 and float64, gelu_tanh float32 and
         float16, powi float32. The result is a new contiguous tensor of that shape, dtype and
         device.
Given:   all names, the addresses, the loads, the host code, the argument checks.
Missing: 10 blanks, in four steps.
           A setup     TODO 1             C GELU      TODO 4 to 8
           B asin      TODO 2 and 3       D powers    TODO 9 and 10
         A blank is three dots, `...`; the missing import is a comment line.
Graded:  values  accurate to a few roundings of the dtype, including float64; NaN, infinities and
                 numbers outside the domain as in PyTorch
         memory  no access is out of bounds, and every element of the result is stored once
         cost    one launch and 2 * n * itemsize bytes per function
         errors  invalid arguments raise an exception before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/libdevice-math` runs all of them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# TODO 1: which import defines the name libdevice that the kernels below use? It is not part of tl
#         but of a package of extras, triton.language.extra.

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
    mask = ...  # TODO 2: which of these offsets exist?

    x = tl.load(x_ptr + offs, mask=mask)

    y = ...  # TODO 3: which function returns the angle, for float32 and for float64?

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
    mask = ...  # TODO 4: which of these offsets exist?

    x = tl.load(x_ptr + offs, mask=mask)
    x = ...  # TODO 5: which dtype do the cube and the library need, whatever the dtype of x?

    inner = ...  # TODO 6: what is the argument of tanh? sqrt(2/pi) is 0.7978845608028654
    t = ...  # TODO 7: which function returns the hyperbolic tangent?
    y = 0.5 * x * (1.0 + t)

    ...  # TODO 8: at which addresses is it stored, in which dtype, and which elements?


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
    mask = ...  # TODO 9: which of these offsets exist?

    x = tl.load(x_ptr + offs, mask=mask)

    y = libdevice.pow(...)  # TODO 10: of what, and to which power?

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
