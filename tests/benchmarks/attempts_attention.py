"""Other tiles of attention's forward half, by pointers and by descriptors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.benchmarks.modules import solution

POINTERS = ((128, 64, 4, 3), (128, 64, 8, 3), (64, 64, 4, 3))
DESCRIBED = ((128, 64, 4, 2), (128, 64, 4, 3), (128, 64, 4, 4), (64, 64, 4, 2), (64, 64, 4, 3),
             (64, 64, 4, 4), (64, 128, 4, 2), (64, 128, 4, 3), (128, 128, 8, 2), (128, 128, 8, 3),
             (128, 64, 8, 3))


def attention(causal: bool) -> Mapping[str, Callable[..., torch.Tensor]]:
    """The solution's kernel with each of the tiles: queries, keys, warps, stages."""
    module = solution("attention-kernels")

    def by(tile: tuple[int, ...], described: bool) -> Callable[..., torch.Tensor]:
        block_m, block_n, warps, stages = tile

        def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            batches, heads, queries, width = q.shape
            out = torch.empty_like(q)
            tiles = ((q, block_m), (k, block_n), (v, block_n), (out, block_m))
            descriptors = (TensorDescriptor.from_tensor(x, [1, 1, rows, width]) if described
                           else None for x, rows in tiles)
            module.attention_kernel[(batches * heads * triton.cdiv(queries, block_m),)](
                q, k, v, out, None, *descriptors, *q.stride(), *k.stride(), *v.stride(), heads, 1,
                queries, k.shape[2], module.LOG2_E / math.sqrt(width), D=width, CAUSAL=causal,
                BLOCK_D=width, BLOCK_M=block_m, BLOCK_N=block_n, DESCRIBED=described,
                NEGATIVE=False, MASKS=causal, num_warps=warps, num_stages=stages)
            return out
        return run

    words = "{}x{}, {} warps, {} stages"
    return {words.format(*tile): by(tile, False) for tile in POINTERS} | {
        f"described, {words.format(*tile)}": by(tile, True) for tile in DESCRIBED}
