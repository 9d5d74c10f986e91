"""Right but different: rows of more than 1,024 columns by a running maximum and sum."""

del softmax_kernel
del WrongShape


@triton.jit
def one_block_kernel(x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride_out + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def many_blocks_kernel(x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    out_ptr += row * stride_out
    lanes = tl.arange(0, BLOCK_SIZE)

    largest = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new_largest = tl.maximum(largest, tl.max(x, axis=0))
        # As long as nothing but -inf was seen, any finite number may be subtracted.
        anchor = tl.where(new_largest == -float("inf"), 0.0, new_largest)
        total = total * tl.exp(largest - anchor) + tl.sum(tl.exp(x - anchor), axis=0)
        largest = new_largest

    anchor = tl.where(largest == -float("inf"), 0.0, largest)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - anchor) / total, mask=cols < n_cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    check(x)
    if x.stride(1) != 1:
        x = x.contiguous()
    out = x.new_empty(x.shape)
    if out.numel() == 0:
        return out
    n_rows, n_cols = x.shape
    strides = x.stride(0), out.stride(0)
    if n_cols <= 1024:
        width = triton.next_power_of_2(n_cols)
        one_block_kernel[(n_rows,)](x, out, n_cols, *strides, BLOCK_SIZE=width)
    else:
        many_blocks_kernel[(n_rows,)](x, out, n_cols, *strides, BLOCK_SIZE=1024)
    return out
