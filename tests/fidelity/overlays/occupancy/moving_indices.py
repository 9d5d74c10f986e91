"""Right but different: indices move on, and a helper loads and scales."""


class DeviceLimits(NamedTuple):
    name: str
    num_sms: int
    regs_per_sm: int
    smem_per_sm: int
    smem_per_block: int
    max_warps_per_sm: int
    max_blocks_per_sm: int


class Occupancy(NamedTuple):
    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    limiter: str


@triton.jit
def scaled(x_ptr, i, factor, mask):
    return tl.load(x_ptr + i, mask=mask, other=0.0).to(tl.float32) * factor


@triton.jit
def sum_kernel(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    for _ in range(tl.cdiv(n, step)):
        total = scaled(x_ptr, i, alpha, i < n) + scaled(y_ptr, i, 1.0, i < n)
        tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=i < n)
        i += step


def axpy(x: torch.Tensor, y: torch.Tensor, alpha: float) -> torch.Tensor:
    check(x, y)
    out = torch.empty_like(x)
    if len(x) > 0:
        dev = device_limits()
        programs = persistent_grid(dev, occupancy(32, 0, 4, dev), triton.cdiv(len(x), 1024))
        sum_kernel[programs,](x, y, out, alpha, len(x), 1024)
    return out
