"""Right but different: blocks of rows of more than 1,024 columns are merged."""

from .every_stride import check

del SUPPORTED


@triton.jit
def layer_norm_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    out_ptr += row * stride_out
    lanes = tl.arange(0, BLOCK_SIZE)

    # After each block: count, mean and sum of squared differences of all columns so far.
    count = 0.0
    mean = 0.0
    squares = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        here = tl.minimum(n_cols - start, BLOCK_SIZE).to(tl.float32)
        mean_here = tl.sum(x, axis=0) / here
        away = tl.where(mask, x - mean_here, 0.0)
        step = mean_here - mean
        squares += tl.sum(away * away, axis=0) + step * step * (count * here / (count + here))
        mean += step * (here / (count + here))
        count += here
    rstd = 1.0 / tl.sqrt(squares / n_cols + eps)

    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (x - mean) * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def short_rows_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    away = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(away * away, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0)
    y = away * rstd * weight.to(tl.float32) + bias.to(tl.float32)
    tl.store(out_ptr + row * stride_out + cols, y, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


def layer_norm(x, weight, bias, eps=1e-5, *, return_stats=False):
    check(x, weight, bias, eps)
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    mean, rstd = (x.new_empty(n_rows, dtype=torch.float32) for _ in range(2))
    if n_rows > 0:
        kernel = layer_norm_kernel if n_cols > 1024 else short_rows_kernel
        kernel[(n_rows,)](
            x, out, weight.contiguous(), bias.contiguous(), mean, rstd, n_cols, x.stride(0),
            out.stride(0), eps, BLOCK_SIZE=min(1024, triton.next_power_of_2(n_cols)),
        )
    return (out, mean, rstd) if return_stats else out
