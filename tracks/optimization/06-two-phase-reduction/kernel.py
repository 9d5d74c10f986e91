"""Sums over many programs. All are correct, and their programs wait for each other too often.

    sum of x                   one float32
    column_sum[n] = sum_m x[m, n]

Shapes:  the two sums take any shape and give a tensor without dimensions; `column_sum_locked` takes
         (M, N) and gives (N,). float16, bfloat16 or float32 come in, float32 goes out.
Given:   three ways to combine programs (atomics, a second launch, a lock with a barrier) and a
         planner, all correct. The argument checks are complete.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Rewrite these parts as you like.
           sum_atomic  DECIDE 1      sum_two_phase  DECIDE 2 and 3
           column_sum_locked  DECIDE 4 and 5      choose_groups  DECIDE 6
Graded:  values  within the rounding of float32 sums in any program order, as in the given code
         bits    `sum_two_phase` returns the same bits for any order, as in the given code
         cost    a sum: the bytes of x and 8 more per program, at most one program per 1,024
                 elements. column_sum_locked: 1.25 times the bytes of x and the result, two launches
         groups  the docstring of `choose_groups`
         numbers in `PREDICT` within 15 %, counts exactly; a wrong number is explained and fails
                 nothing

`python kernel.py` runs public cases, `tritonlab grade track2/two-phase-reduction` all of them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
MOST_GROUPS = 256

# Replace each None by a number before you measure.
PREDICT = {
    # How many atomic additions does `sum_atomic` below execute for 1,000,000 elements?
    "lane_atomics": None,
    # And how many if each program adds once, for a block of 4,096 elements?
    "program_atomics": None,
    # 256 programs of a first launch store one partial sum each, and a second launch adds them. How
    # many bytes does that move in addition to x and the result?
    "two_phase_extra": None,
    # A program of `column_sum_locked` below adds four rows of a long float32 matrix to a buffer.
    # How many times the bytes of x do all programs load and store?
    "row_ratio": None,
    # By its docstring, what does `choose_groups` return for 4,096 columns, an L2 cache of 50 MiB
    # and 132 programs?
    "groups": None,
}


@triton.jit
def sum_atomic_kernel(
    x_ptr, out_ptr,            # [n] contiguous, and one float32, initially 0
    n,
    BLOCK_SIZE: tl.constexpr,  # elements per program, a power of two
):
    """out += sum of x. One atomic addition per element."""
    # DECIDE 1: the atomic additions of all elements to one address are serialized. How much can a
    #           program add up before its only atomic addition, and how many elements should it
    #           take?
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    everyone = out_ptr + tl.zeros((BLOCK_SIZE,), dtype=tl.int32)
    tl.atomic_add(everyone, x, mask=mask)


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
        sum_atomic_kernel[(triton.cdiv(n, 1024),)](x.contiguous(), out, n, BLOCK_SIZE=1024)
    return out


@triton.jit
def partial_sums_kernel(
    x_ptr, partials_ptr,       # [n] contiguous, and PARTS float32 per program
    n,
    BLOCK_SIZE: tl.constexpr,  # elements per program
    PARTS: tl.constexpr,       # partial sums per program
):
    """partials[p, i] = the sum of every PARTS-th element of program p, from element i on."""
    pid = tl.program_id(axis=0)
    parts = tl.arange(0, PARTS)
    offs = pid.to(tl.int64) * BLOCK_SIZE + parts
    acc = tl.zeros((PARTS,), dtype=tl.float32)
    for _ in range(BLOCK_SIZE // PARTS):
        acc += tl.load(x_ptr + offs, mask=offs < n, other=0.0).to(tl.float32)
        offs += PARTS
    # DECIDE 2: a program stores one number per element of its block. What is the least that the
    #           second launch needs from a program, and where are the elements added up then?
    tl.store(partials_ptr + pid.to(tl.int64) * PARTS + parts, acc)


@triton.jit
def add_partials_kernel(
    partials_ptr, out_ptr,     # [n_partials], and one float32
    n_partials,
    BLOCK_SIZE: tl.constexpr,
):
    """out = sum of the partial sums. One program."""
    # DECIDE 3: a single program runs on the whole GPU here, and its loop grows with x. How many
    #           partial sums should there be at most, for any size of x?
    offs = tl.arange(0, BLOCK_SIZE)
    acc = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for _ in range(tl.cdiv(n_partials, BLOCK_SIZE)):
        acc += tl.load(partials_ptr + offs, mask=offs < n_partials, other=0.0)
        offs += BLOCK_SIZE
    tl.store(out_ptr, tl.sum(acc, axis=0))


def sum_two_phase(x: torch.Tensor) -> torch.Tensor:
    """Returns the sum of all elements of x as a float32 scalar tensor, always with the same bits.

    Raises:
        TypeError: x is not a tensor, or its dtype is not in ``SUPPORTED``.
    """
    check_dtype(x)
    n = x.numel()
    if n == 0:
        return torch.zeros((), dtype=torch.float32, device=x.device)

    programs, parts = triton.cdiv(n, 1024), 128
    partials = torch.empty(programs * parts, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=torch.float32, device=x.device)
    partial_sums_kernel[(programs,)](x.contiguous(), partials, n, BLOCK_SIZE=1024, PARTS=parts)
    add_partials_kernel[(1,)](partials, out, programs * parts, BLOCK_SIZE=1024)
    return out


@triton.jit
def locked_sums_kernel(
    x_ptr,                   # [M, N] with any strides
    buffer_ptr, lock_ptr,    # [groups, N] and [groups, blocks of columns], initially 0
    M, N, groups,
    stride_xm, stride_xn,    # elements
    BLOCK_M: tl.constexpr,   # rows per program
    BLOCK_N: tl.constexpr,   # columns per program
):
    """buffer[g] += the rows of all programs of group g, one program at a time.

    One program owns BLOCK_M rows of BLOCK_N columns.
    """
    # DECIDE 4: every few rows of x are followed by a load and a store of a buffer. How many rows
    #           should a program add up before it takes the lock, and in how many steps?
    pid_m = tl.program_id(axis=0)
    pid_n = tl.program_id(axis=1)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rows = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    in_n = cols < N
    x_ptrs = x_ptr + rows[:, None] * stride_xm + cols.to(tl.int64)[None, :] * stride_xn

    group = pid_m % groups
    buffer_ptrs = buffer_ptr + group.to(tl.int64) * N + cols
    lock = lock_ptr + group * tl.num_programs(axis=1) + pid_n
    while tl.atomic_cas(lock, 0, 1) == 1:  # 1: taken by another program
        pass
    # DECIDE 5: all other programs of the group wait while this one loads x. Which of these lines
    #           need the lock?
    x = tl.load(x_ptrs, mask=(rows < M)[:, None] & in_n[None, :], other=0.0).to(tl.float32)
    total = tl.sum(x, axis=0)
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

    block_m, block_n = 4, 128
    blocks = triton.cdiv(n, block_n)
    # One tensor for everything that starts at 0, because clearing each tensor is a launch. The bits
    # of 0.0 are those of the integer 0.
    cleared = torch.zeros(groups * (n + blocks), dtype=torch.int32, device=x.device)
    buffer, locks = cleared[:groups * n].view(torch.float32), cleared[groups * n:]
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    locked_sums_kernel[(triton.cdiv(m, block_m), blocks)](
        x, buffer, locks, m, n, groups, x.stride(0), x.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n,
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
    # DECIDE 6: one buffer always fits. Which is the largest power of two within all three bounds of
    #           the docstring?
    return 1


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
