"""Three ways to combine the results of programs: atomics, a second kernel, a lock.

    sum of x                   one number of float32
    column_sum[n] = sum_m x[m, n]

Programs cannot read each other's registers, and they run in no defined order. They share only
memory, so each program first reduces its own elements as far as possible.

- ``sum_atomic``: one atomic addition per program, in one launch. Every order of programs gives a
  correct sum with other rounding.
- ``sum_two_phase``: each program stores one partial sum at its own address, and a second launch
  adds them. Launches run in order, and nothing else depends on timing, so the bits never change.
- ``column_sum_locked``: programs add whole vectors to shared buffers, one program per buffer at a
  time. Several buffers keep the queues short; a second launch adds the buffers.

Cost: each element of x is loaded once. A sum moves 8 further bytes per program; a column sum moves
8 bytes per program and column, and 4 per group and column.

Inputs: float16, bfloat16 or float32, any strides; any shape for the sums.
Result: float32, summed in float32.

Source: the lock, with a barrier before its release, is from the layer norm tutorial in Triton's
documentation.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
BLOCK_SIZE = 4096  # elements per step of a sum: 16 per thread of 8 warps
# Programs of a sum: enough to keep a GPU busy, few enough for one program to add up. On an H200,
# 1,024 programs reach 94 % of the speed of a copy, and 2,048 reach all of it.
MOST_PROGRAMS = 2048
MOST_GROUPS = 256

PREDICT = {
    "lane_atomics": 1_000_000,
    "program_atomics": 245,
    "two_phase_extra": 2048,
    "row_ratio": 1.5,  # per four rows of x, a row of a buffer is loaded and stored
    "groups": 128,
}


@triton.jit
def own_sum(x_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Returns this program's sum over every num_programs-th block of x, in float32."""
    pid = tl.program_id(axis=0).to(tl.int64)  # pid * BLOCK_SIZE passes 2**31
    step = tl.num_programs(axis=0) * BLOCK_SIZE
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)

    # One partial sum per element of the block; they are reduced once, at the end.
    acc = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for _ in range(tl.cdiv(n - pid * BLOCK_SIZE, step)):
        acc += tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
        offs += step
    return tl.sum(acc, axis=0)


@triton.jit
def sum_atomic_kernel(
    x_ptr, out_ptr,            # [n] contiguous, and one float32, initially 0
    n,
    BLOCK_SIZE: tl.constexpr,  # elements per step, a power of two
):
    """out += sum of x. One atomic addition per program."""
    tl.atomic_add(out_ptr, own_sum(x_ptr, n, BLOCK_SIZE))


def sum_atomic(x: torch.Tensor) -> torch.Tensor:
    """Returns the sum of all elements of x as a float32 scalar tensor, in one launch.

    The rounding depends on the order of programs.

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
    """
    check_dtype(x)
    out = torch.zeros((), dtype=torch.float32, device=x.device)
    n = x.numel()
    if n:
        sum_atomic_kernel[(programs_of_a_sum(n),)](
            x.contiguous(), out, n, BLOCK_SIZE=BLOCK_SIZE, num_warps=8
        )
    return out


@triton.jit
def partial_sums_kernel(
    x_ptr, partials_ptr,       # [n] contiguous, and one float32 per program
    n,
    BLOCK_SIZE: tl.constexpr,
):
    """partials[p] = the sum over the blocks of program p."""
    pid = tl.program_id(axis=0)
    tl.store(partials_ptr + pid, own_sum(x_ptr, n, BLOCK_SIZE))


@triton.jit
def add_partials_kernel(
    partials_ptr, out_ptr,     # [n_partials], and one float32
    n_partials,
    BLOCK_SIZE: tl.constexpr,  # a power of two >= n_partials
):
    """out = sum of the partial sums. One program, and so a fixed order of additions."""
    offs = tl.arange(0, BLOCK_SIZE)
    partials = tl.load(partials_ptr + offs, mask=offs < n_partials, other=0.0)
    tl.store(out_ptr, tl.sum(partials, axis=0))


def sum_two_phase(x: torch.Tensor) -> torch.Tensor:
    """Returns the sum of all elements of x as a float32 scalar tensor, always with the same bits.

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
    """
    check_dtype(x)
    n = x.numel()
    if n == 0:
        return torch.zeros((), dtype=torch.float32, device=x.device)

    programs = programs_of_a_sum(n)
    partials = torch.empty(programs, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=torch.float32, device=x.device)
    partial_sums_kernel[(programs,)](
        x.contiguous(), partials, n, BLOCK_SIZE=BLOCK_SIZE, num_warps=8
    )
    add_partials_kernel[(1,)](partials, out, programs, BLOCK_SIZE=MOST_PROGRAMS)
    return out


def programs_of_a_sum(n: int) -> int:
    """Returns the number of programs, which depends on n alone, as the bits of the sum do."""
    return min(triton.cdiv(n, BLOCK_SIZE), MOST_PROGRAMS)


