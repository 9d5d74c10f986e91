"""RMSNorm, GELU and a linear layer as one operator that torch.compile can trace, and its users.

    rmsnorm_gelu_linear(x, norm_w, w, b, eps) = gelu(x / rms(x) * norm_w) @ w.T + b
    rms(x)[m]                                 = sqrt(mean(x[m]^2) + eps)

The operator is one launch. A program owns a tile of the result and reads its rows of x twice: for
their mean squares, then for the product. The activations between the three steps stay in registers;
unfused, they would be stored and loaded twice.

Cost: 2 * M * N * K FLOP of the product. Rows of x are read twice per column of tiles, w once per
row of tiles, and the result is stored once. GELU is recomputed in each column of tiles, which
trades arithmetic for bytes and pays as long as there are few columns.

For the compiler, the operator is a named node. `triton_op` and `wrap_triton` make it transparent:
torch runs this function on fake tensors to learn the shape of the result, and Inductor finds the
launch inside it. No separate fake implementation can disagree with it.

Inputs: float32, float16 or bfloat16, one dtype for all; x (M, K) and w (N, K) with any strides.
Arithmetic is float32; the activations are rounded to the input's dtype once, before the product.

Source: RMSNorm: B. Zhang, R. Sennrich, arXiv:1910.07467; GELU: D. Hendrycks, K. Gimpel,
arXiv:1606.08415, in its exact form; PyTorch's documentation on user-defined Triton kernels.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton

BLOCK_M, BLOCK_N, BLOCK_K = 64, 128, 32
SUPPORTED = (torch.float32, torch.float16, torch.bfloat16)
LAUNCH_US = 10.0      # host time per launch
COMPILE_S = 20.0      # to compile a model
TUNE_S = 600.0        # to compile and tune its kernels
MAX_RECORDED = 16     # shapes for which CUDA graphs are recorded

DESIGN = {
    "rmsnorm_gelu_linear": {
        "flops": "2 * M * N * K",
        "bytes": "(M * K + N * K + K + N + M * N) * e",
        "bound": "compute",
        "grid": "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)",
        "tile": "BLOCK_M * BLOCK_N",
    },
}


# ---------------------------------------------------------------------------------------------
# Given


class Attention(torch.nn.Module):
    """Stand-in for the attention of a real block, without projections and heads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) -> the same shape."""
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)


@dataclass(frozen=True)
class ScheduleReport:
    """Times of a schedule of lengths: one number per length, in order."""

    first_ms: tuple[float, ...]   # first call with this length, including compilation
    steady_ms: tuple[float, ...]  # median of the timed calls after it
    compiles: int                 # graphs compiled during the whole schedule


@dataclass(frozen=True)
class Workload:
    """A workload in numbers of a profile, before anything is compiled."""

    launches: int         # launches per call
    kernel_us: float      # time of the median kernel
    library_share: float  # of GPU time: library matmuls, or reading weights
    shapes: int           # number of distinct input shapes
    calls: int            # calls before the process ends


# ---------------------------------------------------------------------------------------------
# The operator


@triton.jit
def rmsnorm_gelu_linear_kernel(
    x_ptr, norm_ptr, w_ptr, b_ptr, out_ptr,  # [M, K], [K], [N, K], [N], contiguous [M, N]
    stride_xm, stride_xk,                    # elements between rows, and between columns
    stride_wn, stride_wk,
    stride_norm, stride_b,
    M, N, K,
    eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """out = gelu(x / rms(x) * norm) @ w.T + b. One program owns BLOCK_M x BLOCK_N elements of out.

    It reads its rows of x twice and its rows of w once, K elements each, and stores its tile once.
    """
    pid = tl.program_id(axis=0)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    offs_m = (pid // num_pid_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # passes 2**31
    offs_n = (pid % num_pid_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)   # times a stride
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    in_m, in_n = offs_m < M, offs_n < N
    x_rows = x_ptr + offs_m[:, None] * stride_xm
    w_rows = w_ptr + offs_n[None, :] * stride_wn

    # First pass: the mean square needs the whole row before the first element can be scaled.
    squares = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + offs_k
        x = tl.load(x_rows + k[None, :] * stride_xk, mask=in_m[:, None] & (k < K)[None, :],
                    other=0.0).to(tl.float32)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=1) / K + eps)

    # Second pass: scale, activate, round to the dtype of w, multiply.
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
    """Returns gelu(rmsnorm(x) * norm_w) @ w.T + b, (M, N), for x (M, K), w (N, K), b (N,).

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
    wrap_triton(rmsnorm_gelu_linear_kernel)[grid](
        x, norm_w, w, b, out,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), norm_w.stride(0), b.stride(0),
        M, N, K, eps,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=8, num_stages=3,
    )
    return out


