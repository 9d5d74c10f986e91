"""Right but different: helper functions, a while loop, a stride left alone as well."""


# ---------------------------------------------------------------------------------------------
# The mean of the steps that count


@triton.jit
def shifted_exp(x, largest):
    """exp(x - largest), for a largest of minus infinity too."""
    return tl.exp(x - tl.where(largest == -float("inf"), 0.0, largest))


@triton.jit(do_not_specialize=["T", "stride_xb"])
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
    start = 0
    while start < length:
        steps = start + tl.arange(0, BLOCK_T)
        mask = (steps[:, None] < length) & (cols[None, :] < D)
        offs = steps[:, None].to(tl.int64) * stride_xt + cols[None, :]
        acc += tl.load(x_ptr + b * stride_xb + offs, mask=mask, other=0.0).to(tl.float32)
        start += BLOCK_T

    mean = tl.sum(acc, axis=0) / tl.maximum(length, 1)  # the sum of no step is 0, and so is 0 / 1

    tl.store(out_ptr + b * D + cols, mean.to(out_ptr.dtype.element_ty), mask=cols < D)


# ---------------------------------------------------------------------------------------------
# A softmax for every width


@triton.heuristics({"EVEN": lambda args: args["n_cols"] % args["BLOCK"] == 0})
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

    numerator = shifted_exp(x, tl.max(x, axis=1)[:, None])
    y = numerator / tl.sum(numerator, axis=1)[:, None]

    out_ptrs = out_ptr + rows[:, None] * n_cols + cols[None, :]
    tl.store(out_ptrs, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_block_kernel(
    x_ptr, out_ptr,       # [n_rows, n_cols], each row without gaps
    stride_x,             # elements from one row of x to the next
    n_cols,
    BLOCK: tl.constexpr,  # power of two >= n_cols
):
    """Softmax of one row, which is one block. Moves 2 * n_rows * n_cols * itemsize bytes."""
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols

    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)

    numerator = shifted_exp(x, tl.max(x, axis=0))
    y = numerator * (1.0 / tl.sum(numerator, axis=0))

    tl.store(out_ptr + row * n_cols + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_online_kernel(
    x_ptr, out_ptr,       # [n_rows, n_cols], each row without gaps
    stride_x,             # elements from one row of x to the next
    n_cols,
    BLOCK: tl.constexpr,  # columns that are looked at together, whatever the width
):
    """Softmax of one row in two sweeps over its blocks: maximum and sum, then the quotients.

    Moves 3 * n_rows * n_cols * itemsize bytes: the row is read twice.
    """
    row = tl.program_id(axis=0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x_row = x_ptr + row * stride_x

    row_max = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new_max = tl.maximum(row_max, tl.max(x, axis=0))
        total = total * shifted_exp(row_max, new_max)
        total += tl.sum(shifted_exp(x, new_max), axis=0)
        row_max = new_max

    scale = 1.0 / total
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row + cols, mask=mask).to(tl.float32)
        y = shifted_exp(x, row_max) * scale
        tl.store(out_ptr + row * n_cols + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
