"""Elements that are stored twice: by two programs, or by two lanes of one."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .cases import Kind, Right, Wrong, numbers

# ---------------------------------------------------------------------------------------------
# By two programs


@triton.jit
def wrong_axis_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x, mask=offs < n)  # <- M04


@triton.jit
def overlapping_kernel(x_ptr, out_ptr, n, step, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * step + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x + tl.program_id(0), mask=offs < n)  # <- M04


@triton.jit
def scatter_kernel(x_ptr, at_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + tl.load(at_ptr + offs), x)  # <- M04


@triton.jit
def total_by_all_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    total = tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK_SIZE)))
    tl.store(out_ptr, total)  # <- M04


@triton.jit
def total_by_one_kernel(x_ptr, out_ptr, copy_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    tl.store(copy_ptr + pid * BLOCK_SIZE + offs, x)
    if pid == 0:
        tl.store(out_ptr, tl.sum(x))


@triton.jit
def histogram_kernel(x_ptr, bins_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.atomic_add(bins_ptr + tl.load(x_ptr + offs), 1)


@triton.jit
def twice_by_one_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, 0.0)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


@triton.jit
def fields_kernel(out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + 2 * offs, offs)
    tl.store(out_ptr + 2 * offs + 1, -offs)


def _by_wrong_axis():
    wrong_axis_kernel[(4,)](numbers(100), torch.empty(100), 100, BLOCK_SIZE=32)


def _overlaps(step):
    def run():
        out = torch.empty(100)
        overlapping_kernel[(triton.cdiv(100, step),)](numbers(100), out, 100, step, BLOCK_SIZE=32)
        return out, numbers(100) + torch.arange(100) // 32

    return run


def _scatters(change=None):
    def run():
        at, out = torch.arange(32).flip(0), torch.zeros(32)
        if change is not None:
            at[change[0]] = change[1]
        scatter_kernel[(4,)](numbers(32), at, out, BLOCK_SIZE=8)
        return out, numbers(32).flip(0)

    return run


def _total_by_all():
    total_by_all_kernel[(3,)](numbers(8), torch.empty(1), BLOCK_SIZE=8)


def _total_by_one():
    x, out, copies = numbers(8), torch.empty(1), torch.empty(3, 8)
    total_by_one_kernel[(3,)](x, out, copies, BLOCK_SIZE=8)
    return torch.cat([out, copies.flatten()]), torch.cat([x.sum()[None], x.repeat(3)])


def _counts():
    x, bins = numbers(32, dtype=torch.int32) // 7, torch.zeros(5, dtype=torch.int32)
    histogram_kernel[(4,)](x, bins, BLOCK_SIZE=8)
    return bins, torch.bincount(x).int()


def _twice_by_one():
    out = torch.empty(32)
    twice_by_one_kernel[(4,)](numbers(32), out, BLOCK_SIZE=8)
    return out, numbers(32)


def _two_launches():
    out = torch.empty(32)
    for k in (5, 1):
        twice_by_one_kernel[(4,)](k * numbers(32), out, BLOCK_SIZE=8)
    return out, numbers(32)


def _fields():
    out = torch.empty(64)
    fields_kernel[(4,)](out, BLOCK_SIZE=8)
    return out, torch.stack([numbers(32), -numbers(32)], 1).flatten()


def _fields_of_one_word():
    """Four programs store a byte of the same word each."""
    out = torch.empty(8, dtype=torch.int8)
    fields_kernel[(4,)](out, BLOCK_SIZE=1)
    return out, torch.tensor([0, 0, 1, -1, 2, -2, 3, -3], dtype=torch.int8)


BY_PROGRAMS = Kind(
    wrong={
        "the wrong axis": Wrong(wrong_axis_kernel, _by_wrong_axis,
                                "M04", "programs 0 and 1", "out_ptr", 0),
        "blocks overlap by one": Wrong(overlapping_kernel, _overlaps(31),
                                       "M04", "programs 0 and 1", "out_ptr", 31),
        "an index given twice": Wrong(scatter_kernel, _scatters((20, 30)),
                                      "M04", "programs 0 and 2", "out_ptr", 30),
        "every program stores the total": Wrong(total_by_all_kernel, _total_by_all,
                                                "M04", "programs 0 and 1", "out_ptr", 0),
    },
    right={
        "blocks side by side": Right(_overlaps(32)),
        "a permutation": Right(_scatters()),
        "one program stores the total": Right(_total_by_one),
        "atomics": Right(_counts),
        "twice by the same program": Right(_twice_by_one),
        "two launches": Right(_two_launches),
        "interleaved": Right(_fields),
        "bytes of one word": Right(_fields_of_one_word),
    },
)


# ---------------------------------------------------------------------------------------------
# By two lanes of one program


@triton.jit
def halves_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + pid * BLOCK_SIZE + offs)
    tl.store(out_ptr + pid * (BLOCK_SIZE // 2) + offs // 2, x)  # <- M04


@triton.jit
def scatter_lanes_kernel(x_ptr, at_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + tl.load(at_ptr + offs), x)  # <- M04


@triton.jit
def column_of_rows_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(out_ptr + m[:, None] + 0 * n[None, :], x)  # <- M04


@triton.jit
def halves_picked_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs // 2, tl.load(x_ptr + offs), mask=offs % 2 == 1)


@triton.jit
def sum_by_all_lanes_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + pid * BLOCK_SIZE + offs)
    tl.store(out_ptr + pid + 0 * offs, tl.sum(x) + 0 * x)


def _halves(x):
    def run():
        out = torch.empty(16)
        halves_kernel[(4,)](x, out, BLOCK_SIZE=8)
        return out, x[::2].contiguous()

    return run


def _scatter_lanes(x, at):
    def run():
        out = torch.zeros(8)
        scatter_lanes_kernel[(1,)](x, torch.tensor(at), out, BLOCK_SIZE=8)
        expected = torch.zeros(8)
        expected[torch.tensor(at)] = x
        return out, expected

    return run


def _columns(x):
    def run():
        out = torch.empty(4)
        column_of_rows_kernel[(1,)](x, out, M=4, N=8)
        return out, x[:, 0].clone()

    return run


def _picks_odd_lanes():
    out = torch.empty(16)
    halves_picked_kernel[(1,)](numbers(32), out, BLOCK_SIZE=32)
    return out, numbers(32)[1::2].clone()


def _sums():
    out = torch.empty(4)
    sum_by_all_lanes_kernel[(4,)](numbers(32), out, BLOCK_SIZE=8)
    return out, numbers(4, 8).sum(1)


PAIRS = torch.arange(16, dtype=torch.float32).repeat_interleave(2)
LATE_PAIR = PAIRS.clone()
LATE_PAIR[21] = -1.0

BY_LANES = Kind(
    wrong={
        "two lanes to an element": Wrong(halves_kernel, _halves(numbers(32)),
                                         "M04", "program 0", "out_ptr", 0),
        "one pair differs": Wrong(halves_kernel, _halves(LATE_PAIR),
                                  "M04", "program 2", "out_ptr", 10),
        "an index given twice": Wrong(
            scatter_lanes_kernel, _scatter_lanes(numbers(8), [0, 1, 2, 5, 4, 5, 6, 7]),
            "M04", "program 0", "out_ptr", 5),
        "a row to an element": Wrong(column_of_rows_kernel, _columns(numbers(4, 8)),
                                     "M04", "program 0", "out_ptr", 0),
    },
    right={
        "the same value": Right(_halves(PAIRS)),
        "the same NaN": Right(_scatter_lanes(
            torch.full((8,), torch.nan), [0, 1, 2, 5, 4, 5, 6, 7])),
        "rows of equal values": Right(_columns(numbers(4, 1).expand(4, 8).contiguous())),
        "one lane of each pair": Right(_picks_odd_lanes),
        "a sum by all lanes": Right(_sums),
    },
)

KINDS = {"two programs, one element": BY_PROGRAMS, "two lanes, one element": BY_LANES}
