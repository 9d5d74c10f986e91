"""Right but different: semantics of the lock written out; contiguous shares."""


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def share_of(x_ptr, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * (BLOCK * STEPS)
    acc = tl.zeros((BLOCK,), tl.float32)
    for step in tl.static_range(STEPS):
        offs = first + step * BLOCK + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + offs, mask=offs < n, other=0).to(tl.float32)
    return tl.reduce(acc, 0, add)


@triton.jit
def atomic_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    tl.atomic_add(out_ptr, share_of(x_ptr, n, BLOCK, STEPS))


@triton.jit
def store_kernel(x_ptr, parts_ptr, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    tl.store(parts_ptr + tl.program_id(0), share_of(x_ptr, n, BLOCK, STEPS))


@triton.jit
def gather_kernel(parts_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        acc += tl.load(parts_ptr + offs, mask=offs < n, other=0)
    tl.store(out_ptr, tl.sum(acc))


def sum_atomic(x: torch.Tensor) -> torch.Tensor:
    check(x)
    out = torch.zeros((), dtype=torch.float32, device=x.device)
    if x.numel():
        atomic_kernel[(triton.cdiv(x.numel(), 4096),)](
            x.contiguous(), out, x.numel(), BLOCK=1024, STEPS=4)
    return out


def sum_two_phase(x: torch.Tensor) -> torch.Tensor:
    check(x)
    out = torch.zeros((), dtype=torch.float32, device=x.device)
    n = x.numel()
    if n:
        parts = out.new_empty(triton.cdiv(n, 8192))
        store_kernel[(len(parts),)](x.contiguous(), parts, n, BLOCK=1024, STEPS=8)
        gather_kernel[(1,)](parts, out, len(parts), BLOCK=1024)
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
    while tl.atomic_cas(lock, 0, 1, sem="acquire") != 0:
        pass
    at = buffer_ptr + (pid % groups).to(tl.int64) * N + cols
    tl.store(at, tl.load(at, mask=cols < N, other=0) + total, mask=cols < N)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release")


def column_sum_locked(x: torch.Tensor, *, groups: int = 8) -> torch.Tensor:
    check(x, 2)
    if groups < 1:
        raise ValueError(f"groups: {groups} is below 1")
    m, n = x.shape
    if x.numel() == 0:
        return torch.zeros(n, dtype=torch.float32, device=x.device)
    rows, block = 128, 128
    grid = (triton.cdiv(m, rows), triton.cdiv(n, block))
    buffer = torch.zeros(groups, n, dtype=torch.float32, device=x.device)
    locks = torch.zeros(groups * grid[1], dtype=torch.int32, device=x.device)
    locked_kernel[grid](x, buffer, locks, m, n, groups, *x.stride(), ROWS=rows, BLOCK=block)
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    groups_kernel[grid[1:]](buffer, out, n, groups, SOME=8, BLOCK=block)
    return out


def choose_groups(n: int, l2_bytes: int, num_programs: int) -> int:
    for groups in (256, 128, 64, 32, 16, 8, 4, 2):
        if groups <= num_programs and groups * n * 8 <= l2_bytes:
            return groups
    return 1
