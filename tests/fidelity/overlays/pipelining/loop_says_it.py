"""Right but different: the loop of the product says its stages itself."""


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn,
                   BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
                   STAGES: tl.constexpr):
    tiles_m = tl.cdiv(M, BLOCK_M)
    rows = (tl.program_id(0) % tiles_m).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) // tiles_m).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K).to(tl.int64)
    a_ptrs = a_ptr + rows[:, None] * am + k[None, :] * ak
    b_ptrs = b_ptr + k[:, None] * bk + cols[None, :] * bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, K, BLOCK_K, num_stages=STAGES):
        left = k < K - start
        a = tl.load(a_ptrs, (rows[:, None] < M) & left[None, :], other=0)
        b = tl.load(b_ptrs, left[:, None] & (cols[None, :] < N), other=0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += tl.cast(BLOCK_K, tl.int64) * ak
        b_ptrs += tl.cast(BLOCK_K, tl.int64) * bk
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty),
             (rows[:, None] < M) & (cols[None, :] < N))


def matmul_pipelined(a: torch.Tensor, b: torch.Tensor, *, num_stages: int = 3) -> torch.Tensor:
    refuse_pair(a, b, num_stages)
    (M, K), N = a.shape, b.shape[1]
    c = a.new_empty((M, N))
    if M and N:
        grid = (triton.cdiv(M, 128) * triton.cdiv(N, 128),)
        product_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), 128, 128, 32, num_stages,
                             num_warps=8 if a.dtype == torch.float32 else 4)
    return c


def row_sum(x: torch.Tensor, *, num_stages: int = 4) -> torch.Tensor:
    refuse(num_stages, x=x)
    R, C = x.shape
    out = torch.empty(R, dtype=torch.float32, device=x.device)
    if R == 0:
        return out
    n_parts = max(1, min(132 // R, C // 32_768))
    parts = out if n_parts == 1 else out.new_empty((R, n_parts))
    strided_sum_kernel[n_parts, R](x, parts, *x.stride(), C, num_stages, 2048)
    if n_parts > 1:
        finish_kernel[(R,)](parts, out, n_parts, triton.next_power_of_2(n_parts), num_warps=1)
    return out
