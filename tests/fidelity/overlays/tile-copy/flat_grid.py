"""Right but different: a grid of one dimension, and a result that is addressed by its width."""


@triton.jit
def tile_copy_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    across = tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(0)
    rows = (pid // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = (pid % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < M) & (cols < N)
    tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, inside)
    tl.store(out_ptr + rows * N + cols, tile, inside)


def tile_copy(x: torch.Tensor) -> torch.Tensor:
    check_argument(x)
    M, N = x.shape
    out = x.new_empty(M, N)
    if M and N:
        tiles = triton.cdiv(M, 64) * triton.cdiv(N, 64)
        tile_copy_kernel[(tiles,)](x, out, M, N, *x.stride(), 64, 64, num_warps=8)
    return out
