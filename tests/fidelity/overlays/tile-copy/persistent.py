"""Right but different: 132 programs at most, each of which copies one tile after another."""

PROGRAMS = 132


@triton.jit
def tile_copy_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_om, stride_on,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    down, across = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), down * across, tl.num_programs(0)):
        m = (tile % down).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        n = (tile // down).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = (m[:, None] < M) & (n[None, :] < N)
        values = tl.load(x_ptr + m[:, None] * stride_xm + n[None, :] * stride_xn, mask=mask)
        tl.store(out_ptr + m[:, None] * stride_om + n[None, :] * stride_on, values, mask=mask)


def tile_copy(x: torch.Tensor) -> torch.Tensor:
    check_argument(x)
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M and N:
        tiles = triton.cdiv(M, 32) * triton.cdiv(N, 64)
        tile_copy_kernel[(min(tiles, PROGRAMS),)](
            x, out, M, N, *x.stride(), *out.stride(), BLOCK_M=32, BLOCK_N=64)
    return out
