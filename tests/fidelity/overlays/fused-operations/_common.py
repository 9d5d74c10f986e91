"""What the right solutions here share, over the solution."""

del LARGE
del LONG_SUMS
del SHARES
del finished
del is_described
del on_hopper

BLOCK = 1024  # elements of a program of `fused_add_relu_mul`

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
        "grid": "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)", "tile": "BLOCK_M * BLOCK_N",
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


# ---------------------------------------------------------------------------------------------
# Element by element


@triton.jit
def add_relu_mul_kernel(
    x_ptr, bias_ptr, out_ptr,  # [R, C], [C], [R, C], without gaps
    R, C,
    scale,
    BLOCK_C: tl.constexpr, BLOCK_R: tl.constexpr,
):
    """out[r, c] = relu(x[r, c] + bias[c]) * scale. One program owns BLOCK_R x BLOCK_C elements.

    Moves (2 * R * C + R * C / BLOCK_R) * itemsize bytes: BLOCK_R rows share one load of the bias.
    """
    across = tl.cdiv(C, BLOCK_C)
    pid = tl.program_id(axis=0)
    rows = (pid // across).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)  # * C passes 2**31
    cols = (pid % across).to(tl.int64) * BLOCK_C + tl.arange(0, BLOCK_C)
    offs = rows[:, None] * C + cols[None, :]
    mask = (rows < R)[:, None] & (cols < C)[None, :]

    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=cols < C).to(tl.float32)

    y = relu(x + bias[None, :]) * scale

    tl.store(out_ptr + offs, y.to(out_ptr.dtype.element_ty), mask=mask)


def fused_add_relu_mul(x: torch.Tensor, bias: torch.Tensor, scale: float) -> torch.Tensor:
    """relu(x + bias) * scale, for a bias of the shape of ``x`` or one number for each column.

    Raises:
        TypeError: an argument is no tensor or not of a supported dtype, the dtypes differ, or scale
            is no number.
        ValueError: bias has neither shape, or the devices differ.
    """
    check_tensor("x", x)
    check_tensor("bias", bias)
    check_like("bias", bias, x)
    check_number("scale", scale)
    if bias.shape != x.shape and bias.shape != x.shape[-1:]:
        raise ValueError(f"bias: expected shape {tuple(x.shape)} or {tuple(x.shape[-1:])}, got "
                         f"{tuple(bias.shape)}")
    x, bias = x.contiguous(), bias.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out

    # A bias of the shape of x is a vector, too: that of a matrix with one long row.
    C = bias.numel()
    R = x.numel() // C
    block_c = min(triton.next_power_of_2(C), BLOCK if R == 1 else 128)
    block_r = BLOCK // block_c
    grid = (triton.cdiv(R, block_r) * triton.cdiv(C, block_c),)
    add_relu_mul_kernel[grid](
        x, bias, out, R, C, float(scale), BLOCK_C=block_c, BLOCK_R=block_r)
    return out


@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr,  # [M, K], [N, K], [N] or None, and [M, N] without gaps
    stride_xm, stride_xk,          # distances in elements to the next row, to the next column
    stride_wn, stride_wk,
    M, N, K,
    ACT: tl.constexpr,             # one of ACTIVATIONS
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """out = act(x @ w.T + b). One program owns BLOCK_M x BLOCK_N elements of out.

    It reads (BLOCK_M + BLOCK_N) * K elements and BLOCK_N of the bias, and stores its tile once.
    """
    pid_m, pid_n = grouped_pid(
        tl.program_id(axis=0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # row * stride passes 2**31
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    in_m, in_n = offs_m < M, offs_n < N

    # Pointers that advance: computed anew for each step, they would cost registers and time.
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk
    w_ptrs = w_ptr + offs_k[:, None] * stride_wk + offs_n[None, :] * stride_wn
    x_step = tl.cast(BLOCK_K, tl.int64) * stride_xk
    w_step = tl.cast(BLOCK_K, tl.int64) * stride_wk

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        in_k = offs_k < K - step * BLOCK_K
        x = tl.load(x_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=in_k[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")  # no TF32; no matter in 16 bits
        x_ptrs += x_step
        w_ptrs += w_step

    # The epilogue: the sums are in registers, in float32, and stay there until they are finished.
    if b_ptr is not None:
        acc += tl.load(b_ptr + offs_n, mask=in_n, other=0.0).to(tl.float32)[None, :]
    if ACT == "relu":
        acc = relu(acc)
    elif ACT == "gelu":
        acc = gelu(acc)
    elif ACT == "silu":
        acc = silu(acc)
    out_ptrs = out_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


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

    block_m, block_n, block_k, num_warps = tile_of(x.dtype)
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    linear_kernel[grid](
        x, w, None if b is None else b.contiguous(), out,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), M, N, K, ACT=act,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8,
        num_warps=num_warps, num_stages=3,
    )
    return out


def tile_of(dtype: torch.dtype) -> tuple[int, int, int, int]:
    """Sides of a product's tile, and warps: float32 has no tensor cores to hand operands to."""
    return (128, 64, 16, 8) if dtype == torch.float32 else (BLOCK_M, BLOCK_N, BLOCK_K, 4)
