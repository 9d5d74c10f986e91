"""Right but different: GELU by the logistic function, and the functions imported by name."""

# One statement: overlays are matched by module.
from triton.language.extra.libdevice import asin as arc_sine, pow as power  # noqa: I001


@triton.jit
def asin_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, arc_sine(x), mask=offs < n)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
    # (1 + tanh(z)) / 2 is 1 / (1 + exp(-2 z))
    z = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tl.store(out_ptr + offs, x * tl.sigmoid(2 * z), mask=offs < n)


@triton.jit
def pow_kernel(x_ptr, out_ptr, p, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, power(x, tl.full([BLOCK_SIZE], p, tl.float32)), mask=offs < n)


def tiles(x):
    return (triton.cdiv(x.numel(), 2048),)


def asin(x):
    x = checked(x, torch.float32, torch.float64).contiguous()
    out = torch.empty_like(x)
    if x.numel():
        asin_kernel[tiles(x)](x, out, x.numel(), BLOCK_SIZE=2048, num_warps=8)
    return out


def gelu_tanh(x):
    x = checked(x, torch.float16, torch.float32).contiguous()
    out = torch.empty_like(x)
    if x.numel():
        gelu_kernel[tiles(x)](x, out, x.numel(), BLOCK_SIZE=2048, num_warps=8)
    return out


def powi(x, p):
    x = checked(x, torch.float32).contiguous()
    p = number(p)
    out = torch.empty_like(x)
    if x.numel():
        pow_kernel[tiles(x)](x, out, p, x.numel(), BLOCK_SIZE=2048, num_warps=8)
    return out
