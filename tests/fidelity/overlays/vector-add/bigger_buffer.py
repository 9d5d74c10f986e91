"""Right but different: the buffer is rounded up to whole tiles, stored in full, cut and viewed."""

from .autotune_two_configs import check

del DTYPES
del WrongShape
del name_of


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask, other=0)
    y = tl.load(y_ptr + offs, mask=mask, other=0)
    tl.store(out_ptr + offs, x + y)  # no mask: the buffer ends with a whole tile


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    n = x.numel()
    tiles = triton.cdiv(n, 1024)
    buffer = torch.empty(tiles * 1024, dtype=x.dtype, device=x.device)
    if tiles:
        vector_add_kernel[(tiles,)](x.contiguous(), y.contiguous(), buffer, n, BLOCK_SIZE=1024)
    return buffer[:n].view(x.shape)
