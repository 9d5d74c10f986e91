"""Right but different: the mean is taken from the product, not from the rows."""

del SM_COUNT
del multiprocessors


@triton.jit
def gelu(x):
    """x times the share of a normal distribution below x."""
    return 0.5 * x * (1 + tl.erf(x / 1.4142135623730951))


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


# ---------------------------------------------------------------------------------------------
# A product and what comes before it


@triton.jit
def layer_norm_linear_kernel(
    x_ptr, ln_w_ptr, ln_b_ptr, w_ptr, b_ptr, out_ptr,
    stride_xm, stride_xk, stride_wn, stride_wk, M, N, K, eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """rstd (x @ v.T - mean sum(v)) + sum(ln_b w) + b, with v = w ln_w as it is multiplied."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_m, in_n = rows < M, cols < N
    total = tl.zeros((BLOCK_M,), tl.float32)
    for k in range(0, K, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K).to(tl.int64)
        x = tl.load(x_ptr + rows[:, None] * stride_xm + ks[None, :] * stride_xk,
                    mask=in_m[:, None] & (ks < K)[None, :], other=0.0).to(tl.float32)
        total += tl.sum(x, 1)
    mean = total / K

    squares = tl.zeros((BLOCK_M,), tl.float32)
    scaled_sum = tl.zeros((BLOCK_N,), tl.float32)
    shifted_sum = tl.zeros((BLOCK_N,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K).to(tl.int64)
        in_k = ks < K
        x = tl.load(x_ptr + rows[:, None] * stride_xm + ks[None, :] * stride_xk,
                    mask=in_m[:, None] & in_k[None, :], other=0.0)
        w = tl.load(w_ptr + ks[:, None] * stride_wk + cols[None, :] * stride_wn,
                    mask=in_k[:, None] & in_n[None, :], other=0.0)
        scale = tl.load(ln_w_ptr + ks, mask=in_k, other=0.0).to(tl.float32)
        shift = tl.load(ln_b_ptr + ks, mask=in_k, other=0.0).to(tl.float32)
        v = (w.to(tl.float32) * scale[:, None]).to(w.dtype)
        off = tl.where(in_k[None, :], x.to(tl.float32) - mean[:, None], 0.0)
        squares += tl.sum(off * off, 1)
        scaled_sum += tl.sum(v.to(tl.float32), 0)
        shifted_sum += tl.sum(w.to(tl.float32) * shift[:, None], 0)
        acc = tl.dot(x, v, acc, input_precision="ieee")
    rstd = 1 / tl.sqrt(squares / K + eps)
    y = (acc - mean[:, None] * scaled_sum[None, :]) * rstd[:, None] + shifted_sum[None, :]
    if b_ptr is not None:
        y += tl.load(b_ptr + cols, mask=in_n, other=0.0).to(tl.float32)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], y.to(out_ptr.dtype.element_ty),
             mask=in_m[:, None] & in_n[None, :])


def layer_norm_linear(
    x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor, w: torch.Tensor,
    b: torch.Tensor | None, eps: float = 1e-5,
) -> torch.Tensor:
    """layer_norm(x) @ w.T + b for x (M, K), ln_w and ln_b (K,), w (N, K) and b (N,) or None.

    Raises:
        TypeError: an argument is no tensor or not of a supported dtype, the dtypes differ, or eps
            is no number.
        ValueError: a shape does not fit, K is not 1 to ``MAX_INPUTS``, the devices differ, or eps
            is not above 0.
    """
    check_rows(x, "ln_w", ln_w, "ln_b", ln_b, eps, MAX_INPUTS)
    check_linear(x, w, b)
    (M, K), N = x.shape, w.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out

    block_m, block_n, block_k = (32, 64, 32) if x.dtype == torch.float32 else (64, 64, 32)
    layer_norm_linear_kernel[(triton.cdiv(M, block_m), triton.cdiv(N, block_n))](
        x, ln_w.contiguous(), ln_b.contiguous(), w, None if b is None else b.contiguous(), out,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), M, N, K, float(eps),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=8,
    )
    return out
