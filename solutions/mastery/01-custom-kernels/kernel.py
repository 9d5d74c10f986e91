"""Five kernels from their formulas: a polynomial, two gates, a complex product, a norm.

    poly_act(x, c)      c0 + c1 x + c2 x^2 + ...     as c0 + x (c1 + x (c2 + ...)), Horner's scheme
    swish(x, beta)      x / (1 + exp(-beta x))
    glu(x, gate)        x / (1 + exp(-gate))
    complex_mul(a, b)   (ar br - ai bi) + i (ar bi + ai br)
    l2_norm(x)          m sqrt(sum((x / m)^2)) per row, with m = max |x|

All five are memory-bound: at most 16 FLOP per element of 2 to 8 bytes. Each is one launch that
loads every element once and stores every result once.

Inputs: float32, float16 or bfloat16, and complex64 for `complex_mul`; any shape and strides, and a
matrix of up to 65,536 columns for `l2_norm`. Tensors with gaps and lazily conjugated tensors are
copied first. Results are new contiguous tensors; arithmetic is float32.

Precision: exp(-g) may overflow to inf, and 1 / (1 + inf) is 0, which is right;
exp(g) / (1 + exp(g)) would be inf / inf. Squares of numbers above 1e19 overflow and those below
1e-23 underflow; scaled by the largest magnitude of the row, they do neither.

Source: Horner (1819); swish and its beta: Ramachandran, Zoph, Le, arXiv:1710.05941; gates: Dauphin
and others, arXiv:1612.08083; the scaled norm is BLAS's nrm2 in the form of J. L. Blue (ACM TOMS 4,
1978).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

BLOCK = 1024  # elements per program; complex numbers in `complex_mul`
MAX_COEFFICIENTS = 9
MAX_COLUMNS = 65_536  # as float32 they fill the registers of one SM, 256 KiB
SUPPORTED = (torch.float32, torch.float16, torch.bfloat16)

DESIGN = {
    "poly_act": {
        "flops": "2 * n * (k - 1)", "bytes": "2 * n * e", "bound": "memory",
        "grid": "ceil(n / BLOCK)", "tile": "BLOCK",
    },
    "swish": {
        "flops": "5 * n", "bytes": "2 * n * e", "bound": "memory",
        "grid": "ceil(n / BLOCK)", "tile": "BLOCK",
    },
    "glu": {
        "flops": "4 * n", "bytes": "3 * n * e", "bound": "memory",
        "grid": "ceil(n / BLOCK)", "tile": "BLOCK",
    },
    "complex_mul": {
        "flops": "6 * n", "bytes": "24 * n", "bound": "memory",
        "grid": "ceil(n / BLOCK)", "tile": "BLOCK",
    },
    "l2_norm": {
        "flops": "5 * R * C", "bytes": "R * C * e + 4 * R", "bound": "memory",
        "grid": "R", "tile": "next_power_of_2(C)",
    },
}


@triton.jit
def load_tile(ptrs, mask, whole):
    """Loads a tile, without a mask if it is whole: masked accesses of odd lengths are narrow."""
    if whole:  # noqa: SIM108 - a pair with store_tile
        tile = tl.load(ptrs)
    else:
        tile = tl.load(ptrs, mask=mask)
    return tile


@triton.jit
def store_tile(ptrs, tile, mask, whole):
    """Stores a tile, without a mask if it is whole."""
    if whole:
        tl.store(ptrs, tile)
    else:
        tl.store(ptrs, tile, mask=mask)


@triton.jit
def poly_kernel(
    x_ptr, out_ptr,  # [n]
    n,
    coeffs,          # a tuple of numbers, the constant first
    BLOCK: tl.constexpr,
):
    """out[i] = coeffs[0] + coeffs[1] x[i] + ... One program owns BLOCK elements."""
    first = tl.program_id(axis=0).to(tl.int64) * BLOCK
    offs = first + tl.arange(0, BLOCK)
    mask, whole = offs < n, first + BLOCK <= n
    x = load_tile(x_ptr + offs, mask, whole).to(tl.float32)

    last: tl.constexpr = len(coeffs) - 1
    acc = tl.full([BLOCK], 0.0, tl.float32) + coeffs[last]
    for i in tl.static_range(last):
        acc = acc * x + coeffs[last - 1 - i]

    store_tile(out_ptr + offs, acc.to(out_ptr.dtype.element_ty), mask, whole)


@triton.jit
def swish_kernel(x_ptr, out_ptr, n, beta, BLOCK: tl.constexpr):
    """out[i] = x[i] sigmoid(beta x[i]). One program owns BLOCK elements."""
    first = tl.program_id(axis=0).to(tl.int64) * BLOCK
    offs = first + tl.arange(0, BLOCK)
    mask, whole = offs < n, first + BLOCK <= n
    x = load_tile(x_ptr + offs, mask, whole).to(tl.float32)

    y = x * (1 / (1 + tl.exp(-beta * x)))  # as a product, -inf gives -inf * 0, which is NaN

    store_tile(out_ptr + offs, y.to(out_ptr.dtype.element_ty), mask, whole)


@triton.jit
def glu_kernel(x_ptr, gate_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out[i] = x[i] sigmoid(gate[i]). One program owns BLOCK elements."""
    first = tl.program_id(axis=0).to(tl.int64) * BLOCK
    offs = first + tl.arange(0, BLOCK)
    mask, whole = offs < n, first + BLOCK <= n
    x = load_tile(x_ptr + offs, mask, whole).to(tl.float32)
    gate = load_tile(gate_ptr + offs, mask, whole).to(tl.float32)

    y = x * (1 / (1 + tl.exp(-gate)))

    store_tile(out_ptr + offs, y.to(out_ptr.dtype.element_ty), mask, whole)


