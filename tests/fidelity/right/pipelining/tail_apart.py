"""Right but different: whole rounds without a mask, and the rest of a row after the loop."""

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
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K).to(tl.int64)
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
        product_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), 128, 128, 32,
                             num_warps=8 if a.dtype == torch.float32 else 4, num_stages=num_stages)
    return c



@triton.jit
def sum_kernel(x_ptr, out_ptr, xm, xn, C, share, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0).to(tl.int64) * xm
    low = tl.program_id(1) * share
    high = min(low + share, C)
    whole = low + (high - low) // BLOCK * BLOCK
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(low, whole, BLOCK, num_stages=STAGES):
        acc += tl.load(x_ptr + (start + lanes).to(tl.int64) * xn).to(tl.float32)
    if whole < high:
        cols = whole + lanes
        acc += tl.load(x_ptr + cols.to(tl.int64) * xn, mask=cols < high, other=0.0).to(tl.float32)
    total = tl.sum(acc, axis=0)
    tl.store(out_ptr + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), total)


def row_sum(x: torch.Tensor, *, num_stages: int = 4) -> torch.Tensor:
    refuse(num_stages, x=x)
    while x.shape[0]:
        R, C = x.shape
        share = triton.cdiv(max(C, 1), 1024 * max(1, min(256 // R, C // 16_384))) * 1024
        shares = max(1, triton.cdiv(C, share))
        sums = torch.empty((R, shares), dtype=torch.float32, device=x.device)
        sum_kernel[R, shares](x, sums, *x.stride(), C, share, num_stages, 1024)
        if shares == 1:
            return sums.view(R)
        x = sums
    return torch.empty(0, dtype=torch.float32, device=x.device)



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
