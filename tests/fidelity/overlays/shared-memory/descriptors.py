"""Right but different: tensor descriptors where the layout allows them; a tree in every step."""
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def described_kernel(x_desc, out_ptr, M, K, B: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * B
    col = tl.program_id(1) * B
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, K, BK):
        a = x_desc.load([row, start])
        b = x_desc.load([col, start])
        acc = tl.dot(a, b.T, acc, input_precision="ieee")
    i = row.to(tl.int64) + tl.arange(0, B)[:, None]
    j = col.to(tl.int64) + tl.arange(0, B)[None, :]
    tl.store(out_ptr + i * M + j, acc, mask=(i < M) & (j < M))


@triton.jit
def strided_kernel(x_ptr, out_ptr, M, K, sm, sk, B: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    j = tl.program_id(1).to(tl.int64) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK).to(tl.int64)
        a = tl.load(x_ptr + i[:, None] * sm + k[None, :] * sk,
                    mask=(i < M)[:, None] & (k < K)[None, :], other=0)
        b = tl.load(x_ptr + j[None, :] * sm + k[:, None] * sk,
                    mask=(j < M)[None, :] & (k < K)[:, None], other=0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    i, j = i[:, None], j[None, :]
    tl.store(out_ptr + i * M + j, acc, mask=(i < M) & (j < M))


def gram(x: torch.Tensor) -> torch.Tensor:
    check(x)
    m, k = x.shape
    out = x.new_empty((m, m))
    if m == 0:
        return out
    side, depth = (64, 16) if x.dtype == torch.float32 else (128, 64)
    grid = (triton.cdiv(m, side), triton.cdiv(m, side))
    row_bytes = x.stride(0) * x.element_size()
    if (k > 0 and x.stride(1) == 1 and 0 < row_bytes < 1 << 40 and row_bytes % 16 == 0
            and x.data_ptr() % 16 == 0):
        desc = TensorDescriptor.from_tensor(x, [side, depth])
        described_kernel[grid](desc, out, m, k, B=side, BK=depth, num_warps=8)
    else:
        strided_kernel[grid](x, out, m, k, *x.stride(), B=side, BK=depth, num_warps=8)
    return out


@triton.jit
def stats_kernel(x_ptr, out_ptr, R, C, sr, sc, BR: tl.constexpr, BC: tl.constexpr):
    """Every step reduces its own tile; one statistic for each column goes on."""
    cols = tl.program_id(0).to(tl.int64) * BC + tl.arange(0, BC)
    mean = tl.zeros((BC,), tl.float32)
    m2 = tl.zeros((BC,), tl.float32)
    n = tl.zeros((BC,), tl.float32)
    for start in range(0, R, BR):
        rows = start + tl.arange(0, BR).to(tl.int64)
        mask = (rows < R)[:, None] & (cols < C)[None, :]
        x = tl.load(x_ptr + rows[:, None] * sr + cols[None, :] * sc, mask=mask, other=0)
        one = tl.broadcast_to((rows < R)[:, None].to(tl.float32), (BR, BC))
        part = tl.reduce((x.to(tl.float32), tl.zeros((BR, BC), tl.float32), one), 0, merge)
        mean, m2, n = merge(mean, m2, n, part[0], part[1], part[2])
    tl.store(out_ptr + cols, mean, mask=cols < C)
    tl.store(out_ptr + C + cols, m2 / R, mask=cols < C)



def column_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    check(x)
    rows, cols = x.shape
    if rows == 0:
        raise ValueError("x: expected at least one row, got none")
    out = torch.empty((2, cols), dtype=torch.float32, device=x.device)
    if cols:
        stats_kernel[(triton.cdiv(cols, 64),)](
            x, out, rows, cols, *x.stride(), BR=64, BC=64)
    return out[0], out[1]
