"""Heuristics for sizes, another order of the grid, the first number kept by a mask."""


@triton.heuristics({"BLOCK": lambda args: min(1024, triton.next_power_of_2(max(1, args["n"])))})
@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    below = (x < 0).to(tl.int1)
    tl.store(out_ptr + offs, tl.where(below, 0.0, x), mask=offs < n)


def relu(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    if x.numel():
        relu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out


@triton.jit
def row_max_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask)
    x = tl.where(mask, x, float("-inf"))
    tl.store(out_ptr + row, tl.max(x))


@triton.jit
def first_elem_kernel(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(axis=0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, COLS)
    mask = (rows[:, None] < M) & (cols[None, :] == 0)
    v = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0)
    v = tl.where(cols[None, :] == 0, v, 0)
    first = tl.sum(v.to(tl.float32), axis=1)
    tl.store(out_ptr + rows, first.to(out_ptr.dtype.element_ty), mask=rows < M)


def first_elem(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = x.new_empty(M)
    if M:
        first_elem_kernel[(triton.cdiv(M, 16),)](x, out, M, N, ROWS=16, COLS=4)
    return out


@triton.jit
def masked_outer_kernel(
    x_ptr, y_ptr, out_ptr, stride_m, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(axis=1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(axis=0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.expand_dims(tl.load(x_ptr + rows, mask=rows < M, other=0), 1)
    y = tl.expand_dims(tl.load(y_ptr + cols, mask=cols < N, other=0), 0)
    places = out_ptr + tl.expand_dims(rows, 1) * stride_m + tl.expand_dims(cols, 0)
    inside = tl.expand_dims(rows < M, 1) & tl.expand_dims(cols < N, 0)
    tl.store(places, x * y, mask=inside)


def masked_outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    M, N = x.numel(), y.numel()
    out = x.new_empty(M, N)
    grid = (triton.cdiv(N, 128), triton.cdiv(M, 64))
    masked_outer_kernel[grid](x, y, out, out.stride(0), M, N, BLOCK_M=64, BLOCK_N=128)
    return out
