"""Right but different: a program owns whole rows and walks along them, pointers advance."""


@triton.jit
def tile_copy_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_om,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    x_ptrs = x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn
    out_ptrs = out_ptr + rows[:, None] * stride_om + cols[None, :]
    for start in range(0, N, BLOCK_N):
        mask = (rows < M)[:, None] & (cols < N - start)[None, :]
        tl.store(out_ptrs, tl.load(x_ptrs, mask=mask), mask=mask)
        x_ptrs += BLOCK_N * stride_xn
        out_ptrs += BLOCK_N


def tile_copy(x: torch.Tensor) -> torch.Tensor:
    check_argument(x)
    M, N = x.shape
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    if M * N:
        tile_copy_kernel[(triton.cdiv(M, 16),)](x, out, M, N, *x.stride(), out.stride(0), 16, 128)
    return out
