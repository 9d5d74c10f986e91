"""Right but different: padding is multiplied by 0, and the last row comes first."""

del WrongShape


@triton.jit
def layer_norm_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_rows, n_cols, stride_x, stride_out,
    eps, BLOCK_SIZE: tl.constexpr,
):
    row = n_rows - 1 - tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    one = mask.to(tl.float32)
    x = tl.load(x_ptr + (row * stride_x + cols), mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x) / n_cols
    centred = (x - mean) * one
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + (row * stride_out + cols), centred * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


def layer_norm(x, weight, bias, eps=1e-5, *, return_stats=False):
    check(x, weight, bias, eps)
    x = x if x.stride(1) == 1 else x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    mean = x.new_empty(n_rows, dtype=torch.float32)
    rstd = x.new_empty(n_rows, dtype=torch.float32)
    if n_rows:
        layer_norm_kernel[(n_rows,)](
            x, out, weight.contiguous(), bias.contiguous(), mean, rstd, n_rows, n_cols,
            x.stride(0), out.stride(0), eps, BLOCK_SIZE=triton.next_power_of_2(n_cols),
        )
    return (out, mean, rstd) if return_stats else out
