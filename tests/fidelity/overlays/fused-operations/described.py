"""Right but different: a persistent product by descriptors, where they describe its operands."""

DESIGN = {
    "fused_add_relu_mul": {
        "flops": "3 * R * C", "bytes": "(2 * R * C + C) * e", "bound": "memory",
        "grid": "cdiv(R, BLOCK // min(next_power_of_2(C), 128))"
                " * cdiv(C, min(next_power_of_2(C), 128))",
        "tile": "BLOCK",
    },
    "linear_bias_act": {
        "flops": "2 * M * N * K + 2 * M * N", "bytes": "(M * K + N * K + N + M * N) * e",
        "bound": "compute",
        "grid": "min(132, cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N))",
        "tile": "BLOCK_M * BLOCK_N * cdiv(cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 132)",
    },
    "layer_norm_gelu": {
        "flops": "14 * R * C", "bytes": "(2 * R * C + 2 * C) * e", "bound": "memory",
        "grid": "R", "tile": "next_power_of_2(C)",
    },
    "layer_norm_linear": {
        "flops": "2 * M * N * K + 8 * M * K", "bytes": "(M * K + 2 * K + N * K + N + M * N) * e",
        "bound": "compute",
        "grid": "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)", "tile": "BLOCK_M * BLOCK_N",
    },
}


@triton.jit
def linear_described_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, stride_xm, stride_wn, M, N, K, ACT: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """The same where descriptors can describe all three: every num_programs-th tile, by TMA."""
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, K], [stride_xm, 1], [BLOCK_M, BLOCK_K])
    w_desc = tl.make_tensor_descriptor(w_ptr, [N, K], [stride_wn, 1], [BLOCK_N, BLOCK_K])
    out_desc = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    across = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * across, tl.num_programs(0)):
        row, col = tile // across * BLOCK_M, tile % across * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            acc = tl.dot(x_desc.load([row, k]), w_desc.load([col, k]).T, acc)
        if b_ptr is not None:
            cols = col + tl.arange(0, BLOCK_N)
            acc += tl.load(b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)[None, :]
        if ACT == "relu":
            acc = relu(acc)
        elif ACT == "gelu":
            acc = gelu(acc)
        elif ACT == "silu":
            acc = silu(acc)
        out_desc.store([row, col], acc.to(out_ptr.dtype.element_ty))


def linear_bias_act(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None,
    act: Literal["none", "relu", "gelu", "silu"] = "none",
) -> torch.Tensor:
    """act(x @ w.T + b) for x (M, K), w (N, K) and b (N,) or None; "gelu" is the one with erf.

    Raises:
        TypeError: an argument is no tensor or not of a supported dtype, the dtypes differ, or act
            is no str.
        ValueError: a shape does not fit, the devices differ, or act is not one of the four.
    """
    check_linear(x, w, b)
    if not isinstance(act, str):
        raise TypeError(f"act: expected a str, got {type(act).__name__}")
    if act not in ACTIVATIONS:
        raise ValueError(f"act: expected one of {', '.join(ACTIVATIONS)}, got {act!r}")
    (M, K), N = x.shape, w.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out

    if x.dtype != torch.float32 and all(map(is_described, (x, w, out))) and K:
        triton.set_allocator(scratch)
        tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
        linear_described_kernel[(min(tiles, multiprocessors(x)),)](
            x, w, None if b is None else b.contiguous(), out, x.stride(0), w.stride(0), M, N, K,
            ACT=act, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=8,
        )
        return out

    block_m, block_n, block_k, num_warps = tile_of(x.dtype)
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    linear_kernel[grid](
        x, w, None if b is None else b.contiguous(), out,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), M, N, K, ACT=act,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8,
        num_warps=num_warps, num_stages=3,
    )
    return out


def is_described(matrix: torch.Tensor) -> bool:
    step = matrix.stride(0) * matrix.element_size()
    return (matrix.stride(1) == 1 and step > 0 and step % 16 == 0
            and matrix.data_ptr() % 16 == 0)


def scratch(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    return torch.empty(size, dtype=torch.int8, device="cuda")
