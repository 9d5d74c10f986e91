"""Builds its kernel from pieces of text."""

import linecache

import torch
import triton

from ._common import add_kernel

TEXT = """
import triton, triton.language as tl
def hidden(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n)
             + tl.load(y_ptr + offs, mask=offs < n), mask=offs < n)
"""
linecache.cache["<hidden>"] = (len(TEXT), None, TEXT.splitlines(True), "<hidden>")
exec(compile(TEXT, "<hidden>", "exec"))
hidden = triton.jit(globals()["hidden"])


def vector_add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        hidden[(triton.cdiv(out.numel(), 1024),)](x, y, out, out.numel(), BLOCK=1024)
    return out
