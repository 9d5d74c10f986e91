"""Right but different: an autotuner picks the number of warps."""

del WrongShape


@triton.autotune(
    configs=[triton.Config({}, num_warps=warps) for warps in (8, 16)],
    key=["n_cols"],
)
@triton.jit
def layer_norm_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask)
    bias = tl.load(bias_ptr + cols, mask=mask)
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, 0) / n_cols + eps)
    y = tl.fma(centred * rstd, weight.to(tl.float32), bias.to(tl.float32))
    tl.store(out_ptr + row * stride_out + cols, y, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


def layer_norm(x, weight, bias, eps=1e-5, *, return_stats=False):
    check(x, weight, bias, eps)
    x = x if x.stride(1) == 1 else x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    mean = torch.empty((n_rows,), device=x.device)
    rstd = torch.empty((n_rows,), device=x.device)
    if n_rows:
        layer_norm_kernel[lambda meta: (n_rows,)](
            x, out, weight.contiguous(), bias.contiguous(), mean, rstd, n_cols, x.stride(0),
            out.stride(0), eps, BLOCK_SIZE=triton.next_power_of_2(n_cols),
        )
    return (out, mean, rstd) if return_stats else out
