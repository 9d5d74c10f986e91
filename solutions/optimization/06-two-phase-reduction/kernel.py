"""Three ways for programs to make one result together: atomics, a second kernel, a lock.

    sum of x                   one number of float32
    column_sum[n] = sum_m x[m, n]

No program sees another one's registers, and programs run in no particular order. They share
memory only, so each of them first reduces its own share as far as possible.

- ``sum_atomic``: one atomic addition a program. One launch, right in any order, and rounded
  otherwise in every order.
- ``sum_two_phase``: each program stores one partial sum in a place of its own, and a second launch
  adds them. It begins when the first one has ended, which is all the order that there is; nothing
  is left to chance, so the bits are the same every time.
- ``column_sum_locked``: whole vectors are added to shared buffers, each by one program at a time.
  A few buffers instead of one keep the queues short; a second launch adds the buffers.

Cost: each element of x is read once. A sum moves 8 bytes more for each program, a column sum 8
bytes for each program and column, and 4 for each group and column.

Inputs: float16, bfloat16 or float32, any strides; for the sums any shape.
Result: float32, summed in float32.

Source: the lock, with a barrier before it is released, is that of the layer norm tutorial of
Triton's documentation.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
BLOCK_SIZE = 4096  # elements of a step of a sum: 16 for each thread of 8 warps
# Of a sum: enough to keep a GPU busy, few enough for one program to add up. On an H200, 1,024 of
# them reach 94 % of the speed of a copy, 2,048 all of it.
MOST_PROGRAMS = 2048
MOST_GROUPS = 256

PREDICT = {
    "lane_atomics": 1_000_000,
    "program_atomics": 245,
    "two_phase_extra": 2048,
    "row_ratio": 1.5,  # of four rows, and a row of a buffer is read and written
    "groups": 128,
}


@triton.jit
def own_sum(x_ptr, n, BLOCK_SIZE: tl.constexpr):
    """The sum of every so manyth block of x, as float32: this program's share."""
    pid = tl.program_id(axis=0).to(tl.int64)  # its product with a block may pass 2**31
    step = tl.num_programs(axis=0) * BLOCK_SIZE
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)

    # Each element adds for itself; the elements meet once, at the end.
    acc = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for _ in range(tl.cdiv(n - pid * BLOCK_SIZE, step)):
        acc += tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
        offs += step
    return tl.sum(acc, axis=0)


@triton.jit
def sum_atomic_kernel(
    x_ptr, out_ptr,            # [n] without gaps, and one float32 that is 0 before
    n,
    BLOCK_SIZE: tl.constexpr,  # elements per step, a power of two
):
    """out += sum of x. One atomic addition a program."""
    tl.atomic_add(out_ptr, own_sum(x_ptr, n, BLOCK_SIZE))


def sum_atomic(x: torch.Tensor) -> torch.Tensor:
    """The sum of all elements of x as a float32 tensor without dimensions, in one launch.

    The order of programs decides how it is rounded.

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
    x_ptr, partials_ptr,       # [n] without gaps, and one float32 for each program
    n,
    BLOCK_SIZE: tl.constexpr,
):
    """partials[p] = the share of program p in the sum of x."""
    pid = tl.program_id(axis=0)
    tl.store(partials_ptr + pid, own_sum(x_ptr, n, BLOCK_SIZE))


@triton.jit
def add_partials_kernel(
    partials_ptr, out_ptr,     # [n_partials], and one float32
    n_partials,
    BLOCK_SIZE: tl.constexpr,  # a power of two >= n_partials
):
    """out = sum of the partial sums. One program, and so one tree of additions."""
    offs = tl.arange(0, BLOCK_SIZE)
    partials = tl.load(partials_ptr + offs, mask=offs < n_partials, other=0.0)
    tl.store(out_ptr, tl.sum(partials, axis=0))


def sum_two_phase(x: torch.Tensor) -> torch.Tensor:
    """The sum of all elements of x as a float32 tensor without dimensions: the same bits always.

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
    """How many programs add up n elements. It depends on n alone, and so do the bits of the sum."""
    return min(triton.cdiv(n, BLOCK_SIZE), MOST_PROGRAMS)


