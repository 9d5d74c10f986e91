"""Right in another way: lanes in front are chosen by where, bad places found by bisection."""


@triton.jit
def shift_right_kernel(
    x_ptr, out_ptr,           # [n]
    stride_x,                 # elements from one number to the next
    n, k, fill,
    BLOCK_SIZE: tl.constexpr,  # elements per program
):
    """out[i] = x[i - k], and fill where i < k. Moves (2 * n - k) * itemsize bytes."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    source = offs - k

    # A lane in front of x is masked, and holds what the result wants there.
    x = tl.load(x_ptr + source * stride_x, mask=(offs < n) & (offs >= k), other=0)
    x = tl.where(offs < k, fill.to(x.dtype), x)

    tl.store(out_ptr + offs, x, mask=mask)


def _first_outside(integers: torch.Tensor, limit: int) -> int | None:
    """The place of the first integer outside 0 to limit - 1, if there is one.

    Two numbers of the whole vector tell whether to look for it; only then the vector is read.
    """
    if integers.numel() == 0 or (integers.amin() >= 0 and integers.amax() < limit):
        return None
    bad = (integers < 0) | (integers >= limit)
    low, high = 0, bad.numel()  # the first bad one is in low to high - 1
    while high - low > 1:
        middle = (low + high) // 2
        if bad[low:middle].any():
            high = middle
        else:
            low = middle
    return low
