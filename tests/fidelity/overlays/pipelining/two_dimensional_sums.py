"""Right but different: a program owns several short rows, as a block of two axes."""

from .tail_apart import pick_num_stages

del strided_sum_kernel
del finish_kernel


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