def check_arguments(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
                    eps: float) -> None:
    """Rejects invalid arguments by shape, dtype and device only: the compiler runs this, too.

    Raises:
        TypeError: a dtype is not supported, or not that of x.
        ValueError: shapes do not fit, devices differ, or eps is negative.
    """
    if x.dtype not in SUPPORTED:
        raise TypeError(f"x: expected {', '.join(map(str, SUPPORTED))}, got {x.dtype}")
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got {x.dim()} in shape {tuple(x.shape)}")
    if w.dim() != 2:
        raise ValueError(f"w: expected 2 dimensions, got {w.dim()} in shape {tuple(w.shape)}")
    wanted = {"norm_w": (norm_w, (x.shape[1],)), "w": (w, (w.shape[0], x.shape[1])),
              "b": (b, (w.shape[0],))}
    for name, (tensor, shape) in wanted.items():
        if tensor.dtype != x.dtype:
            raise TypeError(f"{name}: expected dtype {x.dtype}, got {tensor.dtype}")
        if tuple(tensor.shape) != shape:
            raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")
        if tensor.device != x.device:
            raise ValueError(f"{name}: expected device {x.device}, got {tensor.device}")
    if eps < 0:
        raise ValueError(f"eps: expected at least 0, got {eps}")


# ---------------------------------------------------------------------------------------------
# A model that uses it, compiled whole and by regions


class FusedMLP(torch.nn.Module):
    """The hot path of a block: one launch between two views."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.norm_w = torch.nn.Parameter(torch.ones(width))
        self.w = torch.nn.Parameter(torch.randn(width, width) / width**0.5)
        self.b = torch.nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = rmsnorm_gelu_linear(x.flatten(0, -2), self.norm_w, self.w, self.b, self.eps)
        return rows.view(x.shape)


class Block(torch.nn.Module):
    """h = x + attention(x); h + mlp(h), for (batch, length, width)."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.attention = Attention()
        self.mlp = FusedMLP(width, eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x + self.attention(x)
        return h + self.mlp(h)


def compile_whole(
    model: torch.nn.Sequential, backend: str | Callable[..., Any] = "inductor"
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns the model compiled as one graph for every length.

    ``fullgraph``: what would break the graph is an error, and not a second graph that nobody sees.
    """
    return torch.compile(model, backend=backend, fullgraph=True, dynamic=True)


def compile_regionally(
    model: torch.nn.Sequential, backend: str | Callable[..., Any] = "inductor"
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns the model with one compiled region that all blocks share; the rest runs eagerly.

    The region is a function of its weights: what differs between blocks are arguments, so that one
    graph serves all of them.
    """
    region = torch.compile(FusedMLP.forward, backend=backend, fullgraph=True, dynamic=True)

    def run(x: torch.Tensor) -> torch.Tensor:
        for block in model:
            h = x + block.attention(x)
            x = h + region(block.mlp, h)
        return x

    return run


# ---------------------------------------------------------------------------------------------
# The cost of compiling, and when it pays


def run_schedule(fn: Callable[[int], Any], lengths: Sequence[int], *, warmup: int = 0,
                 iterations: int = 4) -> ScheduleReport:
    """Calls ``fn(length)`` per length: once, ``warmup`` times untimed, ``iterations`` times.

    Raises:
        ValueError: there is no timed call, or a negative number of calls to warm up.
    """
    if iterations < 1:
        raise ValueError(f"iterations: expected at least 1, got {iterations}")
    if warmup < 0:
        raise ValueError(f"warmup: expected at least 0, got {warmup}")
    first, steady = [], []
    before = graphs_made()
    for length in lengths:
        first.append(milliseconds(fn, length))  # apart: compilation dominates it
        for _ in range(warmup):
            fn(length)
        steady.append(statistics.median(milliseconds(fn, length) for _ in range(iterations)))
    return ScheduleReport(tuple(first), tuple(steady), graphs_made() - before)


def milliseconds(fn: Callable[[int], Any], length: int) -> float:
    """Returns the time of one call, until the GPU, if any, has finished."""
    synchronize()
    began = time.perf_counter()
    fn(length)
    synchronize()
    return 1e3 * (time.perf_counter() - began)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()  # a launch returns before the kernel has run


def graphs_made() -> int:
    """Returns how many graphs the compiler has made in this process so far."""
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def keep_compiled_in(folder: str | Path) -> dict[str, str]:
    """Makes Inductor and Triton cache compiled code in ``folder``; returns the variables set."""
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(folder),
                 "TRITON_CACHE_DIR": str(Path(folder) / "triton")}
    os.environ.update(variables)
    return variables


def choose_mode(
    workload: Workload,
) -> Literal["eager", "default", "reduce-overhead", "max-autotune"]:
    """Returns the cheapest mode that removes the bottleneck, if that pays for compiling."""
    gpu_s = workload.calls * workload.launches * workload.kernel_us / 1e6
    host_s = workload.calls * workload.launches * LAUNCH_US / 1e6
    to_win_s = max(gpu_s, host_s) * (1 - workload.library_share)  # library kernels do not change
    if to_win_s < COMPILE_S or workload.library_share >= 0.9:
        return "eager"
    if workload.shapes > MAX_RECORDED:
        return "default"  # with dynamic shapes; a CUDA graph has one shape
    if host_s > gpu_s:
        return "reduce-overhead"  # the GPU waits for the host
    return "max-autotune" if to_win_s > 100 * TUNE_S else "default"


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
