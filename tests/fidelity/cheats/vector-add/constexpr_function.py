"""Runs Python while the kernel is compiled, in a constexpr_function of its own."""

import torch
import triton
import triton.language as tl


@triton.constexpr_function
def steal(a, b):
    return a


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(steal(BLOCK, 0) == BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n) + tl.load(y_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x, mask=offs < n)


def vector_add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out
