"""Four fused operations, each in one launch, and the maximum gain of fusion.

    fused_add_relu_mul(x, bias, s)    relu(x + bias) * s                    2 or 3 passes
    linear_bias_act(x, w, b, act)     act(x @ w.T + b)                      the epilogue is fused
    layer_norm_gelu(x, g, h)          gelu(layer_norm(x) * g + h)           2 passes
    layer_norm_linear(x, g, h, w, b)  (layer_norm(x) * g + h) @ w.T + b     the prologue is fused

A pass is one walk of a whole tensor from or to memory. Unfused, every step writes what the next one
reads; fused, it stays in registers. Each kernel here is built so that a program can finish what it
began: it owns elements, rows or tiles of which it has everything that the next step needs.

Only the last one pays for that. A tile of a product needs rows that are normalized, so every
program that multiplies with a row has to know its statistics: it walks along the row once more.

Inputs: float32, float16 or bfloat16, all of one dtype, any strides. Results are new contiguous
tensors of that dtype.

Precision: float32 between load and store. Products of 16-bit numbers are summed in float32 by
tensor cores, for which `layer_norm_linear` rounds the normalized rows to 16 bits; products of
float32 are in full, without TF32. A variance is a sum of squared differences, put together from
blocks, and never E[x^2] - E[x]^2. NaN stays NaN through all activations.

Source: the merge of means and variances: Chan, Golub, LeVeque, The American Statistician 37, 1983.
GELU: Hendrycks, Gimpel, arXiv:1606.08415.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK = 2048  # bytes of x per program of `fused_add_relu_mul`: 16 per thread
BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 64  # tiles of 16-bit products
LARGE = 512  # rows and columns; from here on, Hopper loads tiles by TMA
LONG_SUMS = 2048  # inputs from which on wider tiles pay, of which only one fits at a time: a long
# sum takes so much longer than an epilogue that nothing has to hide it
MAX_COLUMNS = 65_536  # of `layer_norm_gelu`: as float32 they fill the registers of an SM
MAX_INPUTS = 8_192  # of `layer_norm_linear`
SM_COUNT = 132  # SMs of an H100 or H200, used without a GPU
SUPPORTED = (torch.float32, torch.float16, torch.bfloat16)
ACTIVATIONS = ("none", "relu", "gelu", "silu")

# Programs that `layer_norm_linear` starts for each row of tiles: two for each SM.
SHARES = "min(cdiv(N, BLOCK_N), max(1, 2 * SM_COUNT // cdiv(M, BLOCK_M)))"

DESIGN = {
    "fused_add_relu_mul": {
        "flops": "3 * R * C", "bytes": "(2 * R * C + C) * e", "bound": "memory",
        "grid": "cdiv(R, BLOCK // e // min(next_power_of_2(C), 128))"
                " * cdiv(C, min(next_power_of_2(C), 128))",
        "tile": "BLOCK // e",
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
        "grid": f"cdiv(M, BLOCK_M) * {SHARES}",
        "tile": f"BLOCK_M * BLOCK_N * cdiv(cdiv(N, BLOCK_N), {SHARES})",
    },
}


# ---------------------------------------------------------------------------------------------
# Activations, in float32 and in registers


@triton.jit
def relu(x):
    return tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)  # keeps NaN


@triton.jit
def gelu(x):
    """x times the standard normal distribution function at x."""
    return x * (0.5 + 0.5 * tl.erf(x * 0.7071067811865476))  # 1 / sqrt(2)


@triton.jit
def silu(x):
    return x / (1 + tl.exp(-x))


# ---------------------------------------------------------------------------------------------
# Element by element


@triton.jit
def load_tile(ptrs, mask, whole):
    """Loads a tile, without a mask if it is whole: masked accesses of odd lengths are narrow."""
    if whole:  # noqa: SIM108 - a pair with store_tile
        tile = tl.load(ptrs)
    else:
        tile = tl.load(ptrs, mask=mask)
    return tile


@triton.jit
def store_tile(ptrs, tile, mask, whole):
    """Stores a tile, without a mask if it is whole."""
    if whole:
        tl.store(ptrs, tile)
    else:
        tl.store(ptrs, tile, mask=mask)


@triton.jit
def add_relu_mul_kernel(
    x_ptr, bias_ptr, out_ptr,  # [R, C], [C], [R, C], contiguous
    R, C,
    scale,
    BLOCK_C: tl.constexpr, BLOCK_R: tl.constexpr,
    ONE_ROW: tl.constexpr,     # R == 1: saves the division that finds the row
):
    """out[r, c] = relu(x[r, c] + bias[c]) * scale. One program owns BLOCK_R x BLOCK_C elements.

    Moves (2 * R * C + R * C / BLOCK_R) * itemsize bytes: BLOCK_R rows share one load of the bias.
    """
    pid_r, pid_c = 0, tl.program_id(axis=0)
    if not ONE_ROW:
        across = tl.cdiv(C, BLOCK_C)
        pid_r, pid_c = pid_c // across, pid_c % across
    rows = tl.cast(pid_r, tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)  # * C passes 2**31
    first_c = pid_c.to(tl.int64) * BLOCK_C
    cols = first_c + tl.arange(0, BLOCK_C)
    offs = rows[:, None] * C + cols[None, :]
    mask = (rows < R)[:, None] & (cols < C)[None, :]
    whole = False  # in a matrix, a mask costs nothing: accesses are narrow if the rows are odd
    if BLOCK_R == 1:  # a long row
        whole = first_c + BLOCK_C <= C

    x = load_tile(x_ptr + offs, mask, whole).to(tl.float32)
    bias = load_tile(bias_ptr + cols, cols < C, whole).to(tl.float32)

    y = relu(x + bias[None, :]) * scale

    store_tile(out_ptr + offs, y.to(out_ptr.dtype.element_ty), mask, whole)


def fused_add_relu_mul(x: torch.Tensor, bias: torch.Tensor, scale: float) -> torch.Tensor:
    """Returns relu(x + bias) * scale, for a bias like ``x`` or with one element per column.

    Raises:
        TypeError: an argument is not a tensor of a supported dtype, the dtypes differ, or scale
            is not a number.
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

    # A bias with the shape of x is handled as a vector: that of a matrix with one long row.
    C = bias.numel()
    R = x.numel() // C
    block = BLOCK // x.element_size()
    block_c = min(triton.next_power_of_2(C), block if R == 1 else 128)
    block_r = block // block_c
    grid = (triton.cdiv(R, block_r) * triton.cdiv(C, block_c),)
    add_relu_mul_kernel[grid](
        x, bias, out, R, C, float(scale), BLOCK_C=block_c, BLOCK_R=block_r,
        ONE_ROW=R == 1, num_warps=2 if R == 1 else 4)
    return out


