"""Right but different: half of the tiles on a folded grid; statistics as one packed tree."""


@triton.jit
def tile_of(i, j, x_ptr, M, K, sm, sk, BK: tl.constexpr, SAME: tl.constexpr):
    acc = tl.zeros((i.shape[0], j.shape[0]), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK).to(tl.int64)
        in_k = (k < K)[None, :]
        a = tl.load(x_ptr + i[:, None] * sm + k[None, :] * sk, mask=(i < M)[:, None] & in_k,
                    other=0)
        if SAME:
            b = a
        else:
            b = tl.load(x_ptr + j[:, None] * sm + k[None, :] * sk, mask=(j < M)[:, None] & in_k,
                        other=0)
        acc = tl.dot(a, tl.permute(b, (1, 0)), acc, input_precision="ieee")
    return acc


@triton.jit
def folded_kernel(x_ptr, out_ptr, M, K, sm, sk, B: tl.constexpr, BK: tl.constexpr):
    """Row p of the grid is row p of the triangle and row T - 1 - p, T + 1 tiles together."""
    tiles = tl.cdiv(M, B)
    p, q = tl.program_id(0), tl.program_id(1)
    low = q <= p
    row = tl.where(low, p, tiles - 1 - p)
    col = tl.where(low, q, q - p - 1)
    if low | (row > p):  # the middle row of an odd number is there twice
        i = row.to(tl.int64) * B + tl.arange(0, B)
        j = col.to(tl.int64) * B + tl.arange(0, B)
        at = (i < M)[:, None] & (j < M)[None, :]
        if row == col:
            acc = tile_of(i, j, x_ptr, M, K, sm, sk, BK, SAME=True)
            tl.store(out_ptr + i[:, None] * M + j[None, :], acc, mask=at)
        else:
            acc = tile_of(i, j, x_ptr, M, K, sm, sk, BK, SAME=False)
            tl.store(out_ptr + i[:, None] * M + j[None, :], acc, mask=at)
            tl.store(out_ptr + j[None, :] * M + i[:, None], acc, mask=at)


def gram(x: torch.Tensor) -> torch.Tensor:
    check(x)
    m, k = x.shape
    out = x.new_empty((m, m))
    if m:
        tiles = triton.cdiv(m, 64)
        folded_kernel[(triton.cdiv(tiles, 2), tiles + 1)](
            x, out, m, k, *x.stride(), B=64, BK=32)
    return out



def column_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    check(x)
    rows, cols = x.shape
    if rows == 0:
        raise ValueError("x: expected at least one row, got none")
    out = torch.empty((2, cols), dtype=torch.float32, device=x.device)
    if cols:
        x = x.contiguous()
        stats_kernel[(triton.cdiv(cols, 32),)](x, out, rows, cols, cols, 1, BR=128, BC=32,
                                               num_warps=8)
    return out[0], out[1]
