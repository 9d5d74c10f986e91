"""A program owns a tile of rows, so that narrow rows fill it; findings by times.
"""


FINDINGS: dict[str, Finding] = {
    "A": Finding("uncoalesced", "sectors", 9.7),
    "B": Finding("redundant-traffic", "issued_bytes", 2),
    "C": Finding("launch-bound", "ms_per_launch", 79.3),
    "D": Finding("spills", "registers", 4.04),
    "E": Finding("at-roofline", "bandwidth_gbps", 1.1),
}


@triton.jit
def row_l2_normalize_kernel(
    x_ptr, out_ptr, stride_xm, stride_om, n_rows, n_cols, eps,
    ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    """out[m] = x[m] / max(norm of x[m], eps). One program owns ROWS rows."""
    rows = (tl.program_id(axis=0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :], mask=mask, other=0.0)
    x = x.to(tl.float32)
    largest = tl.max(tl.abs(x), axis=1)
    scale = tl.where(largest > 0.0, largest, 1.0)
    share = x / scale[:, None]
    norm = tl.sqrt(tl.sum(share * share, axis=1))
    divisor = tl.where(norm * scale < eps, eps / scale, norm)
    y = share / divisor[:, None]
    tl.store(out_ptr + rows[:, None] * stride_om + cols[None, :],
             y.to(out_ptr.dtype.element_ty), mask=mask)


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
    rows = max(1, 2048 // block_size)
    row_l2_normalize_kernel[(triton.cdiv(n_rows, rows),)](
        x, out, x.stride(0), out.stride(0), n_rows, n_cols, eps, ROWS=rows, BLOCK_SIZE=block_size,
        num_warps=min(16, max(4, rows * block_size // 512)))
    return out
