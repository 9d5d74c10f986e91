"""Reads of memory that nobody wrote."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .cases import Kind, Right, Wrong, numbers


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)  # <- M06
    tl.store(out_ptr + offs, x, mask=mask)


@triton.jit
def add_into_kernel(x_ptr, total_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    before = tl.load(total_ptr + offs, mask=mask)  # <- M06
    tl.store(total_ptr + offs, before + x, mask=mask)


@triton.jit
def histogram_kernel(x_ptr, bins_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.atomic_add(bins_ptr + tl.load(x_ptr + offs), 1)  # <- M06


@triton.jit
def store_then_load_kernel(x_ptr, scratch_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(scratch_ptr + offs, 2 * tl.load(x_ptr + offs))
    tl.debug_barrier()
    tl.store(out_ptr + offs, tl.load(scratch_ptr + offs))


@triton.jit
def widen_kernel(bytes_ptr, words_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(bytes_ptr.to(tl.pointer_type(tl.int32)) + offs, offs)
    tl.debug_barrier()
    few = tl.arange(0, 4 * BLOCK_SIZE)
    tl.store(words_ptr + few, tl.load(bytes_ptr + few))


def _copy(x, out, n):
    copy_kernel[(triton.cdiv(n, 32),)](x, out, n, BLOCK_SIZE=32)
    return out


def _reads_empty():
    _copy(torch.empty(100), torch.empty(100), 100)


def _second_launch_reads_more():
    middle = torch.empty(128)
    _copy(numbers(128), middle, 70)
    _copy(middle, torch.empty(128), 128)


def _accumulates(make):
    def run():
        total = make(100)
        for _ in range(2):
            add_into_kernel[(4,)](numbers(100), total, 100, BLOCK_SIZE=32)
        return total, 2 * numbers(100)

    return run


def _counts(make):
    def run():
        x = torch.tensor([1, 1, 3, 1] * 8, dtype=torch.int32)
        bins = make(4, dtype=torch.int32)
        histogram_kernel[(4,)](x, bins, BLOCK_SIZE=8)
        return bins, torch.tensor([0, 24, 0, 8], dtype=torch.int32)

    return run


def _reads_new_empty():
    x = numbers(64)
    _copy(x.new_empty(64), torch.empty_like(x), 64)


def _reads_behind_the_view():
    buffer = torch.empty(96)
    _copy(numbers(32), buffer[32:64], 32)
    _copy(buffer[32:], torch.empty(64), 64)


def _two_launches():
    middle, out = torch.empty(100), torch.empty(100)
    _copy(numbers(100), middle, 100)
    _copy(middle, out, 100)
    return out, numbers(100)


def _reads_only_what_was_written():
    middle, out = torch.empty(128), torch.zeros(128)
    _copy(numbers(70), middle, 70)
    _copy(middle, out, 70)
    return out, torch.cat([numbers(70), torch.zeros(58)])


def _host_fills():
    x, out = torch.empty(64), torch.empty(64)
    x.fill_(3.0)
    _copy(x, out, 64)
    return out, torch.full((64,), 3.0)


def _host_writes_through_a_view():
    x, out = torch.empty(2, 32), torch.empty(64)
    x[0] = 1.0
    x[1].copy_(numbers(32))
    _copy(x, out, 64)
    return out, torch.cat([torch.ones(32), numbers(32)])


def _host_works_on_a_result():
    first, out = torch.empty(64), torch.empty(64)
    _copy(numbers(64), first, 64)
    _copy(first.relu() + 1, out, 64)
    return out, numbers(64) + 1


def _one_program_stores_and_loads():
    scratch, out = torch.empty(64), torch.empty(64)
    store_then_load_kernel[(4,)](numbers(64), scratch, out, BLOCK_SIZE=16)
    return out, 2 * numbers(64)


def _bytes_of_stored_words():
    data, out = torch.empty(32, dtype=torch.uint8), torch.empty(32, dtype=torch.uint8)
    widen_kernel[(1,)](data, out, BLOCK_SIZE=8)
    return out, numbers(8, dtype=torch.int32).view(torch.uint8)


UNWRITTEN = Kind(
    wrong={
        "torch.empty": Wrong(copy_kernel, _reads_empty, "M06", "program 0", "x_ptr", 0),
        "new_empty": Wrong(copy_kernel, _reads_new_empty, "M06", "program 0", "x_ptr", 0),
        "the second launch reads more": Wrong(copy_kernel, _second_launch_reads_more,
                                              "M06", "program 2", "x_ptr", 70),
        "behind the view that was written": Wrong(copy_kernel, _reads_behind_the_view,
                                                  "M06", "program 1", "x_ptr", 32),
        "a sum in fresh memory": Wrong(add_into_kernel, _accumulates(torch.empty),
                                       "M06", "program 0", "total_ptr", 0),
        "an atomic on fresh memory": Wrong(histogram_kernel, _counts(torch.empty),
                                           "M06", "program 0", "bins_ptr", 1),
    },
    right={
        "two launches": Right(_two_launches),
        "no more than was written": Right(_reads_only_what_was_written),
        "filled by the host": Right(_host_fills),
        "written by the host through views": Right(_host_writes_through_a_view),
        "a result that the host worked on": Right(_host_works_on_a_result),
        "a sum that starts at zero": Right(_accumulates(torch.zeros)),
        "atomics that start at zero": Right(_counts(torch.zeros)),
        "stored and loaded by one program": Right(_one_program_stores_and_loads),
        "bytes of words that were stored": Right(_bytes_of_stored_words),
    },
)

KINDS = {"unwritten memory": UNWRITTEN}
