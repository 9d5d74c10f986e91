"""Right but different: images are described in the kernel, and stored by pointers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

PREDICT = {
    "loads_of_a_thread": 8, "columns": 56, "sum_at_the_corner": 128.0,
    "scratch_bytes": 24_576, "issued_bytes": 655_360,
}


def desc_problem(t, block):
    size, rank = t.element_size(), t.dim()
    if rank < 1 or rank > 5:
        return f"{rank} dimensions; 1 to 5 are possible"
    if len(block) != rank:
        return f"a block of {len(block)} sides for {rank} dimensions"
    wrong = [side for side in block if side <= 0 or side.bit_count() != 1]
    if wrong:
        return f"sides of the block that are no powers of two: {wrong}"
    if block[-1] * size < 16:
        return f"{block[-1] * size} bytes in a row of the block; at least 16"
    if 0 in t.shape:
        return f"nothing to describe in {list(t.shape)}: a size is 0"
    *steps, last = t.stride()
    if last != 1:
        return f"elements of a row lie {last} apart, not 1"
    for step in steps:
        if step == 0 or step * size & 15:
            return f"{step * size} bytes between rows: no multiple of 16, or 0"
    return f"its base is {t.data_ptr() % 16} bytes off 16" if t.data_ptr() % 16 else None


@triton.jit
def product_kernel(a, b, c, stride_am, stride_bn, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr, HOST: tl.constexpr):
    if HOST:
        a_desc, b_desc, c_desc = a, b, c
    else:
        a_desc = tl.make_tensor_descriptor(a, [M, K], [stride_am, 1], [BM, BK])
        b_desc = tl.make_tensor_descriptor(b, [N, K], [stride_bn, 1], [BN, BK])
        c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    row, col = tl.program_id(1) * BM, tl.program_id(0) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        left, right = a_desc.load([row, step * BK]), b_desc.load([col, step * BK])
        acc = tl.dot(left, tl.trans(right), acc, input_precision="ieee")
    c_desc.store([row, col], acc.to(c_desc.dtype))


def matmul_desc(a, b_t, *, host):
    check(a, (2, 2), a=a, b_t=b_t)
    if a.shape[1] != b_t.shape[1]:
        raise ValueError(f"b_t is {tuple(b_t.shape)} and needs {a.shape[1]} columns")
    (M, K), N = a.shape, len(b_t)
    BM, BN, BK = (32, 64, 16) if a.dtype == torch.float32 else (64, 128, 32)
    c = a.new_empty((M, N))
    blocks = {"a": (a, [BM, BK]), "b_t": (b_t, [BN, BK]), "result": (c, [BM, BN])}
    for name, (t, block) in blocks.items():
        refuse(name, t, block)
    if host:
        what = [TensorDescriptor.from_tensor(t, block) for t, block in blocks.values()]
    else:
        triton.set_allocator(lambda size, align, stream: torch.empty(
            size, dtype=torch.uint8, device=a.device))
        what = [a, b_t, c]
    product_kernel[triton.cdiv(N, BN), triton.cdiv(M, BM)](
        *what, a.stride(0), b_t.stride(0), M, N, K, BM=BM, BN=BN, BK=BK, HOST=host, num_warps=4)
    return c


@triton.jit
def scale_kernel(x_ptr, out_ptr, scale_ptr, N, H, W, C, BW: tl.constexpr, BC: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [N, H, W, C], [H * W * C, W * C, C, 1],
                                       [1, 1, BW, BC])
    n, h = tl.program_id(0) // H, tl.program_id(0) % H
    c = tl.program_id(1) * BC
    at = c + tl.arange(0, BC)
    factor = tl.load(scale_ptr + at, mask=at < C, other=0.0).to(tl.float32)[None, :]
    for w in range(0, W, BW):
        scaled = tl.reshape(x_desc.load([n, h, w, c]), [BW, BC]).to(tl.float32) * factor
        cols = w + tl.arange(0, BW)
        offs = (tl.program_id(0).to(tl.int64) * W + cols[:, None]) * C + at[None, :]
        tl.store(out_ptr + offs, scaled.to(out_ptr.dtype.element_ty),
                 mask=(cols < W)[:, None] & (at < C)[None, :])


def nhwc_channel_scale(x, scale):
    check(x, (4, 1), x=x, scale=scale)
    for name, t in (("x", x), ("scale", scale)):
        if not t.is_contiguous():
            raise ValueError(f"{name} has gaps: {t.stride()}")
    if len(scale) != x.shape[3]:
        raise ValueError(f"scale has {len(scale)} elements instead of {x.shape[3]}")
    bc = max(16 // x.element_size(), min(64, triton.next_power_of_2(x.shape[3])))
    refuse("x", x, [1, 1, 32, bc])
    out = torch.empty_like(x)
    triton.set_allocator(lambda size, align, stream: torch.empty(
        size, dtype=torch.int8, device=x.device))
    n, h, w, c = x.shape
    scale_kernel[(n * h, triton.cdiv(c, bc))](x, out, scale, n, h, w, c, BW=32, BC=bc)
    return out


def refuse(name, t, block):
    if reason := desc_problem(t, block):
        raise ValueError(f"{name} has no descriptor: {reason}")


def check(first, dims, **tensors):
    for (name, t), size in zip(tensors.items(), dims, strict=True):
        if not isinstance(t, torch.Tensor):
            raise TypeError(f"{name} is a {type(t).__name__}, no tensor")
        if t.dtype not in (torch.float16, torch.bfloat16, torch.float32) or t.dtype != first.dtype:
            raise TypeError(f"{name} is {t.dtype}; the first argument is {first.dtype}")
        if t.device != first.device:
            raise ValueError(f"{name} is on another device, {t.device}")
        if t.dim() != size:
            raise ValueError(f"{name} has {t.dim()} dimensions instead of {size}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
