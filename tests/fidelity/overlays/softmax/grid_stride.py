"""Right but different: at most seven programs, each of which walks over rows one grid apart."""

from .builtin_softmax import check

del SUPPORTED


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, n_rows, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64)
    step = tl.num_programs(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    for row in range(first, n_rows, step):
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf"))
        x = x.to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        y = numerator / tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * stride_out + cols, y, mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    check(x)
    x = x if x.stride(1) == 1 else x.contiguous()
    out = x.new_empty(x.shape)
    n_rows, n_cols = x.shape
    if n_rows and n_cols:
        width = triton.next_power_of_2(n_cols)
        softmax_kernel[(min(n_rows, 7),)](
            x, out, n_rows, n_cols, x.stride(0), out.stride(0), BLOCK_SIZE=width, num_warps=8
        )
    return out
