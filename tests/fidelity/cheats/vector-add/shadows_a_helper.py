"""Has a parameter with the name of a helper that the engine puts into kernels."""

import torch
import triton
import triton.language as tl


@triton.jit
def same(value, line):
    return value


@triton.jit
def kernel(__tritonlab_iterated: tl.constexpr, x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    for _ in (1,):
        tl.store(out_ptr + offs, x + y, mask=mask)


def vector_add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 1024),)](same, x, y, out, out.numel(), BLOCK=1024)
    return out
