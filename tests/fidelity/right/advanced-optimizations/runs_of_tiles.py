"""Right but different: a program takes neighbouring tiles, one run of them; columns first."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

SMEM_LIMIT = 232_448
MAX_ACCUMULATORS = 128
MULTIPROCESSORS = 132
MAX_COLUMNS = 65_536
REGISTERS, WARPS = 65_536, 64

PREDICT = {
    "visits": 8,
    "waves": 4,
    "last_wave": 116 / 132,
    "stage_bytes": 3 * (128 + 256) * 64 * 2,
    "accumulators": 128 * 256 // (32 * 8),
    "power": 5,
}


def make_configs() -> list[triton.Config]:
    configs = []
    for block_m in (128, 64):
        for block_n in (256, 128, 64):
            for block_k in (64, 32):
                stages = 3 if block_k == 64 else 4
                tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k,
                        "GROUP_M": 8, "FLATTEN": block_k == 64}
                warps = 8 if block_m * block_n >= 128 * 128 else 4
                configs.append(triton.Config(tile, num_stages=stages, num_warps=warps))
    return configs


def prune_configs(
    configs: list[triton.Config], named_args: dict[str, Any], *, smem_limit: int = SMEM_LIMIT,
    **kwargs: Any,
) -> list[triton.Config]:
    sizes = [triton.next_power_of_2(named_args[name]) for name in ("M", "N", "K")]
    kept = [
        config for config in configs
        if all(side <= size for side, size in zip(sides_of(config), sizes, strict=True))
        and stage_bytes(config) <= smem_limit
        and accumulators(config) <= MAX_ACCUMULATORS
    ]
    return kept or [min(configs, key=stage_bytes)]


def sides_of(config: triton.Config) -> tuple[int, int, int]:
    return config.kwargs["BLOCK_M"], config.kwargs["BLOCK_N"], config.kwargs["BLOCK_K"]


def stage_bytes(config: triton.Config) -> int:
    block_m, block_n, block_k = sides_of(config)
    return config.num_stages * (block_m + block_n) * block_k * 2


def accumulators(config: triton.Config) -> int:
    block_m, block_n, _ = sides_of(config)
    return block_m * block_n // (32 * config.num_warps)


@triton.autotune(
    configs=make_configs(),
    key=["M", "N", "K"],
    prune_configs_by={"early_config_prune": prune_configs},
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    FLATTEN: tl.constexpr,
):
    down, across = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    tiles, programs = down * across, tl.num_programs(0)
    each, rest = tiles // programs, tiles % programs
    pid = tl.program_id(0)
    start = pid * each + min(pid, rest)
    end = start + each
    if pid < rest:
        end += 1
    for tile in range(start, end):
        offs_m = (tile % down).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = (tile // down).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            offs_k = k + tl.arange(0, BLOCK_K).to(tl.int64)
            a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak,
                        mask=(offs_m < M)[:, None] & (offs_k < K)[None, :], other=0.0)
            b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn,
                        mask=(offs_k < K)[:, None] & (offs_n < N)[None, :], other=0.0)
            acc += tl.dot(a, b)
        tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn,
                 acc.to(c_ptr.dtype.element_ty), mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])


def matmul_persistent(
    a: torch.Tensor, b: torch.Tensor, *, num_sms: int | None = None
) -> torch.Tensor:
    check_matrices(a, b)
    check_count("num_sms", num_sms)
    M, K = a.shape
    N = b.shape[1]
    if M == 0 or N == 0 or K == 0:
        return torch.zeros((M, N), dtype=a.dtype, device=a.device)

    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    programs = multiprocessors(a) if num_sms is None else num_sms

    def grid(meta: dict[str, Any]) -> tuple[int]:
        tiles = triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"])
        return (min(programs, tiles),)

    matmul_kernel[grid](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
    )
    return c


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr,
    n_rows, n_cols,
    stride_x, stride_out,
    BLOCK_SIZE: tl.constexpr,
):
    cols = tl.arange(0, BLOCK_SIZE)
    each = tl.cdiv(n_rows, tl.num_programs(0))
    start = tl.program_id(0) * each
    for row in range(start, min(start + each, n_rows)):
        x = tl.load(x_ptr + row.to(tl.int64) * stride_x + cols, mask=cols < n_cols,
                    other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        y = numerator / tl.sum(numerator, axis=0)
        tl.store(out_ptr + row.to(tl.int64) * stride_out + cols, y.to(out_ptr.dtype.element_ty),
                 mask=cols < n_cols)


def persistent_softmax(x: torch.Tensor, *, num_programs: int | None = None) -> torch.Tensor:
    check_rows(x)
    check_count("num_programs", num_programs)
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    if out.numel() == 0:
        return out

    block_size = triton.next_power_of_2(n_cols)
    num_warps = 16 if block_size > 32_768 else max(2, block_size // 1024)
    if num_programs is None:
        each = min(WARPS // num_warps, REGISTERS // (2 * block_size))
        num_programs = multiprocessors(x) * max(1, each)
    softmax_kernel[(min(num_programs, n_rows),)](
        x, out, n_rows, n_cols, x.stride(0), out.stride(0),
        BLOCK_SIZE=block_size, num_warps=num_warps,
    )
    return out


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_SIZE": 512}, num_warps=4),
        triton.Config({"BLOCK_SIZE": 1024}, num_warps=4),
        triton.Config({"BLOCK_SIZE": 2048}, num_warps=8),
        triton.Config({"BLOCK_SIZE": 4096}, num_warps=8),
    ],
    key=["n_cols"],
    restore_value=["x_ptr"],
)
@triton.jit
def scale_rows_kernel(
    x_ptr, s_ptr,
    n_cols,
    stride_xm, stride_xn, stride_s,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.program_id(axis=1).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    x_ptrs = x_ptr + row * stride_xm + cols * stride_xn
    x = tl.load(x_ptrs, mask=mask).to(tl.float32)
    s = tl.load(s_ptr + row * stride_s).to(tl.float32)

    tl.store(x_ptrs, (x * s).to(x_ptr.dtype.element_ty), mask=mask)


def scale_rows_(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    check_factors(x, s)
    if x.numel() == 0:
        return x
    n_rows, n_cols = x.shape

    def grid(meta: dict[str, Any]) -> tuple[int, int]:
        return n_rows, triton.cdiv(n_cols, meta["BLOCK_SIZE"])

    scale_rows_kernel[grid](x, s, n_cols, x.stride(0), x.stride(1), s.stride(0))
    return x


def multiprocessors(x: torch.Tensor) -> int:
    if x.is_cuda:
        return torch.cuda.get_device_properties(x.device).multi_processor_count
    return MULTIPROCESSORS


def check_count(name: str, count: int | None) -> None:
    if count is None:
        return
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{name}: expected an int or None, got {type(count).__name__}")
    if count < 1:
        raise ValueError(f"{name}: expected at least 1, got {count}")


def check_tensor(name: str, x: torch.Tensor, supported: tuple[torch.dtype, ...], dims: int) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in supported:
        names = ", ".join(str(dtype) for dtype in supported)
        raise TypeError(f"{name}: expected one of {names}, got {x.dtype}")
    if x.dim() != dims:
        raise ValueError(f"{name}: expected {dims} dimension{'s' * (dims > 1)}, got {x.dim()} in "
                         f"shape {tuple(x.shape)}")


def check_alike(name: str, x: torch.Tensor, other_name: str, other: torch.Tensor) -> None:
    if x.dtype != other.dtype:
        raise TypeError(f"{name}: expected {other.dtype} like {other_name}, got {x.dtype}")
    if x.device != other.device:
        raise ValueError(f"{name}: expected device {other.device} like {other_name}, got "
                         f"{x.device}")


def check_matrices(a: torch.Tensor, b: torch.Tensor) -> None:
    check_tensor("a", a, (torch.float16, torch.bfloat16), 2)
    check_tensor("b", b, (torch.float16, torch.bfloat16), 2)
    if b.shape[0] != a.shape[1]:
        raise ValueError(f"b: expected {a.shape[1]} rows, as many as a has columns, got shape "
                         f"{tuple(b.shape)} for a of shape {tuple(a.shape)}")
    check_alike("b", b, "a", a)


def check_rows(x: torch.Tensor) -> None:
    check_tensor("x", x, (torch.float32, torch.float16, torch.bfloat16), 2)
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"x: expected at most {MAX_COLUMNS} columns, got {x.shape[1]}")


def check_factors(x: torch.Tensor, s: torch.Tensor) -> None:
    supported = (torch.float32, torch.float16, torch.bfloat16)
    check_tensor("x", x, supported, 2)
    check_tensor("s", s, supported, 1)
    if s.shape[0] != x.shape[0]:
        raise ValueError(f"s: expected {x.shape[0]} factors, as many as x has rows, got shape "
                         f"{tuple(s.shape)} for x of shape {tuple(x.shape)}")
    check_alike("s", s, "x", x)

