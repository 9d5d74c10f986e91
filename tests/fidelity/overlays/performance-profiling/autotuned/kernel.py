"""Warps are tried out; a power of two as scale, so that nothing is rounded by it.
"""


@triton.autotune([triton.Config({}, num_warps=warps) for warps in (4, 8, 16)], key=["n_cols"])
@triton.jit
def row_l2_normalize_kernel(x_ptr, out_ptr, stride_xm, stride_om, n_cols, eps,
                            BLOCK_SIZE: tl.constexpr):
    """out[m] = x[m] / max(norm of x[m], eps). One program owns row m."""
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_xm + cols, mask=mask, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(x), axis=0)
    bits = largest.to(tl.int32, bitcast=True) & 0x7F800000  # the exponent alone
    scale = tl.maximum(bits, 0x00800000).to(tl.float32, bitcast=True)
    share = x / scale
    norm = tl.sqrt(tl.sum(share * share, axis=0))
    least = eps / scale
    y = share / tl.where(norm < least, least, norm)
    tl.store(out_ptr + row * stride_om + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def row_l2_normalize(x: torch.Tensor, eps: float = 1e-12) -> torch.Tensor:
    """Every row divided by its Euclidean norm, or by ``eps`` where the norm is smaller.

    Args:
        x: [n_rows, n_cols] with at most 16,384 columns.
        eps: from 2**-126 on.

    Raises:
        TypeError: x is no tensor of a supported dtype.
        ValueError: x is no matrix, or has too many columns, or eps is out of range.
    """
    check_arguments(x, eps)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    block_size = triton.next_power_of_2(n_cols)
    row_l2_normalize_kernel[(n_rows,)](x, out, x.stride(0), out.stride(0), n_cols, eps,
                                       BLOCK_SIZE=block_size)
    return out
