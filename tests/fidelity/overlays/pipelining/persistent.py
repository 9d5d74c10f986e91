"""Right but different: the product by as many programs as an H100 has multiprocessors."""


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn,
                   BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    tiles_n = tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * tiles_n, tl.num_programs(0)):
        rows = ((tile // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
        cols = ((tile % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, K, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K).to(tl.int64)
            a = tl.load(a_ptr + rows * am + k[None, :] * ak, (rows < M) & (k[None, :] < K), 0.0)
            b = tl.load(b_ptr + k[:, None] * bk + cols * bn, (k[:, None] < K) & (cols < N), 0.0)
            acc = tl.dot(a, b, acc, input_precision="ieee")
        tl.store(c_ptr + rows * N + cols, acc.to(c_ptr.dtype.element_ty), (rows < M) & (cols < N))


def matmul_pipelined(a: torch.Tensor, b: torch.Tensor, *, num_stages: int = 3) -> torch.Tensor:
    refuse_pair(a, b, num_stages)
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel():
        grid = (min(132, triton.cdiv(M, 128) * triton.cdiv(N, 128)),)
        product_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), BLOCK_M=128, BLOCK_N=128,
                             BLOCK_K=32, num_warps=8, num_stages=num_stages)
    return c



@triton.jit
def strided_sum_kernel(x_ptr, out_ptr, xm, xn, C, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    acc = tl.zeros((BLOCK,), tl.float32)
    step = tl.num_programs(0) * BLOCK
    for start in tl.range(tl.program_id(0) * BLOCK, C, step, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        x = tl.load(x_ptr + row * xm + cols * xn, mask=cols < C, other=0.0)
        acc = acc + x
    tl.store(out_ptr + row * tl.num_programs(0) + tl.program_id(0), tl.sum(acc, 0))
