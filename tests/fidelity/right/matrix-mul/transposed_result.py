"""Right but different: the transposed product of the transposed matrices, the last K first."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, t_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    acc = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    for step in range(steps):
        offs_k = (steps - 1 - step).to(tl.int64) * BLOCK_K + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak,
                    mask=(offs_m[:, None] < M) & (offs_k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn,
                    mask=(offs_k[:, None] < K) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(tl.trans(b), tl.trans(a), acc, input_precision="ieee")
    tl.store(t_ptr + offs_n[:, None] * M + offs_m[None, :], acc.to(t_ptr.dtype.element_ty),
             mask=(offs_n[:, None] < N) & (offs_m[None, :] < M))


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    check(a, b)
    (m, k), n = a.shape, b.shape[1]
    transposed = torch.empty((n, m), dtype=a.dtype, device=a.device)
    if transposed.numel():
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
        matmul_kernel[grid](
            a, b, transposed, m, n, k, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
            BLOCK_N=64, BLOCK_M=64, BLOCK_K=32, num_warps=8,
        )
    return transposed.mT


def check(a: torch.Tensor, b: torch.Tensor) -> None:
    for name, x in (("a", a), ("b", b)):
        if not torch.is_tensor(x):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(x).__name__}")
        if x.dtype not in {torch.float16, torch.bfloat16, torch.float32}:
            raise TypeError(f"{name} must be float16, bfloat16 or float32, not {x.dtype}")
        if x.ndim != 2:
            raise ValueError(f"{name} must have 2 dimensions, not {x.ndim}: {list(x.shape)}")
    if a.dtype != b.dtype:
        raise TypeError(f"a and b must have one dtype, not {a.dtype} and {b.dtype}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"a of {list(a.shape)} and b of {list(b.shape)} cannot be multiplied")
    if a.device != b.device:
        raise ValueError(f"a and b must be on one device, not {a.device} and {b.device}")