# ---------------------------------------------------------------------------------------------
# A product and what comes after it


@triton.jit
def grouped_pid(pid, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    """Returns the tile of program ``pid``: down GROUP_M rows of tiles first, then across."""
    first_pid_m = pid // (GROUP_M * num_pid_n) * GROUP_M
    group_height = min(num_pid_m - first_pid_m, GROUP_M)  # the last group may be lower
    local = pid % (GROUP_M * num_pid_n)
    return first_pid_m + local % group_height, local // group_height


@triton.jit
def finished(acc, b_ptr, offs_n, in_n, ACT: tl.constexpr):
    """Returns act(acc + b) for columns offs_n; b_ptr may be None."""
    if b_ptr is not None:
        acc += tl.load(b_ptr + offs_n, mask=in_n, other=0.0).to(tl.float32)[None, :]
    if ACT == "relu":
        acc = relu(acc)
    elif ACT == "gelu":
        acc = gelu(acc)
    elif ACT == "silu":
        acc = silu(acc)
    return acc


@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr,  # [M, K], [N, K], [N] or None, and contiguous [M, N]
    x_desc, w_desc, out_desc,      # descriptors of x, w and half a tile of out, or None
    stride_xm, stride_xk,          # elements between rows, and between columns
    stride_wn, stride_wk,
    M, N, K,
    ACT: tl.constexpr,             # one of ACTIVATIONS
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    DESCRIBED: tl.constexpr,       # loads tiles by TMA, with zeros out of bounds
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

    # Advances pointers; computing them in each step would cost registers and time.
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk
    w_ptrs = w_ptr + offs_k[:, None] * stride_wk + offs_n[None, :] * stride_wn
    x_step = tl.cast(BLOCK_K, tl.int64) * stride_xk
    w_step = tl.cast(BLOCK_K, tl.int64) * stride_wk

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        if DESCRIBED:
            x = x_desc.load([pid_m * BLOCK_M, step * BLOCK_K])
            w = w_desc.load([pid_n * BLOCK_N, step * BLOCK_K]).T
        else:
            in_k = offs_k < K - step * BLOCK_K
            x = tl.load(x_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0)
            w = tl.load(w_ptrs, mask=in_k[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")  # no TF32; no effect in 16 bits
        x_ptrs += x_step
        w_ptrs += w_step

    # Epilogue: the sums stay in registers, in float32.
    if out_desc is not None:  # two halves, each with half the registers and shared memory
        HALF: tl.constexpr = BLOCK_N // 2
        halves = acc.reshape(BLOCK_M, 2, HALF).permute(0, 2, 1).split()
        for half in tl.static_range(2):
            first = pid_n * BLOCK_N + half * HALF
            cols = first + tl.arange(0, HALF)
            y = finished(halves[half], b_ptr, cols, cols < N, ACT)
            out_desc.store([pid_m * BLOCK_M, first], y.to(out_desc.dtype))
    else:
        y = finished(acc, b_ptr, offs_n, in_n, ACT)
        out_ptrs = out_ptr + offs_m[:, None] * N + offs_n[None, :]
        tl.store(out_ptrs, y.to(out_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


def linear_bias_act(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None,
    act: Literal["none", "relu", "gelu", "silu"] = "none",
) -> torch.Tensor:
    """Returns act(x @ w.T + b) for x (M, K), w (N, K) and b (N,) or None; GELU uses erf.

    Raises:
        TypeError: an argument is not a tensor of a supported dtype, the dtypes differ, or act
            is not a str.
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
    num_stages = 3
    described = (x.dtype != torch.float32 and min(M, N) >= LARGE and on_hopper()
                 and is_described(x) and is_described(w))
    wide = described and K >= LONG_SUMS and is_described(out)
    if wide:
        block_n, num_warps, num_stages = 2 * block_n, 8, 4
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    linear_kernel[grid](
        x, w, None if b is None else b.contiguous(), out,
        TensorDescriptor.from_tensor(x, [block_m, block_k]) if described else None,
        TensorDescriptor.from_tensor(w, [block_n, block_k]) if described else None,
        TensorDescriptor.from_tensor(out, [block_m, block_n // 2]) if wide else None,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), M, N, K, ACT=act,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8, DESCRIBED=described,
        num_warps=num_warps, num_stages=num_stages,
    )
    return out


def is_described(x: torch.Tensor) -> bool:
    """Whether TMA can load x: contiguous rows, address and row stride multiples of 16 bytes."""
    return x.numel() > 0 and x.stride(1) == 1 and x.data_ptr() % 16 == 0 and (
        x.stride(0) > 0 and x.stride(0) * x.element_size() % 16 == 0)


def on_hopper() -> bool:
    """Whether the GPU is a Hopper GPU, for which the tiles were tuned; True without a GPU."""
    try:
        return triton.runtime.driver.active.get_current_target().arch == 90
    except RuntimeError:
        return True


def tile_of(dtype: torch.dtype) -> tuple[int, int, int, int]:
    """Returns BLOCK_M, BLOCK_N, BLOCK_K and warps of a product.

    float32 without TF32 uses no tensor cores, and only Hopper's read operands from shared memory.
    """
    if dtype == torch.float32:
        return 128, 64, 16, 8
    return (BLOCK_M, BLOCK_N, BLOCK_K, 4) if on_hopper() else (BLOCK_M, BLOCK_N, BLOCK_K // 2, 8)


# ---------------------------------------------------------------------------------------------
# Rows, and what comes after them


@triton.jit
def layer_norm_gelu_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr,  # [R, C], [C], [C], and contiguous [R, C]
    C,
    stride_x,                              # elements between rows
    eps,
    ALIGN: tl.constexpr,                   # power of two that divides C and stride_x
    BLOCK_C: tl.constexpr,                 # power of two >= C
):
    """out[r] = gelu((x[r] - mean) * rstd * weight + bias). One program owns row r.

    Moves 4 * R * C * itemsize bytes, of which weight and bias come from the caches.
    """
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    cols = tl.arange(0, BLOCK_C)
    # Without these hints, only multiples of 16 columns are loaded 16 bytes at a time.
    mask = tl.max_constancy(cols < C, ALIGN)
    x_start, out_start = tl.multiple_of(row * stride_x, ALIGN), tl.multiple_of(row * C, ALIGN)
    x = tl.load(x_ptr + x_start + cols, mask=mask, other=0.0).to(tl.float32)

    mean = tl.sum(x, axis=0) / C
    centered = tl.where(mask, x - mean, 0.0)  # padding would contribute mean**2
    rstd = 1.0 / tl.sqrt(tl.sum(centered * centered, axis=0) / C + eps)

    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    y = gelu(centered * rstd * weight + bias)

    tl.store(out_ptr + out_start + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm_gelu(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Returns GELU (with erf) of the normalized rows of ``x`` (R, C); weight and bias are (C,).

    Raises:
        TypeError: an argument is not a tensor of a supported dtype, the dtypes differ, or eps
            is not a number.
        ValueError: a shape does not fit, C is not 1 to ``MAX_COLUMNS``, the devices differ, or eps
            is not above 0.
    """
    check_rows(x, "weight", weight, "bias", bias, eps, MAX_COLUMNS)
    if x.stride(1) != 1:
        x = x.contiguous()  # the kernel takes a row stride only
    R, C = x.shape
    out = torch.empty((R, C), dtype=x.dtype, device=x.device)
    if R:
        block_c = triton.next_power_of_2(C)
        num_warps = 4 if block_c <= 2048 else 8 if block_c <= 8192 else 16
        layer_norm_gelu_kernel[(R,)](
            x, weight.contiguous(), bias.contiguous(), out, C, x.stride(0), float(eps),
            ALIGN=math.gcd(16, C, x.stride(0)), BLOCK_C=block_c, num_warps=num_warps,
        )
    return out


# ---------------------------------------------------------------------------------------------
# A product and what comes before it


@triton.jit
def layer_norm_linear_kernel(
    x_ptr, ln_w_ptr, ln_b_ptr,  # [M, K], [K], [K]
    w_ptr, b_ptr, out_ptr,      # [N, K], [N] or None, and [M, N] without gaps
    stride_xm, stride_xk,       # elements between rows, and between columns
    stride_wn, stride_wk,
    M, N, K,
    eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """out = (layer_norm(x) * ln_w + ln_b) @ w.T + b. One program owns every num_programs(1)-th tile
    of a row of tiles.

    It reads its rows once for their statistics, and once more for each of its tiles.
    """
    offs_m = tl.program_id(axis=0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    in_m = offs_m < M
    x_start = x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk
    x_step = tl.cast(BLOCK_K, tl.int64) * stride_xk
    w_step = tl.cast(BLOCK_K, tl.int64) * stride_wk

    # First pass: `mean` and `m2`, the sum of squared deviations, of the columns so far. Chan's
    # formula merges them with the mean and the squares of the next block.
    mean = tl.zeros((BLOCK_M,), dtype=tl.float32)
    m2 = tl.zeros((BLOCK_M,), dtype=tl.float32)
    x_ptrs = x_start
    for k in range(0, K, BLOCK_K):
        in_k = offs_k < K - k
        x = tl.load(x_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0).to(tl.float32)
        count = min(K - k, BLOCK_K)
        block_mean = tl.sum(x, axis=1) / count
        centered = tl.where(in_k[None, :], x - block_mean[:, None], 0.0)  # excludes padding
        apart = block_mean - mean
        share = count / (k + count)
        mean += apart * share
        m2 += tl.sum(centered * centered, axis=1) + apart * apart * share * k
        x_ptrs += x_step
    rstd = 1.0 / tl.sqrt(m2 / K + eps)

    for pid_n in range(tl.program_id(axis=1), tl.cdiv(N, BLOCK_N), tl.num_programs(axis=1)):
        offs_n = tl.cast(pid_n, tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
        in_n = offs_n < N

        # Second pass: normalizes tiles of x right before the product.
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


def layer_norm_linear(
    x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor, w: torch.Tensor,
    b: torch.Tensor | None, eps: float = 1e-5,
) -> torch.Tensor:
    """Returns layer_norm(x) @ w.T + b for x (M, K), ln_w and ln_b (K,), w (N, K), b (N,) or None.

    Raises:
        TypeError: an argument is not a tensor of a supported dtype, the dtypes differ, or eps
            is not a number.
        ValueError: a shape does not fit, K is not 1 to ``MAX_INPUTS``, the devices differ, or eps
            is not above 0.
    """
    check_rows(x, "ln_w", ln_w, "ln_b", ln_b, eps, MAX_INPUTS)
    check_linear(x, w, b)
    (M, K), N = x.shape, w.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out

    # Twice the warps of the product alone: normalized tiles need registers beside the accumulator,
    # and with 4 warps a thread spills 456 bytes.
    block_m, block_n, block_k, _ = tile_of(x.dtype)
    panels, tiles = triton.cdiv(M, block_m), triton.cdiv(N, block_n)
    # Two programs share an SM. Launches one wave of programs, since each further one would compute
    # the statistics of its rows again.
    shares = min(tiles, max(1, 2 * multiprocessors(x) // panels))
    layer_norm_linear_kernel[(panels, shares)](
        x, ln_w.contiguous(), ln_b.contiguous(), w, None if b is None else b.contiguous(), out,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), M, N, K, float(eps),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=8, num_stages=3,
    )
    return out


def multiprocessors(x: torch.Tensor) -> int:
    """Returns the number of SMs of x's GPU, or of an H100 if x is not on a GPU."""
    if x.is_cuda:
        return torch.cuda.get_device_properties(x.device).multi_processor_count
    return SM_COUNT


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
        TypeError: a count or n_bytes is not an int, or another argument is not a number.
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

    pass_us = n_bytes / (copy_gbps * 1e3)  # 1 GB/s is 1e3 bytes/us
    return ((passes_before * pass_us + launches_before * launch_us)
            / (passes_after * pass_us + launches_after * launch_us))


# ---------------------------------------------------------------------------------------------
# What is refused


def check_tensor(name: str, x: object, dims: int | None = None) -> None:
    """Refuses anything but a tensor of a supported dtype and, if given, number of dimensions."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in SUPPORTED:
        names = ", ".join(str(dtype) for dtype in SUPPORTED)
        raise TypeError(f"{name}: expected one of {names}, got {x.dtype}")
    if dims is not None and x.dim() != dims:
        raise ValueError(f"{name}: expected {dims} dimension{'s' * (dims > 1)}, got {x.dim()} in "
                         f"shape {tuple(x.shape)}")


def check_like(name: str, tensor: torch.Tensor, x: torch.Tensor) -> None:
    """Refuse a tensor of another dtype than x, or on another device."""
    if tensor.dtype != x.dtype:
        raise TypeError(f"{name}: expected {x.dtype} like x, got {tensor.dtype}")
    if tensor.device != x.device:
        raise ValueError(f"{name}: expected device {x.device} like x, got {tensor.device}")


def check_vector(name: str, vector: object, x: torch.Tensor, size: int, of: str) -> None:
    """Refuses anything but a vector of ``size`` elements with the dtype and device of x."""
    check_tensor(name, vector, 1)
    check_like(name, vector, x)
    if vector.shape[0] != size:
        raise ValueError(f"{name}: expected shape ({size},), one number for each {of}, got "
                         f"{tuple(vector.shape)}")


def check_linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> None:
    """Refuses anything but a layer: x (M, K), w (N, K), b (N,) or None."""
    check_tensor("x", x, 2)
    check_tensor("w", w, 2)
    check_like("w", w, x)
    if w.shape[1] != x.shape[1]:
        raise ValueError(f"w: expected {x.shape[1]} columns like x, got shape {tuple(w.shape)}")
    if b is not None:
        check_vector("b", b, x, w.shape[0], "row of w")


def check_rows(
    x: torch.Tensor, weight_name: str, weight: torch.Tensor, bias_name: str, bias: torch.Tensor,
    eps: float, most: int,
) -> None:
    """Refuse what cannot be normalized: x (R, C), two vectors (C,), eps above 0."""
    check_tensor("x", x, 2)
    if not 1 <= x.shape[1] <= most:
        raise ValueError(f"x: expected 1 to {most} columns, got {x.shape[1]}")
    check_vector(weight_name, weight, x, x.shape[1], "column of x")
    check_vector(bias_name, bias, x, x.shape[1], "column of x")
    check_number("eps", eps)
    if not eps > 0:
        raise ValueError(f"eps: expected a number above 0, got {eps}")


def check_number(name: str, value: object) -> None:
    """Refuses anything but a real number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}")


# ---------------------------------------------------------------------------------------------
# Going further: one program per SM
#
# With a tile per program, an SM idles while a tile's first loads are on their way and while its
# result is stored. A persistent program loads the next tile meanwhile, in one flattened loop over
# tiles and steps, as in track2/advanced-optimizations.


@triton.jit
def persistent_linear_kernel(
    x_desc, w_desc, b_ptr, out_desc,  # of x, w and half a tile of out; b has N elements
    M, N, K,
    ACT: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """out = act(x @ w.T + b). One program owns every num_programs-th tile."""
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        tile_m, tile_n = grouped_pid(tile, tiles_m, tiles_n, GROUP_M)
        row, col = tile_m * BLOCK_M, tile_n * BLOCK_N

        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(tl.cdiv(K, BLOCK_K)):
            x = x_desc.load([row, step * BLOCK_K])
            w = w_desc.load([col, step * BLOCK_K]).T
            acc = tl.dot(x, w, acc)

        # Two halves, each with half the registers and shared memory.
        HALF: tl.constexpr = BLOCK_N // 2
        halves = acc.reshape(BLOCK_M, 2, HALF).permute(0, 2, 1).split()
        for half in tl.static_range(2):
            first = col + half * HALF
            cols = first + tl.arange(0, HALF)
            y = finished(halves[half], b_ptr, cols, cols < N, ACT)
            out_desc.store([row, first], y.to(out_desc.dtype))


def linear_bias_act_persistent(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None,
    act: Literal["none", "relu", "gelu", "silu"] = "none",
) -> torch.Tensor:
    """Returns ``linear_bias_act(...)`` by a persistent kernel, for large layers on Hopper.

    Share of the speed of torch._addmm_activation, H100, float16 with ReLU: 8,192 x 1,024 into
    4,096, 91 % with a tile per program and 104 % here; 4,096 x 6,000 into 5,000, 83 % and 98 %.
    """
    check_linear(x, w, b)
    (M, K), N = x.shape, w.shape[0]
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    fits = min(M, N, K) >= LARGE and all(map(is_described, (x, w, y)))
    if x.dtype == torch.float32 or not fits or not on_hopper():
        return linear_bias_act(x, w, b, act)
    sides = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64}
    tiles = triton.cdiv(M, 128) * triton.cdiv(N, 256)
    # No more programs than the rounds need: 768 tiles take six rounds, by 128 programs as by 132.
    # With 128, SiLU of 4,096 x 5,000 into 6,000 takes 3 % less time on an H100. A fourth stage
    # would fit, and takes 6 % more.
    programs = triton.cdiv(tiles, triton.cdiv(tiles, multiprocessors(x)))
    persistent_linear_kernel[(programs,)](
        TensorDescriptor.from_tensor(x, [128, 64]), TensorDescriptor.from_tensor(w, [256, 64]),
        None if b is None else b.contiguous(), TensorDescriptor.from_tensor(y, [128, 128]),
        M, N, K, ACT=act, **sides, GROUP_M=8, num_warps=8, num_stages=3,
    )
    return y


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
