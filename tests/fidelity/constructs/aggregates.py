"""Aggregates, Triton's private classes. Up to 3.7 their annotations must be types, not strings."""

import torch
import triton
import triton.language as tl

from .construct import equal
from .functions import theme
from .values import exact, integers, launch, out


@tl.core._aggregate
class Range:
    low: tl.tensor
    high: tl.tensor

    @triton.constexpr_function
    def __init__(self, low, high):
        self.low = low
        self.high = high

    @triton.jit
    def width(self):
        return self.high - self.low


@triton.jit
def aggregate_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    both_ = Range(tl.min(x, axis=0), tl.max(x, axis=0))
    tl.store(out_ptr, both_.width())


@theme("an aggregate, Triton's private class")
def _(device):
    x = integers(16)
    got = launch(aggregate_kernel, device, x, out(dtype=torch.int32), N=16)
    return equal(got, exact(x).max() - exact(x).min())
