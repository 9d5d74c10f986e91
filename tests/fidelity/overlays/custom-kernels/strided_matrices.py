"""Right but different: everything is seen as a matrix with strides where torch allows that."""


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, numbers, n_rows, n_cols, x_down, x_right, y_down, y_right,
           WHAT: tl.constexpr, SIZE: tl.constexpr):
    row = tl.program_id(1).to(tl.int64) + tl.program_id(2).to(tl.int64) * 65535
    cols = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    mask = (cols < n_cols) & (row < n_rows)
    x = tl.load(x_ptr + row * x_down + cols * x_right, mask=mask).to(tl.float32)
    if WHAT == 0:
        y = tl.zeros([SIZE], tl.float32) + numbers[len(numbers) - 1]
        for i in tl.static_range(1, len(numbers)):
            y = y * x + numbers[len(numbers) - 1 - i]
    elif WHAT == 1:
        y = x / (1.0 + tl.exp(-(numbers[0] * x)))
    else:
        gate = tl.load(y_ptr + row * y_down + cols * y_right, mask=mask).to(tl.float32)
        y = x / (1.0 + tl.exp(-gate))
    tl.store(out_ptr + row * n_cols + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def complex_kernel(a_ptr, b_ptr, out_ptr, n, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * (2 * SIZE) + tl.arange(0, 2 * SIZE)
    a = tl.load(a_ptr + offs, mask=offs < 2 * n, other=0.0)
    b = tl.load(b_ptr + offs, mask=offs < 2 * n, other=0.0)
    ar, ai = tl.split(tl.reshape(a, (SIZE, 2)))
    br, bi = tl.split(tl.reshape(b, (SIZE, 2)))
    real, imag = tl.fma(ar, br, -(ai * bi)), tl.fma(ar, bi, ai * br)
    tl.store(out_ptr + offs, tl.ravel(tl.join(real, imag)), mask=offs < 2 * n)


@triton.jit
def norm_kernel(x_ptr, out_ptr, n_cols, down, right, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, COLS).to(tl.int64)
    x = tl.load(x_ptr + row * down + cols * right, mask=cols < n_cols, other=0.0)
    x = x.to(tl.float64)
    tl.store(out_ptr + row, tl.sqrt(tl.sum(x * x)).to(tl.float32))


def as_matrix(x):
    """Two dimensions without a copy, if x has no more; else one row without gaps."""
    if x.dim() <= 2:
        return x.reshape(1, -1) if x.dim() < 2 else x
    return x.contiguous().view(1, -1)


def apply(what, x, y, numbers):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        left, right = as_matrix(x), as_matrix(x if y is None else y)
        if left.is_contiguous() and right.is_contiguous():
            left, right = left.view(1, -1), right.view(1, -1)
        n_rows, n_cols = left.shape
        grid = (triton.cdiv(n_cols, SIZE), min(n_rows, 65535), triton.cdiv(n_rows, 65535))
        kernel[grid](left, right, out, numbers, n_rows, n_cols, *left.stride(), *right.stride(),
                     WHAT=what, SIZE=SIZE)
    return out


def poly_act(x, coeffs):
    checked(REAL, x=x)
    coeffs = numbers(coeffs)
    return apply(0, x, None, coeffs)


def swish(x, beta=1.0):
    checked(REAL, x=x)
    beta = number("beta", beta)
    return apply(1, x, None, (beta,))


def glu(x, gate):
    checked(REAL, x=x, gate=gate)
    return apply(2, x, gate, (0.0,))


def complex_mul(a, b):
    checked((torch.complex64,), a=a, b=b)
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    if out.numel():
        pairs = [torch.empty(a.shape, dtype=a.dtype, device=a.device) for _ in range(2)]
        for pair, one in zip(pairs, (a, b), strict=True):
            pair.copy_(one)  # without gaps, and resolved
        real = [torch.view_as_real(pair) for pair in (*pairs, out)]
        complex_kernel[(triton.cdiv(out.numel(), SIZE),)](*real, out.numel(), SIZE=SIZE)
    return out


def l2_norm(x):
    matrix(x)
    out = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    if x.shape[0]:
        columns = triton.next_power_of_2(max(x.shape[1], 1))
        norm_kernel[(x.shape[0],)](
            x, out, x.shape[1], *x.stride(), COLS=columns, num_warps=8 if columns < 8192 else 16)
    return out
