"""Right but different: a program takes several tiles of the product."""

from .down_and_up import grouped_pid


@triton.jit
def layer_kernel(x_ptr, w_ptr, b_ptr, out_ptr, xm, xk, wn, wk, bn, M, N, K,
                 BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr):
    pid_m, pid_n = grouped_pid(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP_M)
    rows = pid_m.to(tl.int64) * BM + tl.arange(0, BM)
    cols = pid_n.to(tl.int64) * BN + tl.arange(0, BN)
    bias = tl.load(b_ptr + cols * bn, mask=cols < N, other=0.0).to(tl.float32)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
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


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, am, bn, M, N, K, PROGRAMS: tl.constexpr,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ROLES: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [am, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [bn, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    across, down = tl.cdiv(N, BN), tl.cdiv(M, BM)
    for tile in range(tl.program_id(0), down * across, PROGRAMS):
        pid_m, pid_n = grouped_pid(tile, down, across, 8)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in tl.range(0, K, BK, warp_specialize=ROLES):
            acc = tl.dot(a_desc.load([pid_m * BM, k]), b_desc.load([pid_n * BN, k]).T, acc)
        c_desc.store([pid_m * BM, pid_n * BN], acc.to(tl.float16))


def matmul_ws(a, b_t, *, warp_specialize=False):
    check_product(a, b_t)
    (M, K), N = a.shape, len(b_t)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel() == 0:
        return c
    if K == 0:
        return c.fill_(0)
    triton.set_allocator(lambda size, align, stream: torch.empty(
        size, dtype=torch.int8, device=a.device))
    programs = min(132, triton.cdiv(M, 128) * triton.cdiv(N, 128))
    product_kernel[(programs,)](a, b_t, c, a.stride(0), b_t.stride(0), M, N, K, programs,
                                BM=128, BN=128, BK=64, ROLES=warp_specialize)
    return c


def use_warp_specialization(capability):
    return capability >= (9, 0) and capability[0] != 11
