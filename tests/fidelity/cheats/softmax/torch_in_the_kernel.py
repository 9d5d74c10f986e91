"""Imports torch inside the kernel and computes there."""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, stride, BLOCK: tl.constexpr):
    import torch

    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + cols, mask=cols < n_cols, other=-float("inf"))
    row = torch.softmax(torch.from_numpy(x.handle.data.astype("float32")), dim=0)
    x.handle.data = row.numpy().astype(x.handle.data.dtype)
    tl.store(out_ptr + tl.program_id(0) * n_cols + cols, x, mask=cols < n_cols)


def softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        kernel[(len(x),)](x, out, x.shape[1], x.shape[1],
                          BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
