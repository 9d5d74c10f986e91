"""Right but different: results are named tuples, and a program walks while there is a tile."""

from .autotuned import occupancy
from .moving_indices import DeviceLimits, Occupancy


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