@triton.jit
def locked_sums_kernel(
    x_ptr,                   # [M, N] with any strides
    buffer_ptr, lock_ptr,    # [groups, N] and [groups, blocks of columns], initially 0
    M, N, groups,
    stride_xm, stride_xn,    # elements
    ALIGN: tl.constexpr,     # power of two that divides N and stride_xm
    BLOCK_M: tl.constexpr,   # rows per step
    BLOCK_N: tl.constexpr,   # columns per program
    STEPS: tl.constexpr,     # per program
):
    """buffer[g] += columns of the rows of all programs of group g, one program at a time.

    One program owns STEPS * BLOCK_M rows of BLOCK_N columns.
    """
    pid_m = tl.program_id(axis=0)
    pid_n = tl.program_id(axis=1)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rows = pid_m.to(tl.int64) * (STEPS * BLOCK_M) + tl.arange(0, BLOCK_M)
    # Without these hints, only multiples of 16 columns are loaded 16 bytes at a time.
    in_n = tl.max_constancy(cols < N, ALIGN)
    x_rows = x_ptr + tl.multiple_of(rows * stride_xm, ALIGN)
    x_ptrs = x_rows[:, None] + cols.to(tl.int64)[None, :] * stride_xn
    step_rows = tl.cast(BLOCK_M, tl.int64) * stride_xm

    # Everything that needs no other program comes before the lock.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in tl.range(0, STEPS, num_stages=3):
        mask = (rows + step * BLOCK_M < M)[:, None] & in_n[None, :]
        acc += tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
        x_ptrs += tl.multiple_of(step_rows, ALIGN)
    total = tl.sum(acc, axis=0)

    group = pid_m % groups
    buffer_ptrs = buffer_ptr + group.to(tl.int64) * N + cols
    lock = lock_ptr + group * tl.num_programs(axis=1) + pid_n
    while tl.atomic_cas(lock, 0, 1) == 1:  # 1: taken by another program
        pass
    so_far = tl.load(buffer_ptrs, mask=in_n, other=0.0)
    tl.store(buffer_ptrs, so_far + total, mask=in_n)
    tl.debug_barrier()  # all threads have stored before the lock is released
    tl.atomic_xchg(lock, 0)


@triton.jit
def add_groups_kernel(
    buffer_ptr, out_ptr,     # [groups, N] and [N]
    N, groups,
    BLOCK_N: tl.constexpr,
):
    """out[n] = sum_g buffer[g, n]. One program owns BLOCK_N columns."""
    cols = tl.program_id(axis=0) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_n = cols < N
    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for group in range(groups):
        acc += tl.load(buffer_ptr + tl.cast(group, tl.int64) * N + cols, mask=in_n, other=0.0)
    tl.store(out_ptr + cols, acc, mask=in_n)


def column_sum_locked(x: torch.Tensor, *, groups: int = 8) -> torch.Tensor:
    """Returns the sum of every column of x (M, N), as a new float32 vector (N,).

    Args:
        groups: buffers that programs add to, at least 1. Program m adds to buffer m % groups.

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
        ValueError: x does not have two dimensions, or groups is below 1.
    """
    check_dtype(x)
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got {x.dim()} in shape {tuple(x.shape)}")
    if groups < 1:
        raise ValueError(f"groups: expected at least 1, got {groups}")
    m, n = x.shape
    if m == 0 or n == 0:
        return torch.zeros(n, dtype=torch.float32, device=x.device)

    # About eight programs per block of columns, within bounds: with fewer rows per program the
    # buffers and the lock cost too much, with more rows SMs are idle.
    block_m, block_n = 16, 128
    steps = min(max(triton.next_power_of_2(triton.cdiv(m, 8 * block_m)), 16), 64)
    blocks = triton.cdiv(n, block_n)
    # One tensor for everything that starts at 0, because clearing each tensor is a launch. The bits
    # of 0.0 are those of the integer 0.
    cleared = torch.zeros(groups * (n + blocks), dtype=torch.int32, device=x.device)
    buffer, locks = cleared[:groups * n].view(torch.float32), cleared[groups * n:]
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    locked_sums_kernel[(triton.cdiv(m, block_m * steps), blocks)](
        x, buffer, locks, m, n, groups, x.stride(0), x.stride(1),
        ALIGN=math.gcd(16, n, x.stride(0)), BLOCK_M=block_m, BLOCK_N=block_n, STEPS=steps,
    )
    add_groups_kernel[(blocks,)](buffer, out, n, groups, BLOCK_N=block_n)
    return out


def choose_groups(n: int, l2_bytes: int, num_programs: int) -> int:
    """Returns the number of buffers of n float32, the largest power of two that fits.

    More groups make shorter queues, as long as the buffers stay in L2, of which they may take half.
    There are at most as many groups as programs, at most ``MOST_GROUPS``, and at least one.

    Args:
        n: columns of a buffer.
        l2_bytes: size of the L2 cache in bytes.
        num_programs: programs that add to the buffers.
    """
    groups = 1
    while 2 * groups <= min(num_programs, MOST_GROUPS) and 2 * groups * n * 4 <= l2_bytes / 2:
        groups *= 2
    return groups


def check_dtype(x: torch.Tensor) -> None:
    """Refuses arguments outside the contract, before anything is allocated or launched.

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in SUPPORTED:
        names = ", ".join(str(dtype) for dtype in SUPPORTED)
        raise TypeError(f"x: expected one of {names}, got {x.dtype}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
