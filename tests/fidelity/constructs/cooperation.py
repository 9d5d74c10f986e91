"""Programs that wait for each other: locks, tickets, flags, barriers."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import UNTIL_3_8, Theme, equal
from .values import exact, integers

theme = Theme("cooperation")


@triton.jit
def lock_kernel(lock_ptr, total_ptr, x_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + pid * N + offs)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(total_ptr + offs, tl.load(total_ptr + offs) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@theme("a spin lock around a read and a write")
def _(device):
    x = integers(12, 16)
    lock = torch.zeros(1, dtype=torch.int32, device=device)
    total = torch.zeros(16, dtype=torch.int32, device=device)
    lock_kernel[(12,)](lock, total, x.to(device), N=16)
    return [equal(total, exact(x).sum(0)), equal(lock, [0])]


@triton.jit
def last_kernel(x_ptr, partial_ptr, counter_ptr, out_ptr, PROGRAMS: tl.constexpr, N: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * N + tl.arange(0, N))
    tl.store(partial_ptr + pid, tl.sum(x, axis=0))
    tl.debug_barrier()
    if tl.atomic_add(counter_ptr, 1) == PROGRAMS - 1:
        tl.store(out_ptr, tl.sum(tl.load(partial_ptr + tl.arange(0, PROGRAMS)), axis=0))


@theme("the program that comes last adds all parts up")
def _(device):
    x = integers(16, 32)
    partial, result = (torch.empty(n, dtype=torch.int32, device=device) for n in (16, 1))
    counter = torch.zeros(1, dtype=torch.int32, device=device)
    last_kernel[(16,)](x.to(device), partial, counter, result, PROGRAMS=16, N=32)
    return [equal(result, [exact(x).sum()]), equal(counter, [16])]


@triton.jit
def look_back_kernel(x_ptr, flag_ptr, prefix_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * N + tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    before = 0
    if pid > 0:
        while tl.atomic_add(flag_ptr + pid - 1, 0) == 0:
            pass
        before = tl.load(prefix_ptr + pid - 1)
    tl.store(prefix_ptr + pid, before + tl.sum(x, axis=0))
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + pid, 1)
    tl.store(out_ptr + offs, tl.cumsum(x, axis=0) + before)


@theme("a prefix sum in one pass: each program waits for the one before")
def _(device):
    x = integers(10, 16)
    flags = torch.zeros(10, dtype=torch.int32, device=device)
    prefix = torch.empty(10, dtype=torch.int32, device=device)
    result = torch.empty(10, 16, dtype=torch.int32, device=device)
    look_back_kernel[(10,)](x.to(device), flags, prefix, result, N=16)
    return equal(result, exact(x).reshape(-1).cumsum().reshape(10, 16))


@triton.jit
def barrier_kernel(x_ptr, buffer_ptr, counter_ptr, out_ptr, PROGRAMS: tl.constexpr,
                   N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    tl.store(buffer_ptr + pid * N + offs, tl.load(x_ptr + pid * N + offs) * 2)
    tl.debug_barrier()
    tl.atomic_add(counter_ptr, 1)
    while tl.atomic_add(counter_ptr, 0) < PROGRAMS:
        pass
    other = (pid + 1) % PROGRAMS
    tl.store(out_ptr + pid * N + offs, tl.load(buffer_ptr + other * N + offs))


@theme("a barrier of the whole grid")
def _(device):
    x = integers(8, 16)
    buffer, result = (torch.empty(8, 16, dtype=torch.int32, device=device) for _ in range(2))
    counter = torch.zeros(1, dtype=torch.int32, device=device)
    barrier_kernel[(8,)](x.to(device), buffer, counter, result, PROGRAMS=8, N=16)
    return equal(result, 2 * np.roll(exact(x), -1, axis=0))


@triton.jit
def ticket_kernel(counter_ptr, x_ptr, out_ptr, done_ptr, n):
    tile = tl.atomic_add(counter_ptr, 1)
    count = 0
    while tile < n:
        tl.store(out_ptr + tile, tl.load(x_ptr + tile) * 3)
        count += 1
        tile = tl.atomic_add(counter_ptr, 1)
    tl.store(done_ptr + tl.program_id(0), count)


@theme("tickets: programs take tiles until none is left")
def _(device):
    x = integers(50)
    counter = torch.zeros(1, dtype=torch.int32, device=device)
    result = torch.empty(50, dtype=torch.int32, device=device)
    done = torch.empty(6, dtype=torch.int32, device=device)
    ticket_kernel[(6,)](counter, x.to(device), result, done, 50)
    return [equal(result, 3 * x), equal(done.sum(), 50), equal(counter, [56])]


@triton.jit
def handover_kernel(x_ptr, buffer_ptr, flag_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    pair = pid // 2
    if pid % 2 == 0:
        tl.store(buffer_ptr + pair * N + offs, tl.load(x_ptr + pair * N + offs) + 1)
        tl.debug_barrier()
        tl.atomic_xchg(flag_ptr + pair, 1, sem="release")
    else:
        while tl.atomic_cas(flag_ptr + pair, 1, 2, sem="acquire") != 1:
            pass
        tl.store(out_ptr + pair * N + offs, tl.load(buffer_ptr + pair * N + offs) * 2)


@theme("one program hands a block over to the next")
def _(device):
    x = integers(4, 16)
    buffer, result = (torch.empty(4, 16, dtype=torch.int32, device=device) for _ in range(2))
    flags = torch.zeros(4, dtype=torch.int32, device=device)
    handover_kernel[(8,)](x.to(device), buffer, flags, result, N=16)
    return [equal(result, 2 * (exact(x) + 1)), equal(flags, [2] * 4)]


@triton.jit
def volatile_kernel(x_ptr, buffer_ptr, flag_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    if pid == 0:
        tl.store(buffer_ptr + offs, tl.load(x_ptr + offs) + 1)
        tl.debug_barrier()
        tl.atomic_xchg(flag_ptr, 1)
    else:
        while tl.atomic_or(flag_ptr, 0) == 0:
            pass
        value = tl.load(buffer_ptr + offs, volatile=True)
        tl.store(out_ptr + (pid - 1) * N + offs, value)


@theme("many programs wait for the first")
def _(device):
    x = integers(16)
    buffer = torch.empty(16, dtype=torch.int32, device=device)
    result = torch.empty(5, 16, dtype=torch.int32, device=device)
    flag = torch.zeros(1, dtype=torch.int32, device=device)
    volatile_kernel[(6,)](x.to(device), buffer, flag, result, N=16)
    return equal(result, np.tile(exact(x) + 1, (5, 1)))


@triton.jit
def poll_kernel(x_ptr, buffer_ptr, flag_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    if pid == 0:
        tl.store(buffer_ptr + offs, tl.load(x_ptr + offs) + 1)
        tl.atomic_store(flag_ptr, 1)
    else:
        tl.atomic_poll(flag_ptr, 1)
        tl.store(out_ptr + offs, tl.load(buffer_ptr + offs))


@theme("atomic_store and atomic_poll", rejects=UNTIL_3_8)
def _(device):
    x = integers(16)
    buffer, result = (torch.empty(16, dtype=torch.int32, device=device) for _ in range(2))
    flag = torch.zeros(1, dtype=torch.int32, device=device)
    poll_kernel[(2,)](x.to(device), buffer, flag, result, N=16)
    return equal(result, exact(x) + 1)


@triton.jit
def poll_later_kernel(x_ptr, buffer_ptr, flag_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    if pid == tl.num_programs(0) - 1:
        tl.store(buffer_ptr + offs, tl.load(x_ptr + offs) + 1)
        tl.atomic_store(flag_ptr, 1)
    else:
        tl.atomic_poll(flag_ptr, 1)
        tl.store(out_ptr + pid * N + offs, tl.load(buffer_ptr + offs))


@theme("atomic_poll waits for the last program", rejects=UNTIL_3_8)
def _(device):
    x = integers(16)
    buffer = torch.empty(16, dtype=torch.int32, device=device)
    result = torch.empty(3, 16, dtype=torch.int32, device=device)
    flag = torch.zeros(1, dtype=torch.int32, device=device)
    poll_later_kernel[(4,)](x.to(device), buffer, flag, result, N=16)
    return equal(result, np.tile(exact(x) + 1, (3, 1)))


@triton.jit
def poll_timeout_kernel(flags_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.atomic_poll(flags_ptr + offs, 1, timeout_ns=1000).to(tl.int32))


@theme("atomic_poll of a block, with a time limit", rejects=UNTIL_3_8)
def _(device):
    flags = integers(16, low=0, high=1)
    got = torch.empty(16, dtype=torch.int32, device=device)
    poll_timeout_kernel[(1,)](flags.to(device), got, N=16)
    return equal(got, flags)


@triton.jit
def wait_for_later_kernel(flag_ptr, x_ptr, out_ptr):
    pid = tl.program_id(0)
    if pid == 0:
        while tl.atomic_cas(flag_ptr, 1, 1) == 0:
            pass
        tl.store(out_ptr, tl.load(x_ptr) * 2)
    elif pid == 3:
        tl.store(x_ptr, 21)
        tl.debug_barrier()
        tl.atomic_xchg(flag_ptr, 1)


@theme("the first program waits for the last")
def _(device):
    flag, x = (torch.zeros(1, dtype=torch.int32, device=device) for _ in range(2))
    result = torch.empty(1, dtype=torch.int32, device=device)
    wait_for_later_kernel[(4,)](flag, x, result)
    return equal(result, [42])


@triton.jit
def endless_kernel(flag_ptr, out_ptr):
    while tl.atomic_cas(flag_ptr, 1, 1) == 0:
        pass
    tl.store(out_ptr, 1)


@theme("a wait for what nobody does", fails="R02", not_on_gpu="it would never end")
def _(device):
    flag, result = (torch.zeros(1, dtype=torch.int32, device=device) for _ in range(2))
    endless_kernel[(2,)](flag, result)


@triton.jit
def add_by_cas_kernel(target_ptr, x_ptr):
    x = tl.load(x_ptr + tl.program_id(0))
    old = tl.atomic_add(target_ptr, 0)
    while tl.atomic_cas(target_ptr, old, old * 2 + x) != old:
        old = tl.atomic_add(target_ptr, 0)


@theme("any update by a loop of cas")
def _(device):
    target = torch.zeros(1, dtype=torch.int32, device=device)
    add_by_cas_kernel[(6,)](target, torch.ones(6, dtype=torch.int32, device=device))
    return equal(target, [63])


@triton.jit
def stages_kernel(x_ptr, counter_ptr, n, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * N + tl.arange(0, N)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) + n)


@theme("one launch waits for all of the one before")
def _(device):
    x = integers(8, 16)
    target, counter = x.to(device, copy=True), torch.zeros(1, dtype=torch.int32, device=device)
    for n in range(2, 5):
        stages_kernel[(8,)](target, counter, n, N=16)
    return equal(target, exact(x) + 9)
