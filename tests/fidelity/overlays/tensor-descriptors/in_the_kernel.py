"""Right but different: images are described in the kernel, and stored by pointers."""


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
