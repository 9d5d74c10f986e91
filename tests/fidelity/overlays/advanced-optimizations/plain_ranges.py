"""Right but different: loops by `range`, tiles in rows, a space by `product`."""

import itertools


def make_configs() -> list[triton.Config]:
    space = itertools.product((64, 128), (64, 256), (32, 64), (2, 3))
    other = {"GROUP_M": 1, "FLATTEN": False}
    return [triton.Config({"BLOCK_K": k, "BLOCK_N": n, "BLOCK_M": m, **other},
                          num_stages=stages, num_warps=8 if m * n > 8192 else 4)
            for m, n, k, stages in space]


def prune_configs(
    configs: list[triton.Config], named_args: dict[str, Any], *, smem_limit: int = SMEM_LIMIT,
    **kwargs: Any,
) -> list[triton.Config]:
    def bad(config):
        tile = config.kwargs
        for name in "MNK":
            if tile["BLOCK_" + name] >= 2 * max(1, named_args[name]) and tile["BLOCK_" + name] > 1:
                return True
        threads = config.num_warps * 32
        return (stage_bytes(config) > smem_limit
                or tile["BLOCK_M"] * tile["BLOCK_N"] > MAX_ACCUMULATORS * threads)

    kept = []
    for config in configs:
        if not bad(config):
            kept.append(config)
    if not kept:
        kept.append(sorted(configs, key=stage_bytes)[0])
    return kept


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
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    group_tiles = GROUP_M * num_pid_n
    steps = tl.cdiv(K, BLOCK_K)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    a_step = tl.cast(BLOCK_K, tl.int64) * stride_ak
    b_step = tl.cast(BLOCK_K, tl.int64) * stride_bk

    first, stride = tl.program_id(axis=0), tl.num_programs(axis=0)
    for tile in range(first, num_pid_m * num_pid_n, stride):
        first_pid_m = tile // group_tiles * GROUP_M
        group_height = min(num_pid_m - first_pid_m, GROUP_M)
        local = tile % group_tiles
        pid_m = first_pid_m + local % group_height
        pid_n = local // group_height

        offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
        in_m = offs_m < M
        in_n = offs_n < N
        a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
        b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)

        for step in range(steps):
            in_k = offs_k < K - step * BLOCK_K
            a = tl.load(a_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=in_k[:, None] & in_n[None, :], other=0.0)
            acc = tl.dot(a, b, acc)
            a_ptrs += a_step
            b_ptrs += b_step

        c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr,
    n_rows, n_cols,
    stride_x, stride_out,
    BLOCK_SIZE: tl.constexpr,
):
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        at = row.to(tl.int64)
        x = tl.load(x_ptr + at * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)

        numerator = tl.exp(x - tl.max(x, axis=0))
        y = numerator * (1.0 / tl.sum(numerator, axis=0))

        tl.store(out_ptr + at * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
