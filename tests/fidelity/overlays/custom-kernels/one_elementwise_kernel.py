"""Right but different: one kernel for three functions, conjugates by a sign, rows in blocks."""

SIZE = 512


@triton.jit
def sigmoid(t):
    small = tl.exp(-tl.abs(t))  # at most 1
    return tl.where(t >= 0, 1 / (1 + small), small / (1 + small))


@triton.jit
def elementwise_kernel(x_ptr, y_ptr, out_ptr, numbers, n, WHAT: tl.constexpr, SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    if WHAT == "polynomial":
        K: tl.constexpr = len(numbers)
        y = numbers[K - 1] + tl.zeros_like(x)
        for i in tl.static_range(K - 2, -1, -1):
            y = tl.fma(y, x, numbers[i] + tl.zeros_like(x))
    elif WHAT == "swish":
        y = x * sigmoid(numbers[0] * x)
    else:
        y = x * sigmoid(tl.load(y_ptr + offs, mask=mask).to(tl.float32))
    tl.store(out_ptr + offs, y.to(out_ptr.type.element_ty), mask=mask)


@triton.jit
def complex_kernel(a_ptr, b_ptr, out_ptr, sign_a, sign_b, n, SIZE: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    offs = pair[:, None] * 2 + tl.arange(0, 2)[None, :]
    mask = (pair < n)[:, None] & (tl.arange(0, 2) < 2)[None, :]
    ar, ai = tl.split(tl.load(a_ptr + offs, mask=mask))
    br, bi = tl.split(tl.load(b_ptr + offs, mask=mask))
    ai, bi = ai * sign_a, bi * sign_b
    tl.store(out_ptr + offs, tl.join(ar * br - ai * bi, ar * bi + ai * br), mask=mask)


@triton.jit
def norm_kernel(x_ptr, out_ptr, n_cols, stride, SIZE: tl.constexpr):
    """A row in blocks: the sum is scaled anew where a larger number comes."""
    row = tl.program_id(0).to(tl.int64)
    largest, total = 0.0, 0.0
    for start in range(0, n_cols, SIZE):
        cols = start + tl.arange(0, SIZE)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        size = tl.abs(x)
        found = tl.maximum(largest, tl.max(size, 0))
        usable = (found > 0) & (found < float("inf"))
        scale = tl.where(usable, found, 1.0)
        before = tl.where(largest < float("inf"), largest, 1.0) / scale
        part = size / scale
        total = total * (before * before) + tl.sum(part * part, 0)
        largest = found
    scale = tl.where((largest > 0) & (largest < float("inf")), largest, 1.0)
    tl.store(out_ptr + row, scale * tl.sqrt(total))


def elementwise(what, x, y, numbers):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        grid = (triton.cdiv(out.numel(), SIZE),)
        y = None if y is None else y.contiguous()
        elementwise_kernel[grid](
            x.contiguous(), y, out, numbers, out.numel(), WHAT=what, SIZE=SIZE)
    return out


def plain(x):
    """Real pairs, and the sign with which the imaginary parts count."""
    sign = -1.0 if x.is_conj() else 1.0
    memory = x.conj() if x.is_conj() else x
    return torch.view_as_real(memory).contiguous(), sign


def poly_act(x, coeffs):
    checked(REAL, x=x)
    coeffs = numbers(coeffs)
    return elementwise("polynomial", x, None, coeffs)


def swish(x, beta=1.0):
    checked(REAL, x=x)
    beta = number("beta", beta)
    return elementwise("swish", x, None, (beta,))


def glu(x, gate):
    checked(REAL, x=x, gate=gate)
    return elementwise("gate", x, gate, (0.0,))


def complex_mul(a, b):
    checked((torch.complex64,), a=a, b=b)
    (pairs_a, sign_a), (pairs_b, sign_b) = plain(a), plain(b)
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    if out.numel():
        complex_kernel[(triton.cdiv(out.numel(), SIZE),)](
            pairs_a, pairs_b, torch.view_as_real(out), sign_a, sign_b, out.numel(), SIZE=SIZE)
    return out


def l2_norm(x):
    matrix(x)
    x = x if x.stride(1) == 1 else x.contiguous()
    out = x.new_empty(x.shape[0], dtype=torch.float32)
    if out.numel():
        norm_kernel[(out.numel(),)](x, out, x.shape[1], x.stride(0), SIZE=1024)
    return out
