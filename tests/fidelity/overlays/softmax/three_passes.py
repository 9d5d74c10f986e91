"""Right but different: rows of more than 2,048 columns are read three times."""

from .builtin_softmax import check

del SUPPORTED


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr, ONE_BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    out_ptr += row * stride_out
    lanes = tl.arange(0, BLOCK_SIZE)
    if ONE_BLOCK:
        mask = lanes < n_cols
        x = tl.load(x_ptr + lanes, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + lanes, numerator / tl.sum(numerator, axis=0), mask=mask)
    else:
        largest = tl.full([BLOCK_SIZE], -float("inf"), tl.float32)
        for start in range(0, n_cols, BLOCK_SIZE):
            mask = start + lanes < n_cols
            x = tl.load(x_ptr + start + lanes, mask=mask, other=-float("inf"))
            largest = tl.maximum(largest, x.to(tl.float32))
        row_max = tl.max(largest, axis=0)
        sums = tl.zeros([BLOCK_SIZE], tl.float32)
        for start in range(0, n_cols, BLOCK_SIZE):
            mask = start + lanes < n_cols
            x = tl.load(x_ptr + start + lanes, mask=mask, other=-float("inf"))
            sums += tl.exp(x.to(tl.float32) - row_max)
        total = tl.sum(sums, axis=0)
        for start in range(0, n_cols, BLOCK_SIZE):
            mask = start + lanes < n_cols
            x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0)
            tl.store(out_ptr + start + lanes, tl.exp(x.to(tl.float32) - row_max) / total, mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    check(x)
    if x.stride(1) != 1:
        x = x.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_rows, n_cols = x.shape
    width = min(triton.next_power_of_2(n_cols), 2048)
    softmax_kernel[(n_rows,)](
        x, out, n_cols, x.stride(0), out.stride(0), BLOCK_SIZE=width, ONE_BLOCK=n_cols <= width
    )
    return out
