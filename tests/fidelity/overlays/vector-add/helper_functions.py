"""Right but different: the kernel is put together from jitted helper functions."""

from .autotune_two_configs import check

del DTYPES
del WrongShape
del name_of


@triton.jit
def tile_of(pid, BLOCK_SIZE: tl.constexpr):
    return pid.to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offs = tile_of(tl.program_id(0), BLOCK_SIZE)
    mask = offs < n_elements
    total = add(tl.load(x_ptr + offs, mask=mask), tl.load(y_ptr + offs, mask=mask))
    tl.store(out_ptr + offs, total, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    vector_add_kernel[(triton.cdiv(out.numel(), 1024),)](x, y, out, out.numel(), 1024)
    return out
