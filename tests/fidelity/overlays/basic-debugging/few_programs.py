"""A few programs that stride over the work, blocks of several rows, windows gathered tap by tap."""

del _first
del _largest

@triton.jit
def scale_kernel(x_ptr, out_ptr, n, s, BLOCK: tl.constexpr):
    step = tl.num_programs(axis=0) * BLOCK
    for start in range(tl.program_id(axis=0) * BLOCK, n, step):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n)
        tl.store(out_ptr + offs, x * s, mask=offs < n)


def scale(x: torch.Tensor, s: float) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        scale_kernel[(min(8, triton.cdiv(n, 512)),)](x, out, n, s, BLOCK=512)
    return out


@triton.jit
def row_max_kernel(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(axis=0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=inside, other=float("-inf"))
    tl.store(out_ptr + rows, tl.max(x, axis=1), mask=rows < M)


def row_max(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = x.new_empty((M,))
    if M:
        row_max_kernel[(triton.cdiv(M, 4),)](
            x, out, M, N, ROWS=4, BLOCK=triton.next_power_of_2(N))
    return out


@triton.jit
def first_elem_kernel(x_ptr, out_ptr, N):
    row = tl.program_id(axis=0)
    tl.store(out_ptr + row, tl.load(x_ptr + row * N))


def first_elem(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.shape[0])
    if out.numel():
        first_elem_kernel[(x.shape[0],)](x, out, x.shape[1])
    return out


@triton.jit
def masked_outer_kernel(x_ptr, y_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    rows = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    x = tl.load(x_ptr + rows, mask=rows < M, other=0)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)[None, :]
        y = tl.load(y_ptr + cols, mask=cols < N, other=0)
        row_is_there = rows < M
        col_is_there = cols < N
        tl.store(out_ptr + rows * N + cols, x * y, mask=row_is_there & col_is_there)


def masked_outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    M, N = x.shape[0], y.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel():
        masked_outer_kernel[(triton.cdiv(M, 64),)](x, y, out, M, N, BLOCK=64)
    return out


@triton.jit
def avg_pool1d_kernel(x_ptr, out_ptr, n, n_out, k, stride, pad, BLOCK: tl.constexpr):
    windows = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for tap in range(k):
        place = windows * stride + tap - pad
        there = (place >= 0) & (place < n) & (windows < n_out)
        total += tl.load(x_ptr + place, mask=there, other=0.0).to(tl.float32)
    tl.store(out_ptr + windows, (total / k).to(out_ptr.dtype.element_ty), mask=windows < n_out)


def avg_pool1d(x: torch.Tensor, k: int, stride: int, pad: int) -> torch.Tensor:
    n = x.shape[0]
    n_out = (n - k + 2 * pad) // stride + 1
    out = torch.empty(n_out, dtype=x.dtype, device=x.device)
    avg_pool1d_kernel[(triton.cdiv(n_out, 128),)](x, out, n, n_out, k, stride, pad, BLOCK=128)
    return out


def compare(
    actual: torch.Tensor, expected: torch.Tensor, *, rtol: float, atol: float
) -> Comparison:
    """Element by element in Python: slow, and plain."""
    if list(actual.shape) != list(expected.shape):
        raise ValueError(f"actual: shape {list(actual.shape)}, expected: {list(expected.shape)}")
    bad: list[tuple[float, int]] = []
    max_abs = max_rel = 0.0
    nans = infs = 0
    got, wanted = actual.double().flatten().tolist(), expected.double().flatten().tolist()
    for number, (a, e) in enumerate(zip(got, wanted, strict=True)):
        if a != a or e != e:
            if (a != a) != (e != e):
                nans += 1
                bad.append((float("inf"), number))
        elif float("inf") in (abs(a), abs(e)):
            if a != e:
                infs += 1
                bad.append((float("inf"), number))
        else:
            max_abs = max(max_abs, abs(a - e))
            max_rel = max(max_rel, abs(a - e) / abs(e)) if e else max_rel
            if abs(a - e) > atol + rtol * abs(e):
                bad.append((abs(a - e), number))

    def index(number: int) -> tuple[int, ...]:
        found = []
        for size in reversed(expected.shape):
            number, place = divmod(number, size)
            found.append(place)
        return tuple(reversed(found))

    first = index(bad[0][1]) if bad else None
    worst = index(max(bad, key=lambda one: one[0])[1]) if bad else None
    message = ""
    if bad:
        message = (f"bad: {len(bad)}/{len(got)}. First: index {first}, actual {got[bad[0][1]]:g}, "
                   f"expected {wanted[bad[0][1]]:g}.")
    return Comparison(not bad, len(bad), len(got), first, worst, max_abs, max_rel, nans, infs,
                      message)
