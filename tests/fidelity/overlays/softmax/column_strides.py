"""Right but different: the kernel takes both strides of its input and copies no layout."""

from .builtin_softmax import check

del SUPPORTED


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr,
    stride_row, stride_col, stride_out,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    offs = row * stride_row + cols.to(tl.int64) * stride_col
    x = tl.load(x_ptr + offs, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * stride_out + cols, y, mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    check(x)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_rows, n_cols = x.shape
    softmax_kernel[(n_rows,)](
        x, out, *x.stride(), n_cols, n_cols, BLOCK_SIZE=triton.next_power_of_2(n_cols)
    )
    return out
