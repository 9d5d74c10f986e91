"""Right but different: a program takes neighbouring tiles, one run of them; columns first."""


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
