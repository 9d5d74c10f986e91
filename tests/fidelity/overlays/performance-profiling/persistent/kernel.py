"""As many programs as a GPU holds, each with every so many-th row.
"""


@triton.jit
def row_l2_normalize_kernel(x_ptr, out_ptr, stride_xm, stride_om, n_rows, n_cols, eps,
                            BLOCK_SIZE: tl.constexpr):
    """out[m] = x[m] / max(norm of x[m], eps). A program owns every so many-th row."""
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    for number in range(tl.program_id(axis=0), n_rows, tl.num_programs(axis=0)):
        row = tl.cast(number, tl.int64)
        x = tl.load(x_ptr + row * stride_xm + cols, mask=mask, other=0.0).to(tl.float32)
        largest = tl.max(tl.abs(x), axis=0)
        scale = tl.where(largest == 0.0, 1.0, largest)
        x = x / scale
        norm = tl.sqrt(tl.sum(x * x, axis=0))
        floor = eps / scale
        inverse = 1.0 / tl.where(norm < floor, floor, norm)
        tl.store(out_ptr + row * stride_om + cols, (x * inverse).to(out_ptr.dtype.element_ty),
                 mask=mask)


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
    num_warps = min(16, max(1, block_size // 512))  # 16 floats a thread, 32 in the widest rows
    grid = (min(n_rows, 132 * 8),)
    row_l2_normalize_kernel[grid](x, out, x.stride(0), out.stride(0), n_rows, n_cols, eps,
                                  BLOCK_SIZE=block_size, num_warps=num_warps)
    return out
