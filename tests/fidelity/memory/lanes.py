"""Kernels whose result is not settled by the language: it rests on masked lanes or on the order.

These give no finding. They are found by running them twice: the results differ between two poisons
of masked lanes, or between the two orders of the programs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from .cases import numbers


@dataclass(frozen=True)
class Contrast:
    """Host code that returns a result, and what it should be where the language settles it."""

    run: Callable[[], torch.Tensor]
    expected: torch.Tensor | None = None
    duplicate_writes: bool = False


# ---------------------------------------------------------------------------------------------
# Masked lanes

N, BLOCK = 10, 16
X = numbers(N) - 20  # all negative, so that a maximum shows a zero


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n)))


@triton.jit
def max_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr, tl.max(tl.load(x_ptr + offs, mask=offs < n)))


@triton.jit
def pad_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n))


@triton.jit
def tile_dot_kernel(a_ptr, b_ptr, out_ptr, K, BLOCK_SIZE: tl.constexpr):
    i, k = tl.arange(0, 16), tl.arange(0, BLOCK_SIZE)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
    b = tl.load(b_ptr + k[:, None] * 16 + i[None, :], mask=k[:, None] < K)
    tl.store(out_ptr + i[:, None] * 16 + i[None, :], tl.dot(a, b))


@triton.jit
def sum_other_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0)))


@triton.jit
def max_where_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr, tl.max(tl.where(offs < n, x, -float("inf"))))


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, 2 * x, mask=offs < n)


@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr, tl.sum(((x > -15.0) & (offs < n)).to(tl.int32)))


def _run(kernel: Any, size: int, dtype: torch.dtype = torch.float32) -> Callable[[], torch.Tensor]:
    def run() -> torch.Tensor:
        out = torch.zeros(size, dtype=dtype)
        kernel[(1,)](X.to(dtype), out, N, BLOCK_SIZE=BLOCK)
        return out

    return run


def _dot() -> torch.Tensor:
    a, b, out = numbers(16, 20) % 7, numbers(20, 16) % 5, torch.empty(16, 16)
    tile_dot_kernel[(1,)](a, b, out, 20, BLOCK_SIZE=32)
    return out


RESTS_ON_MASKED_LANES = {
    "a sum": Contrast(_run(sum_kernel, 1)),
    "a maximum": Contrast(_run(max_kernel, 1)),  # NaN alone would not show: tl.max passes it over
    "a sum of integers": Contrast(_run(sum_kernel, 1, torch.int32)),
    "padding that is stored": Contrast(_run(pad_kernel, BLOCK)),
    "one operand of a dot": Contrast(_dot),
}
INDEPENDENT_OF_MASKED_LANES = {
    "a sum with other=0": Contrast(_run(sum_other_kernel, 1), X.sum()[None]),
    "a maximum behind tl.where": Contrast(_run(max_where_kernel, 1), X.max()[None]),
    "a masked copy": Contrast(_run(copy_kernel, N), 2 * X),
    "a count behind a mask": Contrast(_run(count_kernel, 1), (X > -15).sum()[None].float()),
}


# ---------------------------------------------------------------------------------------------
# Order

PROGRAMS = 6


@triton.jit
def last_one_kernel(out_ptr):
    tl.store(out_ptr, tl.program_id(0))


@triton.jit
def append_kernel(count_ptr, out_ptr):
    slot = tl.atomic_add(count_ptr, 1)
    tl.store(out_ptr + slot, tl.program_id(0))


@triton.jit
def swap_kernel(cell_ptr, out_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, tl.atomic_xchg(cell_ptr, pid))


@triton.jit
def number_kernel(out_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, pid)


@triton.jit
def total_kernel(out_ptr):
    tl.atomic_add(out_ptr, tl.program_id(0))


@triton.jit
def highest_kernel(out_ptr):
    tl.atomic_max(out_ptr, (tl.program_id(0) * 5) % 6)


@triton.jit
def tickets_kernel(count_ptr, x_ptr, out_ptr, n):
    ticket = tl.atomic_add(count_ptr, 1)  # who does which part changes; what is done does not
    tl.store(out_ptr + ticket, 2 * tl.load(x_ptr + ticket))


def _ints(size: int) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.int32)


def _single(kernel: Any, size: int) -> Callable[[], torch.Tensor]:
    def run() -> torch.Tensor:
        out = _ints(size)
        kernel[(PROGRAMS,)](out)
        return out

    return run


def _counted(kernel: Any) -> Callable[[], torch.Tensor]:
    def run() -> torch.Tensor:
        out = _ints(PROGRAMS)
        kernel[(PROGRAMS,)](_ints(1), out)
        return out

    return run


def _tickets() -> torch.Tensor:
    out = _ints(PROGRAMS)
    tickets_kernel[(PROGRAMS,)](_ints(1), numbers(PROGRAMS, dtype=torch.int32), out, PROGRAMS)
    return out


RESTS_ON_THE_ORDER = {
    "the last store remains": Contrast(_single(last_one_kernel, 1), duplicate_writes=True),
    "appended one after another": Contrast(_counted(append_kernel)),
    "handed on by an exchange": Contrast(_counted(swap_kernel)),
}
INDEPENDENT_OF_THE_ORDER = {
    "an element each": Contrast(_single(number_kernel, PROGRAMS),
                                numbers(PROGRAMS, dtype=torch.int32)),
    "an atomic sum": Contrast(_single(total_kernel, 1), torch.tensor([15], dtype=torch.int32)),
    "an atomic maximum": Contrast(_single(highest_kernel, 1), torch.tensor([5], dtype=torch.int32)),
    "tickets": Contrast(_tickets, 2 * numbers(PROGRAMS, dtype=torch.int32)),
}
