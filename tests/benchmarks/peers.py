"""What reference solutions are held against: PyTorch, torch.compile, Liger-Kernel, the tutorials.

Liger-Kernel takes part where it can be imported. The official tutorials are no package: the
algorithms of those about softmax, matrix multiplication, layer norm and attention are written here
anew.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

Peer = Callable[..., Any]


def compiled(function: Peer) -> Peer:
    """The function through torch.compile, made anew for the shapes of one row."""
    torch._dynamo.reset()
    return torch.compile(function, dynamic=False)


def liger(name: str, make: Callable[[Any], Peer]) -> dict[str, Peer]:
    """One peer from ``liger_kernel.ops.<name>``, or none."""
    with suppress(ImportError):
        return {"liger": make(importlib.import_module(f"liger_kernel.ops.{name}"))}
    return {}


# ---------------------------------------------------------------------------------------------
# Rows


@triton.jit
def fused_softmax_kernel(
    out_ptr, x_ptr, stride_x, stride_out, n_rows, n_cols,
    BLOCK_SIZE: tl.constexpr, num_stages: tl.constexpr,
):
    """Tutorial 02: persistent programs walk through the rows, in the dtype's own exp and division.
    """
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=num_stages):
        cols = tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        y = numerator / tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def tutorial_softmax(x: torch.Tensor) -> torch.Tensor:
    """With as many programs as its registers and shared memory let reside."""
    rows, columns = x.shape
    out = torch.empty_like(x)
    arguments = (out, x, x.stride(0), out.stride(0), rows, columns)
    options = {"BLOCK_SIZE": triton.next_power_of_2(columns), "num_stages": 4, "num_warps": 8}
    programs = _resident.get((columns, x.dtype, x.device.type))
    if programs is None:
        programs = _resident[columns, x.dtype, x.device.type] = _fitting(arguments, options)
    fused_softmax_kernel[(min(programs, rows),)](*arguments, **options)
    return out


_resident: dict[Any, int] = {}


def _fitting(arguments: tuple[Any, ...], options: dict[str, Any]) -> int:
    if arguments[0].device.type != "cuda":
        return 4
    gpu = torch.cuda.get_device_properties(0)
    made = fused_softmax_kernel.warmup(*arguments, **options, grid=(1,))
    made._init_handles()
    each = 65536 // max(1, made.n_regs * 32 * options["num_warps"])
    if made.metadata.shared:
        each = min(each, gpu.shared_memory_per_multiprocessor // made.metadata.shared)
    return gpu.multi_processor_count * max(1, each)


def softmax() -> dict[str, Peer]:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)

    return {"torch": function, "torch.compile": compiled(function), "tutorial02": tutorial_softmax,
            **liger("softmax", lambda ops: lambda x: ops._softmax_forward(x)[0])}


@triton.jit
def fused_layer_norm_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, N, eps, BLOCK_SIZE: tl.constexpr,
):
    """Tutorial 05: three walks through the row, in blocks."""
    row = tl.program_id(0)
    y_ptr += row * stride
    x_ptr += row * stride
    sums = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        sums += tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / N
    squares = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(w_ptr + cols, mask=mask)
        b = tl.load(b_ptr + cols, mask=mask)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, (x - mean) * rstd * w + b, mask=mask)


def tutorial_layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    y = torch.empty_like(x)
    mean, rstd = (x.new_empty(rows, dtype=torch.float32) for _ in range(2))
    block = min(65536 // x.element_size(), triton.next_power_of_2(columns))
    fused_layer_norm_kernel[(rows,)](
        x, y, weight, bias, mean, rstd, x.stride(0), columns, 1e-5, BLOCK_SIZE=block,
        num_warps=min(max(block // 256, 1), 8), num_ctas=1)
    return y


def layer_norm() -> dict[str, Peer]:
    def function(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (x.shape[1],), weight, bias, 1e-5)

    return {"torch": function, "torch.compile": compiled(function),
            "tutorial05": tutorial_layer_norm,
            **liger("layer_norm",
                    lambda ops: lambda x, w, b: ops.layer_norm_forward(x, w, b, 1e-5)[0])}


def add_rms_norm() -> dict[str, Peer]:
    def function(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
                 ) -> tuple[torch.Tensor, torch.Tensor]:
        s = x + residual
        return F.rms_norm(s, (s.shape[-1],), weight, 1e-6), s

    return {"torch": function, "torch.compile": compiled(function),
            **liger("fused_add_rms_norm", lambda ops: lambda x, r, w: (
                ops.fused_add_rms_norm_forward(x, r, w, 1e-6, 0.0, "llama")[:2]))}


# ---------------------------------------------------------------------------------------------
# Tiles


@triton.jit
def grouped_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """Tutorial 03: grouped order, wrapped indices instead of masks, pointers that advance."""
    pid = tl.program_id(0)
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP_M * num_pid_n) * GROUP_M
    high = min(num_pid_m - first, GROUP_M)
    pid_m = first + pid % (GROUP_M * num_pid_n) % high
    pid_n = pid % (GROUP_M * num_pid_n) // high
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * rows[:, None] + stride_cn * cols[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


def tutorial_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """In the configuration that its autotuner chose on an H200 for large float16."""
    (m, k), n = a.shape, b.shape[1]
    c = a.new_empty((m, n))
    grouped_matmul_kernel[(triton.cdiv(m, 128) * triton.cdiv(n, 256),)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8, num_stages=3, num_warps=8)
    return c


def matmul(dtype: torch.dtype) -> dict[str, Peer]:
    """In float32 cuBLAS is asked for all digits, as it does by default."""
    return {"torch": torch.matmul,
            **({"tutorial03": tutorial_matmul} if dtype != torch.float32 else {})}


def in_channels_last(function: Peer) -> Peer:
    """A convolution of inputs that are turned at its first call: that is not part of the work."""
    turned: list[torch.Tensor] = []

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        if not turned:
            turned.extend(t.contiguous(memory_format=torch.channels_last) for t in (x, weight))
        return function(*turned, bias)

    return run


def conv2d(stride: int, padding: int, dtype: torch.dtype) -> dict[str, Peer]:
    """cuDNN in both orders of memory; it rounds float32 factors to TF32 unless told otherwise."""
    def function(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, weight, bias, stride, padding)

    peers: dict[str, Peer] = {"torch": function,
                              "torch channels last": in_channels_last(function)}
    if dtype == torch.float32:
        def in_full(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                return F.conv2d(x, weight, bias, stride, padding)
        peers["torch without TF32"] = in_full
    return peers


# ---------------------------------------------------------------------------------------------
# Attention


@triton.jit
def swept(acc, total, largest, q, k_desc, v_desc, offset, start, stop, offs_m, scale,
          BLOCK_N: tl.constexpr, MASKED: tl.constexpr):
    """The inner loop of tutorial 06: keys from start to stop, of which a mask hides some."""
    offs_n = tl.arange(0, BLOCK_N)
    for first in range(start, stop, BLOCK_N):
        first = tl.multiple_of(first, BLOCK_N)
        scores = tl.dot(q, k_desc.load([offset + first, 0]).T)
        if MASKED:
            seen = offs_m[:, None] >= first + offs_n[None, :]
            scores = scores * scale + tl.where(seen, 0, -1.0e6)
            now = tl.maximum(largest, tl.max(scores, 1))
            scores -= now[:, None]
        else:
            now = tl.maximum(largest, tl.max(scores, 1) * scale)
            scores = scores * scale - now[:, None]
        weights = tl.exp2(scores)
        shrink = tl.exp2(largest - now)
        row = tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        acc = tl.dot(weights.to(q.dtype), v_desc.load([offset + first, 0]), acc)
        total = total * shrink + row
        largest = now
    return acc, total, largest


@triton.jit
def fused_attention_kernel(
    q_desc, k_desc, v_desc, out_desc, lse_ptr, n, scale, D: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """Tutorial 06: tiles by descriptors; keys before the diagonal first, then those on it."""
    tl.static_assert(BLOCK_N <= D)
    pid_m, offset = tl.program_id(0), tl.program_id(1) * n
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0  # the first shrinks by exp2(-inf)
    largest = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    scale *= 1.44269504  # 1 / ln(2)
    q = q_desc.load([offset + pid_m * BLOCK_M, 0])
    whole = pid_m * BLOCK_M if CAUSAL else n
    acc, total, largest = swept(acc, total, largest, q, k_desc, v_desc, offset, 0, whole, offs_m,
                                scale, BLOCK_N, False)
    if CAUSAL:
        acc, total, largest = swept(
            acc, total, largest, q, k_desc, v_desc, offset, tl.multiple_of(whole, BLOCK_M),
            whole + BLOCK_M, offs_m, scale, BLOCK_N, True)
    tl.store(lse_ptr + offset + offs_m, largest + tl.log2(total))
    out_desc.store([offset + pid_m * BLOCK_M, 0], (acc / total[:, None]).to(q.dtype))


def _blocks_of_descriptors(arguments: dict[str, Any]) -> None:
    for name, block in (("q_desc", "BLOCK_M"), ("out_desc", "BLOCK_M"), ("k_desc", "BLOCK_N"),
                        ("v_desc", "BLOCK_N")):
        arguments[name].block_shape = [arguments[block], arguments["D"]]


def _within_diagonal(configs: list[triton.Config], named: dict[str, Any], **sizes: Any
                     ) -> list[triton.Config]:
    return [one for one in configs if one.kwargs["BLOCK_M"] <= named["n"] and (
        not sizes["CAUSAL"] or one.kwargs["BLOCK_M"] >= one.kwargs["BLOCK_N"])]


tuned_attention_kernel = triton.autotune(
    configs=[triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_stages=stages, num_warps=warps,
                           pre_hook=_blocks_of_descriptors)
             for m in (64, 128) for n in (32, 64, 128) for stages in (2, 3, 4)
             for warps in (4, 8) if warps == 4 or m * n >= 128 * 128],  # its choice for Hopper
    key=["n", "D", "CAUSAL"], prune_configs_by={"early_config_prune": _within_diagonal},
)(fused_attention_kernel)


def tutorial_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool
                       ) -> torch.Tensor:
    """(B, H, S, D) without gaps, S a multiple of 128; tuned over the tutorial's own tiles."""
    batches, heads, n, width = q.shape
    out = torch.empty_like(q)
    lse = q.new_empty(q.shape[:3], dtype=torch.float32)
    tiles = [TensorDescriptor(x, [batches * heads * n, width], [width, 1], [1, 1])
             for x in (q, k, v, out)]

    def grid(meta: dict[str, Any]) -> tuple[int, int]:
        return triton.cdiv(n, meta["BLOCK_M"]), batches * heads

    tuned_attention_kernel[grid](*tiles, lse, n, 1 / math.sqrt(width), D=width, CAUSAL=causal)
    return out


# ---------------------------------------------------------------------------------------------
# Element by element


def function(eager: Peer, *, autotuned: bool = False) -> dict[str, Peer]:
    """A function of PyTorch, as it is and through torch.compile; ``autotuned``: at its best, too.
    """
    found: dict[str, Peer] = {"torch": eager, "torch.compile": compiled(eager)}
    if autotuned:
        found["torch.compile, max-autotune"] = torch.compile(
            eager, dynamic=False, mode="max-autotune-no-cudagraphs")
    return found


def gated() -> dict[str, Peer]:
    """x * sigmoid(gate); Liger's gate is x * sigmoid(x), which moves the same bytes."""
    return function(lambda x, gate: x * torch.sigmoid(gate))


def liger_swiglu() -> dict[str, Peer]:
    """silu(a) * b: another function of the same traffic, so only its time is comparable."""
    return {f"{who} swiglu": run for who, run in liger(
        "swiglu", lambda ops: lambda a, b: ops.swiglu_forward(a, b)[2]).items()}
