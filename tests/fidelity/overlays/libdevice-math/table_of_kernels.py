"""Right but different: kernels in a table, helpers in the kernels, a flat view of x."""
import triton.language.extra.libdevice as lib


@triton.jit
def where(n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    return offs, offs < n


@triton.jit
def angles(x_ptr, out_ptr, p, n, BLOCK_SIZE: tl.constexpr):
    offs, inside = where(n, BLOCK_SIZE)
    tl.store(out_ptr + offs, lib.asin(tl.load(x_ptr + offs, inside)), inside)


@triton.jit
def gelus(x_ptr, out_ptr, p, n, BLOCK_SIZE: tl.constexpr):
    offs, inside = where(n, BLOCK_SIZE)
    x = tl.cast(tl.load(x_ptr + offs, inside), tl.float32)
    inner = tl.fma(x * x * x, 0.044715, x) * 0.7978845608028654
    tl.store(out_ptr + offs, tl.fma(x * 0.5, lib.tanh(inner), x * 0.5), inside)


@triton.jit
def powers(x_ptr, out_ptr, p, n, BLOCK_SIZE: tl.constexpr):
    offs, inside = where(n, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, inside, other=1.0)
    tl.store(out_ptr + offs, lib.pow(x, p), inside)


TABLE = {
    "asin": (angles, (torch.float32, torch.float64)),
    "gelu": (gelus, (torch.float32, torch.float16)),
    "pow": (powers, (torch.float32,)),
}


def look_up(name, x, p=1.5):
    kernel, dtypes = TABLE[name]
    flat = checked(x, *dtypes).reshape(-1)
    p = number(p)
    out = torch.empty(flat.numel(), dtype=x.dtype, device=x.device)
    if flat.numel():
        kernel[triton.cdiv(flat.numel(), 1024), 1, 1](
            flat.contiguous(), out, p, flat.numel(), BLOCK_SIZE=1024
        )
    return out.view(x.shape)


def asin(x):
    return look_up("asin", x)


def gelu_tanh(x):
    return look_up("gelu", x)


def powi(x, p):
    return look_up("pow", x, p)
