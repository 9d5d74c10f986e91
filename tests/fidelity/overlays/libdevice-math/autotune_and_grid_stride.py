"""Right but different: an autotuner picks the tile of one kernel, others walk with the grid."""


@triton.autotune(
    configs=[triton.Config({"BLOCK_SIZE": 512}, num_warps=4),
             triton.Config({"BLOCK_SIZE": 2048}, num_warps=8)],
    key=["n"],
)
@triton.jit
def asin_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, libdevice.asin(x), mask=offs < n)


@triton.jit
def gelu(x):
    x = x.to(tl.float32)
    return 0.5 * x * (1.0 + libdevice.tanh(0.7978845608028654 * x * (1.0 + 0.044715 * x * x)))


@triton.jit
def walking_kernel(x_ptr, out_ptr, p, n, GELU: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    step = tl.num_programs(0) * BLOCK_SIZE
    for first in range(tl.program_id(0) * BLOCK_SIZE, n, step):
        offs = first + tl.arange(0, BLOCK_SIZE).to(tl.int64)
        x = tl.load(x_ptr + offs, mask=offs < n)
        y = gelu(x).to(out_ptr.dtype.element_ty) if GELU else libdevice.pow(x, p)
        tl.store(out_ptr + offs, y, mask=offs < n)


def asin(x):
    x = checked(x, torch.float32, torch.float64).contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        asin_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](x, out, n)
    return out


def walk(x, p, is_gelu):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        grid = (min(triton.cdiv(n, 1024), 4096),)
        walking_kernel[grid](x, out, p, n, GELU=is_gelu, BLOCK_SIZE=1024)
    return out


def gelu_tanh(x):
    return walk(checked(x, torch.float32, torch.float16), 0.0, True)


def powi(x, p):
    return walk(checked(x, torch.float32), number(p), False)
