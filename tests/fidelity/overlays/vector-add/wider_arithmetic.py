"""Right but different: floats are added in float32 and cast back; a program may return early."""

from .autotune_two_configs import check

del DTYPES
del WrongShape
del name_of


@triton.jit
def vector_add_kernel(
    x_ptr, y_ptr, out_ptr, n_elements, IS_FLOAT: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * BLOCK_SIZE
    if start >= n_elements:
        return
    offs = start + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    total = x + y
    if IS_FLOAT:
        total = x.to(tl.float32) + y.to(tl.float32)
    tl.store(out_ptr + offs, total.to(out_ptr.dtype.element_ty), mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if n == 0:
        return out
    vector_add_kernel[(triton.cdiv(n, 1024),)](
        x, y, out, n, IS_FLOAT=x.is_floating_point(), BLOCK_SIZE=1024
    )
    return out
