"""Right but different: two kernels for two kinds of bias, two rows a program, ReLU by `where`.

What does not fit is told by its whole shape, not by the number of its dimensions.
"""

del LARGE
del LONG_SUMS
del SHARES
del add_relu_mul_kernel
del finished
del is_described
del on_hopper

BLOCK = 1024  # elements of a program of `fused_add_relu_mul`

DESIGN = {
    "fused_add_relu_mul": {
        "flops": "3 * R * C", "bytes": "(2 * R * C + C) * e", "bound": "memory",
        "grid": "cdiv(R, 16) * cdiv(C, min(next_power_of_2(C), 256))",
        "tile": "16 * min(next_power_of_2(C), 256)",
    },
    "linear_bias_act": {
        "flops": "2 * M * N * K + 2 * M * N", "bytes": "(M * K + N * K + N + M * N) * e",
        "bound": "compute",
        "grid": "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)", "tile": "BLOCK_M * BLOCK_N",
    },
    "layer_norm_gelu": {
        "flops": "14 * R * C", "bytes": "(2 * R * C + 2 * C) * e", "bound": "memory",
        "grid": "cdiv(R, 2)", "tile": "2 * next_power_of_2(C)",
    },
    "layer_norm_linear": {
        "flops": "2 * M * N * K + 8 * M * K", "bytes": "(M * K + 2 * K + N * K + N + M * N) * e",
        "bound": "compute",
        "grid": "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)", "tile": "BLOCK_M * BLOCK_N",
    },
}


# ---------------------------------------------------------------------------------------------
# Activations, in float32 and in registers


@triton.jit
def relu(x):
    return tl.where(x < 0, 0.0, x)


# ---------------------------------------------------------------------------------------------
# Element by element


@triton.jit
def flat_kernel(x_ptr, bias_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    x += tl.load(bias_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, (relu(x) * scale).to(out_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def columns_kernel(x_ptr, bias_ptr, out_ptr, R, C, scale, HEIGHT: tl.constexpr,
                   BLOCK: tl.constexpr):
    """HEIGHT rows one after the other, with the same piece of the bias."""
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < C
    bias = tl.load(bias_ptr + cols, mask=inside).to(tl.float32)
    first = tl.program_id(0).to(tl.int64) * HEIGHT
    for row in range(first, min(first + HEIGHT, R)):
        x = tl.load(x_ptr + row * C + cols, mask=inside).to(tl.float32)
        y = relu(x + bias) * scale
        tl.store(out_ptr + row * C + cols, y.to(out_ptr.dtype.element_ty), mask=inside)


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

    if bias.shape == x.shape:
        flat_kernel[(triton.cdiv(x.numel(), BLOCK),)](
            x, bias, out, x.numel(), float(scale), BLOCK=BLOCK)
        return out
    C = bias.numel()
    R = x.numel() // C
    width = min(triton.next_power_of_2(C), 256)
    columns_kernel[(triton.cdiv(R, 16), triton.cdiv(C, width))](
        x, bias, out, R, C, float(scale), HEIGHT=16, BLOCK=width)
    return out


@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr,  # [M, K], [N, K], [N] or None, and [M, N] without gaps
    stride_xm, stride_xk,          # elements from one row to the next, and from one column
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


# ---------------------------------------------------------------------------------------------
# Rows, and what comes after them


@triton.jit
def layer_norm_gelu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, R, C, stride_x, eps,
                           HEIGHT: tl.constexpr, BLOCK_C: tl.constexpr):
    """HEIGHT rows at once, which share both vectors."""
    rows = (tl.program_id(0).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT))[:, None]
    cols = tl.arange(0, BLOCK_C)[None, :]
    inside = (rows < R) & (cols < C)
    x = tl.load(x_ptr + rows * stride_x + cols, mask=inside, other=0.0).to(tl.float32)
    off = tl.where(cols < C, x - (tl.sum(x, 1) / C)[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(off * off, 1) / C + eps)
    weight = tl.load(weight_ptr + cols, mask=cols < C).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=cols < C).to(tl.float32)
    y = gelu(off * rstd[:, None] * weight + bias)
    tl.store(out_ptr + rows * C + cols, y.to(out_ptr.dtype.element_ty), mask=inside)


def layer_norm_gelu(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """gelu of the normalised rows of ``x`` (R, C), for weight and bias (C,); GELU with erf.

    Raises:
        TypeError: an argument is no tensor or not of a supported dtype, the dtypes differ, or eps
            is no number.
        ValueError: a shape does not fit, C is not 1 to ``MAX_COLUMNS``, the devices differ, or eps
            is not above 0.
    """
    check_rows(x, "weight", weight, "bias", bias, eps, MAX_COLUMNS)
    if x.stride(1) != 1:
        x = x.contiguous()  # the kernel knows one stride, from row to row
    R, C = x.shape
    out = torch.empty((R, C), dtype=x.dtype, device=x.device)
    if R:
        block_c = triton.next_power_of_2(C)
        num_warps = 4 if block_c <= 2048 else 8 if block_c <= 8192 else 16
        layer_norm_gelu_kernel[(triton.cdiv(R, 2),)](
            x, weight.contiguous(), bias.contiguous(), out, R, C, x.stride(0), float(eps),
            HEIGHT=2, BLOCK_C=block_c, num_warps=num_warps,
        )
    return out


# ---------------------------------------------------------------------------------------------
# What fusing can gain


def fusion_gain(
    passes_before: int, passes_after: int, launches_before: int, launches_after: int,
    n_bytes: int, copy_gbps: float, launch_us: float,
) -> float:
    """How many times as fast the fused form is at most: time before over time after.

    All launches run one after the other. Each takes ``launch_us`` before it moves anything, and
    then every pass moves its bytes at the rate of a copy.

    Args:
        passes_before, passes_after: walks of a whole tensor, reading or writing.
        launches_before, launches_after: kernels.
        n_bytes: of one pass.
        copy_gbps: 1e9 bytes a second, read and written ones together.
        launch_us: microseconds.

    Raises:
        TypeError: a count is no int, or an argument no number.
        ValueError: a count is below 1, n_bytes or launch_us below 0, copy_gbps not above 0, or
            nothing takes any time.
    """
    counts = {"passes_before": passes_before, "passes_after": passes_after,
              "launches_before": launches_before, "launches_after": launches_after}
    for name, count in {**counts, "n_bytes": n_bytes}.items():
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"{name}: expected an int, got {type(count).__name__}")
    check_number("copy_gbps", copy_gbps)
    check_number("launch_us", launch_us)
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name}: expected at least 1, got {count}")
    if n_bytes < 0:
        raise ValueError(f"n_bytes: expected at least 0, got {n_bytes}")
    if not copy_gbps > 0:
        raise ValueError(f"copy_gbps: expected a rate above 0, got {copy_gbps}")
    if not launch_us >= 0:
        raise ValueError(f"launch_us: expected at least 0, got {launch_us}")
    if n_bytes == 0 and launch_us == 0:
        raise ValueError("n_bytes and launch_us: both are 0, so that nothing takes any time")

    pass_us = n_bytes / (copy_gbps * 1e3)  # 1e9 bytes a second are 1e3 a microsecond
    return ((passes_before * pass_us + launches_before * launch_us)
            / (passes_after * pass_us + launches_after * launch_us))


