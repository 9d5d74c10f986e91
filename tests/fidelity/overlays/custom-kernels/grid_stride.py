"""Right but different: a fixed number of programs walks over everything."""

del ROWS
del along

SIZE = 2048
PROGRAMS = 264

WALK = {"bound": "memory", "grid": "min(PROGRAMS, ceil(n / SIZE))",
        "tile": "ceil(n / min(PROGRAMS, ceil(n / SIZE)))"}
DESIGN = {
    "poly_act": {"flops": "2 * n * (k - 1)", "bytes": "2 * n * e", **WALK},
    "swish": {"flops": "4 * n", "bytes": "2 * n * e", **WALK},
    "glu": {"flops": "3 * n", "bytes": "3 * n * e", **WALK},
    "complex_mul": {"flops": "6 * n", "bytes": "24 * n", **WALK},
    "l2_norm": {
        "flops": "5 * R * C", "bytes": "e * R * C + 4 * R", "bound": "memory",
        "grid": "cdiv(R, max(1, 2048 // next_power_of_2(C)))",
        "tile": "next_power_of_2(C) * max(1, 2048 // next_power_of_2(C))"},
}


@triton.jit
def poly_kernel(x_ptr, out_ptr, n, c, K: tl.constexpr, SIZE: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * SIZE
    for first in range(start, n, tl.num_programs(0) * SIZE):
        offs = first + tl.arange(0, SIZE)
        x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
        y = tl.full([SIZE], 0.0, tl.float32)
        for i in tl.static_range(K):
            y = y * x + c[K - 1 - i] if i else y + c[K - 1]
        tl.store(out_ptr + offs, y, mask=offs < n)


@triton.jit
def swish_kernel(x_ptr, out_ptr, n, beta, SIZE: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * SIZE
    for first in range(start, n, tl.num_programs(0) * SIZE):
        offs = first + tl.arange(0, SIZE)
        x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
        tl.store(out_ptr + offs, x / (1 + tl.exp(-x * beta)), mask=offs < n)


@triton.jit
def glu_kernel(x_ptr, gate_ptr, out_ptr, n, SIZE: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * SIZE
    for first in range(start, n, tl.num_programs(0) * SIZE):
        offs = first + tl.arange(0, SIZE)
        x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
        gate = tl.load(gate_ptr + offs, mask=offs < n).to(tl.float32)
        tl.store(out_ptr + offs, x / (1 + tl.exp(-gate)), mask=offs < n)


@triton.jit
def complex_kernel(a_ptr, b_ptr, out_ptr, n, SIZE: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * SIZE
    for first in range(start, n, tl.num_programs(0) * SIZE):
        offs = first * 2 + tl.arange(0, SIZE * 2)
        a = tl.load(a_ptr + offs, mask=offs < 2 * n).reshape(SIZE, 2)
        b = tl.load(b_ptr + offs, mask=offs < 2 * n).reshape(SIZE, 2)
        ar, ai = tl.split(a)
        br, bi = tl.split(b)
        product = tl.join(ar * br - ai * bi, ai * br + ar * bi)
        tl.store(out_ptr + offs, product.reshape(SIZE * 2), mask=offs < 2 * n)


@triton.jit
def norm_kernel(x_ptr, out_ptr, n_rows, n_cols, stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Several short rows at once."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, COLS)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride + cols[None, :], mask=mask, other=0.0)
    x = tl.abs(x.to(tl.float32))
    scale = tl.max(x, axis=1)
    scale = tl.where((scale == 0) | (scale == float("inf")) | (scale != scale), 1.0, scale)
    x = x / scale[:, None]
    tl.store(out_ptr + rows, scale * tl.sqrt(tl.sum(x * x, axis=1)), mask=rows < n_rows)


def programs(n):
    return (min(PROGRAMS, triton.cdiv(n, SIZE)),)


def poly_act(x, coeffs):
    checked(REAL, x=x)
    coeffs = numbers(coeffs)
    x = x.contiguous()
    out = x.new_empty(x.shape)
    if x.numel():
        poly_kernel[programs(x.numel())](x, out, x.numel(), coeffs, K=len(coeffs), SIZE=SIZE)
    return out


def swish(x, beta=1.0):
    checked(REAL, x=x)
    beta = number("beta", beta)
    x = x.contiguous()
    out = x.new_empty(x.shape)
    if x.numel():
        swish_kernel[programs(x.numel())](x, out, x.numel(), beta, SIZE=SIZE)
    return out


def glu(x, gate):
    checked(REAL, x=x, gate=gate)
    x, gate = x.contiguous(), gate.contiguous()
    out = x.new_empty(x.shape)
    if x.numel():
        glu_kernel[programs(x.numel())](x, gate, out, x.numel(), SIZE=SIZE)
    return out


def complex_mul(a, b):
    checked((torch.complex64,), a=a, b=b)
    a, b = a.resolve_conj().contiguous(), b.resolve_conj().contiguous()
    out = a.new_empty(a.shape)
    if out.numel():
        complex_kernel[programs(out.numel())](
            torch.view_as_real(a), torch.view_as_real(b), torch.view_as_real(out), out.numel(),
            SIZE=SIZE)
    return out


def l2_norm(x):
    matrix(x)
    x = x if x.stride(1) == 1 else x.clone(memory_format=torch.contiguous_format)
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows,), dtype=torch.float32, device=x.device)
    if n_rows:
        width = triton.next_power_of_2(max(n_cols, 1))
        rows = max(1, 2048 // width)
        norm_kernel[(triton.cdiv(n_rows, rows),)](
            x, out, n_rows, n_cols, x.stride(0), ROWS=rows, COLS=width, num_warps=8)
    return out
