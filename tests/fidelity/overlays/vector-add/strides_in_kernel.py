"""Right but different: views of up to three dimensions are read through their strides, uncopied."""

del SUPPORTED


@triton.jit
def vector_add_kernel(
    x_ptr, y_ptr, out_ptr,
    size_1, size_2,
    x_stride_0, x_stride_1, x_stride_2,
    y_stride_0, y_stride_1, y_stride_2,
    n_elements,
    BLOCK_SIZE: tl.constexpr,
):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    k = offs % size_2
    j = offs // size_2 % size_1
    i = offs // (size_2 * size_1)
    x = tl.load(x_ptr + i * x_stride_0 + j * x_stride_1 + k * x_stride_2, mask=mask)
    y = tl.load(y_ptr + i * y_stride_0 + j * y_stride_1 + k * y_stride_2, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n == 0:
        return out
    if x.dim() > 3:
        x, y = x.reshape(-1), y.reshape(-1)
    while x.dim() < 3:
        x, y = x.unsqueeze(0), y.unsqueeze(0)
    vector_add_kernel[(triton.cdiv(n, 1024),)](
        x, y, out, x.size(1), x.size(2), *x.stride(), *y.stride(), n, BLOCK_SIZE=1024
    )
    return out