@triton.jit
def locked_sums_kernel(
    x_ptr,                   # [M, N] with any strides
    buffer_ptr, lock_ptr,    # [groups, N] and [groups, blocks of columns], all 0 before
    M, N, groups,
    stride_xm, stride_xn,    # elements
    BLOCK_M: tl.constexpr,   # rows per step
    BLOCK_N: tl.constexpr,   # columns of a program
    STEPS: tl.constexpr,     # of a program
):
    """buffer[g] += columns of the rows of all programs of group g, one program at a time.

    One program owns STEPS * BLOCK_M rows of BLOCK_N columns.
    """
    pid_m = tl.program_id(axis=0)
    pid_n = tl.program_id(axis=1)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rows = pid_m.to(tl.int64) * (STEPS * BLOCK_M) + tl.arange(0, BLOCK_M)
    in_n = cols < N
    x_ptrs = x_ptr + rows[:, None] * stride_xm + cols.to(tl.int64)[None, :] * stride_xn
    step_rows = tl.cast(BLOCK_M, tl.int64) * stride_xm

    # All that needs no other program comes before the lock.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in tl.range(0, STEPS, num_stages=3):
        mask = (rows + step * BLOCK_M < M)[:, None] & in_n[None, :]
        acc += tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
        x_ptrs += step_rows
    total = tl.sum(acc, axis=0)

    group = pid_m % groups
    buffer_ptrs = buffer_ptr + group.to(tl.int64) * N + cols
    lock = lock_ptr + group * tl.num_programs(axis=1) + pid_n
    while tl.atomic_cas(lock, 0, 1) == 1:  # 1: somebody has it
        pass
    so_far = tl.load(buffer_ptrs, mask=in_n, other=0.0)
    tl.store(buffer_ptrs, so_far + total, mask=in_n)
    tl.debug_barrier()  # all threads have stored before one of them gives the lock back
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
    """The sum of every column of x (M, N), as a new float32 vector (N,).

    Args:
        groups: buffers that programs add to, at least 1. Program m adds to number m % groups.

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
        ValueError: x does not have two dimensions, or there is no group.
    """
    check_dtype(x)
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got {x.dim()} in shape {tuple(x.shape)}")
    if groups < 1:
        raise ValueError(f"groups: expected at least 1, got {groups}")
    m, n = x.shape
    if m == 0 or n == 0:
        return torch.zeros(n, dtype=torch.float32, device=x.device)

    # As many rows for a program as leave eight programs to a block of columns, within bounds: few
    # rows would make the buffers' traffic count, and the lock; many would leave a GPU without work.
    block_m, block_n = 16, 128
    steps = min(max(triton.next_power_of_2(triton.cdiv(m, 8 * block_m)), 16), 64)
    blocks = triton.cdiv(n, block_n)
    # What has to be 0 before is one tensor: each tensor that is cleared is a launch of its own.
    # No bit of 0.0 is set, so integers that are 0 are floats that are 0.
    cleared = torch.zeros(groups * (n + blocks), dtype=torch.int32, device=x.device)
    buffer, locks = cleared[:groups * n].view(torch.float32), cleared[groups * n:]
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    locked_sums_kernel[(triton.cdiv(m, block_m * steps), blocks)](
        x, buffer, locks, m, n, groups, x.stride(0), x.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n, STEPS=steps,
    )
    add_groups_kernel[(blocks,)](buffer, out, n, groups, BLOCK_N=block_n)
    return out


def choose_groups(n: int, l2_bytes: int, num_programs: int) -> int:
    """How many buffers of n float32 programs should add to: the largest power of two that fits.

    More groups are shorter queues, as long as the buffers stay in L2, of which they may take half.
    There are never more groups than programs, nor than ``MOST_GROUPS``, and always one.

    Args:
        n: columns of a buffer.
        l2_bytes: size of the L2 cache.
        num_programs: programs that add to the buffers.
    """
    groups = 1
    while 2 * groups <= min(num_programs, MOST_GROUPS) and 2 * groups * n * 4 <= l2_bytes / 2:
        groups *= 2
    return groups


def check_dtype(x: torch.Tensor) -> None:
    """Refuse what the contract does not cover, before anything is allocated or launched.

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
