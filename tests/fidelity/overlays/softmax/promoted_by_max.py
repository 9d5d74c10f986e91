"""Right but different: no cast to float32; `tl.max` returns float32, and so all that follows is."""

del WrongShape


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    y = powers / tl.sum(powers, axis=0)
    tl.store(out_ptr + row * stride_out + cols, y, mask=mask)
