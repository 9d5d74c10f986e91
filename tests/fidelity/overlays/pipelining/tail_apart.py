"""Right but different: whole rounds without a mask, and the rest of a row after the loop."""

del strided_sum_kernel
del finish_kernel



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
