"""Kernels that cannot go on: a failed assertion in one program, a wait that never ends."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .cases import Kind, Right, Wrong, numbers

# ---------------------------------------------------------------------------------------------
# device_assert


@triton.jit(debug=True)
def scalar_assert_kernel(x_ptr, out_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    tl.device_assert(x >= 0, "x is negative")  # <- R01
    tl.store(out_ptr + pid, x)


@triton.jit(debug=True)
def block_assert_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.device_assert(x < 900.0, "x is large")  # <- R01
    tl.store(out_ptr + offs, x, mask=offs < n)


@triton.jit(debug=True)
def grid_assert_kernel(out_ptr, limit):
    column, row = tl.program_id(0), tl.program_id(1)
    if row == 2:
        tl.device_assert(column < limit, "the column is too far right")  # <- R01
    tl.store(out_ptr + row * tl.num_programs(0) + column, 1.0)


@triton.jit(debug=True)
def masked_assert_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.device_assert((x < 1000.0) | (offs >= n), "x is large")
    tl.store(out_ptr + offs, x, mask=offs < n)


def _scalar_asserts(x):
    def run():
        out = torch.empty(5)
        scalar_assert_kernel[(5,)](x, out)
        return out, x

    return run


def _block_asserts(kernel, n):
    def run():
        out = torch.empty(n)
        kernel[(triton.cdiv(n, 256),)](numbers(n), out, n, BLOCK_SIZE=256)
        return out, numbers(n)

    return run


def _grid_asserts(limit):
    def run():
        out = torch.empty(12)
        grid_assert_kernel[(4, 3)](out, limit)
        return out, torch.ones(12)

    return run


ASSERTION = Kind(
    wrong={
        "one negative number": Wrong(
            scalar_assert_kernel, _scalar_asserts(torch.tensor([3.0, 1.0, 4.0, -1.0, 5.0])),
            "R01", "program 3"),
        "one lane of a block": Wrong(block_assert_kernel, _block_asserts(block_assert_kernel, 901),
                                     "R01", "program 3"),
        "on one side of a branch": Wrong(grid_assert_kernel, _grid_asserts(3),
                                         "R01", "program (3, 2)"),
    },
    right={
        "no negative number": Right(_scalar_asserts(numbers(5))),
        "every lane": Right(_block_asserts(block_assert_kernel, 900)),
        "masked lanes excused": Right(_block_asserts(masked_assert_kernel, 1000)),
        "never on that side": Right(_grid_asserts(4)),
    },
)


# ---------------------------------------------------------------------------------------------
# Waiting


@triton.jit
def wait_for_nobody_kernel(flag_ptr, out_ptr):
    while tl.atomic_add(flag_ptr, 0) == 0:  # <- R02
        pass
    tl.store(out_ptr + tl.program_id(0), 1.0)


@triton.jit
def lock_twice_kernel(lock_ptr, total_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:  # <- R02
        pass
    tl.store(total_ptr, tl.load(total_ptr) + 1.0)  # and the lock is never given back


@triton.jit
def poll_by_load_kernel(flag_ptr, out_ptr):
    pid = tl.program_id(0)
    if pid == 1:
        while tl.load(flag_ptr, volatile=True) == 0:  # <- R02
            pass
    tl.store(out_ptr + pid, 1.0)


@triton.jit
def wait_for_the_one_before_kernel(flags_ptr, x_ptr, out_ptr):
    pid = tl.program_id(0)
    before = 0.0
    if pid > 0:
        while tl.atomic_cas(flags_ptr + pid - 1, 1, 1) == 0:
            pass
        before = tl.load(out_ptr + pid - 1)
    tl.store(out_ptr + pid, before + tl.load(x_ptr + pid))
    tl.atomic_xchg(flags_ptr + pid, 1)


@triton.jit
def locked_sum_kernel(lock_ptr, total_ptr, x_ptr):
    x = tl.load(x_ptr + tl.program_id(0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(total_ptr, tl.load(total_ptr) + x)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def count_down_kernel(x_ptr, out_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    steps = 0
    while x > 1:
        x = tl.where(x % 2 == 0, x // 2, 3 * x + 1)
        steps += 1
    tl.store(out_ptr + pid, steps)


@triton.jit
def open_door_kernel(flag_ptr, out_ptr):
    while tl.atomic_add(flag_ptr, 0) == 0:
        pass
    tl.store(out_ptr + tl.program_id(0), 1.0)


def _flag():
    return torch.zeros(1, dtype=torch.int32)


def _waits_for_nobody():
    wait_for_nobody_kernel[(2,)](_flag(), torch.empty(2))


def _locks_twice():
    lock_twice_kernel[(3,)](_flag(), torch.zeros(1))


def _polls_by_load():
    poll_by_load_kernel[(2,)](_flag(), torch.empty(2))


def _waits_in_line():
    out = torch.zeros(6)
    wait_for_the_one_before_kernel[(6,)](torch.zeros(6, dtype=torch.int32), numbers(6), out)
    return out, numbers(6).cumsum(0)


def _sums_under_lock():
    total = torch.zeros(1)
    locked_sum_kernel[(6,)](_flag(), total, numbers(6))
    return total, numbers(6).sum()[None]


def _counts_down():
    x = torch.tensor([1, 27, 6, 97], dtype=torch.int32)
    out = torch.empty(4, dtype=torch.int32)
    count_down_kernel[(4,)](x, out)
    return out, torch.tensor([0, 111, 8, 118], dtype=torch.int32)


def _finds_the_door_open():
    out = torch.empty(2)
    open_door_kernel[(2,)](_flag() + 1, out)
    return out, torch.ones(2)


WAITING = Kind(
    wrong={
        "for a flag that nobody sets": Wrong(wait_for_nobody_kernel, _waits_for_nobody,
                                             "R02", "program 0"),
        "for a lock that is never given back": Wrong(lock_twice_kernel, _locks_twice,
                                                     "R02", "program 1"),
        "by loads, in one program": Wrong(poll_by_load_kernel, _polls_by_load,
                                          "R02", "program 1"),
    },
    right={
        "for the program before": Right(_waits_in_line),
        "for the program before, started last": Right(_waits_in_line, order="reverse"),
        "for a lock": Right(_sums_under_lock),
        "for a flag that is set": Right(_finds_the_door_open),
        "a long loop, no wait": Right(_counts_down),
    },
)

KINDS = {"assertion in one program": ASSERTION, "waiting for ever": WAITING}
