"""Right but different: running powers, tl.sigmoid, tl.interleave, squares in float64."""

SIZE = 512


@triton.jit
def poly_kernel(x_ptr, out_ptr, n, coeffs, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0).to(tl.float32)
    acc = tl.zeros([SIZE], tl.float32) + coeffs[0]
    power = x
    for i in tl.static_range(1, len(coeffs)):
        acc += coeffs[i] * power
        power = power * x
    tl.store(out_ptr + offs, acc, mask=offs < n)


@triton.jit
def gate_kernel(x_ptr, gate_ptr, out_ptr, beta, n, SIZE: tl.constexpr):
    """Of swish, gate and x are one tensor, which is loaded once."""
    offs = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0).to(tl.float32)
    if gate_ptr is None:
        gate = beta * x
    else:
        gate = tl.load(gate_ptr + offs, mask=offs < n, other=0).to(tl.float32)
    tl.store(out_ptr + offs, x * tl.sigmoid(gate), mask=offs < n)


@triton.jit
def complex_kernel(a_ptr, b_ptr, out_ptr, n, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * 2 * SIZE + tl.arange(0, 2 * SIZE)
    inside = offs < n * 2
    ar, ai = tl.reshape(tl.load(a_ptr + offs, mask=inside, other=0), (SIZE, 2)).split()
    br, bi = tl.reshape(tl.load(b_ptr + offs, mask=inside, other=0), (SIZE, 2)).split()
    tl.store(out_ptr + offs, tl.interleave(ar * br - ai * bi, ar * bi + ai * br), mask=inside)


@triton.jit
def norm_kernel(x_ptr, out_ptr, n_cols, step, down, WIDTH: tl.constexpr):
    row, cols = tl.program_id(0).to(tl.int64), tl.arange(0, WIDTH).to(tl.int64)
    x = tl.load(x_ptr + row * down + cols * step, mask=cols < n_cols, other=0).to(tl.float64)
    tl.store(out_ptr + row, tl.sqrt(tl.sum(x * x, 0)))  # float64 holds every square of a float32


def poly_act(x, coeffs):
    checked(REAL, x=x)
    coeffs = numbers(coeffs)
    x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        poly_kernel[triton.cdiv(x.numel(), SIZE),](x, out, x.numel(), coeffs, SIZE=SIZE)
    return out


def swish(x, beta=1.0):
    checked(REAL, x=x)
    beta = number("beta", beta)
    x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        gate_kernel[triton.cdiv(x.numel(), SIZE),](x, None, out, beta, x.numel(), SIZE=SIZE)
    return out


def glu(x, gate):
    checked(REAL, x=x, gate=gate)
    x, gate = x.contiguous(), gate.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        gate_kernel[triton.cdiv(x.numel(), SIZE),](x, gate, out, 1.0, x.numel(), SIZE=SIZE)
    return out


def complex_mul(a, b):
    checked((torch.complex64,), a=a, b=b)
    a, b = (torch.view_as_real(one.resolve_conj()).contiguous() for one in (a, b))
    out = torch.empty_like(a)
    n = out.numel() // 2
    if n:
        complex_kernel[triton.cdiv(n, SIZE),](a, b, out, n, SIZE=SIZE)
    return torch.view_as_complex(out)


def l2_norm(x):
    matrix(x)
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows:
        width = triton.next_power_of_2(max(1, n_cols))
        norm_kernel[(n_rows,)](x, out, n_cols, x.stride(1), x.stride(0), WIDTH=width, num_warps=16)
    return out
