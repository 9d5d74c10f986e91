"""Right but different: large tiles, at half of the occupancy."""


@triton.jit
def few_kernel(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
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
        grid = persistent_grid(dev, occupancy(64, 0, 8, dev), triton.cdiv(len(x), 4096))
        few_kernel[(grid,)](x, y, out, alpha, len(x), BLOCK=4096, num_warps=8)
    return out
