"""Right but different: a grid of two dimensions; the last row of programs may have no work."""

del SUPPORTED


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    tile = tl.program_id(1).to(tl.int64) * tl.num_programs(0) + tl.program_id(0)
    offs = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if n == 0:
        return out
    tiles = triton.cdiv(n, 1024)
    width = min(tiles, 16)
    vector_add_kernel[(width, triton.cdiv(tiles, width))](x, y, out, n, BLOCK_SIZE=1024)
    return out
