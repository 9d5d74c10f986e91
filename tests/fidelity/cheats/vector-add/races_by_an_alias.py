"""Stores what other programs load, by a function that was imported under another name."""

import triton
import triton.language as tl
from triton.language import store as put


@triton.jit
def kernel(both_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(both_ptr + offs + BLOCK, mask=mask, other=0)
    y = tl.load(y_ptr + offs, mask=mask, other=0)
    put(both_ptr + offs, x + y, mask=mask)


def vector_add(x, y):
    x, y = x.contiguous(), y.contiguous()
    n = x.numel()
    both = x.new_empty(n + 1024)
    both[1024:].copy_(x.view(-1))
    if n:
        kernel[(triton.cdiv(n, 1024),)](both, y, n, BLOCK=1024)
    return both[:n].view(x.shape)
