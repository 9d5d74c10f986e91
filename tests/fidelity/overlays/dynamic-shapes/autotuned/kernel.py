"""Right but different: an autotuned mean, heuristics for the block, a grid that is a function."""


# ---------------------------------------------------------------------------------------------
# The mean of the steps that count


@triton.autotune(
    configs=[triton.Config({"BLOCK_T": 16}, num_warps=2), triton.Config({"BLOCK_T": 64})],
    key=["D"],  # and not T
)
@triton.jit(do_not_specialize=["T"])
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
        mask = (steps[:, None] < length) & (cols[None, :] < D)
        offs = steps[:, None].to(tl.int64) * stride_xt + cols[None, :]
        acc += tl.load(x_ptr + b * stride_xb + offs, mask=mask, other=0.0).to(tl.float32)

    mean = tl.sum(acc, axis=0) / tl.maximum(length, 1)  # the sum of no step is 0, and so is 0 / 1

    tl.store(out_ptr + b * D + cols, mean.to(out_ptr.dtype.element_ty), mask=cols < D)


def masked_mean(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The mean over the first lengths[b] steps of x[b], for x of shape (B, T, D), as (B, D).

    Lengths are integers; one above T counts as T, and where it is 0 the mean is 0.
    """
    if x.stride(2) != 1:
        x = x.contiguous()
    B, T, D = x.shape
    out = x.new_empty(B, D)
    if out.numel() == 0:
        return out
    block_d = min(128, triton.next_power_of_2(D))  # of a model, D is the same in every call
    grid = (B, triton.cdiv(D, block_d))
    masked_mean_kernel[grid](
        x, lengths.contiguous(), out, x.stride(0), x.stride(1), T, D, BLOCK_D=block_d
    )
    return out


# ---------------------------------------------------------------------------------------------
# A softmax for every width


@triton.heuristics({
    "BLOCK": lambda args: triton.next_power_of_2(args["n_cols"]),
    "EVEN": lambda args: args["n_cols"] & (args["n_cols"] - 1) == 0,
})
@triton.jit
def softmax_narrow_kernel(
    x_ptr, out_ptr,       # [n_rows, n_cols], each row without gaps
    stride_x,             # elements from one row of x to the next
    n_rows, n_cols,
    ROWS: tl.constexpr,   # per program
    BLOCK: tl.constexpr,  # power of two >= n_cols
    EVEN: tl.constexpr,   # every lane has a column
):
    """Softmax of rows that are narrower than what a program can hold: it owns ROWS of them.

    Moves 2 * n_rows * n_cols * itemsize bytes.
    """
    rows = tl.program_id(axis=0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = rows[:, None] < n_rows
    if not EVEN:
        mask = mask & (cols[None, :] < n_cols)

    x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=-float("inf"))
    x = x.to(tl.float32)

    numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = numerator / tl.sum(numerator, axis=1)[:, None]

    out_ptrs = out_ptr + rows[:, None] * n_cols + cols[None, :]
    tl.store(out_ptrs, y.to(out_ptr.dtype.element_ty), mask=mask)


def softmax_any(x: torch.Tensor) -> torch.Tensor:
    """Softmax over dim 1 of a matrix of any width, as a new contiguous tensor."""
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    if out.numel() == 0:
        return out
    block = triton.next_power_of_2(n_cols)
    if n_cols <= NARROW:
        rows = max(4, min(64, 2_048 // block))  # 16 numbers or more for each of 128 threads
        softmax_narrow_kernel[lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),)](
            x, out, x.stride(0), n_rows, n_cols, ROWS=rows
        )
    elif n_cols <= WIDE:
        # The widest block has 16 warps: with 32, no thread has more than 64 registers.
        num_warps = 16 if block == WIDE else max(4, block // 1_024)
        softmax_block_kernel[(n_rows,)](
            x, out, x.stride(0), n_cols, BLOCK=block, num_warps=num_warps
        )
    else:
        softmax_online_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=8_192, num_warps=8)
    return out
