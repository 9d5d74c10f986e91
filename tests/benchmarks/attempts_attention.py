"""Other ways to write attention's forward half: other tiles, and tiles by descriptors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import triton
import triton.language as tl

from tests.benchmarks.modules import solution

TILES = ((128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3), (128, 32, 4, 4))


@triton.jit
def described_kernel(q_ptr, k_ptr, v_ptr, out_ptr, n_queries, n_keys, scale, D: tl.constexpr,
                     CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Heads without gaps, whole tiles only. The copy engine loads, so no thread keeps addresses."""
    tiles = n_queries // BLOCK_M
    pid = tl.program_id(axis=0)
    head = (pid // tiles).to(tl.int64)
    pid_m = pid % tiles
    if CAUSAL:
        pid_m = tiles - 1 - pid_m
    k_desc = tl.make_tensor_descriptor(k_ptr + head * n_keys * D, shape=[n_keys, D],
                                       strides=[D, 1], block_shape=[BLOCK_N, D])
    v_desc = tl.make_tensor_descriptor(v_ptr + head * n_keys * D, shape=[n_keys, D],
                                       strides=[D, 1], block_shape=[BLOCK_N, D])
    offs_m, offs_n = pid_m * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    offs = (head * n_queries + offs_m)[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + offs)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    whole = pid_m * BLOCK_M // BLOCK_N * BLOCK_N if CAUSAL else n_keys
    for first in range(0, whole, BLOCK_N):
        scores = tl.dot(q, k_desc.load([first, 0]).T)
        now = tl.maximum(largest, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - now[:, None])
        shrink = tl.exp2(largest - now)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(q.dtype), v_desc.load([first, 0]), acc * shrink[:, None])
        largest = now
    if CAUSAL:
        for first in range(whole, (pid_m + 1) * BLOCK_M, BLOCK_N):
            scores = tl.dot(q, k_desc.load([first, 0]).T)
            scores = tl.where(offs_m[:, None] >= first + offs_n[None, :], scores * scale,
                              -float("inf"))
            now = tl.maximum(largest, tl.max(scores, axis=1))
            weights = tl.exp2(scores - now[:, None])
            shrink = tl.exp2(largest - now)
            total = total * shrink + tl.sum(weights, axis=1)
            acc = tl.dot(weights.to(q.dtype), v_desc.load([first, 0]), acc * shrink[:, None])
            largest = now
    tl.store(out_ptr + offs, (acc / total[:, None]).to(q.dtype))


def attention(causal: bool) -> Mapping[str, Callable[..., torch.Tensor]]:
    """The solution's kernel and the one above, with each of the tiles, for heads without gaps."""
    module = solution("attention-kernels")

    def by_pointers(tile: tuple[int, ...]) -> Callable[..., torch.Tensor]:
        block_m, block_n, warps, stages = tile

        def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            batches, heads, queries, width = q.shape
            out = torch.empty_like(q)
            module.attention_kernel[(batches * heads * triton.cdiv(queries, block_m),)](
                q, k, v, out, None, *q.stride(), *k.stride(), *v.stride(), heads, 1, queries,
                k.shape[2], module.LOG2_E / math.sqrt(width), D=width, CAUSAL=causal,
                BLOCK_D=width, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=warps,
                num_stages=stages)
            return out
        return run

    def by_descriptors(tile: tuple[int, ...]) -> Callable[..., torch.Tensor]:
        block_m, block_n, warps, stages = tile

        def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            batches, heads, queries, width = q.shape
            out = torch.empty_like(q)
            triton.set_allocator(scratch)
            described_kernel[(batches * heads * queries // block_m,)](
                q, k, v, out, queries, k.shape[2], module.LOG2_E / math.sqrt(width), D=width,
                CAUSAL=causal, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=warps,
                num_stages=stages)
            return out
        return run

    made: dict[str, Any] = {}
    for tile in TILES:
        words = "{}x{}, {} warps, {} stages".format(*tile)
        made |= {words: by_pointers(tile), f"described, {words}": by_descriptors(tile)}
    return made


def scratch(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Memory of a GPU in which a kernel writes the descriptors that it makes itself."""
    return torch.empty(size, dtype=torch.int8, device="cuda")
