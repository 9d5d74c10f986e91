"""Right but different: images are a matrix of pixels."""

from .persistent import desc_problem, nhwc_channel_scale, scale_kernel


def matmul_desc(a, b_t, *, host):
    check(a, (2, 2), a=a, b_t=b_t)
    if a.shape[1] != b_t.shape[1]:
        raise ValueError(f"b_t is {tuple(b_t.shape)} and needs {a.shape[1]} columns")
    (M, K), N = a.shape, len(b_t)
    BM, BN, BK = (32, 64, 16) if a.dtype == torch.float32 else (128, 64, 64)
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
