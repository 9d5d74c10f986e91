"""Right but different: everything by its name at the launch, in another order."""

del WrongShape


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    check(x)
    if x.stride(1) != 1:
        x = x.contiguous()
    out = x.new_empty(x.shape)
    n_rows, n_cols = x.shape
    if n_rows * n_cols == 0:
        return out
    softmax_kernel[(n_rows,)](
        num_warps=4,
        num_stages=1,
        BLOCK_SIZE=triton.next_power_of_2(n_cols),
        stride_out=out.stride(0),
        stride_x=x.stride(0),
        n_cols=n_cols,
        out_ptr=out,
        x_ptr=x,
    )
    return out
