"""A tuned, persistent matrix product, a persistent softmax and a tuned kernel that works in place.

    c[m, n] = sum_k a[m, k] * b[k, n]      out[m] = softmax(x[m])      x[m, :] *= s[m]

A search space has tiles with their stages and warps; pruning drops configurations that cannot run
or that mask most elements, before anything is compiled. The product and the softmax are persistent:
a given number of programs starts, and each takes one piece of work after another. If tensor
descriptors can describe the matrices, TMA copies the tiles of the product; otherwise threads load
them.

Cost: the product loads A once per column of tiles and B once per row of tiles, for 2 * M * N * K
FLOP. Softmax and scaling load and store each element once.

Precision: products are summed in float32 and rounded once, at the store. Softmax and scaling
compute in float32.

Source: persistent loops over tiles and `flatten` are from the ninth tutorial in Triton's
documentation, the grouped order of tiles from the third. The documentation of `triton.autotune`
warns that trials act on the caller's tensors.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

SMEM_LIMIT = 232_448  # bytes of shared memory per program on an H100 or H200
MAX_ACCUMULATORS = 128  # per thread, which has 255 registers
LARGE = 512  # sides from which on copies into aligned rows pay
SM_COUNT = 132  # SMs of an H100 or H200; used if no GPU is present
MAX_COLUMNS = 65_536  # of softmax; as float32 they fill the registers of an SM
REGISTERS, WARPS = 65_536, 64  # per SM

PREDICT = {
    "visits": 8,  # 5, 137, 269, ..., 929
    "waves": 4,  # 32 * 16 tiles on 132 SMs are 3.88
    "last_wave": 116 / 132,  # 512 - 3 * 132 tiles
    "stage_bytes": 3 * (128 + 256) * 64 * 2,
    "accumulators": 128 * 256 // (32 * 8),
    "power": 5,  # four trials and the call itself
}


# ---------------------------------------------------------------------------------------------
# A search space


def make_configs() -> list[triton.Config]:
    """Returns tiles of the product with their stages and warps, those that often win first."""
    configs = []
    for block_m, block_n, block_k in itertools.product((128, 64), (256, 128, 64), (64, 32)):
        # Short steps need more stages to hide the same latency, and are slower when flattened:
        # relative to torch.matmul at 4,096 on an H200, pointer tiles of 128 x 256 x 32 reach 76 %
        # with and 85 % without, 128 x 128 x 64 66 % and 61 %.
        stages = 3 if block_k == 64 else 4
        variants = [(stages, 8)]  # stages and GROUP_M
        if (block_m, block_n, block_k) == (128, 256, 64):
            # With descriptors on an H200, 8,192 x 512 by 512 x 8,192 is 2 % faster with a fourth
            # stage, and 4,096 x 6,000 by 6,000 x 5,000 5 % faster in groups of 2 rows.
            variants += [(4, 8), (4, 2)]
        for stages, group_m in variants:
            tile = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k,
                    "GROUP_M": group_m, "FLATTEN": block_k == 64}
            warps = 8 if block_m * block_n >= 128 * 128 else 4
            configs.append(triton.Config(
                tile, num_stages=stages, num_warps=warps, pre_hook=set_blocks))
    return configs


def set_blocks(named_args: dict[str, Any]) -> None:
    """Gives the descriptors of a launch, if any, the blocks of its configuration."""
    if named_args["a_desc"] is not None:
        rows, columns, depth = (named_args[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
        named_args["a_desc"].block_shape = [rows, depth]
        named_args["b_desc"].block_shape = [depth, columns]
        named_args["c_desc"].block_shape = [rows, columns // 2]


def prune_configs(
    configs: list[triton.Config], named_args: dict[str, Any], *, smem_limit: int = SMEM_LIMIT,
    **kwargs: Any,
) -> list[triton.Config]:
    """Returns the ``configs`` that are worth a trial for this problem, in their order.

    Drops tiles with a side longer than the next power of two of the matrix side, tiles whose stages
    need more than ``smem_limit`` bytes for 2-byte elements, and tiles of which a thread would hold
    more than ``MAX_ACCUMULATORS`` accumulators. If none is left, returns the one that needs the
    least shared memory, and of several the first.

    Args:
        configs: with BLOCK_M, BLOCK_N and BLOCK_K among their kwargs.
        named_args: the kernel's arguments by name, including M, N and K.
        smem_limit: bytes of shared memory available to a program.
        kwargs: further arguments from Triton: grid, meta-parameters, launch options.
    """
    sizes = [triton.next_power_of_2(named_args[name]) for name in ("M", "N", "K")]
    kept = [
        config for config in configs
        if all(side <= size for side, size in zip(sides_of(config), sizes, strict=True))
        and stage_bytes(config) <= smem_limit
        and accumulators(config) <= MAX_ACCUMULATORS
    ]
    return kept or [min(configs, key=stage_bytes)]


def sides_of(config: triton.Config) -> tuple[int, int, int]:
    """Returns rows, columns and depth of the tile."""
    return config.kwargs["BLOCK_M"], config.kwargs["BLOCK_N"], config.kwargs["BLOCK_K"]


def stage_bytes(config: triton.Config) -> int:
    """Returns the shared memory of all stages: tiles of A and B with 2-byte elements."""
    block_m, block_n, block_k = sides_of(config)
    return config.num_stages * (block_m + block_n) * block_k * 2


def accumulators(config: triton.Config) -> int:
    """Returns the accumulators that each thread holds in registers."""
    block_m, block_n, _ = sides_of(config)
    return block_m * block_n // (32 * config.num_warps)


# ---------------------------------------------------------------------------------------------
# The matrix product


@triton.autotune(
    configs=make_configs(),
    key=["M", "N", "K", "DESCRIBED"],
    prune_configs_by={"early_config_prune": prune_configs},
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # in elements: from row to row, from column to column
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    a_desc, b_desc, c_desc,   # descriptors of a, b and half a tile of c, or None
    BLOCK_M: tl.constexpr,    # rows of a tile of C, a power of two like the next two
    BLOCK_N: tl.constexpr,    # columns of a tile of C
    BLOCK_K: tl.constexpr,    # columns of A and rows of B per step
    GROUP_M: tl.constexpr,    # rows of tiles per group of the tile order
    FLATTEN: tl.constexpr,    # whether tiles and steps form one loop
    DESCRIBED: tl.constexpr,  # whether descriptors fit: see `is_described`
):
    """c[m, n] = sum_k a[m, k] * b[k, n]. One program owns every num_programs-th tile of c.

    Per tile, it loads (BLOCK_M + BLOCK_N) * K elements and stores BLOCK_M * BLOCK_N.
    """
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    group_tiles = GROUP_M * num_pid_n
    steps = tl.cdiv(K, BLOCK_K)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    a_step = tl.cast(BLOCK_K, tl.int64) * stride_ak  # in a transposed view that passes 2**31
    b_step = tl.cast(BLOCK_K, tl.int64) * stride_bk
    HALF: tl.constexpr = BLOCK_N // 2

    # In one flattened loop, the first loads of a tile are in flight while the last products of the
    # previous tile are computed; in exchange, each step branches on whether it ends a tile.
    first, stride = tl.program_id(axis=0), tl.num_programs(axis=0)
    for tile in tl.range(first, num_pid_m * num_pid_n, stride, flatten=FLATTEN):
        first_pid_m = tile // group_tiles * GROUP_M
        group_height = min(num_pid_m - first_pid_m, GROUP_M)  # the last group may be lower
        local = tile % group_tiles
        pid_m = first_pid_m + local % group_height
        pid_n = local // group_height

        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)  # per tile

        if DESCRIBED:
            row, col = pid_m * BLOCK_M, pid_n * BLOCK_N
            for step in range(steps):
                a = a_desc.load([row, step * BLOCK_K])  # zeros beyond K
                b = b_desc.load([step * BLOCK_K, col])
                acc = tl.dot(a, b, acc)
            halves = acc.reshape(BLOCK_M, 2, HALF).permute(0, 2, 1).split()
            for half in tl.static_range(2):  # in half the shared memory, so that 4 stages fit
                c = halves[half].to(c_ptr.dtype.element_ty)
                c_desc.store([row, col + half * HALF], c)
        else:
            offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # * stride passes 2**31
            offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
            in_m = offs_m < M
            in_n = offs_n < N
            a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
            b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
            # Advancing pointers: recomputed from `step`, one operand is not pipelined.
            for step in range(steps):
                in_k = offs_k < K - step * BLOCK_K
                a = tl.load(a_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0)
                b = tl.load(b_ptrs, mask=in_k[:, None] & in_n[None, :], other=0.0)
                acc = tl.dot(a, b, acc)
                a_ptrs += a_step
                b_ptrs += b_step
            c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
            c = acc.to(c_ptr.dtype.element_ty)
            tl.store(c_ptrs, c, mask=in_m[:, None] & in_n[None, :])


def matmul_persistent(
    a: torch.Tensor, b: torch.Tensor, *, num_sms: int | None = None
) -> torch.Tensor:
    """Returns a @ b, computed by at most ``num_sms`` programs, as a new contiguous tensor.

    Args:
        a, b: matrices (M, K) and (K, N) of float16 or bfloat16, of any strides.
        num_sms: programs to start, if there are as many tiles; None for one per SM.

    Raises:
        TypeError: an argument is not a tensor, the dtypes are unsupported or differ, or ``num_sms``
            is not an int.
        ValueError: an argument is not a matrix, the inner sizes or devices differ, or
            ``num_sms`` is below 1.
    """
    check_matrices(a, b)
    check_count("num_sms", num_sms)
    M, K = a.shape
    N = b.shape[1]
    if M == 0 or N == 0 or K == 0:
        return torch.zeros((M, N), dtype=a.dtype, device=a.device)  # an empty sum is zero

    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if min(M, N, K) >= LARGE and has_tma(a):
        # In rows of no multiple of 16 bytes, threads move single elements. Copies with a gap after
        # each row cost little: on an H200, 4,097 x 4,101 by 4,101 x 4,099 takes 1.37 ms without
        # and 0.39 ms with them, and 1.04 ms in torch.matmul.
        a, b, c = (in_aligned_rows(matrix) for matrix in (a, b, c))
    programs = sm_count(a) if num_sms is None else num_sms

    def grid(meta: dict[str, Any]) -> tuple[int]:
        tiles = triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"])
        return (min(programs, tiles),)

    # Described before the launch: programs that create descriptors start later, by 3 % of 0.1 ms.
    described = has_tma(a) and all(is_described(matrix) for matrix in (a, b, c))
    descriptors = [TensorDescriptor.from_tensor(matrix, [1, 1]) if described else None
                   for matrix in (a, b, c)]  # `set_blocks` replaces the blocks
    matmul_kernel[grid](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        *descriptors, DESCRIBED=described,
    )
    return c.contiguous()


def in_aligned_rows(matrix: torch.Tensor) -> torch.Tensor:
    """Returns a matrix for descriptors: itself, or a copy with gaps after its rows."""
    if is_described(matrix):
        return matrix
    rows, columns = matrix.shape
    each = 16 // matrix.element_size()
    return matrix.new_empty((rows, triton.cdiv(columns, each) * each))[:, :columns].copy_(matrix)


def is_described(matrix: torch.Tensor) -> bool:
    """Returns whether a descriptor can describe a matrix: contiguous rows, aligned to 16 bytes."""
    step = matrix.stride(0) * matrix.element_size()
    return (matrix.stride(1) == 1 and step > 0 and step % 16 == 0
            and matrix.data_ptr() % 16 == 0)


def has_tma(x: torch.Tensor) -> bool:
    """Returns whether the GPU of x has TMA (Hopper or later); True if x is on the CPU."""
    return not x.is_cuda or torch.cuda.get_device_capability(x.device) >= (9, 0)


# ---------------------------------------------------------------------------------------------
# Softmax


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols], each row contiguous
    n_rows, n_cols,
    stride_x, stride_out,      # in elements, from row to row
    BLOCK_SIZE: tl.constexpr,  # elements per program, a power of two >= n_cols
):
    """out[m] = exp(x[m] - max(x[m])) / sum of it. One program owns every num_programs-th row.

    Moves 2 * n_rows * n_cols * itemsize bytes: each element is loaded once and stored once.
    """
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    for row in tl.range(tl.program_id(axis=0), n_rows, tl.num_programs(axis=0)):
        at = row.to(tl.int64)  # row * stride passes 2**31 in large matrices
        x = tl.load(x_ptr + at * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)

        numerator = tl.exp(x - tl.max(x, axis=0))
        y = numerator * (1.0 / tl.sum(numerator, axis=0))

        tl.store(out_ptr + at * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def persistent_softmax(x: torch.Tensor, *, num_programs: int | None = None) -> torch.Tensor:
    """Returns softmax over dim 1, by at most ``num_programs`` programs, as a contiguous tensor.

    Args:
        x: a matrix of float32, float16 or bfloat16 with at most ``MAX_COLUMNS`` columns.
        num_programs: programs to start, if there are as many rows; None for as many as the SMs
            hold at a time.

    Raises:
        TypeError: x is not a tensor, its dtype is unsupported, or ``num_programs`` is not an int.
        ValueError: x is not a matrix or too wide, or ``num_programs`` is below 1.
    """
    check_rows(x)
    check_count("num_programs", num_programs)
    if x.stride(1) != 1:
        x = x.contiguous()  # the kernel takes one stride, from row to row
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)  # contiguous for any strides of x
    if out.numel() == 0:
        return out

    block_size = triton.next_power_of_2(n_cols)
    num_warps = 16 if block_size > 32_768 else max(2, block_size // 1024)
    if num_programs is None:
        # Programs that share an SM hide each other's latency. A row needs about two registers per
        # element. Share of the copy bandwidth on an H200 with 4,096 floats per row: 42 % with one
        # program per SM, 72 % with two, 90 % with four, 92 % with eight.
        each = min(WARPS // num_warps, REGISTERS // (2 * block_size))
        num_programs = sm_count(x) * max(1, each)
    softmax_kernel[(min(num_programs, n_rows),)](
        x, out, n_rows, n_cols, x.stride(0), out.stride(0),
        BLOCK_SIZE=block_size, num_warps=num_warps,
    )
    return out


# ---------------------------------------------------------------------------------------------
# Scaling in place


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_SIZE": 512}, num_warps=4),
        triton.Config({"BLOCK_SIZE": 1024}, num_warps=4),
        triton.Config({"BLOCK_SIZE": 2048}, num_warps=8),
        triton.Config({"BLOCK_SIZE": 4096}, num_warps=8),
    ],
    key=["n_cols"],
    restore_value=["x_ptr"],  # every trial runs on the caller's x
)
@triton.jit
def scale_rows_kernel(
    x_ptr, s_ptr,              # [n_rows, n_cols] with any strides, [n_rows]
    n_cols,
    stride_xm, stride_xn, stride_s,
    BLOCK_SIZE: tl.constexpr,  # columns per program, a power of two
):
    """x[m, n] *= s[m]. One program owns BLOCK_SIZE columns of row m.

    Moves 2 * n_rows * n_cols * itemsize bytes, and one factor per program.
    """
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    cols = tl.program_id(axis=1).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    x_ptrs = x_ptr + row * stride_xm + cols * stride_xn
    x = tl.load(x_ptrs, mask=mask).to(tl.float32)
    s = tl.load(s_ptr + row * stride_s).to(tl.float32)

    tl.store(x_ptrs, (x * s).to(x_ptr.dtype.element_ty), mask=mask)


def scale_rows_(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Multiplies each row of ``x`` by its factor, in place; returns ``x`` itself.

    Args:
        x: a matrix (R, C) of float32, float16 or bfloat16, of any strides without overlap.
        s: R factors of the same dtype, of any stride.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: x is not a matrix, s is not a vector with an element per row, or the devices
            differ.
    """
    check_factors(x, s)
    if x.numel() == 0:
        return x
    n_rows, n_cols = x.shape

    def grid(meta: dict[str, Any]) -> tuple[int, int]:
        return n_rows, triton.cdiv(n_cols, meta["BLOCK_SIZE"])

    scale_rows_kernel[grid](x, s, n_cols, x.stride(0), x.stride(1), s.stride(0))
    return x


