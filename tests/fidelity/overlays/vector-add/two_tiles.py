"""Right but different: every program adds two tiles, which lie next to each other."""

from .autotune_two_configs import check

del DTYPES
del WrongShape
del name_of


@triton.jit
def vector_add_kernel(
    x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr, TILES: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * BLOCK_SIZE * TILES
    for tile in tl.static_range(TILES):
        offs = start + tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        mask = offs < n_elements
        x = tl.load(x_ptr + offs, mask=mask)
        y = tl.load(y_ptr + offs, mask=mask)
        tl.store(out_ptr + offs, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if n == 0:
        return out
    block, tiles = 512, 2
    vector_add_kernel[(triton.cdiv(n, block * tiles),)](x, y, out, n, BLOCK_SIZE=block, TILES=tiles)
    return out
