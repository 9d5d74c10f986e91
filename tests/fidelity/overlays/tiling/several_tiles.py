"""Right but different: a program walks down several tiles of its columns."""

import statistics

del SECTOR
del MAX_ELEMENTS
del ALIKE
del transpose_kernel
del check_argument

PREDICT = {
    "column_share": 1 / 8, "column_share_int64": 1 / 4, "least_bytes": 524_288,
    "column_bytes": 2.3e6, "programs": 768, "sweep_calls": 30,
}

@triton.jit
def kernel(x_ptr, out_ptr, xb, xm, xn, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    batch = tl.program_id(0).to(tl.int64)
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64))[None, :]
    step = tl.num_programs(2) * BLOCK_M
    for start in range(tl.program_id(2) * BLOCK_M, M, step):
        rows = (start + tl.arange(0, BLOCK_M).to(tl.int64))[:, None]
        tile = tl.load(x_ptr + batch * xb + rows * xm + cols * xn, mask=(rows < M) & (cols < N))
        tl.store(out_ptr + (batch * N + cols) * M + rows, tile, mask=(rows < M) & (cols < N))


def batched_transpose(x: torch.Tensor) -> torch.Tensor:
    check(x)
    n_batch, m, n = x.shape
    out = torch.empty((n_batch, n, m), dtype=x.dtype, device=x.device)
    if 0 in x.shape:
        return out
    rows, cols = choose_tile(m, n, x.element_size())
    walkers = triton.cdiv(triton.cdiv(m, rows), 2)
    kernel[n_batch, triton.cdiv(n, cols), walkers](
        x, out, *x.stride(), m, n, BLOCK_M=rows, BLOCK_N=cols)
    return out


def choose_tile(m: int, n: int, itemsize: int) -> tuple[int, int]:
    side = {1: 64, 2: 64, 4: 32, 8: 32}[itemsize]
    return min(side, triton.next_power_of_2(m)), min(side, triton.next_power_of_2(n))


def sweep_block_sizes(time_ms, candidates, *, repeats=5):
    sizes = sorted(set(candidates))
    if not sizes:
        raise ValueError("candidates: expected some, got none")
    wrong = [size for size in sizes if size <= 0 or size.bit_count() != 1]
    if wrong:
        raise ValueError(f"candidates: expected powers of two, got {wrong}")
    if repeats < 2:
        raise ValueError(f"repeats: expected 2 or more, got {repeats}")
    for size in sizes:
        time_ms(size)  # compiles
    rounds = [[time_ms(size) for size in sizes] for _ in range(repeats - 1)]
    table = []
    for size, times in zip(sizes, zip(*rounds, strict=True), strict=True):
        middle = statistics.median(times)
        table.append((size, middle, (max(times) - min(times)) / middle))
    least = min(row[1] for row in table)
    return SweepResult(min(row[0] for row in table if row[1] <= least * 1.02), tuple(table))


class WrongShape(ValueError):
    """x is no batch of matrices."""


def check(x: torch.Tensor) -> None:
    if not torch.is_tensor(x):
        raise TypeError(f"x must be a torch.Tensor, not {type(x).__name__}")
    if x.is_complex() or x.dtype not in SUPPORTED:
        raise TypeError(f"x must hold numbers of 1, 2, 4 or 8 bytes, not {x.dtype}")
    if x.dim() != 3:
        raise WrongShape(f"x must have 3 dimensions, not {x.dim()} as in {list(x.shape)}")
