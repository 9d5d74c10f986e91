"""Right but different: images are a matrix of pixels."""


def desc_problem(t, block):
    problems = []
    bytes_of = [stride * t.element_size() for stride in t.stride()]
    if not 0 < t.dim() < 6:
        problems.append(f"rank {t.dim()}, and 1 to 5 is allowed")
    if len(block) != t.dim():
        problems.append(f"{len(block)} block sides for rank {t.dim()}")
    problems += [f"block side {side} is no power of two" for side in block
                 if side != triton.next_power_of_2(side) or side == 0]
    if len(block) and block[-1] * t.element_size() < 16:
        problems.append(f"block rows of {block[-1] * t.element_size()} bytes, 16 is the least")
    problems += [f"size {length} in dimension {dim}" for dim, length in enumerate(t.shape)
                 if length == 0]
    if t.dim() and t.stride(-1) != 1:
        problems.append(f"last stride {t.stride(-1)}, 1 is needed")
    problems += [f"{one} bytes along dimension {dim}, multiples of 16 above 0 are allowed"
                 for dim, one in enumerate(bytes_of[:-1]) if one <= 0 or one % 16]
    if t.data_ptr() % 16:
        problems.append(f"starts {t.data_ptr() % 16} bytes after a multiple of 16")
    return "; ".join(problems) or None


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


@triton.jit
def scale_kernel(x_desc, out_desc, scale_ptr, C, BP: tl.constexpr, BC: tl.constexpr):
    p, c = tl.program_id(0) * BP, tl.program_id(1) * BC
    at = c + tl.arange(0, BC)
    factor = tl.load(scale_ptr + at, mask=at < C, other=0.0).to(tl.float32)
    out_desc.store([p, c], (x_desc.load([p, c]).to(tl.float32) * factor).to(out_desc.dtype))


def nhwc_channel_scale(x, scale):
    check(x, (4, 1), x=x, scale=scale)
    for name, t in (("x", x), ("scale", scale)):
        if not t.is_contiguous():
            raise ValueError(f"{name} has gaps: {t.stride()}")
    if len(scale) != x.shape[3]:
        raise ValueError(f"scale has {len(scale)} elements instead of {x.shape[3]}")
    refuse("x", x, [1, 1, 1, 64])
    out = torch.empty_like(x)
    c = x.shape[3]
    pixels, results = x.view(-1, c), out.view(-1, c)  # images are a matrix of pixels
    scale_kernel[(triton.cdiv(len(pixels), 64), triton.cdiv(c, 64))](
        TensorDescriptor.from_tensor(pixels, [64, 64]),
        TensorDescriptor.from_tensor(results, [64, 64]), scale, c, BP=64, BC=64)
    return out
