"""Helpers with @triton.jit, a division that rounds down, printing filtered by the host."""


@triton.jit
def mine(n, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    return offs, offs < n


@triton.jit
def floor_divide(a, b):
    quotient = a // b
    return tl.where(quotient * b > a, quotient - 1, quotient)


@triton.jit
def clipped(x, lo, hi):
    return tl.where(x < lo, lo, tl.where(x > hi, hi, x))


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, s, BLOCK: tl.constexpr = 256):
    offs, mask = mine(n, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask).to(tl.float32) * s, mask=mask)


def scale(x: torch.Tensor, s: float) -> torch.Tensor:
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, out, n=x.numel(), s=s)
    return out


@triton.jit
def clip_add_kernel(x_ptr, y_ptr, out_ptr, n, lo, hi, BLOCK: tl.constexpr):
    offs, mask = mine(n, BLOCK)
    total = tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, clipped(total, lo, hi), mask=mask)


def clip_add(x: torch.Tensor, y: torch.Tensor, lo: float, hi: float) -> torch.Tensor:
    out = x.new_empty(x.shape)
    grid = (-(-x.numel() // 1024),)
    clip_add_kernel[grid](x, y, out, x.numel(), lo, hi, BLOCK=1024)
    return out


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs, mask = mine(n, BLOCK)
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.where((x > 0) | (x != x), x, 0.0), mask=mask)


@triton.jit
def avg_pool1d_kernel(
    x_ptr, out_ptr, n, n_out, k, stride, pad, BLOCK: tl.constexpr, SPAN: tl.constexpr
):
    first_window = tl.program_id(axis=0) * BLOCK
    windows = first_window + tl.arange(0, BLOCK)
    padded = first_window * stride + tl.arange(0, SPAN)
    mask = (padded >= pad) & (padded < n + pad)
    mask = mask & (padded < (first_window + BLOCK - 1) * stride + k)
    x = tl.load(x_ptr + padded - pad, mask=mask, other=0.0).to(tl.float32)
    first = floor_divide(padded - k, stride) + 1
    last = padded // stride
    inside = (first[None, :] <= windows[:, None]) & (windows[:, None] <= last[None, :])
    total = tl.sum(tl.where(inside, tl.broadcast_to(x[None, :], (BLOCK, SPAN)), 0.0), axis=1)
    tl.store(out_ptr + windows, total / k, mask=windows < n_out)


@triton.jit
def weighted_sum_kernel(
    p_ptr, v_ptr, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(axis=0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(axis=1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        ks = step * BLOCK_K + tl.arange(0, BLOCK_K)
        p = tl.load(p_ptr + rows[:, None] * K + ks, mask=(rows[:, None] < M) & (ks < K), other=0)
        v = tl.load(v_ptr + ks[:, None] * N + cols, mask=(ks[:, None] < K) & (cols < N), other=0)
        acc = tl.dot(p, v.to(p.dtype), acc, input_precision="tf32x3")
    mask = (rows[:, None] < M) & (cols < N)
    tl.store(out_ptr + rows[:, None] * N + cols, acc, mask=mask)


@triton.jit
def trace_kernel(x_ptr, n, program, BLOCK: tl.constexpr):
    offs, mask = mine(n, BLOCK)
    if tl.program_id(axis=0) != program:
        return
    tl.device_print("block:", tl.load(x_ptr + offs, mask=mask, other=0.0))
