"""Right but different: at most seven programs, which read the parameters once."""

from .every_stride import check

del SUPPORTED


@triton.jit
def layer_norm_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_rows, n_cols, stride_x, stride_out,
    eps, BLOCK_SIZE: tl.constexpr,
):
    first = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    for row in range(first, n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(x, axis=0) / n_cols
        centred = tl.where(mask, x - mean, 0.0)
        rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
        y = centred * rstd * weight + bias
        tl.store(out_ptr + row * stride_out + cols, y, mask=mask)
        tl.store(mean_ptr + row, mean)
        tl.store(rstd_ptr + row, rstd)


def layer_norm(x, weight, bias, eps=1e-5, *, return_stats=False):
    check(x, weight, bias, eps)
    x = x if x.stride(1) == 1 else x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    mean, rstd = x.new_empty((2, n_rows), dtype=torch.float32).unbind()
    if n_rows:
        layer_norm_kernel[(min(n_rows, 7),)](
            x, out, weight.contiguous(), bias.contiguous(), mean, rstd, n_rows, n_cols,
            x.stride(0), out.stride(0), eps, BLOCK_SIZE=triton.next_power_of_2(n_cols),
            num_warps=8,
        )
    return (out, mean, rstd) if return_stats else out
