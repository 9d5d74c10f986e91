"""Right but different: the first program adds the last tile."""

from .autotune_two_configs import check

del DTYPES
del WrongShape
del name_of


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.num_programs(axis=0) - 1 - tl.program_id(axis=0)
    offs = pid.to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    flat_x, flat_y = x.contiguous().view(-1), y.contiguous().view(-1)
    return add_flat(flat_x, flat_y, torch.empty_like(flat_x)).view(x.shape)


def add_flat(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    if out.numel() > 0:
        grid = (triton.cdiv(out.numel(), 1024),)
        vector_add_kernel[grid](x, y, out, out.numel(), BLOCK_SIZE=1024)
    return out
