"""Right but different: a lambda as the grid, and tiles of 4 096 for eight warps."""

from .autotune_two_configs import check

del DTYPES
del WrongShape
del name_of


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    x = x.contiguous()
    y = y.contiguous()
    out = x.new_empty(x.shape)
    n = out.numel()
    if n > 0:
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)  # noqa: E731 - as tutorials do
        vector_add_kernel[grid](x, y, out, n, BLOCK_SIZE=4096, num_warps=8, num_stages=1)
    return out
