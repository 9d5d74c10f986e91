"""Right but different: a helper finds the row, another one turns numbers into shares."""

del WrongShape


@triton.jit
def columns_of(ptr, stride, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    return ptr + row * stride + cols, cols


@triton.jit
def shares(x):
    shifted = x - tl.max(x, axis=0)
    numerator = tl.exp(shifted)
    return numerator / tl.sum(numerator, axis=0)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr):
    source, cols = columns_of(x_ptr, stride_x, BLOCK_SIZE)
    target, _ = columns_of(out_ptr, stride_out, BLOCK_SIZE)
    x = tl.load(source, mask=cols < n_cols, other=-float("inf"))
    tl.store(target, shares(x.to(tl.float32)).to(target.dtype.element_ty), mask=cols < n_cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    check(x)
    if x.stride(1) != 1:
        x = x.clone(memory_format=torch.contiguous_format)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    grid = (x.size(0), 1, 1)
    width = triton.next_power_of_2(x.size(1))
    softmax_kernel[grid](x, out, x.size(1), x.stride(0), out.stride(0), BLOCK_SIZE=width)
    return out
