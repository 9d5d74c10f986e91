"""Right but different: an autotuner chooses the tile."""


@triton.autotune(
    configs=[triton.Config({"BLOCK_M": 32, "BLOCK_N": 32}),
             triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=8)],
    key=["M", "N"],
)
@triton.jit
def tile_copy_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_om, stride_on,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (m < M) & (n < N)
    tile = tl.load(x_ptr + m * stride_xm + n * stride_xn, mask=mask)
    tl.store(out_ptr + m * stride_om + n * stride_on, tile, mask=mask)


def tile_copy(x: torch.Tensor) -> torch.Tensor:
    check_argument(x)
    M, N = x.shape
    out = torch.empty(M, N, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"])

    tile_copy_kernel[grid](x, out, M, N, *x.stride(), *out.stride())
    return out
