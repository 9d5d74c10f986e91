"""Right but different: a schema in words, implementation and fake one by one."""


torch.library.define(
    "tritonlab::rmsnorm_gelu_linear",
    "(Tensor x, Tensor norm_w, Tensor w, Tensor b, float eps) -> Tensor")


def rmsnorm_gelu_linear(x, norm_w, w, b, eps):
    return torch.ops.tritonlab.rmsnorm_gelu_linear.default(x, norm_w, w, b, eps)


@torch.library.impl("tritonlab::rmsnorm_gelu_linear", ("cpu", "cuda"))
def implementation(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
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
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    rmsnorm_gelu_linear_kernel[grid](
        x, norm_w, w, b, out,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), norm_w.stride(0), b.stride(0),
        M, N, K, eps,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=8, num_stages=3,
    )
    return out


@torch.library.register_fake("tritonlab::rmsnorm_gelu_linear")
def described(x, norm_w, w, b, eps):
    check_arguments(x, norm_w, w, b, eps)
    return torch.empty((x.shape[0], w.shape[0]), dtype=x.dtype, device=x.device)
