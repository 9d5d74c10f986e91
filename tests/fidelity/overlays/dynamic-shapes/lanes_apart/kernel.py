"""Right but different: a maximum for each lane, keys as texts, T specialised, bisection, F.pad."""

del _key
del _known_of

import bisect


def specialization_keys(launches: Sequence[LaunchRecord]) -> int:
    """How many variants Triton compiles for these launches, on one GPU."""
    texts = []
    for launch in launches:
        text = f"{launch.kernel}({launch.constexprs!r}, {launch.num_warps})"
        for name, value in launch.arguments.items():
            text += f" {name}:" + _spoken(value, name in launch.do_not_specialize)
        if text not in texts:
            texts.append(text)
    return len(texts)


def _spoken(value: object, fixed: bool) -> str:
    match value:
        case TensorArgument(dtype, address):
            return f"*{dtype}" + ("" if fixed or address & 15 else " by 16")
        case None:
            return "none"
        case True | False:
            return "bit"
        case float():
            return "float"
        case 1 if not fixed:
            return "constant 1"
    kind = "i32" if -(1 << 31) <= value < 1 << 31 else "i64" if value < 1 << 63 else "u64"
    return kind + ("" if fixed or value & 15 else " by 16")


# ---------------------------------------------------------------------------------------------
# Buckets


def bucket_length(n: int, buckets: Sequence[int]) -> int:
    """The smallest bucket that holds n.

    Raises:
        ValueError: n is negative, there is no bucket, they are not in strictly ascending order, or
            n is above the largest.
    """
    if n < 0 or not len(buckets) or list(buckets) != sorted(set(buckets)) or n > buckets[-1]:
        raise ValueError(f"n {n} and buckets {list(buckets)} do not go together")
    return buckets[bisect.bisect_left(buckets, n)]


def pad_to_bucket(
    x: torch.Tensor, buckets: Sequence[int], fill: float
) -> tuple[torch.Tensor, int]:
    """x with its last dimension filled up to a bucket, and the length that it had.

    Raises:
        ValueError: x has no dimension, or no bucket is right for its last one.
    """
    if not x.dim():
        raise ValueError("x has no dimension")
    n = x.size(-1)
    more = bucket_length(n, buckets) - n
    return torch.nn.functional.pad(x, (0, more), value=fill), n


# ---------------------------------------------------------------------------------------------
# The mean of the steps that count


@triton.jit
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

    # Each lane has a maximum and a sum of its own; they meet once, at the end.
    lane_max = tl.full((BLOCK,), -float("inf"), tl.float32)
    lane_sum = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new_max = tl.where(x > lane_max, x, lane_max)
        safe = tl.where(new_max == -float("inf"), 0.0, new_max)
        lane_sum = lane_sum * tl.exp(lane_max - safe) + tl.exp(x - safe)
        lane_max = new_max
    row_max = tl.max(lane_max, axis=0)
    shift = tl.where(row_max == -float("inf"), 0.0, row_max)
    total = tl.sum(lane_sum * tl.exp(lane_max - shift), axis=0)
    scale = 1.0 / total
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row + cols, mask=mask).to(tl.float32)
        y = tl.exp(x - shift) * scale
        tl.store(out_ptr + row * n_cols + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
