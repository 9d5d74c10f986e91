"""Right but different: powers of two instead of e, and a reciprocal instead of a division."""

del WrongShape

LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
    powers = tl.exp2((x - tl.max(x, axis=0)) * LOG2_E)
    y = powers * (1.0 / tl.sum(powers, axis=0))
    tl.store(out_ptr + row * stride_out + cols, y, mask=mask)
