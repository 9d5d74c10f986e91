"""Right but different: keyword arguments in another order, another kernel name, a default width."""

from .autotune_two_configs import check

del vector_add_kernel
del DTYPES
del WrongShape
del name_of


@triton.jit
def tile_sum(n, result, right, left, BLOCK: tl.constexpr = 512):
    """result[i] = left[i] + right[i] for a flat run of n elements."""
    index = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    total = tl.load(left + index, inside) + tl.load(right + index, inside)
    tl.store(result + index, total, inside)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    out = torch.empty(x.size(), device=x.device, dtype=x.dtype)
    if out.numel():
        tile_sum[(-(-out.numel() // 512),)](
            left=x.contiguous(), right=y.contiguous(), result=out, n=out.numel(), num_warps=4
        )
    return out
