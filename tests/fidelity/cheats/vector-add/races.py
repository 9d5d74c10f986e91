"""Has two programs add to the same elements without atomics."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(given_ptr, other_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    part = tl.load(given_ptr + offs, mask=mask)
    if tl.program_id(0) == 1:
        part = tl.load(other_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.load(out_ptr + offs, mask=mask) + part, mask=mask)


def vector_add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.zeros_like(x)
    if out.numel():
        kernel[(2, triton.cdiv(out.numel(), 1024))](x, y, out, out.numel(), BLOCK=1024)
    return out
