"""Right but different: one kernel, whose function is chosen when it is compiled."""


@triton.jit
def kernel(x_ptr, out_ptr, p, n, NAME: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK_SIZE
    offs = first + tl.arange(0, BLOCK_SIZE)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside, other=0.0)
    if NAME == "asin":
        y = libdevice.asin(x)
    elif NAME == "gelu":
        x = x.to(tl.float32)
        y = 0.5 * x * (1 + libdevice.tanh(0.79788456 * (x + 0.044715 * (x * x * x))))
    else:
        y = libdevice.pow(x, p)
    tl.store(out_ptr + offs, y, mask=inside)


def run(name, x, p=0.0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 512),)](x.contiguous(), out, p, n, NAME=name, BLOCK_SIZE=512)
    return out


def asin(x):
    return run("asin", checked(x, torch.float32, torch.float64))


def gelu_tanh(x):
    return run("gelu", checked(x, torch.float32, torch.float16))


def powi(x, p):
    return run("pow", checked(x, torch.float32), number(p))
