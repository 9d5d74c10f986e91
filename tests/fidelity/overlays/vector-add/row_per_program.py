"""Right but different: matrices row by row through their row stride, one program per row."""

del SUPPORTED


@triton.jit
def vector_add_kernel(
    x_ptr, y_ptr, out_ptr, x_stride, y_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(1).to(tl.int64)
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * x_stride + offs, mask=mask)
    y = tl.load(y_ptr + row * y_stride + offs, mask=mask)
    tl.store(out_ptr + row * n_cols + offs, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    x, y = as_rows(x), as_rows(y)
    grid = (triton.cdiv(x.shape[1], 1024), x.shape[0])
    vector_add_kernel[grid](x, y, out, x.stride(0), y.stride(0), x.shape[1], BLOCK_SIZE=1024)
    return out


def as_rows(tensor: torch.Tensor) -> torch.Tensor:
    """A matrix whose rows are dense: as it is where it is one, else flattened into one row."""
    if tensor.dim() == 2 and tensor.stride(1) == 1:
        return tensor
    return tensor.contiguous() if tensor.dim() == 2 else tensor.contiguous().view(1, -1)