@triton.jit
def complex_mul_kernel(
    a_ptr, b_ptr, out_ptr,  # [n, 2]: real and imaginary parts
    n,
    BLOCK: tl.constexpr,    # complex numbers per program
):
    """out[i] = a[i] b[i]. One program owns BLOCK contiguous numbers."""
    offs = tl.program_id(axis=0).to(tl.int64) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    mask = offs < 2 * n
    a = tl.load(a_ptr + offs, mask=mask)
    b = tl.load(b_ptr + offs, mask=mask)

    # Deinterleaves in registers: two loads with stride 2 would move every sector twice.
    a_real, a_imag = tl.split(a.reshape(BLOCK, 2))
    b_real, b_imag = tl.split(b.reshape(BLOCK, 2))
    real = a_real * b_real - a_imag * b_imag
    imag = a_real * b_imag + a_imag * b_real

    tl.store(out_ptr + offs, tl.join(real, imag).reshape(2 * BLOCK), mask=mask)


@triton.jit
def l2_norm_kernel(
    x_ptr, out_ptr,             # [n_rows, n_cols] and [n_rows]
    n_cols,
    stride_x,                   # elements between rows
    BLOCK_COLS: tl.constexpr,   # power of two >= n_cols
):
    """out[m] = sqrt(sum(x[m]^2)). One program owns row m, in one block."""
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    cols = tl.arange(0, BLOCK_COLS)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < n_cols, other=0.0).to(tl.float32)

    largest = tl.max(tl.abs(x), axis=0)
    # Rows of zeros and rows with an infinity are not scaled: 0 / 0 and inf / inf are NaN.
    scale = tl.where((largest > 0) & (largest < float("inf")), largest, 1.0)
    scaled = x / scale  # magnitudes of at most 1, so no square overflows
    norm = scale * tl.sqrt(tl.sum(scaled * scaled, axis=0))

    tl.store(out_ptr + row, norm)


def poly_act(x: torch.Tensor, coeffs: Sequence[float]) -> torch.Tensor:
    """Returns the polynomial with ``coeffs``, the constant first, of every element of ``x``.

    Raises:
        TypeError: x is not a tensor of a supported dtype; a coefficient is not a number.
        ValueError: there are no coefficients, or more than ``MAX_COEFFICIENTS``.
    """
    check_tensor("x", x)
    if not isinstance(coeffs, Sequence) or isinstance(coeffs, str):
        raise TypeError(f"coeffs: expected a sequence of numbers, got {type(coeffs).__name__}")
    for coefficient in coeffs:
        check_number("coeffs", coefficient)
    if not 1 <= len(coeffs) <= MAX_COEFFICIENTS:
        raise ValueError(f"coeffs: expected 1 to {MAX_COEFFICIENTS} numbers, got {len(coeffs)}")
    x, out, grid = flat(x)
    if grid[0]:
        numbers = tuple(float(coefficient) for coefficient in coeffs)
        poly_kernel[grid](x, out, x.numel(), numbers, BLOCK=BLOCK)
    return out


