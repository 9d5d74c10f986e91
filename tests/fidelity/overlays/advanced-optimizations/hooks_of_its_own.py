"""Right but different: hooks keep x and bring it back; tiles of rows and columns."""


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
    for tile in tl.range(first, num_pid_m * num_pid_n, stride, flatten=FLATTEN):
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


def keep(args, reset_only=False):
    if not reset_only:
        keep.copy = args["x_ptr"].clone()


def bring_back(args, exception):
    args["x_ptr"].copy_(keep.copy)


@triton.autotune(
    configs=[triton.Config({"BLOCK_N": n, "BLOCK_M": m}, num_warps=w)
             for m, n, w in ((1, 256, 1), (1, 1024, 4), (4, 256, 4), (8, 512, 8), (2, 2048, 8))],
    key=["n_rows", "n_cols"], pre_hook=keep, post_hook=bring_back,
)
@triton.jit
def scale_rows_kernel(
    x_ptr, s_ptr, n_rows, n_cols, stride_xm, stride_xn, stride_s,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    ptrs = x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn
    s = tl.load(s_ptr + rows * stride_s, mask=rows < n_rows, other=0.0)
    tl.store(ptrs, tl.load(ptrs, mask=mask) * s[:, None], mask=mask)


def scale_rows_(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    check_factors(x, s)
    if x.numel() == 0:
        return x
    n_rows, n_cols = x.shape

    scale_rows_kernel[lambda meta: (triton.cdiv(n_rows, meta["BLOCK_M"]),
                                    triton.cdiv(n_cols, meta["BLOCK_N"]))](
        x, s, n_rows, n_cols, *x.stride(), *s.stride())
    return x