# ---------------------------------------------------------------------------------------------
# Helpers


def sm_count(x: torch.Tensor) -> int:
    """Returns the SMs of the GPU of x, or those of an H100 if x is on the CPU."""
    if x.is_cuda:
        return torch.cuda.get_device_properties(x.device).multi_processor_count
    return SM_COUNT


def check_count(name: str, count: int | None) -> None:
    """Refuses a number of programs that cannot be started.

    Raises:
        TypeError: it is neither None nor an int.
        ValueError: it is below 1.
    """
    if count is None:
        return
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{name}: expected an int or None, got {type(count).__name__}")
    if count < 1:
        raise ValueError(f"{name}: expected at least 1, got {count}")


def check_tensor(name: str, x: torch.Tensor, supported: tuple[torch.dtype, ...], dims: int) -> None:
    """Refuses arguments that are not a tensor of these dtypes with ``dims`` dimensions.

    Raises:
        TypeError: it is not a tensor, or of another dtype.
        ValueError: it has another number of dimensions.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in supported:
        names = ", ".join(str(dtype) for dtype in supported)
        raise TypeError(f"{name}: expected one of {names}, got {x.dtype}")
    if x.dim() != dims:
        raise ValueError(f"{name}: expected {dims} dimension{'s' * (dims > 1)}, got {x.dim()} in "
                         f"shape {tuple(x.shape)}")


def check_alike(name: str, x: torch.Tensor, other_name: str, other: torch.Tensor) -> None:
    """Refuses a tensor whose dtype or device differs from another one's.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the devices differ.
    """
    if x.dtype != other.dtype:
        raise TypeError(f"{name}: expected {other.dtype} like {other_name}, got {x.dtype}")
    if x.device != other.device:
        raise ValueError(f"{name}: expected device {other.device} like {other_name}, got "
                         f"{x.device}")


def check_matrices(a: torch.Tensor, b: torch.Tensor) -> None:
    """Refuses arguments outside the contract of ``matmul_persistent``."""
    check_tensor("a", a, (torch.float16, torch.bfloat16), 2)
    check_tensor("b", b, (torch.float16, torch.bfloat16), 2)
    if b.shape[0] != a.shape[1]:
        raise ValueError(f"b: expected {a.shape[1]} rows, as many as a has columns, got shape "
                         f"{tuple(b.shape)} for a of shape {tuple(a.shape)}")
    check_alike("b", b, "a", a)


def check_rows(x: torch.Tensor) -> None:
    """Refuses arguments outside the contract of ``persistent_softmax``."""
    check_tensor("x", x, (torch.float32, torch.float16, torch.bfloat16), 2)
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"x: expected at most {MAX_COLUMNS} columns, got {x.shape[1]}")


def check_factors(x: torch.Tensor, s: torch.Tensor) -> None:
    """Refuses arguments outside the contract of ``scale_rows_``."""
    supported = (torch.float32, torch.float16, torch.bfloat16)
    check_tensor("x", x, supported, 2)
    check_tensor("s", s, supported, 1)
    if s.shape[0] != x.shape[0]:
        raise ValueError(f"s: expected {x.shape[0]} factors, as many as x has rows, got shape "
                         f"{tuple(s.shape)} for x of shape {tuple(x.shape)}")
    check_alike("s", s, "x", x)


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
