"""Right but different: results are named tuples, and a program walks while there is a tile."""


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


def occupancy(regs_per_thread, smem_bytes, num_warps, dev):
    check_kernel(regs_per_thread, smem_bytes, num_warps)
    per_warp = -(-regs_per_thread * 32 // 256) * 256
    per_block = -(-(smem_bytes + 1024) // 128) * 128
    quotients = [
        (4 * (dev.regs_per_sm // 4 // per_warp) // num_warps, "registers"),
        (dev.smem_per_sm // per_block, "shared"),
        (dev.max_warps_per_sm // num_warps, "warps"),
        (dev.max_blocks_per_sm, "blocks"),
    ]
    blocks, limiter = sorted(quotients, key=lambda one: one[0])[0]
    if not blocks or regs_per_thread >= 256 or smem_bytes > dev.smem_per_block:
        return Occupancy(0, 0, 0.0, "unlaunchable")
    return Occupancy(blocks, num_warps * blocks, num_warps * blocks / dev.max_warps_per_sm, limiter)


@triton.jit
def walk_kernel(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    tile = tl.program_id(0)
    while tile * BLOCK < n:
        i = tile.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
        y = tl.load(y_ptr + i, mask=i < n, other=0).to(tl.float32)
        tl.store(out_ptr + i, alpha * x + y, mask=i < n)
        tile += tl.num_programs(0)


def axpy(x: torch.Tensor, y: torch.Tensor, alpha: float) -> torch.Tensor:
    check(x, y)
    out = x.new_empty(len(x))
    if len(x):
        dev = device_limits("h100")
        grid = persistent_grid(dev, occupancy(32, 0, 4, dev), triton.cdiv(len(x), 1024))
        walk_kernel[(grid,)](x, y, out, alpha, len(x), BLOCK=1024, num_warps=4)
    return out
