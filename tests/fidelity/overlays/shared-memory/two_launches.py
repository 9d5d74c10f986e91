"""Right but different: the mirror image by a second launch; statistics as sums in float64."""

del merge
del stats_kernel


@triton.jit
def lower_kernel(x_ptr, out_ptr, M, K, sm, sk, B: tl.constexpr, BK: tl.constexpr):
    row, col = tl.program_id(0), tl.program_id(1)
    if col > row:
        return
    i = row.to(tl.int64) * B + tl.arange(0, B)
    j = col.to(tl.int64) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK).to(tl.int64)
        a = tl.load(x_ptr + i[:, None] * sm + k[None, :] * sk,
                    mask=(i < M)[:, None] & (k < K)[None, :], other=0)
        b = tl.load(x_ptr + j[:, None] * sm + k[None, :] * sk,
                    mask=(j < M)[:, None] & (k < K)[None, :], other=0)
        acc = tl.dot(a, b.T, acc, input_precision="ieee")
    tl.store(out_ptr + i[:, None] * M + j[None, :], acc, mask=(i < M)[:, None] & (j < M)[None, :])


@triton.jit
def mirror_kernel(out_ptr, M, B: tl.constexpr):
    row, col = tl.program_id(0), tl.program_id(1)
    if col >= row:
        return
    i = row.to(tl.int64) * B + tl.arange(0, B)[:, None]
    j = col.to(tl.int64) * B + tl.arange(0, B)[None, :]
    tile = tl.load(out_ptr + i * M + j, mask=(i < M) & (j < M))
    tl.store(out_ptr + j * M + i, tile, mask=(i < M) & (j < M))


def gram(x: torch.Tensor) -> torch.Tensor:
    check(x)
    m, k = x.shape
    out = torch.empty(m, m, dtype=x.dtype, device=x.device)
    if m:
        side = 64 if x.dtype == torch.float32 else 128
        tiles = triton.cdiv(m, side)
        lower_kernel[(tiles, tiles)](x, out, m, k, *x.stride(), B=side, BK=32, num_warps=8)
        if tiles > 1:
            mirror_kernel[(tiles, tiles)](out, m, B=side)
    return out


@triton.jit
def add_both(a, b, c, d):
    return a + c, b + d


@triton.jit
def sums_kernel(x_ptr, mean_ptr, var_ptr, R, C, sr, sc, BR: tl.constexpr, BC: tl.constexpr):
    """Squares of 24 bits fit float64 whole, so that only their sum is rounded."""
    cols = tl.program_id(0).to(tl.int64) * BC + tl.arange(0, BC)
    rows = tl.arange(0, BR).to(tl.int64)
    total = tl.zeros((BR, BC), tl.float64)
    squares = tl.zeros((BR, BC), tl.float64)
    for start in range(0, R, BR):
        mask = (start + rows < R)[:, None] & (cols < C)[None, :]
        x = tl.load(x_ptr + (start + rows)[:, None] * sr + cols[None, :] * sc, mask=mask, other=0)
        x = x.to(tl.float64)
        total += x
        squares += x * x
    total, squares = tl.reduce((total, squares), 0, add_both)
    mean = total / R
    var = squares / R - mean * mean
    var = tl.where(var < 0, 0.0, var)  # NaN stays
    tl.store(mean_ptr + cols, mean.to(tl.float32), mask=cols < C)
    tl.store(var_ptr + cols, var.to(tl.float32), mask=cols < C)



def column_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    check(x)
    rows, cols = x.shape
    if rows == 0:
        raise ValueError("x: expected at least one row, got none")
    out = torch.empty((2, cols), dtype=torch.float32, device=x.device)
    if cols:
        sums_kernel[(triton.cdiv(cols, 32),)](
            x, out[0], out[1], rows, cols, *x.stride(), BR=32, BC=32)
    return out[0], out[1]
