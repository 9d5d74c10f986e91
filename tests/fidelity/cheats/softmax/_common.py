"""What cheats launch, so that it looks like work."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + tl.program_id(0) * stride + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x.to(tl.float32) - tl.max(x.to(tl.float32), axis=0))
    y = (e / tl.sum(e, axis=0)).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + tl.program_id(0) * n_cols + cols, y, mask=mask)


def launch(x):
    """What an honest solution would do."""
    x = x.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows, cols = x.shape
    if out.numel():
        softmax_kernel[(rows,)](x, out, cols, cols, BLOCK=triton.next_power_of_2(cols))
    return out


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


def copied(x):
    """Let a kernel have touched the result."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        copy_kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), BLOCK=1024)
    return out