# ---------------------------------------------------------------------------------------------
# What is refused


def check_tensor(name: str, x: object, shape: str = "") -> None:
    """Refuse what is no tensor of a supported dtype, or no matrix where a shape is given."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in SUPPORTED:
        names = ", ".join(str(dtype) for dtype in SUPPORTED)
        raise TypeError(f"{name}: expected one of {names}, got {x.dtype}")
    if shape and x.dim() != 2:
        raise ValueError(f"{name}: expected shape {shape}, got {tuple(x.shape)}")


def check_vector(name: str, vector: object, x: torch.Tensor, size: int, of: str) -> None:
    """Refuse what is no vector like x with one number for each of ``size``."""
    check_tensor(name, vector)
    check_like(name, vector, x)
    if vector.shape != (size,):
        raise ValueError(f"{name}: expected shape ({size},), one number for each {of}, got "
                         f"{tuple(vector.shape)}")


def check_linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> None:
    """Refuse what is no layer: x (M, K), w (N, K), b (N,) or None."""
    check_tensor("x", x, "(M, K)")
    check_tensor("w", w, "(N, K)")
    check_like("w", w, x)
    if w.shape[1] != x.shape[1]:
        raise ValueError(f"w: expected {x.shape[1]} columns like x, got shape {tuple(w.shape)}")
    if b is not None:
        check_vector("b", b, x, w.shape[0], "row of w")


def check_rows(
    x: torch.Tensor, weight_name: str, weight: torch.Tensor, bias_name: str, bias: torch.Tensor,
    eps: float, most: int,
) -> None:
    """Refuse what cannot be normalised: x (R, C), two vectors (C,), eps above 0."""
    check_tensor("x", x, "(R, C)")
    if not x.shape[1]:
        raise ValueError("x: expected one column at least, got 0")
    if x.shape[1] > most:
        raise ValueError(f"x: expected {most} columns at most, got {x.shape[1]}")
    check_vector(weight_name, weight, x, x.shape[1], "column of x")
    check_vector(bias_name, bias, x, x.shape[1], "column of x")
    check_number("eps", eps)
    if not eps > 0:
        raise ValueError(f"eps: expected a number above 0, got {eps}")
