"""Right but different: a helper makes descriptors, and steps are counted in columns."""


@triton.jit
def layer_kernel(x_ptr, w_ptr, b_ptr, out_ptr, xm, xk, wn, wk, bn, M, N, K,
                 BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr):
    pid_m, pid_n = grouped_pid(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP_M)
    rows = pid_m.to(tl.int64) * BM + tl.arange(0, BM)
    cols = pid_n.to(tl.int64) * BN + tl.arange(0, BN)
    bias = tl.load(b_ptr + cols * bn, mask=cols < N, other=0.0).to(tl.float32)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK):
        ks = k + tl.arange(0, BK).to(tl.int64)
        x = tl.load(x_ptr + rows[:, None] * xm + ks[None, :] * xk,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[:, None] * wn + ks[None, :] * wk,
                    mask=(cols < N)[:, None] & (ks < K)[None, :], other=0.0)
        acc = tl.dot(x, tl.trans(w), acc, input_precision="ieee")
    y = tl.maximum(acc + bias[None, :], 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], y.to(out_ptr.dtype.element_ty),
             mask=(rows < M)[:, None] & (cols < N)[None, :])


@triton.jit
def tiles_of(ptr, rows, cols, step, R: tl.constexpr, C: tl.constexpr):
    return tl.make_tensor_descriptor(ptr, [rows, cols], [step, 1], [R, C])


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, a_step, b_step,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ROLES: tl.constexpr):
    pid_m, pid_n = grouped_pid(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), 8)
    a_tiles = tiles_of(a_ptr, M, K, a_step, BM, BK)
    b_tiles = tiles_of(b_ptr, N, K, b_step, BN, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=ROLES):
        a = a_tiles.load([pid_m * BM, k])
        b = b_tiles.load([pid_n * BN, k])
        acc = tl.dot(a, b.T, acc)
    tiles_of(c_ptr, M, N, N, BM, BN).store([pid_m * BM, pid_n * BN], acc.to(tl.float16))


def matmul_ws(a, b_t, *, warp_specialize=False):
    check_product(a, b_t)
    (M, K), N = a.shape, len(b_t)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if 0 in c.shape or K == 0:
        return c.zero_() if c.numel() else c
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8,
                                                                 device="cuda"))
    product_kernel[(triton.cdiv(M, 128) * triton.cdiv(N, 128),)](
        a, b_t, c, M, N, K, a.stride(0), b_t.stride(0), BM=128, BN=128, BK=64,
        ROLES=bool(warp_specialize), num_warps=4, num_stages=3)
    return c
