"""Other tiles and launches of fused operations and of training, to find out which is faster."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.benchmarks.attempts import MULTIPROCESSORS, Attempts, element_wise
from tests.benchmarks.attempts_tiles import Tiles, named, tile_of
from tests.benchmarks.modules import solution

POINTERS: tuple[Tiles, ...] = ((128, 128, 64, 4, 3, 8), (128, 256, 64, 8, 3, 8))
DESCRIBED: tuple[Tiles, ...] = (
    (128, 128, 64, 4, 3, 8), (128, 128, 64, 4, 2, 8), (128, 128, 64, 8, 4, 8),
    (128, 256, 64, 8, 3, 8), (128, 256, 64, 8, 4, 8), (256, 128, 64, 8, 3, 8),
    (256, 128, 64, 8, 4, 8), (128, 128, 64, 4, 3, 16), (128, 128, 32, 4, 5, 8),
    (128, 256, 64, 8, 4, 16), (128, 256, 64, 8, 4, 4), (128, 256, 128, 8, 2, 8))
HALVES: tuple[Tiles, ...] = (
    (128, 256, 64, 8, 3, 8), (128, 256, 64, 8, 3, 16), (128, 256, 64, 8, 4, 8))
PERSISTENT: tuple[Tiles, ...] = (
    (128, 256, 64, 8, 4, 8), (128, 256, 64, 8, 3, 8), (256, 128, 64, 8, 3, 8),
    (128, 128, 64, 8, 4, 8))

relu, gelu = solution("fused-operations").relu, solution("fused-operations").gelu


@triton.jit
def linear_persistent_kernel(
    x_desc, w_desc, b_ptr, out_desc, M, N, K, ACT: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """As many programs as multiprocessors: the next tile's loads begin before the last is stored.
    """
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for pid in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        pid_m, pid_n = tile_of(pid, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            x = x_desc.load([pid_m * BLOCK_M, k])
            w = w_desc.load([pid_n * BLOCK_N, k])
            acc = tl.dot(x, w.T, acc)
        acc += tl.load(b_ptr + pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.float32)[None, :]
        acc = gelu(acc) if ACT == "gelu" else relu(acc)
        out_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(out_desc.dtype))


def linear(act: str) -> Attempts:
    """A layer of 16-bit numbers without gaps, by pointers or by descriptors.

    ``halves``: a tile is finished and stored in two, by descriptors too.
    """
    def by(tiles: Tiles, described: bool, halves: bool = False) -> Callable[..., torch.Tensor]:
        block_m, block_n, block_k, warps, stages, group = tiles

        def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            (m, k), n = x.shape, w.shape[0]
            out = x.new_empty(m, n)
            solution("fused-operations").linear_kernel[
                (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
                x, w, b, out,
                TensorDescriptor.from_tensor(x, [block_m, block_k]) if described else None,
                TensorDescriptor.from_tensor(w, [block_n, block_k]) if described else None,
                TensorDescriptor.from_tensor(out, [block_m, block_n // 2]) if halves else None,
                *x.stride(), *w.stride(), m, n, k, ACT=act, BLOCK_M=block_m, BLOCK_N=block_n,
                BLOCK_K=block_k, GROUP_M=group, DESCRIBED=described, num_warps=warps,
                num_stages=stages)
            return out
        return run

    def persistent(tiles: Tiles) -> Callable[..., torch.Tensor]:
        block_m, block_n, block_k, warps, stages, group = tiles

        def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            (m, k), n = x.shape, w.shape[0]
            out = x.new_empty(m, n)
            matrices = [TensorDescriptor.from_tensor(t, block) for t, block in (
                (x, [block_m, block_k]), (w, [block_n, block_k]), (out, [block_m, block_n]))]
            linear_persistent_kernel[(MULTIPROCESSORS,)](
                *matrices[:2], b, matrices[2], m, n, k, ACT=act, BLOCK_M=block_m, BLOCK_N=block_n,
                BLOCK_K=block_k, GROUP_M=group, num_warps=warps, num_stages=stages)
            return out
        return run

    return {f"pointers {named(t)}": by(t, False) for t in POINTERS} | {
        f"halves {named(t)}": by(t, True, True) for t in HALVES} | {
        f"described {named(t)}": by(t, True) for t in DESCRIBED} | {
        f"persistent {named(t)}": persistent(t) for t in PERSISTENT}


def add_relu_mul_of_a_vector() -> Attempts:
    """Rows and columns of a program's tile, and warps."""
    def by(block_r: int, block_c: int, warps: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            (rows, columns), out = x.shape, torch.empty_like(x)
            solution("fused-operations").add_relu_mul_kernel[
                (triton.cdiv(rows, block_r) * triton.cdiv(columns, block_c),)](
                x, bias, out, rows, columns, 0.5, BLOCK_C=block_c, BLOCK_R=block_r, ONE_ROW=False,
                num_warps=warps)
            return out
        return run

    return {f"{r}x{c} w{w}": by(r, c, w) for r, c, w in (
        (8, 128, 2), (8, 128, 4), (8, 128, 8), (16, 128, 8), (1, 1024, 4), (2, 1024, 8),
        (1, 2048, 8), (4, 512, 8), (4, 256, 4), (4, 128, 4), (2, 256, 4), (1, 512, 4))}


@triton.jit
def add_relu_mul_streaming_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """In 32 bits; the caches are told that nothing comes again."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, eviction_policy="evict_first")
    y = tl.load(y_ptr + offs, mask=mask, eviction_policy="evict_first")
    tl.store(out_ptr + offs, relu(x + y) * 0.5, mask=mask, eviction_policy="evict_first")


def add_relu_mul_of_a_tensor() -> Attempts:
    def by(block: int, warps: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            solution("fused-operations").add_relu_mul_kernel[(triton.cdiv(x.numel(), block),)](
                x, bias, out, 1, x.numel(), 0.5, BLOCK_C=block, BLOCK_R=1, ONE_ROW=True,
                num_warps=warps)
            return out
        return run

    return {f"{block} w{warps}": by(block, warps) for block, warps in (
        (512, 2), (512, 4), (256, 2), (1024, 4))} | {
        f"streaming {name}": run for name, run in element_wise(
            add_relu_mul_streaming_kernel, ((512, 4), (1024, 4), (512, 2))).items()}


def adam(rate: float, beta1: float, beta2: float, eps: float, step: int) -> Attempts:
    """Elements of a program, and warps."""
    def by(block: int, warps: int) -> Callable[..., tuple[torch.Tensor, ...]]:
        def run(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor
                ) -> tuple[torch.Tensor, ...]:
            solution("training-kernels").adam_kernel[(triton.cdiv(p.numel(), block),)](
                p, g, m, v, p.numel(), 1.0, rate / (1 - beta1**step), beta1, 1 - beta1, beta2,
                1 - beta2, (1 - beta2**step) ** 0.5, eps, BLOCK=block, num_warps=warps)
            return p, m, v
        return run

    return {f"{block} w{warps}": by(block, warps) for block, warps in (
        (256, 2), (256, 4), (512, 4), (512, 8), (1024, 4), (1024, 8), (2048, 8))}


Way = tuple[int, int, int]  # programs for each multiprocessor, warps, and rows on their way


def layer_norm_backward() -> Attempts:
    """All gradients in one launch, or dx and the shares of dw and db in a launch each."""
    def by(*ways: Way) -> Callable[..., tuple[torch.Tensor, ...]]:
        """``ways``: of the launch, or of that for dx and that for the shares."""
        def run(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, mean: torch.Tensor,
                rstd: torch.Tensor) -> tuple[torch.Tensor, ...]:
            module = solution("training-kernels")
            rows, columns = x.shape
            gpus = torch.cuda.get_device_properties(x.device).multi_processor_count \
                if x.is_cuda else 2
            programs = [min(each * gpus, rows) for each, _, _ in ways]
            shares = torch.empty((2, programs[-1], columns), dtype=torch.float32, device=x.device)
            dw, db = torch.empty((2, columns), dtype=weight.dtype, device=x.device)
            dx = torch.empty_like(x)
            for number, (_, warps, stages) in enumerate(ways):
                module.backward_kernel[(programs[number],)](
                    dy, x, dx, weight, mean, rstd, shares[0], shares[1], columns, columns, columns,
                    rows, columns, BLOCK_SIZE=triton.next_power_of_2(columns), FOR_X=number == 0,
                    FOR_PARAMETERS=number == len(ways) - 1, STAGES=stages, num_warps=warps)
            module.add_shares_kernel[(triton.cdiv(columns, 32),)](
                shares[0], shares[1], dw, db, programs[-1], columns, BLOCK_ROWS=32, BLOCK_COLS=32)
            return dx, dw, db
        return run

    together = ((1, 16, 1), (1, 16, 3), (1, 32, 1), (1, 32, 2), (1, 32, 3), (2, 16, 1), (2, 16, 2))
    every_row = 1 << 20  # more programs than there are rows
    apart = (((1, 16, 2), (1, 16, 2)), ((1, 16, 1), (1, 16, 1)), ((1, 32, 1), (1, 32, 1)),
             ((1, 32, 2), (1, 16, 2)), ((every_row, 16, 1), (1, 16, 2)),
             ((every_row, 32, 1), (1, 16, 2)), ((1, 8, 2), (1, 8, 2)),
             ((every_row, 16, 1), (1, 8, 2)))
    return {f"apart: {x[0]}, w{x[1]}, {x[2]} stages; {p[0]}, w{p[1]}, {p[2]}": by(x, p)
            for x, p in apart} | {
        f"{each} each, w{warps}, {stages} stages": by((each, warps, stages))
        for each, warps, stages in together}
