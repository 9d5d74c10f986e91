"""Right but different: loads without a mask, at indices that wrap around inside the matrix."""


@triton.jit
def tile_copy_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    tile = tl.load(x_ptr + (m % M)[:, None] * stride_xm + (n % N)[None, :] * stride_xn)
    tl.store(out_ptr + m[:, None] * N + n[None, :], tile, (m < M)[:, None] & (n < N)[None, :])


def tile_copy(x: torch.Tensor) -> torch.Tensor:
    check_argument(x)
    M, N = x.shape
    out = x.new_empty((M, N))
    if out.numel():
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
        tile_copy_kernel[grid](x, out, M, N, *x.stride(), BLOCK_M=32, BLOCK_N=32)
    return out
