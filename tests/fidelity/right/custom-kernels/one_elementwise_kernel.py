"""Right but different: one kernel for three functions, conjugates by a sign, rows in blocks."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

SIZE = 512

ROWS = {
    "flops": "5 * R * C", "bytes": "R * C * e + 4 * R", "bound": "memory",
    "grid": "R", "tile": "next_power_of_2(max(C, 1))",
}


def along(flops: str, nbytes: str) -> dict[str, str]:
    return {"flops": flops, "bytes": nbytes, "bound": "memory",
            "grid": "cdiv(n, SIZE)", "tile": "SIZE"}


DESIGN = {
    "poly_act": along("2 * (k - 1) * n", "n * e * 2"),
    "swish": along("4 * n", "2 * n * e"),
    "glu": along("3 * n", "3 * n * e"),
    "complex_mul": along("n * 6", "n * 8 * 3"),
    "l2_norm": ROWS,
}


@triton.jit
def sigmoid(t):
    small = tl.exp(-tl.abs(t))  # at most 1
    return tl.where(t >= 0, 1 / (1 + small), small / (1 + small))


@triton.jit
def elementwise_kernel(x_ptr, y_ptr, out_ptr, numbers, n, WHAT: tl.constexpr, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    if WHAT == "polynomial":
        K: tl.constexpr = len(numbers)
        y = numbers[K - 1] + tl.zeros_like(x)
        for i in tl.static_range(K - 2, -1, -1):
            y = tl.fma(y, x, numbers[i] + tl.zeros_like(x))
    elif WHAT == "swish":
        y = x * sigmoid(numbers[0] * x)
    else:
        y = x * sigmoid(tl.load(y_ptr + offs, mask=mask).to(tl.float32))
    tl.store(out_ptr + offs, y.to(out_ptr.type.element_ty), mask=mask)


@triton.jit
def complex_kernel(a_ptr, b_ptr, out_ptr, sign_a, sign_b, n, SIZE: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    offs = pair[:, None] * 2 + tl.arange(0, 2)[None, :]
    mask = (pair < n)[:, None] & (tl.arange(0, 2) < 2)[None, :]
    ar, ai = tl.split(tl.load(a_ptr + offs, mask=mask))
    br, bi = tl.split(tl.load(b_ptr + offs, mask=mask))
    ai, bi = ai * sign_a, bi * sign_b
    tl.store(out_ptr + offs, tl.join(ar * br - ai * bi, ar * bi + ai * br), mask=mask)


@triton.jit
def norm_kernel(x_ptr, out_ptr, n_cols, stride, SIZE: tl.constexpr):
    """A row in blocks: the sum is scaled anew where a larger number comes."""
    row = tl.program_id(0).to(tl.int64)
    largest, total = 0.0, 0.0
    for start in range(0, n_cols, SIZE):
        cols = start + tl.arange(0, SIZE)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        size = tl.abs(x)
        found = tl.maximum(largest, tl.max(size, 0))
        usable = (found > 0) & (found < float("inf"))
        scale = tl.where(usable, found, 1.0)
        before = tl.where(largest < float("inf"), largest, 1.0) / scale
        part = size / scale
        total = total * (before * before) + tl.sum(part * part, 0)
        largest = found
    scale = tl.where((largest > 0) & (largest < float("inf")), largest, 1.0)
    tl.store(out_ptr + row, scale * tl.sqrt(total))


def elementwise(what, x, y, numbers):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        grid = (triton.cdiv(out.numel(), SIZE),)
        y = None if y is None else y.contiguous()
        elementwise_kernel[grid](
            x.contiguous(), y, out, numbers, out.numel(), WHAT=what, SIZE=SIZE)
    return out


def plain(x):
    """Real pairs, and the sign with which the imaginary parts count."""
    sign = -1.0 if x.is_conj() else 1.0
    memory = x.conj() if x.is_conj() else x
    return torch.view_as_real(memory).contiguous(), sign


REAL = (torch.float32, torch.float16, torch.bfloat16)


def checked(kinds, **tensors):
    """The tensors, if all are alike and of one of these dtypes."""
    first = None
    for name, tensor in tensors.items():
        if not torch.is_tensor(tensor):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
        if tensor.dtype not in kinds:
            raise TypeError(f"{name} must be one of {kinds}, not {tensor.dtype}")
        if first is None:
            first = tensor
        if tensor.dtype is not first.dtype:
            raise TypeError(f"{name} must be {first.dtype} as well, not {tensor.dtype}")
        if tensor.shape != first.shape:
            raise ValueError(f"{name} must be {tuple(first.shape)}, not {tuple(tensor.shape)}")
        if tensor.device != first.device:
            raise ValueError(f"{name} must be on {first.device}, not {tensor.device}")


def number(name, value):
    if type(value) not in (int, float):
        raise TypeError(f"{name} must be a number, not a {type(value).__name__}")
    return float(value)


def numbers(coeffs):
    if not isinstance(coeffs, (list, tuple)):
        raise TypeError(f"coeffs must be a list or a tuple, not {type(coeffs).__name__}")
    if not 0 < len(coeffs) < 10:
        raise ValueError(f"coeffs must be 1 to 9 numbers, not {len(coeffs)}")
    return tuple(number("coeffs", one) for one in coeffs)


def matrix(x):
    checked(REAL, x=x)
    if x.ndim != 2:
        raise ValueError(f"x must have 2 dimensions, not {x.ndim}: {tuple(x.shape)}")
    if x.size(1) > 65536:
        raise ValueError(f"x must have 65536 columns at most, not {x.size(1)}")


def poly_act(x, coeffs):
    checked(REAL, x=x)
    coeffs = numbers(coeffs)
    return elementwise("polynomial", x, None, coeffs)


def swish(x, beta=1.0):
    checked(REAL, x=x)
    beta = number("beta", beta)
    return elementwise("swish", x, None, (beta,))


def glu(x, gate):
    checked(REAL, x=x, gate=gate)
    return elementwise("gate", x, gate, (0.0,))


def complex_mul(a, b):
    checked((torch.complex64,), a=a, b=b)
    (pairs_a, sign_a), (pairs_b, sign_b) = plain(a), plain(b)
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    if out.numel():
        complex_kernel[(triton.cdiv(out.numel(), SIZE),)](
            pairs_a, pairs_b, torch.view_as_real(out), sign_a, sign_b, out.numel(), SIZE=SIZE)
    return out


def l2_norm(x):
    matrix(x)
    x = x if x.stride(1) == 1 else x.contiguous()
    out = x.new_empty(x.shape[0], dtype=torch.float32)
    if out.numel():
        norm_kernel[(out.numel(),)](x, out, x.shape[1], x.stride(0), SIZE=1024)
    return out
