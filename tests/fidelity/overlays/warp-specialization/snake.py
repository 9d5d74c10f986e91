"""Right but different: every other group is walked backwards, the sum begins with the bias."""


@triton.jit
def grouped_pid(pid, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    group = pid // (GROUP_M * num_pid_n)
    height = tl.minimum(num_pid_m - group * GROUP_M, GROUP_M)
    local = pid - group * GROUP_M * num_pid_n
    col = local // height
    back = (group % 2 == 1) & (GROUP_M > 1)  # every other group walks back
    col = tl.where(back, num_pid_n - 1 - col, col)
    return group * GROUP_M + local % height, col


@triton.jit
def layer_kernel(x_ptr, w_ptr, b_ptr, out_ptr, xm, xk, wn, wk, bn, M, N, K,
                 BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr):
    pid_m, pid_n = grouped_pid(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP_M)
    rows = pid_m.to(tl.int64) * BM + tl.arange(0, BM)
    cols = pid_n.to(tl.int64) * BN + tl.arange(0, BN)
    bias = tl.load(b_ptr + cols * bn, mask=cols < N, other=0.0).to(tl.float32)
    acc = tl.zeros((BM, BN), tl.float32) + bias[None, :]
    for k in tl.range(0, K, BK):
        ks = k + tl.arange(0, BK).to(tl.int64)
        x = tl.load(x_ptr + rows[:, None] * xm + ks[None, :] * xk,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[:, None] * wn + ks[None, :] * wk,
                    mask=(cols < N)[:, None] & (ks < K)[None, :], other=0.0)
        acc = tl.dot(x, w.T, acc, input_precision="ieee")
    y = tl.where(acc < 0, 0.0, acc)
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
        ROLES=warp_specialize, num_stages=4)
    return c


def use_warp_specialization(capability):
    return 9 <= capability[0] <= 10 or capability[0] == 12
