"""Right but different: broadcast products for float32, 8 columns a step to use whole sectors."""


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn,
    WHOLE: tl.constexpr,  # no tensor cores
    BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    offs_n = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak,
                    mask=(offs_m[:, None] < M) & (offs_k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn,
                    mask=(offs_k[:, None] < K) & (offs_n[None, :] < N), other=0.0)
        if WHOLE:
            acc += tl.sum(a[:, :, None] * b[None, :, :], axis=1)
        else:
            acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty),
             mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    check(a, b)
    (m, k), n = a.shape, b.shape[1]
    c = a.new_empty((m, n))
    if c.numel():
        whole = a.dtype == torch.float32
        side = 32 if whole else 128
        grid = (triton.cdiv(m, side), triton.cdiv(n, side))
        matmul_kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), WHOLE=whole, BLOCK=side,
                            BLOCK_K=8 if whole else 32, num_warps=4 if whole else 8)
    return c
