"""Loops that wait for other programs, loops that only look so, and loops that never end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from grader.engine.interpreter.eager import KernelFailed, interpreted

every_mode = pytest.mark.parametrize("options", [{}, {"chunk": 1}, {"order": "reverse"}],
                                     ids=["together", "one by one", "reverse"])


def ints(count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.int32)


# ---------------------------------------------------------------------------------------------
# Programs that wait for each other


@triton.jit
def ping_pong_kernel(flag_ptr, out_ptr):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(out_ptr, 1)
        tl.atomic_xchg(flag_ptr, 1)
        while tl.atomic_add(flag_ptr, 0) != 2:
            pass
        tl.store(out_ptr + 2, tl.load(out_ptr + 1) + 1)
    else:
        while tl.atomic_add(flag_ptr, 0) != 1:
            pass
        tl.store(out_ptr + 1, tl.load(out_ptr) + 1)
        tl.atomic_xchg(flag_ptr, 2)


@triton.jit
def barrier_after_branch_kernel(count_ptr, x_ptr, out_ptr, PROGRAMS: tl.constexpr):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(x_ptr, 10.0)
    else:
        tl.store(x_ptr + pid, pid * 1.0)
    tl.atomic_add(count_ptr, 1)
    while tl.atomic_add(count_ptr, 0) < PROGRAMS:
        pass
    tl.store(out_ptr + pid, tl.sum(tl.load(x_ptr + tl.arange(0, PROGRAMS)), axis=0))


@triton.jit
def block_of_flags_kernel(x_ptr, flags_ptr, out_ptr, PROGRAMS: tl.constexpr):
    pid, offs = tl.program_id(0), tl.arange(0, PROGRAMS)
    tl.store(x_ptr + pid, pid * 1.0)
    tl.debug_barrier()
    tl.atomic_xchg(flags_ptr + pid, 1)
    while tl.sum(tl.load(flags_ptr + offs, volatile=True), axis=0) < PROGRAMS:
        pass
    tl.store(out_ptr + pid, tl.sum(tl.load(x_ptr + offs), axis=0))


def _ping_pong() -> tuple[torch.Tensor, list[float]]:
    out = torch.empty(3, dtype=torch.int32)
    ping_pong_kernel[(2,)](ints(1), out)
    return out, [1, 2, 3]


def _barrier() -> tuple[torch.Tensor, list[float]]:
    out = torch.empty(4)
    barrier_after_branch_kernel[(4,)](ints(1), torch.empty(4), out, PROGRAMS=4)
    return out, [16.0] * 4


def _flags() -> tuple[torch.Tensor, list[float]]:
    out = torch.empty(8)
    block_of_flags_kernel[(8,)](torch.empty(8), ints(8), out, PROGRAMS=8)
    return out, [28.0] * 8


@every_mode
@pytest.mark.parametrize("run", [_ping_pong, _barrier, _flags])
def test_programs_that_wait_for_each_other_go_on(
        run: Callable[[], tuple[torch.Tensor, list[float]]], options: Any) -> None:
    with interpreted(**options) as trace:
        out, expected = run()

    assert out.tolist() == expected
    assert trace.findings == []


# ---------------------------------------------------------------------------------------------
# Loops that wait for nobody


@triton.jit
def same_scalar_kernel(x_ptr, out_ptr, n):
    i, total = 0, 0.0
    while i < n:
        total += tl.load(x_ptr)
        i += 1
    tl.store(out_ptr, total)


@triton.jit
def bounded_spin_kernel(flag_ptr, out_ptr, n):
    turns = 0
    while (tl.load(flag_ptr, volatile=True) == 0) & (turns < n):
        turns += 1
    tl.store(out_ptr, turns)


@every_mode
@pytest.mark.parametrize("kernel", [same_scalar_kernel, bounded_spin_kernel])
def test_a_loop_may_read_one_value_again_and_again(kernel: Any, options: Any) -> None:
    source = torch.ones(1) if kernel is same_scalar_kernel else ints(1)

    with interpreted(**options) as trace:
        out = torch.empty(1)
        kernel[(2,)](source, out, 1500) if kernel is bounded_spin_kernel else kernel[(1,)](
            source, out, 1500)

    assert out.item() == 1500
    assert {finding.code for finding in trace.findings} <= {"M04"}  # both programs store the count


# ---------------------------------------------------------------------------------------------
# Loops that never end


@triton.jit
def two_ways_kernel(flags_ptr):
    pid = tl.program_id(0)
    while tl.atomic_add(flags_ptr + pid, 0) == 0:  # <- each waits for the other to say so first
        pass
    tl.atomic_xchg(flags_ptr + 1 - pid, 1)


@triton.jit
def no_memory_kernel(out_ptr, n):
    while n >= 0:  # <- n stays what it is
        n = n * 1
    tl.store(out_ptr, n)


@every_mode
def test_programs_that_wait_for_each_other_for_ever_are_told(options: Any) -> None:
    with interpreted(**options), pytest.raises(KernelFailed) as failed:
        two_ways_kernel[(2,)](ints(2))

    assert failed.value.finding.code == "R02"
    assert "program 0 waits forever: it polls `flags_ptr`[0]" in failed.value.finding.seen


def test_a_loop_that_changes_nothing_is_told() -> None:
    with interpreted(), pytest.raises(KernelFailed) as failed:
        no_memory_kernel[(1,)](ints(1), 3)

    assert failed.value.finding.code == "R02"
