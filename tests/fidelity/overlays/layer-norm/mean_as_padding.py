"""Right but different: padding becomes the mean, so that it is 0 after centring."""

from .every_stride import check

del SUPPORTED


@triton.jit
def total(block):
    return tl.sum(block, axis=0)


@triton.jit
def layer_norm_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0).to(tl.float32)
    mean = total(x) / n_cols
    x = tl.where(mask, x, mean)
    var = total((x - mean) * (x - mean)) / n_cols
    rstd = tl.rsqrt(var + eps)
    scale = rstd * tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    y = (x - mean) * scale + tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


def layer_norm(x, weight, bias, eps=1e-5, *, return_stats=False):
    check(x, weight, bias, eps)
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    mean = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    rstd = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows == 0:
        return (out, mean, rstd) if return_stats else out
    width = 1 << (n_cols - 1).bit_length()
    layer_norm_kernel[(n_rows, 1, 1)](
        BLOCK_SIZE=width, eps=eps, stride_out=out.stride(0), stride_x=x.stride(0), n_cols=n_cols,
        rstd_ptr=rstd, mean_ptr=mean, bias_ptr=bias.contiguous(), weight_ptr=weight.contiguous(),
        out_ptr=out, x_ptr=x, num_warps=4 if width < 4096 else 8, num_stages=1,
    )
    return (out, mean, rstd) if return_stats else out
