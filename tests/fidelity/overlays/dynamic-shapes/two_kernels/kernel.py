"""Right but different: two kernels of softmax, another border, `where` for `other`."""

del softmax_block_kernel

def pad_to_bucket(
    x: torch.Tensor, buckets: Sequence[int], fill: float
) -> tuple[torch.Tensor, int]:
    """x with its last dimension filled up to a bucket, and the length that it had.

    Raises:
        ValueError: x has no dimension, or no bucket is right for its last one.
    """
    if x.dim() == 0:
        raise ValueError("x: expected at least 1 dimension, got 0")
    n = x.shape[-1]
    size = bucket_length(n, buckets)
    rest = torch.full((*x.shape[:-1], size - n), fill, dtype=x.dtype, device=x.device)
    return torch.cat([x, rest], dim=-1), n


# ---------------------------------------------------------------------------------------------
# The mean of the steps that count


@triton.jit(do_not_specialize=["T"])  # not even whether it is 1 or a multiple of 16 matters here
def masked_mean_kernel(
    x_ptr, lengths_ptr, out_ptr,  # [B, T, D], [B] and [B, D]
    stride_xb, stride_xt,         # elements from sample to sample, and from step to step
    T, D,
    BLOCK_T: tl.constexpr,        # steps that are added at once
    BLOCK_D: tl.constexpr,        # columns per program
):
    """out[b, d] = mean of x[b, t, d] over t < lengths[b]. One program owns BLOCK_D columns of b.

    Moves (sum of lengths + B) * D * itemsize bytes, and a length for each program.
    """
    b = tl.program_id(axis=0).to(tl.int64)  # b * stride passes 2**31 in large batches
    cols = tl.program_id(axis=1) * BLOCK_D + tl.arange(0, BLOCK_D)
    length = tl.minimum(tl.load(lengths_ptr + b), T).to(tl.int32)

    acc = tl.zeros((BLOCK_T, BLOCK_D), dtype=tl.float32)
    for start in range(0, length, BLOCK_T):
        steps = start + tl.arange(0, BLOCK_T)
        mask = ((steps < length)[:, None]) & ((cols < D)[None, :])
        offs = steps[:, None].to(tl.int64) * stride_xt + cols[None, :]
        x = tl.load(x_ptr + b * stride_xb + offs, mask=mask)
        acc += tl.where(mask, x, 0.0).to(tl.float32)

    mean = tl.where(length == 0, 0.0, tl.sum(acc, axis=0) / length)

    tl.store(out_ptr + b * D + cols, mean.to(out_ptr.dtype.element_ty), mask=cols < D)


def softmax_any(x: torch.Tensor) -> torch.Tensor:
    """Softmax over dim 1 of a matrix of any width, as a new contiguous tensor."""
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    if out.numel() == 0:
        return out
    block = triton.next_power_of_2(n_cols)
    if n_cols <= 2 * NARROW:
        rows = max(4, min(64, 2_048 // block))  # 16 numbers or more for each of 128 threads
        softmax_narrow_kernel[(triton.cdiv(n_rows, rows),)](
            x, out, x.stride(0), n_rows, n_cols, ROWS=rows, BLOCK=block
        )
    elif n_cols <= WIDE:  # the kernel of narrow rows, with one row
        # The widest block has 16 warps: with 32, no thread has more than 64 registers.
        num_warps = 16 if block == WIDE else max(4, block // 1_024)
        softmax_narrow_kernel[(n_rows,)](
            x, out, x.stride(0), n_rows, n_cols, ROWS=1, BLOCK=block, num_warps=num_warps
        )
    else:
        softmax_online_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=8_192, num_warps=8)
    return out
