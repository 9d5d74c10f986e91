"""Column sums row by row, maxima in a loop over columns, products without tl.dot."""


@triton.jit
def col_sum_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    cols = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(M):
        acc += tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + cols, acc.to(out_ptr.dtype.element_ty), mask=mask)


def col_sum(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = x.new_empty(N)
    col_sum_kernel[(triton.cdiv(N, 128),)](x, out, M, N, BLOCK=128)
    return out


@triton.jit
def row_max_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
        largest = tl.maximum(largest, x.to(tl.float32))
    tl.store(out_ptr + row, tl.max(largest, axis=0).to(out_ptr.dtype.element_ty))


def row_max(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = torch.empty(M, dtype=x.dtype, device=x.device)
    row_max_kernel[(M,)](x, out, N, BLOCK=128)
    return out


@triton.jit
def avg_pool1d_kernel(x_ptr, out_ptr, n, n_out, k, stride, pad, BLOCK: tl.constexpr):
    window = tl.program_id(axis=0)
    taps = tl.arange(0, BLOCK)
    place = window * stride - pad + taps
    mask = (taps < k) & (place >= 0) & (place < n)
    x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + window, tl.sum(x) / k)


def avg_pool1d(x: torch.Tensor, k: int, stride: int, pad: int) -> torch.Tensor:
    n = x.numel()
    n_out = (n + 2 * pad - k) // stride + 1
    out = x.new_empty(n_out)
    avg_pool1d_kernel[(n_out,)](
        x, out, n, n_out, k, stride, pad, BLOCK=triton.next_power_of_2(k))
    return out


@triton.jit
def weighted_sum_kernel(
    p_ptr, v_ptr, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(axis=0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(axis=1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(K):
        p = tl.load(p_ptr + rows * K + k, mask=rows < M, other=0.0)
        v = tl.load(v_ptr + k * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        acc += p[:, None] * v[None, :]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def trace_program(x: torch.Tensor, program: int) -> str:
    printed = io.StringIO()
    count = triton.cdiv(x.numel(), TRACE_BLOCK)
    if 0 <= program < count:
        with contextlib.redirect_stdout(printed):
            trace_kernel[(count,)](x, x.numel(), program, BLOCK=TRACE_BLOCK)
    return printed.getvalue()
