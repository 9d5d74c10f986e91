"""Right but different: small blocks."""

from .one_kernel import scale_kernel
from .persistent import matmul_desc, one_tile, with_descriptors, with_facts

del product_kernel


triton.set_allocator(lambda size, align, stream: torch.empty(
    size, dtype=torch.int8, device="cuda"))


def nhwc_channel_scale(x, scale):
    check(x, (4, 1), x=x, scale=scale)
    for name, t in (("x", x), ("scale", scale)):
        if not t.is_contiguous():
            raise ValueError(f"{name} has gaps: {t.stride()}")
    if len(scale) != x.shape[3]:
        raise ValueError(f"scale has {len(scale)} elements instead of {x.shape[3]}")
    block = [1, 1, 8, 128]
    refuse("x", x, block)
    out = x.new_empty(x.shape)
    n, h, w, c = x.shape
    scale_kernel[(triton.cdiv(w, 8) * triton.cdiv(c, 128), n, h)](
        TensorDescriptor.from_tensor(x, block), TensorDescriptor.from_tensor(out, block), scale, c,
        BW=8, BC=128)
    return out
