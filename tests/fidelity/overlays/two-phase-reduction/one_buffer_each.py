"""Right but different: every row of programs has a buffer of its own, which needs no lock."""

del groups_kernel


@triton.jit
def blocks_kernel(x_ptr, out_ptr, n, ATOMIC: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0).to(tl.float32), axis=0)
    if ATOMIC:
        tl.atomic_add(out_ptr, total)
    else:
        tl.store(out_ptr + tl.program_id(0), total)


@triton.jit
def rest_kernel(parts_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(parts_ptr + offs, mask=offs < n, other=0), axis=0)
    tl.store(out_ptr, total)


def sum_atomic(x: torch.Tensor) -> torch.Tensor:
    check(x)
    out = torch.zeros((), dtype=torch.float32, device=x.device)
    if x.numel() > 0:
        blocks_kernel[(triton.cdiv(x.numel(), 8192),)](
            x.contiguous(), out, x.numel(), ATOMIC=True, BLOCK=8192, num_warps=8)
    return out


def sum_two_phase(x: torch.Tensor) -> torch.Tensor:
    check(x)
    if x.numel() == 0:
        return torch.zeros((), dtype=torch.float32, device=x.device)
    parts = torch.empty(triton.cdiv(x.numel(), 8192), dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=torch.float32, device=x.device)
    blocks_kernel[(parts.numel(),)](
        x.contiguous(), parts, x.numel(), ATOMIC=False, BLOCK=8192, num_warps=8)
    rest_kernel[(1,)](parts, out, parts.numel(), BLOCK=2048)
    return out


@triton.jit
def rows_kernel(x_ptr, buffer_ptr, M, N, sm, sn, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    rows = pid * ROWS + tl.arange(0, ROWS)
    x = tl.load(x_ptr + rows[:, None] * sm + cols[None, :] * sn,
                mask=(rows < M)[:, None] & (cols < N)[None, :], other=0)
    tl.store(buffer_ptr + pid * N + cols, tl.sum(x.to(tl.float32), axis=0), mask=cols < N)


@triton.jit
def buffers_kernel(buffer_ptr, out_ptr, N, parts, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        acc += tl.load(buffer_ptr + tl.cast(part, tl.int64) * N + cols, mask=cols < N, other=0)
    tl.store(out_ptr + cols, acc, mask=cols < N)


def column_sum_locked(x: torch.Tensor, *, groups: int = 8) -> torch.Tensor:
    check(x, 2)
    if groups < 1:
        raise ValueError(f"groups: expected 1 or more, got {groups}")
    m, n = x.shape
    if m * n == 0:
        return torch.zeros((n,), dtype=torch.float32, device=x.device)
    parts = triton.cdiv(m, 128)
    buffer = torch.empty((parts, n), dtype=torch.float32, device=x.device)
    rows_kernel[(parts, triton.cdiv(n, 32))](x, buffer, m, n, *x.stride(), ROWS=128, BLOCK=32)
    out = torch.empty((n,), dtype=torch.float32, device=x.device)
    buffers_kernel[(triton.cdiv(n, 32),)](buffer, out, n, parts, BLOCK=32)
    return out
