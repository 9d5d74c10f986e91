"""Right but different: locks taken by an exchange; sums of tiles with rows."""


@triton.jit
def tile_sum(x_ptr, n, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Rows of COLS elements: columns are added first, then the row that is left."""
    acc = tl.zeros((ROWS, COLS), tl.float32)
    at = tl.program_id(0).to(tl.int64) * (ROWS * COLS)
    while at < n:
        offs = at + tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
        acc += tl.load(x_ptr + offs, mask=offs < n, other=0).to(tl.float32)
        at += tl.num_programs(0).to(tl.int64) * (ROWS * COLS)
    return tl.sum(tl.sum(acc, 0))


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, APART: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    total = tile_sum(x_ptr, n, ROWS, COLS)
    if APART:
        tl.store(out_ptr + tl.program_id(0), total)
    else:
        tl.atomic_add(out_ptr, total)


def launched(x: torch.Tensor, apart: bool) -> torch.Tensor:
    n = x.numel()
    programs = max(1, min(512, n // 4096))
    out = torch.zeros((programs,) if apart else (), dtype=torch.float32, device=x.device)
    if n:
        sum_kernel[(programs,)](x.contiguous(), out, n, APART=apart, ROWS=8, COLS=256)
    return out


def sum_atomic(x: torch.Tensor) -> torch.Tensor:
    check(x)
    return launched(x, apart=False)


def sum_two_phase(x: torch.Tensor) -> torch.Tensor:
    check(x)
    parts = launched(x, apart=True)
    out = torch.zeros((), dtype=torch.float32, device=x.device)
    if x.numel():
        sum_kernel[(1,)](parts, out, parts.numel(), APART=True, ROWS=8, COLS=256)
    return out


@triton.jit
def locked_kernel(x_ptr, buffer_ptr, locks_ptr, M, N, groups, sm, sn, ROWS: tl.constexpr,
                  BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(pid * ROWS, min(M, pid * ROWS + ROWS)):
        at = tl.cast(row, tl.int64) * sm
        total += tl.load(x_ptr + at + cols * sn, mask=cols < N, other=0).to(tl.float32)
    lock = locks_ptr + (pid % groups) * tl.num_programs(1) + tl.program_id(1)
    while tl.atomic_xchg(lock, 1) == 1:
        pass
    at = buffer_ptr + (pid % groups).to(tl.int64) * N + cols
    tl.store(at, tl.load(at, mask=cols < N, other=0) + total, mask=cols < N)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def column_sum_locked(x: torch.Tensor, *, groups: int = 8) -> torch.Tensor:
    check(x, 2)
    if groups < 1:
        raise ValueError(f"groups: {groups} is below 1")
    m, n = x.shape
    if x.numel() == 0:
        return torch.zeros(n, dtype=torch.float32, device=x.device)
    rows, block = 64, 128
    grid = (triton.cdiv(m, rows), triton.cdiv(n, block))
    buffer = torch.zeros(groups, n, dtype=torch.float32, device=x.device)
    locks = torch.zeros(groups * grid[1], dtype=torch.int32, device=x.device)
    locked_kernel[grid](x, buffer, locks, m, n, groups, *x.stride(), ROWS=rows, BLOCK=block)
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    groups_kernel[grid[1:]](buffer, out, n, groups, SOME=8, BLOCK=block)
    return out
