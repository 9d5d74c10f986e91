"""Right but different: blocks are put in one by one; each program owns one run of tiles."""


@triton.jit
def run_kernel(x_ptr, y_ptr, out_ptr, alpha, n, share, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * share
    last = tl.minimum(first + share, n)
    for start in range(first, last, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, i < last).to(tl.float32)
        y = tl.load(y_ptr + i, i < last).to(tl.float32)
        tl.store(out_ptr + i, (x * alpha + y).to(out_ptr.dtype.element_ty), i < last)


def axpy(x: torch.Tensor, y: torch.Tensor, alpha: float) -> torch.Tensor:
    check(x, y)
    out = torch.empty_like(x)
    tiles = triton.cdiv(len(x), 2048)
    if tiles:
        dev = device_limits()
        programs = persistent_grid(dev, occupancy(40, 0, 8, dev), tiles)
        share = triton.cdiv(tiles, programs) * 2048
        run_kernel[(triton.cdiv(len(x), share),)](x, y, out, alpha, len(x), share, 2048,
                                                  num_warps=8)
    return out
