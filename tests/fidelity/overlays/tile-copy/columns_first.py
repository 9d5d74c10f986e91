"""Right but different: the first axis counts columns, and addresses are summed up in steps."""


@triton.jit
def span(axis: tl.constexpr, SIZE: tl.constexpr):
    return tl.program_id(axis).to(tl.int64) * SIZE + tl.arange(0, SIZE)


@triton.jit
def tile_copy_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_om, stride_on,
                     TALL: tl.constexpr, WIDE: tl.constexpr):
    cols = tl.expand_dims(span(0, WIDE), 0)
    rows = tl.expand_dims(span(1, TALL), 1)
    x_ptr += rows * stride_xm
    out_ptr += rows * stride_om
    mask = tl.broadcast_to(rows < M, [TALL, WIDE]) & (cols < N)
    tl.store(out_ptr + cols * stride_on, tl.load(x_ptr + cols * stride_xn, mask, other=0), mask)


def tile_copy(x: torch.Tensor) -> torch.Tensor:
    check_argument(x)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        tall, wide = 64, 32
        grid = (triton.cdiv(x.shape[1], wide), triton.cdiv(x.shape[0], tall))
        tile_copy_kernel[grid](x, out, *x.shape, *x.stride(), *out.stride(), TALL=tall, WIDE=wide)
    return out
