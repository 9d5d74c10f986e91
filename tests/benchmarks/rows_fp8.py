"""The rows of `fp8-matmul`, for `tests.benchmarks.kernels`: products of float8, and how far off."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import triton

from grader.recording.model import dtype_name
from grader.suite.rounding import UNIT_ROUNDOFF, spread
from grader.suite.spec import KAPPA
from tests.benchmarks import peers
from tests.benchmarks.modules import solution
from tests.benchmarks.rows import Function, Inputs, Row, normal, side
from tests.benchmarks.rows_optimization import HALF, pair

FP8 = torch.float8_e4m3fn


def scaled(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor in float8, and its scale."""
    scale = x.abs().amax() / torch.finfo(FP8).max
    return (x / scale).to(FP8), scale


def fp8_inputs(n: int, mean: float = 0.0) -> Callable[[int, str], Inputs]:
    """a_q and b_q_t of n x n numbers, and their scales."""
    def make(scale: int, device: str) -> Inputs:
        (a_q, scale_a), (b_q_t, scale_b) = (
            scaled(normal(side(n, scale), side(n, scale), device=device) + mean) for _ in range(2))
        return a_q, b_q_t, scale_a, scale_b
    return make


def fp8_exact(a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor,
              scale_b: torch.Tensor) -> torch.Tensor:
    return (a_q.double() * scale_a.double()) @ (b_q_t.double() * scale_b.double()).T


def fp8_peer(fast: bool, out_dtype: torch.dtype = HALF) -> Function:
    """cuBLAS; ``fast``: sums stay in the tensor cores, with fewer bits than float32."""
    def run(a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
            ) -> torch.Tensor:
        return torch._scaled_mm(a_q, b_q_t.T, scale_a, scale_b, out_dtype=out_dtype,
                                use_fast_accum=fast)
    return run


def fp8_sums(imprecise: int | None) -> Function:
    """The solution's kernel in float32; ``imprecise``: products between two sums, None for all."""
    def run(a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
            ) -> torch.Tensor:
        (m, k), n = a_q.shape, b_q_t.shape[0]
        c = torch.empty((m, n), dtype=torch.float32, device=a_q.device)
        solution("fp8-matmul").matmul_fp8_kernel[(triton.cdiv(m, 128) * triton.cdiv(n, 128),)](
            a_q, b_q_t, c, scale_a, scale_b, a_q.stride(0), b_q_t.stride(0), 0, 0, m, n, k,
            BLOCK_M=128, BLOCK_N=128, BLOCK_K=128, GROUP_M=8, IMPRECISE=imprecise,
            num_warps=8, num_stages=3)
        return c
    return run


def fp8_errors(inputs: Inputs, result: torch.Tensor, exact: torch.Tensor) -> dict[str, float]:
    """Of the whole; the unit roundoff by which ``grader.judge.compare`` would just pass it, as its
    logarithm; the worst element in units of the class T-DOT, of which 16 are allowed; and how far
    results lean towards zero, as a share of them."""
    sizes = [x.double() * scale.double() for x, scale in zip(inputs[:2], inputs[2:], strict=True)]
    off, own = result.double() - exact, UNIT_ROUNDOFF[dtype_name(result.dtype)]
    length = sizes[0].shape[1]
    reduced = KAPPA * spread(length) * (sizes[0].abs() @ sizes[1].abs().T)
    norms = sizes[0].norm(dim=1)[:, None] * sizes[1].norm(dim=1)[None, :]
    arithmetic = ((off.abs() - own * exact.abs()) / reduced).max().item()
    return {
        "norm": (off.norm() / exact.norm()).item(),
        "log2 of the arithmetic": math.log2(max(arithmetic, 2.0**-60)),
        "T-DOT units": (((off.abs() - 2 * own * exact.abs()) / norms).max() * 2.0**24).item(),
        "lean": -((off * exact).sum() / (exact * exact).sum()).item(),
    }


def fp8_row(name: str, n: int, who: Callable[[], Mapping[str, Function]], *, mean: float = 0.0,
            goal: float | None = None) -> Row:
    def flops(a_q: torch.Tensor, b_q_t: torch.Tensor, *_: torch.Tensor) -> int:
        return 2 * a_q.numel() * b_q_t.shape[0]

    return Row(f"fp8 {name} {n}", fp8_inputs(n, mean), fp8_exact, who, flops=flops, goal=goal,
               rival="torch", tolerance=2e-2, errors=fp8_errors)


def fp8_rows() -> list[Row]:
    peers_of = {"torch": fp8_peer(False), "torch, fast sums": fp8_peer(True)}

    def own(dtype: torch.dtype) -> Callable[[Any], Function]:
        return lambda module: lambda *inputs: module.matmul_fp8(*inputs, dtype)

    def with_starter() -> dict[str, Function]:
        return {**pair("fp8-matmul", own(HALF)), **peers_of}

    def in_single() -> dict[str, Function]:
        single = torch.float32
        return {"solution": own(single)(solution("fp8-matmul")),
                "solution, fast sums": fp8_sums(None), "solution, every 64": fp8_sums(64),
                "torch": fp8_peer(False, single), "torch, fast sums": fp8_peer(True, single)}

    def quantised(per_row: bool) -> Row:
        def eager(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            amax = x.abs().amax(1, keepdim=True) if per_row else x.abs().amax()
            scale = amax.float() / torch.finfo(FP8).max
            return (x / scale).to(FP8), scale

        return Row(f"fp8 quantised by {'row' if per_row else 'tensor'} 8192",
                   lambda scale, device: (normal(side(8192, scale), side(8192, scale), dtype=HALF,
                                                 device=device),),
                   lambda x: x.double(),
                   lambda: {**pair("fp8-matmul", lambda module: lambda x: module.quantize_fp8(
                       x, per_row=per_row)), **peers.function(eager)},
                   least_bytes=lambda x: 3 * x.numel(), tolerance=7e-2,
                   values=lambda made: made[0].double() * made[1].double())

    return [
        fp8_row("product", 8192, with_starter, goal=0.90),
        fp8_row("sums in fp32", 4096, in_single),
        fp8_row("sums in fp32 around a half", 4096, in_single, mean=0.5),
        fp8_row("product", 4096, with_starter),
        *(quantised(per_row) for per_row in (False, True)),
    ]
