"""Right but different: every input is made contiguous, so that the kernel needs no strides."""

from .builtin_softmax import check

del SUPPORTED


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    begin = tl.program_id(0).to(tl.int64) * n_cols
    x = tl.load(x_ptr + begin + offs, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + begin + offs, numerator / tl.sum(numerator, 0), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    check(x)
    x = x.contiguous()
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    if out.numel():
        softmax_kernel[(n_rows,)](x, out, n_cols, BLOCK_SIZE=triton.next_power_of_2(n_cols))
    return out
