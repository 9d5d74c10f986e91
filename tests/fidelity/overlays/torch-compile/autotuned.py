"""Right but different: an autotuner picks tiles and warps, on a grid of two axes."""


# ---------------------------------------------------------------------------------------------
# The operator


@triton.autotune(
    [triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 32}, num_warps=warps)
     for m, n, warps in ((32, 64, 4), (64, 64, 4), (64, 128, 8))], key=["M", "N", "K"])
@triton.jit
def rmsnorm_gelu_linear_kernel(
    x_ptr, norm_ptr, w_ptr, b_ptr, out_ptr,  # [M, K], [K], [N, K], [N], and [M, N] without gaps
    stride_xm, stride_xk,                    # elements from one row to the next, and one column
    stride_wn, stride_wk,
    stride_norm, stride_b,
    M, N, K,
    eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """out = gelu(x / rms(x) * norm) @ w.T + b. One program owns BLOCK_M x BLOCK_N elements of out.

    It reads its rows of x twice and its rows of w once, K elements each, and stores its tile once.
    """
    offs_m = tl.program_id(axis=0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # passes 2**31
    offs_n = tl.program_id(axis=1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)   # times a stride
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    in_m, in_n = offs_m < M, offs_n < N
    x_rows = x_ptr + offs_m[:, None] * stride_xm
    w_rows = w_ptr + offs_n[None, :] * stride_wn

    # First sweep: a mean needs its whole row before the first element can be scaled by it.
    squares = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + offs_k
        x = tl.load(x_rows + k[None, :] * stride_xk, mask=in_m[:, None] & (k < K)[None, :],
                    other=0.0).to(tl.float32)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=1) / K + eps)

    # Second sweep: scale, activate, round to the dtype that is multiplied, multiply.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + offs_k
        in_k = k < K
        x = tl.load(x_rows + k[None, :] * stride_xk, mask=in_m[:, None] & in_k[None, :],
                    other=0.0).to(tl.float32)
        norm = tl.load(norm_ptr + k * stride_norm, mask=in_k, other=0.0).to(tl.float32)
        w = tl.load(w_rows + k[:, None] * stride_wk, mask=in_k[:, None] & in_n[None, :], other=0.0)
        h = x * rstd[:, None] * norm[None, :]
        h = 0.5 * h * (1 + tl.erf(h * 0.7071067811865476))  # 1 / sqrt(2); padding stays 0
        acc = tl.dot(h.to(w.dtype), w, acc, input_precision="ieee")  # no TF32

    bias = tl.load(b_ptr + offs_n * stride_b, mask=in_n, other=0.0).to(tl.float32)
    acc += bias[None, :]
    tl.store(out_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(out_ptr.dtype.element_ty),
             mask=in_m[:, None] & in_n[None, :])


@triton_op("tritonlab::rmsnorm_gelu_linear", mutates_args={})
def rmsnorm_gelu_linear(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
                        eps: float) -> torch.Tensor:
    """gelu(rmsnorm(x) * norm_w) @ w.T + b for x (M, K), norm_w (K,), w (N, K), b (N,): (M, N).

    Raises:
        TypeError: a dtype is not supported, or not that of x.
        ValueError: shapes do not fit, devices differ, or eps is negative.
    """
    check_arguments(x, norm_w, w, b, eps)
    (M, K), N = x.shape, w.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    def grid(meta):
        return triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"])

    wrap_triton(rmsnorm_gelu_linear_kernel)[grid](
        x, norm_w, w, b, out,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), norm_w.stride(0), b.stride(0),
        M, N, K, eps,
    )
    return out


def compile_regionally(
    model: torch.nn.Sequential, backend: str | Callable[..., Any] = "inductor"
) -> Callable[[torch.Tensor], torch.Tensor]:
    """The model with one compiled region, which all blocks share; all else runs as it is.

    The region is a function of its weights: what differs between blocks are arguments, so that one
    graph serves all of them.
    """
    region = torch.compile(FusedMLP.forward, backend=backend)

    def run(x: torch.Tensor) -> torch.Tensor:
        for block in model:
            h = x + block.attention(x)
            x = h + region(block.mlp, h)
        return x

    return run
