"""Right but different: an autotuner chooses the tile, a heuristic leaves a mask out."""

CONFIGS = [
    triton.Config({"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4, num_stages=2),
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4, num_stages=3),
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 64}, num_warps=4, num_stages=3),
]


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"])
@triton.heuristics({"WHOLE_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, WHOLE_K: tl.constexpr,
):
    pid = tl.program_id(0)
    across = tl.cdiv(N, BLOCK_N)
    offs_m = (pid // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = (pid % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_m, in_n = offs_m[:, None] < M, offs_n[None, :] < N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a_mask, b_mask = in_m, in_n
        if not WHOLE_K:
            a_mask = a_mask & (offs_k[None, :] < K)
            b_mask = b_mask & (offs_k[:, None] < K)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak,
                    mask=a_mask, other=0.0)
        b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn,
                    mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn,
             acc.to(c_ptr.type.element_ty), mask=in_m & in_n)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    check(a, b)
    M, K = a.shape
    _, N = b.shape
    c = torch.empty(M, N, device=a.device, dtype=a.dtype)
    if M == 0 or N == 0:
        return c

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

    matmul_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride())
    return c
