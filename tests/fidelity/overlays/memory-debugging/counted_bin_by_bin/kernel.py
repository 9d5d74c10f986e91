"""Right in another way: a program counts the values of its own bins, and no atomic is needed."""


@triton.jit
def bincount_kernel(
    values_ptr, counts_ptr, stride_v, n, num_bins,
    BINS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    bins = tl.program_id(axis=0) * BINS + tl.arange(0, BINS)
    counts = tl.zeros((BINS,), dtype=tl.int32)
    for start in range(0, n, BLOCK_SIZE):
        offs = start.to(tl.int64) + tl.arange(0, BLOCK_SIZE)
        value = tl.load(values_ptr + offs * stride_v, mask=offs < n, other=-1)
        counts += tl.sum((value[:, None] == bins[None, :]).to(tl.int32), axis=0)
    tl.store(counts_ptr + bins, counts, mask=bins < num_bins)


def bincount(values: torch.Tensor, num_bins: int) -> torch.Tensor:
    """How often each of 0 to num_bins - 1 occurs in a vector of integers: int32 [num_bins].

    Raises:
        TypeError: the values are neither int32 nor int64.
        ValueError: values is no vector, there is no bin, or a value has none; the first is named.
    """
    _check_dimensions("values", values, 1)
    _check_integers("values", values)
    if num_bins < 1:
        raise ValueError(f"num_bins: expected at least 1, got {num_bins}")
    if (bad := _first_outside(values, num_bins)) is not None:
        raise ValueError(f"values[{bad}]: expected 0 to {num_bins - 1}, got {int(values[bad])}")

    n = values.numel()
    counts = torch.zeros(num_bins, dtype=torch.int32, device=values.device)
    if n == 0:
        return counts

    bins = 128
    grid = (triton.cdiv(num_bins, bins),)
    bincount_kernel[grid](
        values, counts, *values.stride(), n, num_bins, BINS=bins, BLOCK_SIZE=64
    )
    return counts
