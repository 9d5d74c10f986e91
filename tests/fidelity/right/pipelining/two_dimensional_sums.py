"""Right but different: a program owns several short rows, as a block of two axes."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

PREDICT = {
    "stage_bytes": 16_384, "unused_ratio": 1, "matmul_bytes": 80_000, "row_sum_bytes": 12_288,
    "reductions": 64, "most_stages": 4,
}
FLOATS = (torch.float16, torch.bfloat16, torch.float32)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn,
                   BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        k = step * BLOCK_K + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(a_ptr + rows * am + k[None, :] * ak, (rows < M) & (k[None, :] < K), 0.0)
        b = tl.load(b_ptr + k[:, None] * bk + cols * bn, (k[:, None] < K) & (cols < N), 0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + rows * N + cols, acc.to(c_ptr.dtype.element_ty), (rows < M) & (cols < N))



def matmul_pipelined(a: torch.Tensor, b: torch.Tensor, *, num_stages: int = 3) -> torch.Tensor:
    refuse_pair(a, b, num_stages)
    (M, K), N = a.shape, b.shape[1]
    c = a.new_empty((M, N))
    if M and N:
        grid = (triton.cdiv(M, 128), triton.cdiv(N, 128))
        product_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), 128, 128, 32, num_warps=8,
                             num_stages=num_stages)
    return c



@triton.jit
def block_sum_kernel(x_ptr, out_ptr, xm, xn, R, C, share, STAGES: tl.constexpr,
                     ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    low = tl.program_id(1) * share
    high = tl.minimum(low + share, C)
    acc = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in tl.range(low, high, BLOCK, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        acc += tl.load(x_ptr + rows[:, None] * xm + cols[None, :] * xn,
                       (rows[:, None] < R) & (cols[None, :] < high), 0.0)
    places = rows * tl.num_programs(1) + tl.program_id(1)
    tl.store(out_ptr + places, tl.sum(acc, 1), rows < R)


def row_sum(x: torch.Tensor, *, num_stages: int = 4) -> torch.Tensor:
    refuse(num_stages, x=x)
    R, C = x.shape
    rows, block = (4, 512) if R >= 1_024 or C < 4_096 else (1, 2_048)
    sums = torch.empty((R, 1), dtype=torch.float32, device=x.device)
    if R == 0:
        return sums[:, 0]
    programs = triton.cdiv(R, rows)
    share = max(16 * block, triton.cdiv(C, max(1, 264 // programs)))
    share = triton.cdiv(share, block) * block
    shares = max(1, triton.cdiv(C, share))
    if shares == 1:
        block_sum_kernel[programs, 1](x, sums, *x.stride(), R, C, share, num_stages, rows, block)
        return sums[:, 0]
    parts = sums.new_empty((R, shares))
    block_sum_kernel[programs, shares](x, parts, *x.stride(), R, C, share, num_stages, rows, block)
    block_sum_kernel[R, 1](parts, sums, shares, 1, R, shares, block, num_stages, 1, 512)
    return sums[:, 0]



def pick_num_stages(tile_bytes, smem_limit, k_iters, *, max_stages=5):
    for name, number in locals().copy().items():
        if number < 1:
            raise ValueError(f"{name}: {number} is too small")
    fitting = [s for s in range(1, max_stages + 1) if s * tile_bytes <= smem_limit and s <= k_iters]
    if not fitting:
        raise ValueError(f"tile_bytes: {tile_bytes} bytes are more than {smem_limit}")
    return max(fitting)


def refuse(num_stages, **tensors):
    if type(num_stages) is not int:
        raise TypeError(f"num_stages: expected an int, got {type(num_stages)}")
    if num_stages not in range(1, 6):
        raise ValueError(f"num_stages: expected 1 to 5, got {num_stages}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(tensor)} {tensor!r}")
        if tensor.dtype not in FLOATS:
            raise TypeError(f"{name}: expected one of {FLOATS}, got {tensor.dtype}")
        if tensor.dim() != 2:
            raise ValueError(f"{name}: expected 2 dimensions, got {tensor.dim()}")


def refuse_pair(a, b, num_stages):
    refuse(num_stages, a=a, b=b)
    if a.dtype != b.dtype:
        raise TypeError(f"b: expected {a.dtype}, got {b.dtype}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"b: expected {a.shape[1]} rows, got {tuple(b.shape)}")
    if a.device != b.device:
        raise ValueError(f"b: expected device {a.device}, got {b.device}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
