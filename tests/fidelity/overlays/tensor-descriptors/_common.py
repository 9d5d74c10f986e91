"""What the right solutions here share, over the solution."""

del SUPPORTED
del ALIGNED
del MOST_DIMENSIONS
del multiply_tile
del matmul_device_kernel
del matmul_host_kernel
del channel_scale_kernel
del describable
del scratch
del check_product
del check_images
del check_tensor

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
