"""Right but different: three sweeps along the rows, and grids of two axes."""

del grouped_pid

BLOCK_M, BLOCK_N, BLOCK_K = 64, 128, 32  # tiles of products of 16-bit numbers


# ---------------------------------------------------------------------------------------------
# A product and what comes after it


@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr,  # [M, K], [N, K], [N] or None, and [M, N] without gaps
    stride_xm, stride_xk,          # distances in elements to the next row, to the next column
    stride_wn, stride_wk,
    M, N, K,
    ACT: tl.constexpr,             # one of ACTIVATIONS
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """out = act(x @ w.T + b). One program owns BLOCK_M x BLOCK_N elements of out.

    It reads (BLOCK_M + BLOCK_N) * K elements and BLOCK_N of the bias, and stores its tile once.
    """
    pid_m, pid_n = tl.program_id(axis=1), tl.program_id(axis=0)
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
    grid = (triton.cdiv(N, block_n), triton.cdiv(M, block_m))
    linear_kernel[grid](
        x, w, None if b is None else b.contiguous(), out,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), M, N, K, ACT=act,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
        num_warps=num_warps, num_stages=3,
    )
    return out


def tile_of(dtype: torch.dtype) -> tuple[int, int, int, int]:
    """Sides of a product's tile, and warps: float32 has no tensor cores to hand operands to."""
    return (64, 64, 32, 4) if dtype == torch.float32 else (BLOCK_M, BLOCK_N, BLOCK_K, 4)


# ---------------------------------------------------------------------------------------------
# A product and what comes before it


@triton.jit
def layer_norm_linear_kernel(
    x_ptr, ln_w_ptr, ln_b_ptr,  # [M, K], [K], [K]
    w_ptr, b_ptr, out_ptr,      # [N, K], [N] or None, and [M, N] without gaps
    stride_xm, stride_xk,       # distances in elements to the next row, to the next column
    stride_wn, stride_wk,
    M, N, K,
    eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """out = (layer_norm(x) * ln_w + ln_b) @ w.T + b. One program owns every num_programs(1)-th tile
    of a row of tiles.

    It sweeps its rows for their mean, again for their variance, and again for each tile.
    """
    offs_m = tl.program_id(axis=0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    in_m = offs_m < M
    x_start = x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk
    x_step = tl.cast(BLOCK_K, tl.int64) * stride_xk
    w_step = tl.cast(BLOCK_K, tl.int64) * stride_wk

    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    x_ptrs = x_start
    for k in range(0, K, BLOCK_K):
        total += tl.sum(tl.load(x_ptrs, mask=in_m[:, None] & (offs_k < K - k)[None, :],
                                other=0.0).to(tl.float32), axis=1)
        x_ptrs += x_step
    mean = total / K
    squares = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)
    x_ptrs = x_start
    for k in range(0, K, BLOCK_K):
        in_k = (offs_k < K - k)[None, :]
        x = tl.load(x_ptrs, mask=in_m[:, None] & in_k, other=0.0).to(tl.float32)
        off = tl.where(in_k, x - mean[:, None], 0.0)
        squares += off * off
        x_ptrs += x_step
    rstd = tl.rsqrt(tl.sum(squares, axis=1) / K + eps)

    for pid_n in range(tl.program_id(axis=1), tl.cdiv(N, BLOCK_N), tl.num_programs(axis=1)):
        offs_n = tl.cast(pid_n, tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
        in_n = offs_n < N

        # Second sweep: rows are normalised on their way to the tensor cores.
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        x_ptrs = x_start
        w_ptrs = w_ptr + offs_k[:, None] * stride_wk + offs_n[None, :] * stride_wn
        for k in range(0, K, BLOCK_K):
            in_k = offs_k < K - k
            x = tl.load(x_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0).to(tl.float32)
            w = tl.load(w_ptrs, mask=in_k[:, None] & in_n[None, :], other=0.0)
            ln_w = tl.load(ln_w_ptr + k + offs_k, mask=in_k, other=0.0).to(tl.float32)
            ln_b = tl.load(ln_b_ptr + k + offs_k, mask=in_k, other=0.0).to(tl.float32)
            h = (x - mean[:, None]) * rstd[:, None] * ln_w[None, :] + ln_b[None, :]
            acc = tl.dot(h.to(w.dtype), w, acc, input_precision="ieee")
            x_ptrs += x_step
            w_ptrs += w_step

        if b_ptr is not None:
            acc += tl.load(b_ptr + offs_n, mask=in_n, other=0.0).to(tl.float32)[None, :]
        out_ptrs = out_ptr + offs_m[:, None] * N + offs_n[None, :]
        tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])