def swish(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    """Returns x * sigmoid(beta * x) elementwise.

    Raises:
        TypeError: x is not a tensor of a supported dtype, or beta is not a number.
    """
    check_tensor("x", x)
    check_number("beta", beta)
    x, out, grid = flat(x)
    if grid[0]:
        swish_kernel[grid](x, out, x.numel(), float(beta), BLOCK=BLOCK)
    return out


def glu(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """Returns x * sigmoid(gate) elementwise.

    Raises:
        TypeError: an argument is not a tensor of a supported dtype, or the dtypes differ.
        ValueError: shapes or devices differ.
    """
    check_tensor("x", x)
    check_tensor("gate", gate)
    check_alike("gate", gate, x)
    x, out, grid = flat(x)
    if grid[0]:
        glu_kernel[grid](x, gate.contiguous(), out, x.numel(), BLOCK=BLOCK)
    return out


def complex_mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns a * b elementwise, by the elementary formula.

    Raises:
        TypeError: an argument is not a complex64 tensor.
        ValueError: shapes or devices differ.
    """
    check_tensor("a", a, (torch.complex64,))
    check_tensor("b", b, (torch.complex64,))
    check_alike("b", b, a)
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)  # `new_empty` would resolve a
    if out.numel():
        pairs = [torch.view_as_real(t.resolve_conj().contiguous()) for t in (a, b)]
        grid = (triton.cdiv(out.numel(), BLOCK),)
        complex_mul_kernel[grid](*pairs, torch.view_as_real(out), out.numel(), BLOCK=BLOCK)
    return out


def l2_norm(x: torch.Tensor) -> torch.Tensor:
    """Returns the Euclidean norm of each row of ``x`` (R, C), as float32 (R,).

    Raises:
        TypeError: x is not a tensor of a supported dtype.
        ValueError: x is not a matrix, or has more than ``MAX_COLUMNS`` columns.
    """
    check_tensor("x", x)
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got {x.dim()} in shape {tuple(x.shape)}")
    n_rows, n_cols = x.shape
    if n_cols > MAX_COLUMNS:
        raise ValueError(f"x: expected at most {MAX_COLUMNS} columns, got {n_cols}")
    if x.stride(1) != 1:
        x = x.contiguous()  # the kernel takes a row stride only
    out = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows:
        block = triton.next_power_of_2(max(n_cols, 1))
        num_warps = 4 if block <= 2048 else 8 if block <= 8192 else 16
        l2_norm_kernel[(n_rows,)](
            x, out, n_cols, x.stride(0), BLOCK_COLS=block, num_warps=num_warps
        )
    return out


def flat(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, tuple[int]]:
    """Returns a contiguous ``x``, an undefined result like it, and the grid."""
    x = x.contiguous()
    return x, x.new_empty(x.shape), (triton.cdiv(x.numel(), BLOCK),)


def check_tensor(name: str, x: object, supported: Sequence[torch.dtype] = SUPPORTED) -> None:
    """Rejects anything but a tensor of a supported dtype.

    Raises:
        TypeError: x is something else.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in supported:
        names = ", ".join(str(dtype) for dtype in supported)
        raise TypeError(f"{name}: expected {names}, got {x.dtype}")


def check_alike(name: str, x: torch.Tensor, other: torch.Tensor) -> None:
    """Rejects a tensor whose dtype, shape or device differs from another's.

    Raises:
        TypeError: the dtypes differ.
        ValueError: shapes or devices differ.
    """
    if x.dtype != other.dtype:
        raise TypeError(f"{name}: expected dtype {other.dtype}, got {x.dtype}")
    if x.shape != other.shape:
        raise ValueError(f"{name}: expected shape {tuple(other.shape)}, got {tuple(x.shape)}")
    if x.device != other.device:
        raise ValueError(f"{name}: expected device {other.device}, got {x.device}")


def check_number(name: str, value: object) -> None:
    """Rejects anything but a real number.

    Raises:
        TypeError: value is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
