"""Other settings of the reductions of track 2: how many programs, how wide, how deep."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton

from tests.benchmarks.modules import solution

Attempts = dict[str, Callable[..., object]]


def row_sum() -> Attempts:
    """More programs, deeper pipelines: more bytes on their way."""
    module = solution("pipelining")

    def of(programs: int, stages: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            rows, columns = x.shape
            most = max(1, programs // rows)
            part = triton.cdiv(columns, most * module.BLOCK_SIZE) * module.BLOCK_SIZE
            parts = triton.cdiv(columns, part)
            sums = module.launch_row_sum(x, parts, part, stages)
            return module.launch_row_sum(sums, 1, parts, stages).view(rows)
        return run

    return {f"{programs} programs s{stages}": of(programs, stages)
            for programs, stages in ((512, 4), (1056, 3), (1056, 4), (1056, 5), (2112, 3),
                                     (2112, 4), (4224, 4))}


def column_stats() -> Attempts:
    """Narrower and taller blocks: more programs."""
    kernel = solution("shared-memory").column_stats_kernel

    def of(block_r: int, block_c: int, warps: int) -> Callable[..., object]:
        def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            rows, columns = x.shape
            mean, var = (x.new_empty(columns, dtype=torch.float32) for _ in range(2))
            kernel[(triton.cdiv(columns, block_c),)](
                x, mean, var, rows, columns, x.stride(0), x.stride(1),
                BLOCK_R=block_r, BLOCK_C=block_c, num_warps=warps)
            return mean, var
        return run

    return {f"{r}x{c} w{warps}": of(r, c, warps)
            for r, c, warps in ((32, 64, 8), (64, 64, 8), (64, 32, 4), (64, 32, 8), (128, 32, 8),
                                (128, 32, 16), (256, 32, 16))}


def sum_two_phase() -> Attempts:
    """More programs, other blocks and warps."""
    module = solution("two-phase-reduction")

    def of(programs: int, block: int, warps: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            partials = torch.empty(programs, dtype=torch.float32, device=x.device)
            out = torch.empty((), dtype=torch.float32, device=x.device)
            module.partial_sums_kernel[(programs,)](x, partials, x.numel(), BLOCK_SIZE=block,
                                                    num_warps=warps)
            module.add_partials_kernel[(1,)](
                partials, out, programs, BLOCK_SIZE=triton.next_power_of_2(programs))
            return out
        return run

    return {f"{programs} x {block} w{warps}": of(programs, block, warps)
            for programs, block, warps in (
                (528, 8192, 8), (1056, 4096, 8), (1056, 8192, 8), (2048, 4096, 8), (2048, 2048, 4),
                (4096, 4096, 8), (4096, 8192, 8), (4096, 2048, 4), (8192, 4096, 8))}


def column_sum_locked() -> Attempts:
    """Other blocks, other shares of the rows, more groups."""
    module = solution("two-phase-reduction")

    def of(block_m: int, block_n: int, steps: int, groups: int, warps: int
           ) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            m, n = x.shape
            blocks = triton.cdiv(n, block_n)
            out = torch.empty(n, dtype=torch.float32, device=x.device)
            buffer = torch.zeros((groups, n), dtype=torch.float32, device=x.device)
            locks = torch.zeros((groups, blocks), dtype=torch.int32, device=x.device)
            module.locked_sums_kernel[(triton.cdiv(m, block_m * steps), blocks)](
                x, buffer, locks, m, n, groups, x.stride(0), x.stride(1),
                BLOCK_M=block_m, BLOCK_N=block_n, STEPS=steps, num_warps=warps)
            module.add_groups_kernel[(blocks,)](buffer, out, n, groups, BLOCK_N=block_n)
            return out
        return run

    return {f"{m}x{n} {steps} steps {groups} groups w{warps}": of(m, n, steps, groups, warps)
            for m, n, steps, groups, warps in (
                (16, 128, 16, 32, 4), (16, 128, 32, 8, 4), (16, 128, 32, 16, 4),
                (16, 256, 16, 16, 4), (16, 256, 32, 16, 8), (32, 128, 16, 16, 4),
                (32, 128, 16, 16, 8), (8, 512, 32, 16, 4), (16, 128, 64, 16, 4),
                (16, 128, 64, 8, 4))}
