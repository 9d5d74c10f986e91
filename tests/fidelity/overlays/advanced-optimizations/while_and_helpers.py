"""Right but different: a `while` over tiles, the sum in a helper, `swizzle2d`."""


@triton.jit
def place_of(tile, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    down, across = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid_m, pid_n = tl.swizzle2d(tile // across, tile % across, down, across, GROUP_M)
    return pid_m, pid_n


@triton.jit
def product_of(a_ptrs, b_ptrs, a_step, b_step, in_m, in_n, K, acc, BLOCK_K: tl.constexpr):
    for left in range(K, 0, -BLOCK_K):
        in_k = tl.arange(0, BLOCK_K) < left
        a = tl.load(a_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_n[None, :] & in_k[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += a_step
        b_ptrs += b_step
    return acc


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
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    tile = tl.program_id(0)
    while tile < tiles:
        pid_m, pid_n = place_of(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = product_of(
            a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak,
            b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn,
            tl.cast(stride_ak, tl.int64) * BLOCK_K, tl.cast(stride_bk, tl.int64) * BLOCK_K,
            offs_m < M, offs_n < N, K, tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32), BLOCK_K)
        tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn,
                 acc.to(c_ptr.dtype.element_ty), mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])
        tile += tl.num_programs(0)
