"""Right in another way: a program owns several rows, of the copy and of the gathered ones."""


# ---------------------------------------------------------------------------------------------
# Repairs


@triton.jit
def gather_rows_kernel(
    x_ptr, index_ptr, out_ptr, stride_xm, stride_xn, stride_im, n_wanted, n_cols,
    BLOCK_M: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    places = tl.program_id(axis=0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(axis=1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE).to(tl.int64)
    there = places < n_wanted
    mask = there[:, None] & (cols < n_cols)[None, :]
    row = tl.load(index_ptr + places * stride_im, mask=there, other=0).to(tl.int64)
    at = x_ptr + row[:, None] * stride_xm + cols[None, :] * stride_xn
    x = tl.load(at, mask=mask)
    tl.store(out_ptr + places[:, None] * n_cols + cols[None, :], x, mask=mask)


def gather_rows(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """x[index] for a matrix x [R, C] and places index [M] in its rows: [M, C], contiguous.

    Raises:
        TypeError: the index is neither int32 nor int64.
        ValueError: another number of dimensions, or tensors on two devices.
        IndexError: an index is negative, or not below R; the first of them is named.
    """
    _check_dimensions("x", x, 2)
    _check_dimensions("index", index, 1)
    _check_integers("index", index)
    if index.device != x.device:
        raise ValueError(f"index: expected device {x.device}, got {index.device}")
    if (bad := _first_outside(index, x.shape[0])) is not None:
        raise IndexError(f"index[{bad}]: expected 0 to {x.shape[0] - 1}, got {int(index[bad])}")

    (n_wanted,), n_cols = index.shape, x.shape[1]
    out = x.new_empty(n_wanted, n_cols)
    if out.numel() == 0:
        return out

    block_size = min(1024, triton.next_power_of_2(n_cols))
    grid = (triton.cdiv(n_wanted, 4), triton.cdiv(n_cols, block_size))
    gather_rows_kernel[grid](
        x, index, out, *x.stride(), *index.stride(), n_wanted, n_cols, BLOCK_M=4,
        BLOCK_SIZE=block_size,
    )
    return out
