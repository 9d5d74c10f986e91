"""Programs of one launch that meet in memory: without order, and with an order of their own."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .cases import Kind, Right, Wrong, numbers


def ints(size: int) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.int32)


# ---------------------------------------------------------------------------------------------
# Loads of what another program stored


@triton.jit
def left_neighbour_kernel(out_ptr, result_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, pid)
    left = tl.load(out_ptr + pid - 1, mask=pid > 0, other=-1)  # <- M09
    tl.store(result_ptr + pid, left)


@triton.jit
def shared_scratch_kernel(x_ptr, scratch_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(scratch_ptr + pid * BLOCK_SIZE + offs, tl.load(x_ptr + pid * BLOCK_SIZE + offs))
    tl.debug_barrier()  # orders the lanes of one program, not programs
    first = tl.load(scratch_ptr + offs)  # <- M09
    tl.store(out_ptr + pid * BLOCK_SIZE + offs, first)


@triton.jit
def counted_neighbour_kernel(out_ptr, count_ptr, result_ptr):
    pid = tl.program_id(0)
    tl.atomic_add(count_ptr, 1)  # says nothing about out_ptr: it comes before the store
    tl.store(out_ptr + pid, pid)
    left = tl.load(out_ptr + pid - 1, mask=pid > 0, other=-1)  # <- M09
    tl.store(result_ptr + pid, left)


@triton.jit
def histogram_between_kernel(x_ptr, bins_ptr, out_ptr, result_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + pid, pid)
    tl.atomic_add(bins_ptr + tl.load(x_ptr + pid * BLOCK_SIZE + offs), 1)  # settles no turns
    left = tl.load(out_ptr + pid - 1, mask=pid > 0, other=-1)  # <- M09
    tl.store(result_ptr + pid, left)


@triton.jit
def own_counters_kernel(counts_ptr, out_ptr, result_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, pid)
    tl.atomic_add(counts_ptr + pid, 1)  # a counter each: nobody hears of anybody
    left = tl.load(out_ptr + pid - 1, mask=pid > 0, other=-1)  # <- M09
    tl.store(result_ptr + pid, left)


def _left_neighbours():
    left_neighbour_kernel[(4,)](ints(4), ints(4))


def _shared_scratch():
    shared_scratch_kernel[(3,)](numbers(24), torch.zeros(24), torch.empty(24), BLOCK_SIZE=8)


def _counted_neighbours():
    counted_neighbour_kernel[(4,)](ints(4), ints(1), ints(4))


def _histogram_between():
    x = numbers(32, dtype=torch.int32) % 3
    histogram_between_kernel[(4,)](x, ints(3), ints(4), ints(4), BLOCK_SIZE=8)


def _own_counters():
    own_counters_kernel[(4,)](ints(4), ints(4), ints(4))


LOADED_AFTER_STORE = {
    "the left neighbour": Wrong(left_neighbour_kernel, _left_neighbours,
                                "M09", "program 1", "out_ptr", 0),
    "scratch memory of another program": Wrong(shared_scratch_kernel, _shared_scratch,
                                               "M09", "program 1", "scratch_ptr", 0),
    "beside a counter": Wrong(counted_neighbour_kernel, _counted_neighbours,
                              "M09", "program 1", "out_ptr", 0),
    "beside a histogram": Wrong(histogram_between_kernel, _histogram_between,
                                "M09", "program 1", "out_ptr", 0),
    "beside a counter for each program": Wrong(own_counters_kernel, _own_counters,
                                               "M09", "program 1", "out_ptr", 0),
}


# ---------------------------------------------------------------------------------------------
# Stores to what another program loaded


@triton.jit
def right_neighbour_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    right = tl.load(x_ptr + pid + 1, mask=pid + 1 < n, other=-1)
    tl.store(out_ptr + pid, right)
    tl.store(x_ptr + pid, 0)  # <- M09


@triton.jit
def last_clears_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(out_ptr + pid, tl.sum(tl.load(x_ptr + offs, mask=mask, other=0)))
    if pid == tl.num_programs(0) - 1:
        tl.store(x_ptr + offs, 0, mask=mask)  # <- M09


@triton.jit
def last_clears_counted_kernel(x_ptr, count_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.atomic_add(count_ptr, 1)  # the count is not asked for: nobody waits
    tl.store(out_ptr + pid, tl.sum(tl.load(x_ptr + offs, mask=mask, other=0)))
    if pid == tl.num_programs(0) - 1:
        tl.store(x_ptr + offs, 0, mask=mask)  # <- M09


@triton.jit
def two_names_kernel(x_ptr, same_ptr, out_ptr, n):
    pid = tl.program_id(0)
    right = tl.load(x_ptr + pid + 1, mask=pid + 1 < n, other=-1)
    tl.store(out_ptr + pid, right)
    tl.store(same_ptr + pid, 0)  # <- M09


@triton.jit
def clear(target):
    tl.store(target, 0)  # <- M09


@triton.jit
def in_a_helper_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    right = tl.load(x_ptr + pid + 1, mask=pid + 1 < n, other=-1)
    tl.store(out_ptr + pid, right)
    at = x_ptr
    at += pid
    clear(at)


@triton.jit
def by_descriptor_kernel(x_ptr, out_ptr, N: tl.constexpr, TILE: tl.constexpr):
    pid = tl.program_id(0)
    rows = tl.make_tensor_descriptor(x_ptr, [N], [1], [TILE])
    right = tl.load(x_ptr + pid * TILE + TILE, mask=pid * TILE + TILE < N, other=-1)
    tl.store(out_ptr + pid, right)
    rows.store([pid * TILE], tl.zeros((TILE,), tl.int32))  # <- M09


@triton.jit
def by_number_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    right = tl.load(x_ptr + pid + 1, mask=pid + 1 < n, other=-1)
    tl.store(out_ptr + pid, right)
    address = x_ptr.to(tl.int64) + 4 * pid
    tl.store(address.to(tl.pointer_type(tl.int32)), 0)  # <- M09


@triton.jit
def in_a_tuple_kernel(pointers, n):
    pid = tl.program_id(0)
    right = tl.load(pointers[0] + pid + 1, mask=pid + 1 < n, other=-1)
    tl.store(pointers[1] + pid, right)
    tl.store(pointers[0] + pid, 0)  # <- M09


@triton.jit
def by_exchange_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    right = tl.load(x_ptr + pid + 1, mask=pid + 1 < n, other=-1)
    tl.store(out_ptr + pid, right)
    tl.atomic_xchg(x_ptr + pid, 0)  # <- M09


def _right_neighbours():
    right_neighbour_kernel[(4,)](numbers(4, dtype=torch.int32), ints(4), 4)


def _right_neighbours_by(kernel):
    def run():
        kernel[(4,)](numbers(4, dtype=torch.int32), ints(4), 4)

    return run


def _two_names():
    x = numbers(4, dtype=torch.int32)
    two_names_kernel[(4,)](x, x, ints(4), 4)


def _by_descriptor():
    by_descriptor_kernel[(4,)](numbers(16, dtype=torch.int32), ints(4), N=16, TILE=4)


def _in_a_tuple():
    in_a_tuple_kernel[(4,)]((numbers(4, dtype=torch.int32), ints(4)), 4)


def _last_clears_counted():
    last_clears_counted_kernel[(4,)](
        numbers(5, dtype=torch.int32), ints(1), ints(4), 5, BLOCK_SIZE=8)


def _last_clears():
    last_clears_kernel[(4,)](numbers(5, dtype=torch.int32), ints(4), 5, BLOCK_SIZE=8)


STORED_AFTER_LOAD = {
    "the right neighbour": Wrong(right_neighbour_kernel, _right_neighbours,
                                 "M09", "program 1", "x_ptr", 1),
    "the last program clears the input": Wrong(last_clears_kernel, _last_clears,
                                               "M09", "program 3", "x_ptr", 0),
    "the last program clears the input beside a counter": Wrong(
        last_clears_counted_kernel, _last_clears_counted, "M09", "program 3", "x_ptr", 0),
    "one tensor under two names": Wrong(two_names_kernel, _two_names,
                                        "M09", "program 1", "same_ptr", 1),
    "stored by a helper": Wrong(clear, _right_neighbours_by(in_a_helper_kernel),
                                "M09", "program 1", "x_ptr", 1),
    "stored by a descriptor": Wrong(by_descriptor_kernel, _by_descriptor,
                                    "M09", "program 1", "x_ptr", 4),
    "stored by a number": Wrong(by_number_kernel, _right_neighbours_by(by_number_kernel),
                                "M09", "program 1", "x_ptr", 1),
    "stored through a tuple": Wrong(in_a_tuple_kernel, _in_a_tuple,
                                    "M09", "program 1", "pointers[0]", 1),
    "changed by an exchange": Wrong(by_exchange_kernel, _right_neighbours_by(by_exchange_kernel),
                                    "M09", "program 1", "x_ptr", 1),
}


# ---------------------------------------------------------------------------------------------
# Both at once: which of the two accesses comes second depends on the order of the programs


@triton.jit
def stencil_in_place_kernel(x_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    left = tl.load(x_ptr + offs - 1, mask=(offs > 0) & (offs < n), other=0.0)  # <- M09
    right = tl.load(x_ptr + offs + 1, mask=offs + 1 < n, other=0.0)  # <- M09
    tl.store(x_ptr + offs, left + right, mask=offs < n)  # <- M09


@triton.jit
def transpose_in_place_kernel(x_ptr, N, TILE: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])  # <- M09
    tl.store(x_ptr + n[None, :] * N + m[:, None], x)  # <- M09


@triton.jit
def sum_into_cell_kernel(x_ptr, total_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    part = tl.sum(tl.load(x_ptr + offs))
    total = tl.load(total_ptr)  # <- M09
    tl.store(total_ptr, total + part)  # <- M09


@triton.jit
def counted_sum_kernel(x_ptr, count_ptr, total_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.atomic_add(count_ptr, 1)
    total = tl.load(total_ptr)  # <- M09
    tl.store(total_ptr, total + tl.sum(tl.load(x_ptr + offs)))  # <- M09


@triton.jit
def zeroed_by_first_kernel(x_ptr, total_ptr):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(total_ptr, 0.0)  # <- M09
    tl.atomic_add(total_ptr, tl.load(x_ptr + pid))  # <- M09


@triton.jit
def set_by_last_kernel(x_ptr, total_ptr):
    pid = tl.program_id(0)
    if pid == tl.num_programs(0) - 1:
        tl.store(total_ptr, 1.0)  # <- M09
    else:
        tl.atomic_add(total_ptr, tl.load(x_ptr + pid))  # <- M09


@triton.jit
def total_read_early_kernel(x_ptr, total_ptr, out_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    tl.atomic_add(total_ptr, x)  # <- M09
    tl.store(out_ptr + pid, x / tl.load(total_ptr))  # <- M09


@triton.jit
def wave_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    for _ in range(2):
        left = tl.load(x_ptr + offs - 1, mask=mask & (offs > 0), other=0.0)  # <- M09
        tl.store(y_ptr + offs, left, mask=mask)  # <- M09
        tl.debug_barrier()
        left = tl.load(y_ptr + offs - 1, mask=mask & (offs > 0), other=0.0)  # <- M09
        tl.store(x_ptr + offs, left, mask=mask)  # <- M09
        tl.debug_barrier()


def _stencil():
    stencil_in_place_kernel[(4,)](numbers(30), 30, BLOCK_SIZE=8)


def _transposes():
    transpose_in_place_kernel[(2, 2)](numbers(8, 8), 8, TILE=4)


def _sum_into_cell():
    sum_into_cell_kernel[(4,)](numbers(32), torch.zeros(1), BLOCK_SIZE=8)


def _counted_sum():
    counted_sum_kernel[(4,)](numbers(32), ints(1), torch.zeros(1), BLOCK_SIZE=8)


def _totals(kernel):
    def run():
        kernel[(4,)](numbers(4) + 1, torch.zeros(1))

    return run


def _total_read_early():
    total_read_early_kernel[(4,)](numbers(4) + 1, torch.zeros(1), torch.empty(4))


def _waves():
    wave_kernel[(4,)](numbers(32), torch.zeros(32), 32, BLOCK_SIZE=8)


RACY = {
    "a stencil in place": (stencil_in_place_kernel, _stencil, "x_ptr"),
    "a transposition in place": (transpose_in_place_kernel, _transposes, "x_ptr"),
    "a sum in a shared cell": (sum_into_cell_kernel, _sum_into_cell, "total_ptr"),
    "a sum in a shared cell beside a counter": (counted_sum_kernel, _counted_sum, "total_ptr"),
    "set by the last, added to by others": (set_by_last_kernel,
                                            _totals(set_by_last_kernel), "total_ptr"),
    "an atomic total read too early": (total_read_early_kernel, _total_read_early, "total_ptr"),
    "ping-pong within one launch": (wave_kernel, _waves, ""),
}

# The first program's own atomic puts its store before the atomics of those that come later; in the
# other order nothing does. A grade runs both orders.
RACY_IN_ONE_ORDER = {
    "zeroed by the first, added to by all": (zeroed_by_first_kernel,
                                             _totals(zeroed_by_first_kernel), "total_ptr"),
}


# ---------------------------------------------------------------------------------------------
# Stores to the same place, whatever was counted before


@triton.jit
def ticket_overlap_kernel(count_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    ticket = tl.atomic_add(count_ptr, 1)
    offs = ticket * (BLOCK_SIZE - 1) + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, ticket)  # <- M04


@triton.jit
def counted_total_kernel(count_ptr, out_ptr):
    tl.atomic_add(count_ptr, 1)
    tl.store(out_ptr, tl.program_id(0))  # <- M04


@triton.jit
def own_lock_kernel(locks_ptr, out_ptr):
    pid = tl.program_id(0)
    while tl.atomic_cas(locks_ptr + pid, 0, 1) == 1:  # a lock each keeps nobody out
        pass
    tl.store(out_ptr, pid)  # <- M04
    tl.atomic_xchg(locks_ptr + pid, 0)


def _ticket_overlaps():
    ticket_overlap_kernel[(4,)](ints(1), ints(29), BLOCK_SIZE=8)


def _counted_total():
    counted_total_kernel[(4,)](ints(1), ints(1))


def _own_locks():
    own_lock_kernel[(4,)](ints(4), ints(1))


STORED_TWICE = {
    "tickets for blocks that overlap": Wrong(ticket_overlap_kernel, _ticket_overlaps,
                                             "M04", "programs 0 and 1", "out_ptr", 7),
    "counted, then stored by all": Wrong(counted_total_kernel, _counted_total,
                                         "M04", "programs 0 and 1", "out_ptr", 0),
    "under a lock each": Wrong(own_lock_kernel, _own_locks,
                               "M04", "programs 0 and 1", "out_ptr", 0),
}


# ---------------------------------------------------------------------------------------------
# An order of their own


@triton.jit
def histogram_kernel(x_ptr, bins_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.atomic_add(bins_ptr + tl.load(x_ptr + offs, mask=mask, other=0), 1, mask=mask)


@triton.jit
def split_k_kernel(a_ptr, b_ptr, c_ptr, K, K_PART: tl.constexpr, TILE: tl.constexpr):
    i, k = tl.arange(0, TILE), tl.program_id(0) * K_PART + tl.arange(0, K_PART)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * TILE + i[None, :])
    c = tl.dot(a, b, input_precision="ieee")
    tl.atomic_add(c_ptr + i[:, None] * TILE + i[None, :], c)


@triton.jit
def locked_rows_kernel(lock_ptr, x_ptr, total_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK_SIZE + offs)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(total_ptr + offs, tl.load(total_ptr + offs) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def two_locks_kernel(locks_ptr, x_ptr, totals_ptr, BLOCK_SIZE: tl.constexpr):
    """Even programs add to the first row, odd ones to the second, under a lock for each row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + pid * BLOCK_SIZE + offs)
    row = pid % 2
    while tl.atomic_cas(locks_ptr + row, 0, 1) == 1:
        pass
    at = totals_ptr + row * BLOCK_SIZE + offs
    tl.store(at, tl.load(at) + x)
    tl.debug_barrier()
    tl.atomic_xchg(locks_ptr + row, 0)


