"""Right but different: few programs, each strides over the tensor by the width of the grid."""

del SUPPORTED


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK_SIZE
    step = tl.num_programs(0).to(tl.int64) * BLOCK_SIZE
    for start in range(first, n_elements, step):
        offs = start + tl.arange(0, BLOCK_SIZE)
        mask = offs < n_elements
        x = tl.load(x_ptr + offs, mask=mask)
        y = tl.load(y_ptr + offs, mask=mask)
        tl.store(out_ptr + offs, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if out.numel() > 0:
        tiles = triton.cdiv(out.numel(), 1024)
        vector_add_kernel[(min(tiles, 24),)](x, y, out, out.numel(), BLOCK_SIZE=1024)
    return out
