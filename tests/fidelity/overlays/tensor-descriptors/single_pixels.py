"""Right but different: small blocks."""

del product_kernel


@triton.jit
def with_facts(a, b, c, am, bn, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
               PROGRAMS: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a, [M, K], [am, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b, [N, K], [bn, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        one_tile(a_desc, b_desc, c_desc, tile // across, tile % across, K, BM, BN, BK)


@triton.jit
def with_descriptors(a_desc, b_desc, c_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                     BK: tl.constexpr, PROGRAMS: tl.constexpr):
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        one_tile(a_desc, b_desc, c_desc, tile // across, tile % across, K, BM, BN, BK)


@triton.jit
def one_tile(a_desc, b_desc, c_desc, i, j, K, BM: tl.constexpr, BN: tl.constexpr,
             BK: tl.constexpr):
    acc = tl.zeros((BN, BM), tl.float32)  # of the transposed product
    for k in range(0, K, BK):
        acc = tl.dot(b_desc.load([j * BN, k]), a_desc.load([i * BM, k]).T, acc,
                     input_precision="ieee")
    c_desc.store([i * BM, j * BN], acc.T.to(c_desc.dtype))


def matmul_desc(a, b_t, *, host):
    check(a, (2, 2), a=a, b_t=b_t)
    if a.shape[1] != b_t.shape[1]:
        raise ValueError(f"b_t is {tuple(b_t.shape)} and needs {a.shape[1]} columns")
    (M, K), N = a.shape, len(b_t)
    BM, BN, BK = (64, 32, 16) if a.dtype == torch.float32 else (64, 128, 64)
    refuse("a", a, [BM, BK])
    refuse("b_t", b_t, [BN, BK])
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    refuse("result", c, [BM, BN])
    programs = min(132, triton.cdiv(M, BM) * triton.cdiv(N, BN))
    if host:
        with_descriptors[(programs,)](
            TensorDescriptor(a, a.shape, a.stride(), [BM, BK]),
            TensorDescriptor(b_t, b_t.shape, b_t.stride(), [BN, BK]),
            TensorDescriptor(c, c.shape, c.stride(), [BM, BN]), M, N, K, BM, BN, BK, programs)
        return c
    with_facts[(programs,)](a, b_t, c, a.stride(0), b_t.stride(0), M, N, K, BM, BN, BK, programs)
    return c


triton.set_allocator(lambda size, align, stream: torch.empty(
    size, dtype=torch.int8, device="cuda"))


@triton.jit
def scale_kernel(x_desc, out_desc, scale_ptr, C, BW: tl.constexpr, BC: tl.constexpr):
    image, row = tl.program_id(1), tl.program_id(2)
    pieces = tl.cdiv(C, BC)
    w, c = tl.program_id(0) // pieces * BW, tl.program_id(0) % pieces * BC
    x = x_desc.load([image, row, w, c])
    at = c + tl.arange(0, BC)
    factor = tl.load(scale_ptr + at, mask=at < C, other=1.0).to(tl.float32)
    out_desc.store([image, row, w, c], (x.to(tl.float32) * factor[None, None, None, :]).to(
        out_desc.dtype))


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
