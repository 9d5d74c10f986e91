"""Kernels that surveys are checked with."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride_m, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * stride_m + offs, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(out_ptr + row * stride_m + offs, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, sam, sbk, scm,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    per = GROUP * num_n
    g = pid // per
    first = g * GROUP
    size = min(num_m - first, GROUP)
    pid_m = first + (pid % per) % size
    pid_n = (pid % per) // size
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None].to(tl.int64) * sam + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None].to(tl.int64) * sbk + offs_n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * sbk
    c_ptrs = c_ptr + offs_m[:, None].to(tl.int64) * scm + offs_n[None, :]
    tl.store(c_ptrs, acc.to(tl.float16), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    mask = (m[:, None] < M) & (n[None, :] < N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=mask)
    tl.store(out_ptr + n[None, :] * M + m[:, None], x, mask=mask)


@triton.jit
def gather_kernel(idx_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    idx = tl.load(idx_ptr + offs, mask=offs < n, other=0)
    tl.store(out_ptr + offs, tl.load(table_ptr + idx, mask=offs < n), mask=offs < n)


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=offs < n)


@triton.jit
def softmax3_kernel(x_ptr, out_ptr, stride_m, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride_m + offs, mask=offs < n_cols, other=-float("inf"))
        top = tl.maximum(top, x)
    m = tl.max(top, axis=0)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride_m + offs, mask=offs < n_cols, other=-float("inf"))
        total += tl.exp(x - m)
    s = tl.sum(total, axis=0)
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride_m + offs, mask=offs < n_cols, other=-float("inf"))
        tl.store(out_ptr + row * stride_m + offs, tl.exp(x - m) / s, mask=offs < n_cols)


@triton.jit
def layernorm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, stride_m, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * stride_m + offs, mask=mask, other=0.0)
    w = tl.load(w_ptr + offs, mask=mask)
    b = tl.load(b_ptr + offs, mask=mask)
    mean = tl.sum(x, axis=0) / n_cols
    c = tl.where(mask, x - mean, 0.0)
    var = tl.sum(c * c, axis=0) / n_cols
    tl.store(out_ptr + row * stride_m + offs, c * tl.rsqrt(var) * w + b, mask=mask)


@triton.jit
def colsoftmax_kernel(x_ptr, out_ptr, n_rows, stride_m, BLOCK_SIZE: tl.constexpr):
    col = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE).to(tl.int64) * stride_m + col
    mask = tl.arange(0, BLOCK_SIZE) < n_rows
    x = tl.load(x_ptr + offs, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + offs, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def strided_kernel(x_ptr, out_ptr, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs * STRIDE, mask=offs < n), mask=offs < n)


@triton.jit
def early_kernel(x_ptr, out_ptr, n, used, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= used:
        return
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


@triton.jit
def causal_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(pid + 1):
        total += tl.load(x_ptr + i * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr + pid * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def lock_kernel(lock_ptr, out_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    while tl.load(lock_ptr, volatile=True) != pid:
        pass
    tl.store(out_ptr + pid, pid)
    tl.atomic_xchg(lock_ptr, pid + 1)


@triton.jit
def iota_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, offs.to(tl.int64), mask=offs < n)


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0), axis=0))


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, T, sh, CAUSAL: tl.constexpr,
                     BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    pid = tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    offs_m = pid * BM + tl.arange(0, BM)
    offs_n = tl.arange(0, BN)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + h * sh + offs_m[:, None] * D + d[None, :])
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    hi = (pid + 1) * BM if CAUSAL else T
    for start in range(0, hi, BN):
        k = tl.load(k_ptr + h * sh + (start + offs_n)[:, None] * D + d[None, :])
        s = tl.dot(q, tl.trans(k))
        s = tl.where(offs_m[:, None] >= (start + offs_n)[None, :], s, -float("inf"))
        mn = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - mn[:, None])
        a = tl.exp(m - mn)
        total = total * a + tl.sum(p, 1)
        v = tl.load(v_ptr + h * sh + (start + offs_n)[:, None] * D + d[None, :])
        acc = acc * a[:, None] + tl.dot(p.to(tl.float16), v)
        m = mn
    acc = acc / total[:, None]
    tl.store(o_ptr + h * sh + offs_m[:, None] * D + d[None, :], acc.to(tl.float16))


@triton.jit
def walk_kernel(x_ptr, out_ptr, n):
    i = 0
    total = 0.0
    while i < n:
        total += tl.load(x_ptr + tl.program_id(0) * n + i)
        i += 1
    tl.store(out_ptr + tl.program_id(0), total)


@triton.jit
def noting_kernel(x_ptr, out_ptr, note_ptr, n_cols, BLOCK: tl.constexpr):
    """Copies rows in steps; the first program also notes how long they are."""
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, n_cols, BLOCK):
        offs = row * n_cols + start + tl.arange(0, BLOCK)
        tl.store(out_ptr + offs, tl.load(x_ptr + offs))
    if row == 0:
        tl.store(note_ptr, n_cols)
