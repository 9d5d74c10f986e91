"""Right but different: the first program owns the last row, and the pointers lie in one block."""

del WrongShape


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, n_rows, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr
):
    row = n_rows - 1 - tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    x_ptrs = x_ptr + (row * stride_x + cols)
    x = tl.load(x_ptrs, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out_ptrs = out_ptr + (row * stride_out + cols)
    tl.store(out_ptrs, numerator / tl.sum(numerator, axis=0), mask=cols < n_cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    check(x)
    if x.stride(1) != 1:
        x = x.contiguous()
    out = x.new_empty(x.shape)
    if out.numel() == 0:
        return out
    n_rows, n_cols = x.shape
    softmax_kernel[(n_rows,)](
        x, out, n_rows, n_cols, x.stride(0), out.stride(0),
        BLOCK_SIZE=triton.next_power_of_2(n_cols),
    )
    return out
