"""Right but different: the order of tiles is that of tl.swizzle2d."""

PREDICT = {
    "panels_row_major": 37, "panels_group_8": 25, "panels_group_4": 40,
    "epilogue_bytes": 6.7e7, "warps": 12, "stages_a100": 0,
}


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
        acc = tl.dot(x, w.T, acc, input_precision="ieee")
    y = acc + bias[None, :]
    y = tl.where(y < 0, 0.0, y)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], y.to(out_ptr.dtype.element_ty),
             mask=(rows < M)[:, None] & (cols < N)[None, :])


def matmul_ws(a, b_t, *, warp_specialize=False):
    check_product(a, b_t)
    (M, K), N = a.shape, len(b_t)
    if M * N * K == 0:
        return torch.zeros((M, N), dtype=a.dtype, device=a.device)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    triton.set_allocator(lambda size, align, stream: torch.empty(
        size, dtype=torch.int8, device=a.device))
    product_kernel[(triton.cdiv(M, 128) * triton.cdiv(N, 128),)](
        a, b_t, c, a.stride(0), b_t.stride(0), M, N, K, BM=128, BN=128, BK=64,
        ROLES=warp_specialize)
    return c
