"""What the right solutions here share, over the solution."""

import itertools
import math

del SUPPORTED
del gram_kernel
del column_stats_kernel
del check_argument

PREDICT = {
    "fetches_16": 32, "gram_16_bytes": 4.3e6, "gram_128_bytes": 5 * 2**17, "buffers": 96 * 1024,
    "shared_elementwise": 0, "column_share": 1 / 8, "merges": 31, "levels": 5,
}


@triton.jit
def merge(ma, sa, na, mb, sb, nb):
    n = na + nb
    w = tl.where(n > 0, nb / tl.maximum(n, 1), 0.0)
    d = mb - ma
    return ma + w * d, sa + sb + d * d * (na * w), n


@triton.jit
def stats_kernel(x_ptr, out_ptr, R, C, sr, sc, BR: tl.constexpr, BC: tl.constexpr):
    cols = tl.program_id(0) * BC + tl.arange(0, BC)
    rows = tl.arange(0, BR)
    mean = tl.zeros((BR, BC), tl.float32)
    m2 = tl.zeros((BR, BC), tl.float32)
    n = tl.zeros((BR, BC), tl.float32)
    for start in range(0, R, BR):
        row = (start + rows).to(tl.int64)
        mask = (row < R)[:, None] & (cols < C)[None, :]
        ptrs = x_ptr + row[:, None] * sr + cols.to(tl.int64)[None, :] * sc
        x = tl.load(ptrs, mask=mask, other=0.0).to(tl.float32)
        mean, m2, n = merge(mean, m2, n, x, tl.zeros_like(x), mask.to(tl.float32))
    mean, m2, n = tl.reduce((mean, m2, n), axis=0, combine_fn=merge)
    tl.store(out_ptr + cols, mean, mask=cols < C)
    tl.store(out_ptr + C + cols, m2 / n, mask=cols < C)


def check(x: torch.Tensor) -> None:
    if not isinstance(x, torch.Tensor) or x.dtype not in (
            torch.float16, torch.bfloat16, torch.float32):
        raise TypeError(f"x: expected floats of 16 or 32 bits, got {getattr(x, 'dtype', type(x))}")
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got {x.dim()} in {tuple(x.shape)}")


def plan_tiles(m: int, n: int, k: int, itemsize: int, smem_bytes: int,
               *, num_stages: int = 3) -> TilePlan:
    best = None
    sides = [16, 32, 64, 128, 256]
    for bm, bn, bk in itertools.product(sides, sides, sides[:-1]):
        smem = num_stages * (bm * bk + bk * bn) * itemsize
        if bm * bn > 1 << 15 or smem > smem_bytes:
            continue
        traffic = itemsize * (m * k * math.ceil(n / bn) + k * n * math.ceil(m / bm) + m * n)
        rank = (traffic, -bk, bm * bn, -bn)
        if best is None or rank < best[0]:
            best = rank, TilePlan(bm, bn, bk, smem, traffic)
    if best is None:
        raise ValueError(f"smem_bytes: {smem_bytes} bytes hold no tile")
    return best[1]
