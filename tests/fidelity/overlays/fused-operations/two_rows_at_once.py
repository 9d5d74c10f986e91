"""Right but different: two kernels for two kinds of bias, two rows a program, ReLU by `where`.

What does not fit is told by its whole shape, not by the number of its dimensions.
"""

del add_relu_mul_kernel

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
