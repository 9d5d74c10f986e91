"""Right but different: blocks by heuristics, keyword arguments, float64 on the way."""

from .acquire_and_release import choose_groups


@triton.heuristics({"BLOCK": lambda args: 4096 if args["n"] > 4096 else 1024})
@triton.jit
def wide_sum_kernel(x_ptr, out_ptr, n, to_one, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float64)
    first = pid.to(tl.int64) * BLOCK
    stride = tl.num_programs(0).to(tl.int64) * BLOCK
    for _ in range(tl.cdiv(n - first, stride)):
        acc += tl.load(x_ptr + first + lanes, mask=first + lanes < n, other=0).to(tl.float64)
        first += stride
    total = tl.sum(acc).to(tl.float32)
    if to_one == 1:
        tl.atomic_add(out_ptr, total)
    else:
        tl.store(out_ptr + pid, total)


def sum_atomic(x: torch.Tensor) -> torch.Tensor:
    check(x)
    out = torch.zeros((), dtype=torch.float32, device=x.device)
    if x.numel():
        grid = (min(triton.cdiv(x.numel(), 4096), 500),)
        wide_sum_kernel[grid](x_ptr=x.contiguous(), out_ptr=out, n=x.numel(), to_one=1)
    return out


def sum_two_phase(x: torch.Tensor) -> torch.Tensor:
    check(x)
    out = torch.zeros((), dtype=torch.float32, device=x.device)
    if x.numel():
        parts = torch.empty(min(triton.cdiv(x.numel(), 4096), 500), dtype=torch.float32,
                            device=x.device)
        wide_sum_kernel[(len(parts),)](x_ptr=x.contiguous(), out_ptr=parts, n=x.numel(), to_one=0)
        wide_sum_kernel[(1,)](x_ptr=parts, out_ptr=out, n=len(parts), to_one=0)
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
    while tl.atomic_cas(lock, 0, pid + 1) != 0:
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
    rows, block = 100, 128
    grid = (triton.cdiv(m, rows), triton.cdiv(n, block))
    buffer = torch.zeros(groups, n, dtype=torch.float32, device=x.device)
    locks = torch.zeros(groups * grid[1], dtype=torch.int32, device=x.device)
    locked_kernel[grid](x, buffer, locks, m, n, groups, *x.stride(), ROWS=rows, BLOCK=block)
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    groups_kernel[grid[1:]](buffer, out, n, groups, SOME=8, BLOCK=block)
    return out
