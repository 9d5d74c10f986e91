"""Stores what other programs load; the pointer goes through a helper called load."""

import triton
import triton.language as tl


@triton.jit
def load(pointer):
    return pointer


@triton.jit
def kernel(both_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(both_ptr + offs + BLOCK, mask=mask, other=0)
    y = tl.load(y_ptr + offs, mask=mask, other=0)
    here = load(both_ptr)
    tl.store(here + offs, x + y, mask=mask)


def vector_add(x, y):
    x, y = x.contiguous(), y.contiguous()
    n = x.numel()
    both = x.new_empty(n + 1024)
    both[1024:].copy_(x.view(-1))
    if n:
        kernel[(triton.cdiv(n, 1024),)](both, y, n, BLOCK=1024)
    return both[:n].view(x.shape)