@triton.jit
def last_block_kernel(x_ptr, parts_ptr, count_ptr, total_ptr, PROGRAMS: tl.constexpr,
                      BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(parts_ptr + pid, tl.sum(tl.load(x_ptr + offs)))
    done = tl.atomic_add(count_ptr, 1)
    if done == PROGRAMS - 1:
        tl.store(total_ptr, tl.sum(tl.load(parts_ptr + tl.arange(0, PROGRAMS))))


@triton.jit
def last_block_of_atomics_kernel(x_ptr, bins_ptr, count_ptr, out_ptr, PROGRAMS: tl.constexpr,
                                 BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    tl.atomic_add(bins_ptr + offs, tl.load(x_ptr + pid * BLOCK_SIZE + offs))
    if tl.atomic_add(count_ptr, 1) == PROGRAMS - 1:
        tl.store(out_ptr + offs, 2 * tl.load(bins_ptr + offs))


@triton.jit
def volatile_look_back_kernel(x_ptr, flags_ptr, sums_ptr):
    pid = tl.program_id(0)
    before = 0.0
    if pid > 0:
        while tl.load(flags_ptr + pid - 1, volatile=True) == 0:
            pass
        before = tl.load(sums_ptr + pid - 1)
    tl.store(sums_ptr + pid, before + tl.load(x_ptr + pid))
    tl.atomic_xchg(flags_ptr + pid, 1)


@triton.jit
def two_names_in_place_kernel(x_ptr, same_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(same_ptr + offs, 2 * tl.load(x_ptr + offs))


@triton.jit
def look_back_kernel(x_ptr, flags_ptr, sums_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    before = 0.0
    if pid > 0:
        while tl.atomic_add(flags_ptr + pid - 1, 0) == 0:
            pass
        before = tl.load(sums_ptr + pid - 1)
    tl.store(sums_ptr + pid, before + tl.sum(x))
    tl.atomic_xchg(flags_ptr + pid, 1)
    tl.store(out_ptr + offs, before + tl.cumsum(x))


@triton.jit
def decoupled_look_back_kernel(x_ptr, flags_ptr, parts_ptr, sums_ptr, out_ptr,
                               BLOCK_SIZE: tl.constexpr):
    """Flag 1: the sum of the block alone is there; 2: the sum of all blocks up to it as well."""
    pid = tl.program_id(0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    part = tl.sum(x)
    tl.store(parts_ptr + pid, part)
    tl.atomic_xchg(flags_ptr + pid, 1)
    before = 0.0
    back = pid - 1
    while back >= 0:
        flag = tl.atomic_add(flags_ptr + back, 0)
        while flag == 0:
            flag = tl.atomic_add(flags_ptr + back, 0)
        if flag == 2:
            before += tl.load(sums_ptr + back)
            back = -1
        else:
            before += tl.load(parts_ptr + back)
            back -= 1
    tl.store(sums_ptr + pid, before + part)
    tl.atomic_xchg(flags_ptr + pid, 2)
    tl.store(out_ptr + offs, before + tl.cumsum(x))


@triton.jit
def grid_barrier_kernel(x_ptr, parts_ptr, count_ptr, out_ptr, PROGRAMS: tl.constexpr,
                        BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    tl.store(parts_ptr + pid, tl.sum(x))
    tl.atomic_add(count_ptr, 1)
    while tl.atomic_add(count_ptr, 0) < PROGRAMS:
        pass
    total = tl.sum(tl.load(parts_ptr + tl.arange(0, PROGRAMS)))
    tl.store(out_ptr + offs, x / total)


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


@triton.jit
def stencil_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    left = tl.load(x_ptr + offs - 1, mask=(offs > 0) & (offs < n), other=0.0)
    right = tl.load(x_ptr + offs + 1, mask=offs + 1 < n, other=0.0)
    tl.store(out_ptr + offs, left + right, mask=offs < n)


@triton.jit
def own_row_kernel(x_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = x_ptr + tl.program_id(0) * n_cols
    offs = tl.arange(0, BLOCK_SIZE)
    for _ in range(3):
        x = tl.load(row + offs, mask=offs < n_cols, other=float("inf"))
        tl.store(row + offs, x - tl.min(x), mask=offs < n_cols)
        tl.debug_barrier()
        first = tl.load(row)
        tl.store(row + offs, x + first, mask=offs < n_cols)
        tl.debug_barrier()


@triton.jit
def swap_halves_kernel(x_ptr, HALF: tl.constexpr):
    """Each program swaps a pair that nobody else touches."""
    pid = tl.program_id(0)
    a, b = tl.load(x_ptr + pid), tl.load(x_ptr + pid + HALF)
    tl.store(x_ptr + pid, b)
    tl.store(x_ptr + pid + HALF, a)


X = (numbers(64) * 7) % 13


def _counts():
    x, bins = (numbers(100) % 9).int(), ints(9)
    histogram_kernel[(4,)](x, bins, 100, BLOCK_SIZE=32)
    return bins, torch.bincount(x).int()


def _splits_k():
    a, b, c = numbers(16, 64) % 5, numbers(64, 16) % 7, torch.zeros(16, 16)
    split_k_kernel[(4,)](a, b, c, 64, K_PART=16, TILE=16)
    return c, a @ b


def _locked_rows():
    total = torch.zeros(8)
    locked_rows_kernel[(8,)](ints(1), X.clone(), total, BLOCK_SIZE=8)
    return total, X.reshape(8, 8).sum(0)


def _two_locks():
    totals = torch.zeros(2, 8)
    two_locks_kernel[(8,)](ints(2), X.clone(), totals, BLOCK_SIZE=8)
    return totals, X.reshape(4, 2, 8).sum(0)


@triton.jit
def last_block_under_mask_kernel(x_ptr, partial_ptr, count_ptr, total_ptr, PROGRAMS: tl.constexpr,
                                 BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE))
    tl.store(partial_ptr + pid, tl.sum(x, axis=0))
    last = tl.atomic_add(count_ptr, 1) == PROGRAMS - 1  # no branch: a mask lets the last one read
    partial = tl.load(partial_ptr + tl.arange(0, PROGRAMS), mask=last, other=0.0)
    tl.store(total_ptr, tl.sum(partial, axis=0), mask=last)


def _last_block_under_mask():
    total = torch.empty(1)
    last_block_under_mask_kernel[(8,)](X.clone(), torch.empty(8), ints(1), total, PROGRAMS=8,
                                       BLOCK_SIZE=8)
    return total, X.sum()[None]


def _last_block():
    total = torch.empty(1)
    last_block_kernel[(8,)](X.clone(), torch.empty(8), ints(1), total, PROGRAMS=8, BLOCK_SIZE=8)
    return total, X.sum()[None]


def _last_block_of_atomics():
    bins, out = torch.zeros(8), torch.empty(8)
    last_block_of_atomics_kernel[(8,)](X.clone(), bins, ints(1), out, PROGRAMS=8, BLOCK_SIZE=8)
    return out, 2 * X.reshape(8, 8).sum(0)


def _volatile_look_back():
    x, sums = X[:4].clone(), torch.empty(4)
    volatile_look_back_kernel[(4,)](x, ints(4), sums)
    return sums, x.cumsum(0)


def _two_names_in_place():
    x = numbers(32)
    two_names_in_place_kernel[(4,)](x, x, BLOCK_SIZE=8)
    return x, 2 * numbers(32)


def _looks_back(programs):
    def run():
        x, out = (numbers(8 * programs) * 7) % 13, torch.empty(8 * programs)
        look_back_kernel[(programs,)](x, ints(programs), torch.empty(programs), out, BLOCK_SIZE=8)
        return out, x.cumsum(0)

    return run


def _looks_back_decoupled():
    x, out, parts, sums = X[:32].clone(), torch.empty(32), torch.empty(4), torch.empty(4)
    decoupled_look_back_kernel[(4,)](x, ints(4), parts, sums, out, BLOCK_SIZE=8)
    return out, x.cumsum(0)


def _grid_barrier():
    out = torch.empty(64)
    grid_barrier_kernel[(8,)](X.clone(), torch.empty(8), ints(1), out, PROGRAMS=8, BLOCK_SIZE=8)
    return out, X / X.sum()


def _earlier_launch():
    middle, out = torch.empty(30), torch.empty(30)
    double_kernel[(4,)](numbers(30), middle, 30, BLOCK_SIZE=8)
    stencil_kernel[(2,)](middle, out, 30, BLOCK_SIZE=16)
    return out, _stencilled(2 * numbers(30))


def _ping_pong():
    a, b = numbers(30), torch.empty(30)
    for source, target in ((a, b), (b, a), (a, b)):
        stencil_kernel[(4,)](source, target, 30, BLOCK_SIZE=8)
    return b, _stencilled(_stencilled(_stencilled(numbers(30))))


def _stencilled(x):
    nothing = torch.zeros(1)
    return torch.cat([nothing, x[:-1]]) + torch.cat([x[1:], nothing])


def _own_rows():
    x = X[:60].reshape(6, 10).clone()
    expected = x.clone()
    own_row_kernel[(6,)](x, 10, BLOCK_SIZE=16)
    for _ in range(3):
        expected = expected + (expected[:, :1] - expected.min(1, keepdim=True).values)
    return x, expected


def _swaps_halves():
    x = numbers(16)
    swap_halves_kernel[(8,)](x, HALF=8)
    return x, numbers(16).roll(8)


ORDERED = {
    "an atomic histogram": Right(_counts),
    "split-K with atomic_add": Right(_splits_k),
    "read, change, write under a lock": Right(_locked_rows),
    "a lock for each row": Right(_two_locks),
    "the last block reduces": Right(_last_block),
    "the last block reduces, under a mask": Right(_last_block_under_mask),
    "atomics, read by the last block": Right(_last_block_of_atomics),
    "a scan that looks back": Right(_looks_back(4)),
    "a scan that looks back by volatile loads": Right(_volatile_look_back),
    "a scan that looks back, decoupled": Right(_looks_back_decoupled),
    "what an earlier launch stored": Right(_earlier_launch),
    "ping-pong over launches": Right(_ping_pong),
    "a row each, in place": Right(_own_rows),
    "a pair each, in place": Right(_swaps_halves),
    "in place under two names": Right(_two_names_in_place),
}
LATE_STARTERS = {
    "32 blocks look back": Right(_looks_back(32), order="reverse"),
}
CO_RESIDENT = {
    "a barrier for the whole grid": Right(_grid_barrier),
}

RACES = Kind({**LOADED_AFTER_STORE, **STORED_AFTER_LOAD, **STORED_TWICE}, ORDERED)
