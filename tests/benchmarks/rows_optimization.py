"""The rows of track 2, for `tests.benchmarks.kernels`: reductions, products, and their starters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it

from tests.benchmarks import peers
from tests.benchmarks.modules import solution, starter
from tests.benchmarks.rows import (
    ROUNDING,
    Function,
    Row,
    few,
    normal,
    short,
    side,
)

HALF = torch.float16
STAGES = (1, 2, 3, 4, 5)


def pair(slug: str, function: Callable[[Any], Function]) -> dict[str, Function]:
    """The same function of a module's reference solution and of the file that learners start from.
    """
    return {"solution": function(solution(slug)), "starter": function(starter(slug))}


# ---------------------------------------------------------------------------------------------
# Reductions


def reduction(name: str, shape: Callable[[int], tuple[int, ...]], dtype: torch.dtype, slug: str,
              own: Callable[[Any], Function], eager: Function, *, goal: float | None = 1.0,
              rival: str = "") -> Row:
    """A matrix or vector that is read once; what comes out is small beside it."""
    return Row(
        name, lambda scale, device: (normal(*shape(scale), dtype=dtype, device=device),),
        lambda x: eager(x.double()),
        lambda: {**pair(slug, own), **peers.function(eager)},
        least_bytes=lambda x: x.nbytes, goal=goal, rival=rival, tolerance=1e-4)


def reduction_rows() -> list[Row]:
    def wide_sum(x: torch.Tensor, *dim: int) -> torch.Tensor:
        return x.sum(*dim, dtype=torch.promote_types(x.dtype, torch.float32))

    def statistics(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        variance, mean = torch.var_mean(x, dim=0, correction=0)
        return mean, variance

    def flat(scale: int) -> tuple[int, ...]:
        return (few(1 << 28, scale),)

    def square(scale: int) -> tuple[int, ...]:
        return (side(8192, scale), side(8192, scale))

    return [
        *(reduction(f"sum of long rows {short(dtype)} 8x2^24",
                    lambda scale: (8, few(1 << 24, scale)), dtype, "pipelining",
                    lambda module: module.row_sum, lambda x: wide_sum(x, 1))
          for dtype in (torch.float32, HALF)),
        reduction("sum in two phases fp32 2^28", flat, torch.float32, "two-phase-reduction",
                  lambda module: module.sum_two_phase, wide_sum),
        reduction("sum by atomics fp32 2^28", flat, torch.float32, "two-phase-reduction",
                  lambda module: module.sum_atomic, wide_sum, goal=None),
        reduction("sum of columns under locks fp32 8192", square, torch.float32,
                  "two-phase-reduction", lambda module: module.column_sum_locked,
                  lambda x: wide_sum(x, 0), rival="torch"),
        reduction("statistics of columns fp32 8192", square, torch.float32, "shared-memory",
                  lambda module: module.column_stats, statistics),
    ]


def persistent_softmax_row(rows: int, columns: int) -> Row:
    return Row(
        f"persistent softmax fp32 {rows}x{columns}",
        lambda scale, device: (normal(few(rows, scale, 3), columns, device=device),),
        lambda x: torch.softmax(x.double(), dim=1),
        lambda: {**pair("advanced-optimizations", lambda module: module.persistent_softmax),
                 "solution of track 1": solution("softmax").softmax, **peers.softmax()},
        least_bytes=lambda x: 2 * x.nbytes, tolerance=ROUNDING[torch.float32])


# ---------------------------------------------------------------------------------------------
# Products


def product(name: str, shapes: Callable[[int], tuple[tuple[int, ...], ...]],
            eager: Function, own: Callable[[], Mapping[str, Function]], *,
            goal: float | None = None, more: Callable[[], Mapping[str, Function]] = dict) -> Row:
    """Of two matrices in float16, a and b; b may lie as (N, K). ``torch`` is who is raced."""
    def flops(*inputs: torch.Tensor) -> int:
        (m, k), second = inputs[0].shape, inputs[1].shape if len(inputs) > 1 else inputs[0].shape
        return 2 * m * k * (second[0] if second[1] == k else second[1])

    return Row(
        f"{name} fp16", lambda scale, device: tuple(
            normal(*shape, dtype=HALF, device=device) for shape in shapes(scale)),
        lambda *inputs: eager(*(x.double() for x in inputs)),
        lambda: {**own(), "torch": eager, **more()},
        flops=flops, goal=goal, rival="torch", tolerance=ROUNDING[HALF])


def square_pair(n: int) -> Callable[[int], tuple[tuple[int, ...], ...]]:
    return lambda scale: ((side(n, scale), side(n, scale)),) * 2


def product_rows() -> list[Row]:
    def times(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b

    def times_turned(a: torch.Tensor, b_t: torch.Tensor) -> torch.Tensor:
        return a @ b_t.T

    def linear_relu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(F.linear(x, w, b))

    def staged(module: Any, stages: int) -> Function:
        return lambda a, b: module.matmul_pipelined(a, b, num_stages=stages)

    def stages() -> dict[str, Function]:
        module = solution("pipelining")
        return {**pair("pipelining", lambda module: module.matmul_pipelined),
                **{f"solution, {n} stages": staged(module, n) for n in STAGES}}

    def persistent() -> dict[str, Function]:
        return pair("advanced-optimizations", lambda module: module.matmul_persistent)

    def specialised(on: bool) -> Callable[[Any], Function]:
        return lambda module: lambda a, b_t: module.matmul_ws(a, b_t, warp_specialize=on)

    def described(host: bool) -> Callable[[Any], Function]:
        return lambda module: lambda a, b_t: module.matmul_desc(a, b_t, host=host)

    def by_descriptors() -> dict[str, Function]:
        module = solution("tensor-descriptors")
        return {**pair("tensor-descriptors", described(True)),
                "solution, described on the GPU": described(False)(module),
                "solution of pipelining": lambda a, b_t: solution("pipelining").matmul_pipelined(
                    a, b_t.T)}

    def in_groups() -> dict[str, Function]:
        module = solution("warp-specialization")
        return {"solution": module.linear_relu_persistent,
                "solution, as taught": module.linear_relu,
                "starter": starter("warp-specialization").linear_relu,
                "solution, rows of tiles": lambda x, w, b: module.linear_relu(x, w, b, group_m=1)}

    def turned(m: int, n: int, k: int) -> Callable[[int], tuple[tuple[int, ...], ...]]:
        return lambda scale: ((side(m, scale), side(k, scale)), (side(n, scale), side(k, scale)))

    compiled = peers.compiled
    return [
        product("pipelined product 4096", square_pair(4096), times, stages),
        *(product(f"persistent product {size}", shapes, times, persistent, goal=goal)
          for size, shapes, goal in (
              ("8192", square_pair(8192), 1.0),
              ("4096", square_pair(4096), None),
              ("8192x8192x2048", lambda scale: (
                  (side(8192, scale), side(2048, scale)), (side(2048, scale), side(8192, scale))),
               None))),
        product("product by descriptors 8192", turned(8192, 8192, 8192), times_turned,
                by_descriptors, goal=1.0),
        product("product by special warps 8192x8192x4096", turned(8192, 8192, 4096), times_turned,
                lambda: {**pair("warp-specialization", specialised(False)),
                         "solution, specialised": specialised(True)(solution(
                             "warp-specialization"))}),
        product("linear and ReLU 4096x4096x1024", lambda scale: (
            *turned(4096, 4096, 1024)(scale), (side(4096, scale),)), linear_relu, in_groups,
            goal=1.0, more=lambda: {
                "torch.compile": compiled(linear_relu),
                "torch._addmm_activation": lambda x, w, b: torch._addmm_activation(b, x, w.T)}),
        product("gram matrix 4096", lambda scale: ((side(4096, scale), side(4096, scale)),),
                lambda x: x @ x.T, lambda: pair("shared-memory", lambda module: module.gram)),
    ]


def optimization_rows() -> list[Row]:
    """The most important first, as in `tests.benchmarks.rows`."""
    return [*reduction_rows(), *product_rows(), persistent_softmax_row(16384, 4096)]

