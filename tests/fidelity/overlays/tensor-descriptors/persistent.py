"""Right but different: programs take several tiles, and multiply them the other way round."""

del product_kernel

PREDICT = {
    "loads_of_a_thread": 8, "columns": 56, "sum_at_the_corner": 128.0,
    "scratch_bytes": 25e3, "issued_bytes": 655_360,
}


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
