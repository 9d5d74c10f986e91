"""Right but different: wide tiles; sums of differences from the first value that a lane saw."""


@triton.jit
def wide_kernel(x_ptr, out_ptr, M, K, sm, sk, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr):
    pid = tl.program_id(0)
    across = tl.cdiv(M, BN)
    i = (pid // across).to(tl.int64) * BM + tl.arange(0, BM)
    j = (pid % across).to(tl.int64) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK).to(tl.int64)
    acc = tl.zeros((BM, BN), tl.float32)
    left = K
    while left > 0:
        a = tl.load(x_ptr + i[:, None] * sm + k[None, :] * sk,
                    mask=(i < M)[:, None] & (k < K)[None, :], other=0)
        b = tl.load(x_ptr + j[None, :] * sm + k[:, None] * sk,
                    mask=(j < M)[None, :] & (k < K)[:, None], other=0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        k += BK
        left -= BK
    tl.store(out_ptr + i[:, None] * M + j[None, :], acc.to(out_ptr.dtype.element_ty),
             mask=(i < M)[:, None] & (j < M)[None, :])


def gram(x: torch.Tensor) -> torch.Tensor:
    check(x)
    m, k = x.shape
    out = torch.empty((m, m), dtype=x.dtype, device=x.device)
    if m:
        bm, bn, bk = (64, 64, 16) if x.dtype == torch.float32 else (64, 256, 32)
        wide_kernel[(triton.cdiv(m, bm) * triton.cdiv(m, bn),)](
            x, out, m, k, *x.stride(), BM=bm, BN=bn, BK=bk, num_warps=8)
    return out


@triton.jit
def stats_kernel(x_ptr, out_ptr, R, C, sr, sc, BR: tl.constexpr, BC: tl.constexpr):
    cols = tl.program_id(0).to(tl.int64) * BC + tl.arange(0, BC)
    rows = tl.arange(0, BR).to(tl.int64)
    in_c = (cols < C)[None, :]
    base = x_ptr + cols[None, :] * sc
    pivot = tl.load(base + rows[:, None] * sr, mask=(rows < R)[:, None] & in_c, other=0)
    pivot = pivot.to(tl.float32)
    total = tl.zeros((BR, BC), tl.float32)
    squares = tl.zeros((BR, BC), tl.float32)
    for start in range(BR, R, BR):
        mask = (start + rows < R)[:, None] & in_c
        x = tl.load(base + (start + rows)[:, None] * sr, mask=mask, other=0).to(tl.float32)
        d = tl.where(mask, x - pivot, 0.0)
        total += d
        squares += d * d
    seen = ((R - rows + BR - 1) // BR).to(tl.float32)[:, None]
    n = tl.broadcast_to(tl.maximum(seen, 0.0), (BR, BC))
    shift = total / tl.maximum(n, 1.0)
    mean, m2, n = tl.reduce((pivot + shift, squares - total * shift, n), 0, merge)
    tl.store(out_ptr + cols, mean, mask=cols < C)
    tl.store(out_ptr + C + cols, m2 / n, mask=cols < C)



def column_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    check(x)
    rows, cols = x.shape
    if rows == 0:
        raise ValueError("x: expected at least one row, got none")
    out = torch.empty((2, cols), dtype=torch.float32, device=x.device)
    if cols:
        stats_kernel[(triton.cdiv(cols, 128),)](
            x, out, rows, cols, *x.stride(), BR=16, BC=128, num_warps=8)
    return out[0], out[1]
