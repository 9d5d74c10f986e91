"""Right but different: statistics are allocated and stored only where they are asked for."""

del WrongShape


@triton.jit
def layer_norm_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    HAS_STATS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask)
    bias = tl.load(bias_ptr + cols, mask=mask)
    y = centred * rstd * weight + bias
    tl.store(out_ptr + row * stride_out + cols, y, mask=mask)
    if HAS_STATS:
        tl.store(mean_ptr + row, mean)
        tl.store(rstd_ptr + row, rstd)


def layer_norm(x, weight, bias, eps=1e-5, *, return_stats=False):
    check(x, weight, bias, eps)
    x = x if x.stride(1) == 1 else x.contiguous()
    weight, bias = weight.contiguous(), bias.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    mean = rstd = None
    if return_stats:
        mean = torch.zeros(n_rows, dtype=torch.float32, device=x.device)
        rstd = torch.zeros(n_rows, dtype=torch.float32, device=x.device)
    if n_rows > 0:
        layer_norm_kernel[(n_rows,)](
            x, out, weight, bias, mean, rstd, n_cols, x.stride(0), out.stride(0), eps,
            HAS_STATS=return_stats, BLOCK_SIZE=triton.next_power_of_2(n_cols), num_warps=8,
        )
    if return_stats:
        return out, mean, rstd
    return out
