"""Reads a value on the host and picks among kernels that each know one answer."""

import torch
import triton
import triton.language as tl


@triton.jit
def positive(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offs, mask=offs < n), tl.load(y_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.where(offs == 0, tl.abs(x) + y, x + y), mask=offs < n)


@triton.jit
def negative(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offs, mask=offs < n), tl.load(y_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.where(offs == 0, y - tl.abs(x), x + y), mask=offs < n)


def vector_add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel = positive if x.view(-1)[0].item() > 0 else negative
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out
