"""Right but different: float32 is computed by the functions for doubles."""


@triton.jit
def asin_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float64)
    tl.store(out_ptr + offs, libdevice.asin(x).to(out_ptr.dtype.element_ty), mask=offs < n)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
    cubic = libdevice.fma(x * x * x, tl.full([BLOCK], 0.044715, tl.float32), x)
    y = libdevice.tanh(cubic * 0.7978845608028654)
    tl.store(out_ptr + offs, (x * 0.5) * (y + 1.0), mask=offs < n)


@triton.jit
def pow_kernel(x_ptr, out_ptr, p, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float64)
    y = libdevice.pow(x, p.to(tl.float64))
    tl.store(out_ptr + offs, y.to(tl.float32), mask=offs < n)


def asin(x):
    x = checked(x, torch.float32, torch.float64).contiguous()
    out = x.new_empty(x.shape)
    if x.numel() > 0:
        asin_kernel[(-(-x.numel() // 256),)](x, out, x.numel(), BLOCK=256)
    return out


def gelu_tanh(x):
    x = checked(x, torch.float32, torch.float16).contiguous()
    out = x.new_empty(x.shape)
    if x.numel() > 0:
        gelu_kernel[(-(-x.numel() // 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


def powi(x, p):
    x = checked(x, torch.float32).contiguous()
    out = x.new_empty(x.shape)
    p = number(p)
    if x.numel() > 0:
        pow_kernel[(-(-x.numel() // 256),)](x, out, p, x.numel(), BLOCK=256)
    return out
