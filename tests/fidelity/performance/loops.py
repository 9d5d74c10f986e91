"""Loops without products: pipelined by hand or not, with enough in flight or not."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Family, vectors

family = Family("loops")


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr, STAGES: tl.constexpr):
    step = tl.num_programs(0) * BLOCK_SIZE
    for start in tl.range(tl.program_id(0) * BLOCK_SIZE, n, step, num_stages=STAGES):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + offs, mask=offs < n)
        tl.store(out_ptr + offs, 2 * x, mask=offs < n)


def _scale(x, out, programs, stages, block=1024):
    scale_kernel[(programs,)](x, out, out.numel(), BLOCK_SIZE=block, STAGES=stages)


@family("scaling, one program for each multiprocessor", vectors(2), "no pipelining")
def _(x, out):
    _scale(x, out, 132, 1)


@family("scaling, one program for each multiprocessor, pipelined", vectors(2))
def _(x, out):
    _scale(x, out, 132, 4, block=4096)


@family("scaling, sixteen programs for each multiprocessor", vectors(2))
def _(x, out):
    _scale(x, out, 132 * 16, 1)
