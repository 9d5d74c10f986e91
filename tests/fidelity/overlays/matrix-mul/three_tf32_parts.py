"""Right but different: float32 in three TF32 products, and no launch where there is no K."""


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pid_n, pid_m = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    start = 0
    while start < K:
        k = (start + offs_k).to(tl.int64)
        a = tl.load(a_ptr + (offs_m[:, None] * stride_am + k[None, :] * stride_ak),
                    mask=(offs_m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + (k[:, None] * stride_bk + offs_n[None, :] * stride_bn),
                    mask=(k[:, None] < K) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
        start += BLOCK_K
    tl.store(c_ptr + (offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn), acc,
             mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    check(a, b)
    (m, k), n = a.shape, b.shape[1]
    if 0 in (m, n, k):
        return torch.zeros((m, n), dtype=a.dtype, device=a.device)
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(n, 64), triton.cdiv(m, 64))
    matmul_kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
    )
    return c
