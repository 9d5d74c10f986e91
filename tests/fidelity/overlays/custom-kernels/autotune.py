"""Right but different: block sizes come from autotuners, the norm's scale is a power of two."""


SIZES = [triton.Config({"SIZE": 256}, num_warps=2), triton.Config({"SIZE": 1024}, num_warps=8)]


@triton.autotune(SIZES, key=["n"])
@triton.jit
def poly_kernel(x_ptr, out_ptr, n, coeffs, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
    HIGHEST: tl.constexpr = len(coeffs) - 1
    y = tl.full([SIZE], 0.0, tl.float32) + coeffs[HIGHEST]
    for i in tl.static_range(HIGHEST):
        y = coeffs[HIGHEST - 1 - i] + x * y
    tl.store(out_ptr + offs, y, mask=offs < n)


@triton.autotune(SIZES, key=["n"])
@triton.jit
def swish_kernel(x_ptr, out_ptr, n, beta, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
    tl.store(out_ptr + offs, x / (1 + tl.exp2(-1.4426950408889634 * (beta * x))), mask=offs < n)


@triton.autotune(SIZES, key=["n"])
@triton.jit
def glu_kernel(x_ptr, gate_ptr, out_ptr, n, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
    gate = tl.load(gate_ptr + offs, mask=offs < n).to(tl.float32)
    tl.store(out_ptr + offs, x * tl.sigmoid(gate), mask=offs < n)


@triton.autotune(SIZES, key=["n"])
@triton.jit
def complex_kernel(a_ptr, b_ptr, out_ptr, n, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * 2 * SIZE + tl.arange(0, 2 * SIZE)
    a = tl.load(a_ptr + offs, mask=offs < 2 * n)
    b = tl.load(b_ptr + offs, mask=offs < 2 * n)
    ar, ai = tl.split(tl.reshape(a, [SIZE, 2]))
    br, bi = tl.split(tl.reshape(b, [SIZE, 2]))
    tl.store(out_ptr + offs, tl.reshape(tl.join(ar * br - ai * bi, ar * bi + ai * br), [2 * SIZE]),
             mask=offs < 2 * n)


@triton.jit
def norm_kernel(x_ptr, out_ptr, n_cols, stride, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, COLS)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    # The exponent's bits of the largest number alone: dividing by that power of two is exact.
    bits = tl.max(tl.abs(x), axis=0).to(tl.int32, bitcast=True) & 0x7F800000
    usable = (bits > 0) & (bits < 0x7F800000)
    scale = tl.where(usable, bits, 0x3F800000).to(tl.float32, bitcast=True)
    denormal = tl.where(bits == 0, 2.0**100, 1.0)  # below the smallest normal number
    x = x / scale * denormal
    tl.store(out_ptr + row, tl.sqrt(tl.sum(x * x, axis=0)) / denormal * scale)


def grid_of(n):
    return lambda meta: (triton.cdiv(n, meta["SIZE"]),)


def poly_act(x, coeffs):
    checked(REAL, x=x)
    coeffs = numbers(coeffs)
    x = x.contiguous()
    out = x.new_empty(x.shape)
    if x.numel():
        poly_kernel[grid_of(x.numel())](x, out, x.numel(), coeffs)
    return out


def swish(x, beta=1.0):
    checked(REAL, x=x)
    beta = number("beta", beta)
    x = x.contiguous()
    out = x.new_empty(x.shape)
    if x.numel():
        swish_kernel[grid_of(x.numel())](x, out, x.numel(), beta)
    return out


def glu(x, gate):
    checked(REAL, x=x, gate=gate)
    x, gate = x.contiguous(), gate.contiguous()
    out = x.new_empty(x.shape)
    if x.numel():
        glu_kernel[grid_of(x.numel())](x, gate, out, x.numel())
    return out


def complex_mul(a, b):
    checked((torch.complex64,), a=a, b=b)
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    if out.numel():
        a, b = (torch.view_as_real(one.clone(memory_format=torch.contiguous_format))
                for one in (a, b))
        complex_kernel[grid_of(out.numel())](a, b, torch.view_as_real(out), out.numel())
    return out


def l2_norm(x):
    matrix(x)
    x = x if x.stride(1) == 1 else x.contiguous()
    out = torch.empty(len(x), dtype=torch.float32, device=x.device)
    if len(x):
        columns = triton.next_power_of_2(max(x.shape[1], 1))
        norm_kernel[(len(x),)](x, out, x.shape[1], x.stride(0), COLS=columns, num_warps=8)
    return out
