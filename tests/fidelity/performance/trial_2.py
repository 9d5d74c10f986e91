"""Kernels without products, of the second trial of the timing model."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Case, Family, Given, matrices, vectors

sampling = Family("sampling, held out")
serving = Family("serving, held out")
quantized = Family("quantized, held out")
images = Family("images and sound, held out")
physics = Family("physics, held out")
rendering = Family("rendering, held out")
integers = Family("integers, held out")
sets = Family("graphs and boxes, held out")


# -- sampling ------------------------------------------------------------------------------------


@triton.jit
def gumbel_sample_kernel(logit_ptr, seed_ptr, token_ptr, n_cols, cooling, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    seed = tl.load(seed_ptr + row)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    token = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        logit = tl.load(logit_ptr + row * n_cols + offs, mask=offs < n_cols, other=-float("inf"))
        uniform = tl.maximum(tl.rand(seed, offs), 1e-7)
        score = logit.to(tl.float32) * cooling - tl.log(-tl.log(uniform))
        token = tl.where(score > best, offs, token)
        best = tl.maximum(best, score)
    lane = tl.argmax(best, axis=0)
    chosen = tl.sum(tl.where(tl.arange(0, BLOCK) == lane, token, 0), axis=0)
    tl.store(token_ptr + row, chosen.to(tl.int64))


@sampling("Gumbel samples of 96 rows of 128,256, bf16",
          (Given((96, 128256), "bfloat16"), Given((96,), "int64", below=1 << 40),
           Given((96,), "int64")))
def _(logit, seed, token):
    gumbel_sample_kernel[(96,)](logit, seed, token, 128256, 1.25, BLOCK=2048, num_warps=8)


@triton.jit
def top_p_kernel(logit_ptr, p_ptr, n_cols, top_p, steps, BLOCK: tl.constexpr):
    """The least likely tokens are dropped; their limit is found by bisection."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(logit_ptr + row * n_cols + offs, mask=mask, other=-float("inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x, axis=0))
    p = p / tl.sum(p, axis=0)
    high = tl.max(p, axis=0)
    low = high * 0.0
    for _ in range(steps):
        middle = 0.5 * (low + high)
        enough = tl.sum(tl.where(p >= middle, p, 0.0), axis=0) >= top_p
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle)
    p = tl.where(p >= low, p, 0.0)
    tl.store(p_ptr + row * n_cols + offs, p / tl.sum(p, axis=0), mask=mask)


@sampling("nucleus of rows of 32,000 by bisection, 16 warps",
          (Given((1024, 32000), "float16"), Given((1024, 32000))))
def _(logit, p):
    top_p_kernel[(1024,)](logit, p, 32000, 0.9, 20, BLOCK=32768, num_warps=16)


# -- serving of language models ------------------------------------------------------------------


@triton.jit
def fill_cache_kernel(qkv_ptr, slot_ptr, k_cache_ptr, v_cache_ptr, stride, first_k, first_v,
                      page_size, page_stride, WIDTH: tl.constexpr):
    """Keys and values of a token, next to its queries in memory, go to its slot of a page."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_ptr + token)
    if slot < 0:
        return
    at = slot // page_size * page_stride + slot % page_size * WIDTH
    offs = tl.arange(0, WIDTH)
    k = tl.load(qkv_ptr + token * stride + first_k + offs)
    v = tl.load(qkv_ptr + token * stride + first_v + offs)
    tl.store(k_cache_ptr + at + offs, k)
    tl.store(v_cache_ptr + at + offs, v)


@serving("keys and values of 16,384 tokens into pages, bf16",
         (Given((16384, 48 * 128), "bfloat16"), Given((16384,), "int64", below=65536),
          *(Given((4096, 16, 8, 128), "bfloat16"),) * 2), moves=16384 * (4 * 2048 + 8))
def _(qkv, slot, k_cache, v_cache):
    fill_cache_kernel[(16384,)](qkv, slot, k_cache, v_cache, 48 * 128, 32 * 128, 40 * 128, 16,
                                16 * 1024, WIDTH=1024, num_warps=4)


@triton.jit
def norm_rope_kernel(x_ptr, weight_ptr, position_ptr, table_ptr, y_ptr, n_heads, eps,
                     HEADS: tl.constexpr, HALF: tl.constexpr):
    """RMS norm of each head, then its two halves turn by the angle of the token's position."""
    token = tl.program_id(0)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)[:, None]
    d = tl.arange(0, HALF)
    at = (token * n_heads + head) * (2 * HALF) + d[None, :]
    a = tl.load(x_ptr + at).to(tl.float32)
    b = tl.load(x_ptr + at + HALF).to(tl.float32)
    square = tl.sum(a * a + b * b, axis=1) / (2 * HALF)
    scale = tl.rsqrt(square + eps)[:, None]
    a = a * scale * tl.load(weight_ptr + d).to(tl.float32)[None, :]
    b = b * scale * tl.load(weight_ptr + HALF + d).to(tl.float32)[None, :]
    row = table_ptr + tl.load(position_ptr + token) * (2 * HALF)
    cos = tl.load(row + d)[None, :]
    sin = tl.load(row + HALF + d)[None, :]
    tl.store(y_ptr + at, (a * cos - b * sin).to(tl.bfloat16))
    tl.store(y_ptr + at + HALF, (b * cos + a * sin).to(tl.bfloat16))


@serving("norm and rotation of 40 heads of 8,192 tokens, 2 warps, bf16",
         (Given((8192, 40, 128), "bfloat16"), Given((128,), "bfloat16"),
          Given((8192,), "int64", below=32768), Given((32768, 128)),
          Given((8192, 40, 128), "bfloat16")),
         moves=8192 * (40 * 128 * 4 + 512 + 8))
def _(x, weight, position, table, y):
    norm_rope_kernel[(8192, 5)](x, weight, position, table, y, 40, 1e-6, HEADS=8, HALF=64,
                                num_warps=2)


@triton.jit
def combine_experts_kernel(y_ptr, place_ptr, weight_ptr, out_ptr, width, TOP: tl.constexpr,
                           BLOCK: tl.constexpr):
    token = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(TOP):
        place = tl.load(place_ptr + token * TOP + k)
        weight = tl.load(weight_ptr + token * TOP + k)
        acc += weight * tl.load(y_ptr + place * width + cols).to(tl.float32)
    tl.store(out_ptr + token * width + cols, acc.to(tl.bfloat16))


@serving("outputs of 8 experts brought together for 8,192 tokens, bf16",
         (Given((65536, 2048), "bfloat16"), Given((8192, 8), "int32", below=65536),
          Given((8192, 8)), Given((8192, 2048), "bfloat16")))
def _(y, place, weight, out):
    combine_experts_kernel[(8192, 2)](y, place, weight, out, 2048, TOP=8, BLOCK=1024)


@triton.jit
def paged_query_kernel(q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, o_ptr, n_heads, n_pages, scale,
                       PAGE: tl.constexpr, D: tl.constexpr):
    """One query over the keys of its sequence, a page an iteration, by sums without products."""
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    length = tl.load(length_ptr + sequence) + 1
    slot = tl.arange(0, PAGE)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (sequence * n_heads + head) * D + d).to(tl.float32) * scale
    m_i = -1.0e6
    l_i = 0.0
    acc = tl.zeros((D,), tl.float32)
    for page in range(tl.cdiv(length, PAGE)):
        number = tl.load(table_ptr + sequence * n_pages + page).to(tl.int64)
        at = ((number * n_heads + head) * PAGE + slot)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at).to(tl.float32)
        s = tl.sum(k * q[None, :], axis=1)
        s = tl.where(page * PAGE + slot < length, s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, axis=0))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(s - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=0)
        v = tl.load(v_ptr + at).to(tl.float32)
        acc = acc * alpha + tl.sum(p[:, None] * v, axis=0)
        m_i = m_new
    tl.store(o_ptr + (sequence * n_heads + head) * D + d, (acc / l_i).to(tl.float16))


@serving("single queries over pages of 16 keys, up to 4,096 of them, fp16",
         (Given((48, 8, 128), "float16"), *(Given((8192, 8, 16, 128), "float16"),) * 2,
          Given((48, 256), "int32", below=8192), Given((48,), "int32", below=4096),
          Given((48, 8, 128), "float16")), moves=48 * 8 * 2048 * 128 * 4)
def _(q, k, v, table, length, o):
    paged_query_kernel[(48, 8)](q, k, v, table, length, o, 8, 256, 128**-0.5, PAGE=16, D=128)


@triton.jit
def selective_scan_kernel(x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, z_ptr, y_ptr, length, width,
                          N: tl.constexpr, BD: tl.constexpr):
    """A state of N for each channel, carried along time."""
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    n = tl.arange(0, N)
    base = tl.program_id(1) * length
    a = -tl.exp(tl.load(a_ptr + d[:, None] * N + n[None, :]))
    h = tl.zeros((BD, N), tl.float32)
    for t in range(length):
        at = (base + t) * width + d
        x = tl.load(x_ptr + at).to(tl.float32)
        dt = tl.load(dt_ptr + at).to(tl.float32)
        z = tl.load(z_ptr + at).to(tl.float32)
        dt = tl.where(dt > 20.0, dt, tl.log(1.0 + tl.exp(dt)))
        b = tl.load(b_ptr + (base + t) * N + n).to(tl.float32)
        c = tl.load(c_ptr + (base + t) * N + n).to(tl.float32)
        h = tl.exp(dt[:, None] * a) * h + (dt * x)[:, None] * b[None, :]
        y = tl.sum(h * c[None, :], axis=1) * z / (1.0 + tl.exp(-z))
        tl.store(y_ptr + at, y.to(tl.float16))


@serving("selective scan of 1,024 steps by 256 programs of 2 warps, fp16",
         (*(Given((4, 1024, 2048), "float16"),) * 2, Given((2048, 16)),
          *(Given((4, 1024, 16), "float16"),) * 2, *(Given((4, 1024, 2048), "float16"),) * 2))
def _(x, dt, a, b, c, z, y):
    selective_scan_kernel[(2048 // 32, 4)](x, dt, a, b, c, z, y, 1024, 2048, N=16, BD=32,
                                           num_warps=2)


# -- quantized weights and optimizer states ------------------------------------------------------


@triton.jit
def awq_unpack_kernel(q_ptr, scale_ptr, zero_ptr, w_ptr, n_packed, GROUP: tl.constexpr,
                      BK: tl.constexpr, BN: tl.constexpr):
    """Eight weights of 4 bits in a word, even ones first; a scale and a zero for each group."""
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    packed = tl.program_id(0) * BN + tl.arange(0, BN)
    n = tl.program_id(0) * BN * 8 + tl.arange(0, BN * 8)
    place = tl.arange(0, BN * 8) % 8
    shift = (place % 2 * 4 + place // 2) * 4
    q = tl.load(q_ptr + k[:, None] * n_packed + packed[None, :])
    q = tl.interleave(q, q)
    q = tl.interleave(q, q)
    q = tl.interleave(q, q)
    q = (q >> shift[None, :]) & 15
    group = tl.program_id(1) * BK // GROUP
    zero = tl.load(zero_ptr + group * n_packed + packed)
    zero = tl.interleave(zero, zero)
    zero = tl.interleave(zero, zero)
    zero = tl.interleave(zero, zero)
    zero = (zero >> shift) & 15
    scale = tl.load(scale_ptr + group * (n_packed * 8) + n)
    w = (q - zero[None, :]).to(tl.float16) * scale[None, :]
    tl.store(w_ptr + k[:, None] * (n_packed * 8) + n[None, :], w)


@quantized("weights of 4 bits to fp16 through interleaving",
           (Given((4096, 1792), "int32", below=2147483647), Given((32, 14336), "float16"),
            Given((32, 1792), "int32", below=2147483647), Given((4096, 14336), "float16")))
def _(q, scale, zero, w):
    awq_unpack_kernel[(1792 // 32, 4096 // 32)](q, scale, zero, w, 1792, GROUP=128, BK=32, BN=32)


@triton.jit
def nf4_kernel(q_ptr, code_ptr, absmax_ptr, absmax_code_ptr, absmax_scale_ptr, offset, w_ptr,
               BLOCK: tl.constexpr):
    """Two weights in a byte; the scales of 64 weights are themselves bytes, scaled for 256."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + offs)
    block = offs // 32
    absmax = tl.load(absmax_code_ptr + tl.load(absmax_ptr + block).to(tl.int32))
    absmax = absmax * tl.load(absmax_scale_ptr + block // 256) + offset
    first = tl.load(code_ptr + (q >> 4).to(tl.int32)) * absmax
    second = tl.load(code_ptr + (q & 15).to(tl.int32)) * absmax
    w = tl.interleave(first, second).to(tl.bfloat16)
    tl.store(w_ptr + tl.program_id(0) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK), w)


@quantized("weights of NF4 with quantized scales to bf16",
           (Given((1 << 25,), "uint8", below=256), Given((16,)),
            Given((1 << 20,), "uint8", below=256), Given((256,)), Given((1 << 12,)),
            Given((1 << 26,), "bfloat16")))
def _(q, code, absmax, absmax_code, absmax_scale, w):
    nf4_kernel[((1 << 25) // 1024,)](q, code, absmax, absmax_code, absmax_scale, 0.05, w,
                                     BLOCK=1024)


@triton.jit
def lion_kernel(w_ptr, g_ptr, m_ptr, scale_ptr, rate, decay, beta1, beta2, GROUPS: tl.constexpr,
                SIZE: tl.constexpr):
    """The momentum is int8 with a scale for each group."""
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    at = group[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    w = tl.load(w_ptr + at).to(tl.float32)
    g = tl.load(g_ptr + at).to(tl.float32)
    m = tl.load(m_ptr + at).to(tl.float32) * tl.load(scale_ptr + group)[:, None]
    step = beta1 * m + (1.0 - beta1) * g
    sign = tl.where(step > 0.0, 1.0, tl.where(step < 0.0, -1.0, 0.0))
    m = beta2 * m + (1.0 - beta2) * g
    scale = tl.maximum(tl.max(tl.abs(m), axis=1), 1e-12) / 127.0
    m = m / scale[:, None]
    m = tl.where(m < 0.0, m - 0.5, m + 0.5).to(tl.int8)
    tl.store(w_ptr + at, (w * (1.0 - rate * decay) - rate * sign).to(tl.bfloat16))
    tl.store(m_ptr + at, m)
    tl.store(scale_ptr + group, scale)


@quantized("Lion step with momenta of int8 in groups of 256",
           (*vectors(2, 1 << 26, "bfloat16"), Given((1 << 26,), "int8", below=127),
            Given((1 << 18,))), moves=(8 << 26) + (8 << 18))
def _(w, g, m, scale):
    lion_kernel[((1 << 18) // 8,)](w, g, m, scale, 1e-4, 0.1, 0.9, 0.99, GROUPS=8, SIZE=256,
                                   num_warps=8)


@triton.jit
def fp8_both_ways_kernel(x_ptr, q_ptr, turned_ptr, scale_ptr, M, N, BLOCK: tl.constexpr):
    """One scale for each square; the fp8 values are written as they are and transposed."""
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :]).to(tl.float32)
    scale = tl.maximum(tl.max(tl.max(tl.abs(x), axis=1), axis=0), 1e-4) / 448.0
    q = (x / scale).to(tl.float8e4nv)
    tl.store(q_ptr + m[:, None] * N + n[None, :], q)
    tl.store(turned_ptr + n[:, None] * M + m[None, :], tl.trans(q))
    tl.store(scale_ptr + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), scale)


@quantized("squares of 128 x 128 from bf16 to fp8, also transposed",
           (Given((8192, 5120), "bfloat16"), Given((8192, 5120), "float8_e4m3fn"),
            Given((5120, 8192), "float8_e4m3fn"), Given((64, 40))))
def _(x, q, turned, scale):
    fp8_both_ways_kernel[(64, 40)](x, q, turned, scale, 8192, 5120, BLOCK=128, num_warps=8)


# -- images and sound ----------------------------------------------------------------------------


@triton.jit
def depthwise_kernel(x_ptr, w_ptr, y_ptr, H, W, C, TAPS: tl.constexpr, BW: tl.constexpr,
                     BC: tl.constexpr):
    """A filter for each channel; channels last."""
    image = tl.program_id(2)
    i = tl.program_id(1)
    j = tl.program_id(0) // (C // BC) * BW + tl.arange(0, BW)
    c = tl.program_id(0) % (C // BC) * BC + tl.arange(0, BC)
    acc = tl.zeros((BW, BC), tl.float32)
    for di in tl.static_range(TAPS):
        row = i + di - TAPS // 2
        for dj in tl.static_range(TAPS):
            col = j + dj - TAPS // 2
            mask = (row >= 0) & (row < H) & (col >= 0) & (col < W)
            x = tl.load(x_ptr + ((image * H + row) * W + col)[:, None] * C + c[None, :],
                        mask=mask[:, None], other=0.0)
            acc += x.to(tl.float32) * tl.load(w_ptr + (di * TAPS + dj) * C + c)[None, :]
    y = tl.minimum(tl.maximum(acc, 0.0), 6.0)
    tl.store(y_ptr + ((image * H + i) * W + j)[:, None] * C + c[None, :], y.to(tl.float16),
             mask=(j < W)[:, None])


@images("filters of 5 x 5 for each of 192 channels, 28 x 28, channels last, fp16",
        (Given((64, 28, 28, 192), "float16"), Given((25, 192)),
         Given((64, 28, 28, 192), "float16")))
def _(x, w, y):
    depthwise_kernel[(4 * 3, 28, 64)](x, w, y, 28, 28, 192, TAPS=5, BW=8, BC=64,
                                     num_warps=1)


@triton.jit
def bilateral_kernel(x_ptr, y_ptr, H, W, radius, near, alike, BM: tl.constexpr,
                     BN: tl.constexpr):
    """Weights fall with distance and with difference; pixels are bytes."""
    i = tl.program_id(1) * BM + tl.arange(0, BM)[:, None]
    j = tl.program_id(0) * BN + tl.arange(0, BN)[None, :]
    inside = (i < H) & (j < W)
    center = tl.load(x_ptr + i * W + j, mask=inside, other=0).to(tl.float32)
    total = tl.zeros((BM, BN), tl.float32)
    weights = tl.zeros((BM, BN), tl.float32)
    for di in range(-radius, radius + 1):
        row = tl.minimum(tl.maximum(i + di, 0), H - 1)
        for dj in range(-radius, radius + 1):
            col = tl.minimum(tl.maximum(j + dj, 0), W - 1)
            x = tl.load(x_ptr + row * W + col).to(tl.float32)
            apart = x - center
            weight = tl.exp((di * di + dj * dj) * near + apart * apart * alike)
            total += weight * x
            weights += weight
    tl.store(y_ptr + i * W + j, (total / weights + 0.5).to(tl.uint8), mask=inside)


@images("bilateral filter of radius 3 of a picture of 2,160 x 3,840 bytes",
        (Given((2160, 3840), "uint8", below=256), Given((2160, 3840), "uint8")))
def _(x, y):
    bilateral_kernel[(triton.cdiv(3840, 128), triton.cdiv(2160, 4))](
        x, y, 2160, 3840, 3, -0.05, -0.0008, BM=4, BN=128)


@triton.jit
def cosine_transform_kernel(x_ptr, basis_ptr, step_ptr, y_ptr, width, BLOCKS: tl.constexpr):
    """Squares of 8 x 8 pixels to rounded coefficients."""
    i = tl.arange(0, 8)
    j = tl.arange(0, BLOCKS * 8)
    at = (tl.program_id(1) * 8 + i)[:, None] * width + tl.program_id(0) * BLOCKS * 8 + j[None, :]
    x = tl.reshape(tl.load(x_ptr + at), (1, 8, BLOCKS, 8))
    basis = tl.load(basis_ptr + i[:, None] * 8 + i[None, :])
    half = tl.sum(tl.reshape(basis, (8, 8, 1, 1)) * x, axis=1)
    half = tl.reshape(half, (8, BLOCKS, 1, 8))
    y = tl.sum(half * tl.reshape(basis, (1, 1, 8, 8)), axis=3)
    step = tl.load(step_ptr + i[:, None] * 8 + i[None, :])
    y = y / (tl.abs(tl.reshape(step, (8, 1, 8))) + 0.1)
    y = tl.where(y < 0.0, y - 0.5, y + 0.5).to(tl.int16)
    tl.store(y_ptr + at, tl.reshape(y, (8, BLOCKS * 8)))


@images("cosine transform of squares of 8 x 8 to int16",
        (Given((4096, 4096)), *matrices(2, 8, 8), Given((4096, 4096), "int16")))
def _(x, basis, step, y):
    cosine_transform_kernel[(4096 // 128, 512)](x, basis, step, y, 4096, BLOCKS=16)


@triton.jit
def _cubic(t):
    t = tl.abs(t)
    near = (1.25 * t - 2.25) * t * t + 1.0
    far = ((-0.75 * t + 3.75) * t - 6.0) * t + 3.0
    return tl.where(t <= 1.0, near, far)


@triton.jit
def bicubic_kernel(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    """Twice as large; the form is that of generated code."""
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel
    x0 = xindex % 250
    x1 = (xindex // 250) % 250
    x2 = xindex // 62500
    row = (x1.to(tl.float32) + 0.5) * 0.5 - 0.5
    col = (x0.to(tl.float32) + 0.5) * 0.5 - 0.5
    first_row = tl.floor(row)
    first_col = tl.floor(col)
    acc = tl.zeros((XBLOCK,), tl.float32)
    for i in tl.static_range(4):
        down = first_row + (i - 1)
        weight = _cubic(row - down)
        r = tl.minimum(tl.maximum(down.to(tl.int32), 0), 124)
        for j in tl.static_range(4):
            right = first_col + (j - 1)
            c = tl.minimum(tl.maximum(right.to(tl.int32), 0), 124)
            tmp = tl.load(in_ptr0 + (c + 125 * r + 15625 * x2), xmask,
                          eviction_policy="evict_last")
            acc += weight * _cubic(col - right) * tmp
    tl.store(out_ptr0 + xindex, acc, xmask)


@images("bicubic enlargement of 256 pictures of 125 x 125",
        (Given((256, 125, 125)), Given((256, 250, 250))))
def _(x, y):
    bicubic_kernel[(triton.cdiv(256 * 62500, 512),)](x, y, 256 * 62500, XBLOCK=512, num_warps=8)


@triton.jit
def resample_kernel(x_ptr, filter_ptr, y_ptr, n_in, n_out, up, down, taps, BLOCK: tl.constexpr):
    """Sound at another rate: each phase between two samples has a filter of its own."""
    track = tl.program_id(1)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = n < n_out
    phase = n * down % up
    first = n * down // up
    acc = tl.zeros((BLOCK,), tl.float32)
    for tap in range(taps):
        at = first - tap
        x = tl.load(x_ptr + track * n_in + at, mask=mask & (at >= 0) & (at < n_in), other=0.0)
        acc += x.to(tl.float32) * tl.load(filter_ptr + phase * taps + tap)
    tl.store(y_ptr + track * n_out + n, acc.to(tl.float16), mask=mask)


@images("64 tracks from 48,000 to 44,100 samples a second, fp16",
        (Given((64, 480000), "float16"), Given((147, 32)), Given((64, 441000), "float16")))
def _(x, taps, y):
    resample_kernel[(triton.cdiv(441000, 512), 64)](x, taps, y, 480000, 441000, 147, 160, 32,
                                                    BLOCK=512)


# -- physics -------------------------------------------------------------------------------------


@triton.jit
def _pull(f_ptr, i, j, H, W, mask, number: tl.constexpr, DI: tl.constexpr, DJ: tl.constexpr):
    row = (i - DI + H) % H
    col = (j - DJ + W) % W
    return tl.load(f_ptr + (number * H + row) * W + col, mask=mask, other=0.0)


@triton.jit
def _relax(out_ptr, f, rho, u, v, square, omega, at, area, mask, number: tl.constexpr,
           DI: tl.constexpr, DJ: tl.constexpr, WEIGHT: tl.constexpr):
    along = 3.0 * (DI * u + DJ * v)
    rest = WEIGHT * rho * (1.0 + along + 0.5 * along * along - square)
    tl.store(out_ptr + number * area + at, f + omega * (rest - f), mask=mask)


@triton.jit
def lattice_kernel(f_ptr, out_ptr, H, W, omega, BLOCK: tl.constexpr):
    """A lattice Boltzmann step with nine directions on a torus."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < H * W
    i = at // W
    j = at % W
    f0 = _pull(f_ptr, i, j, H, W, mask, 0, 0, 0)
    f1 = _pull(f_ptr, i, j, H, W, mask, 1, 0, 1)
    f2 = _pull(f_ptr, i, j, H, W, mask, 2, 1, 0)
    f3 = _pull(f_ptr, i, j, H, W, mask, 3, 0, -1)
    f4 = _pull(f_ptr, i, j, H, W, mask, 4, -1, 0)
    f5 = _pull(f_ptr, i, j, H, W, mask, 5, 1, 1)
    f6 = _pull(f_ptr, i, j, H, W, mask, 6, 1, -1)
    f7 = _pull(f_ptr, i, j, H, W, mask, 7, -1, -1)
    f8 = _pull(f_ptr, i, j, H, W, mask, 8, -1, 1)
    rho = tl.maximum(f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8, 0.1)
    u = (f2 + f5 + f6 - f4 - f7 - f8) / rho
    v = (f1 + f5 + f8 - f3 - f6 - f7) / rho
    square = 1.5 * (u * u + v * v)
    area = H * W
    _relax(out_ptr, f0, rho, u, v, square, omega, at, area, mask, 0, 0, 0, 4 / 9)
    _relax(out_ptr, f1, rho, u, v, square, omega, at, area, mask, 1, 0, 1, 1 / 9)
    _relax(out_ptr, f2, rho, u, v, square, omega, at, area, mask, 2, 1, 0, 1 / 9)
    _relax(out_ptr, f3, rho, u, v, square, omega, at, area, mask, 3, 0, -1, 1 / 9)
    _relax(out_ptr, f4, rho, u, v, square, omega, at, area, mask, 4, -1, 0, 1 / 9)
    _relax(out_ptr, f5, rho, u, v, square, omega, at, area, mask, 5, 1, 1, 1 / 36)
    _relax(out_ptr, f6, rho, u, v, square, omega, at, area, mask, 6, 1, -1, 1 / 36)
    _relax(out_ptr, f7, rho, u, v, square, omega, at, area, mask, 7, -1, -1, 1 / 36)
    _relax(out_ptr, f8, rho, u, v, square, omega, at, area, mask, 8, -1, 1, 1 / 36)


@physics("a lattice Boltzmann step of nine directions on 1,500 x 2,500 cells",
         (Given((9, 1500, 2500)),) * 2)
def _(f, out):
    lattice_kernel[(triton.cdiv(1500 * 2500, 256),)](f, out, 1500, 2500, 0.6, BLOCK=256)


@triton.jit
def tridiagonal_kernel(diagonal_ptr, right_ptr, x_ptr, over_ptr, n, n_systems,
                       BLOCK: tl.constexpr):
    """A system a lane: elimination down the rows, then substitution back up."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    over = tl.zeros((BLOCK,), tl.float64)
    known = tl.zeros((BLOCK,), tl.float64)
    for i in range(n):
        d = tl.load(diagonal_ptr + i * n_systems + at)
        right = tl.load(right_ptr + i * n_systems + at)
        pivot = 1.0 / (2.5 + d * d + over)
        over = -pivot
        known = (right + known) * pivot
        tl.store(over_ptr + i * n_systems + at, over)
        tl.store(x_ptr + i * n_systems + at, known)
    tl.debug_barrier()
    x = tl.zeros((BLOCK,), tl.float64)
    for back in range(n):
        place = (n - 1 - back) * n_systems + at
        x = tl.load(x_ptr + place) - tl.load(over_ptr + place) * x
        tl.store(x_ptr + place, x)


@physics("65,536 tridiagonal systems of 128 in float64, 2 warps",
         (Given((128, 65536), "float64"),) * 4, moves=128 * 65536 * 8 * 7)
def _(diagonal, right, x, over):
    tridiagonal_kernel[(65536 // 64,)](diagonal, right, x, over, 128, 65536, BLOCK=64,
                                       num_warps=2)


@triton.jit
def kepler_kernel(mean_ptr, shape_ptr, out_ptr, n, most, BLOCK: tl.constexpr):
    """Kepler's equation by Newton's method until all lanes of a block agree."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    mean = tl.load(mean_ptr + offs, mask=mask, other=0.0)
    shape = tl.load(shape_ptr + offs, mask=mask, other=0.0)
    shape = 0.9 * shape * shape / (1.0 + shape * shape)
    angle = mean + shape * tl.sin(mean)
    apart = tl.full((BLOCK,), 1.0, tl.float64)
    step = 0
    while (tl.max(tl.abs(apart), axis=0) > 1e-12) & (step < most):
        apart = (angle - shape * tl.sin(angle) - mean) / (1.0 - shape * tl.cos(angle))
        angle -= apart
        step += 1
    tl.store(out_ptr + offs, angle, mask=mask)


@physics("Kepler's equation in float64 until it converges", vectors(3, 1_500_000, "float64"))
def _(mean, shape, out):
    kepler_kernel[(triton.cdiv(1_500_000, 128),)](mean, shape, out, 1_500_000, 30, BLOCK=128)


# -- rendering -----------------------------------------------------------------------------------


@triton.jit
def hash_grid_kernel(point_ptr, table_ptr, out_ptr, n, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """Features of the eight corners around a point, from a hashed table for each resolution."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    level = tl.program_id(1)
    mask = offs < n
    side = tl.floor(16.0 * tl.exp2(level.to(tl.float32) * 0.4))
    x = tl.load(point_ptr + offs * 3, mask=mask, other=0.0)
    y = tl.load(point_ptr + offs * 3 + 1, mask=mask, other=0.0)
    z = tl.load(point_ptr + offs * 3 + 2, mask=mask, other=0.0)
    x = (x - tl.floor(x)) * side
    y = (y - tl.floor(y)) * side
    z = (z - tl.floor(z)) * side
    i = tl.floor(x)
    j = tl.floor(y)
    k = tl.floor(z)
    f = tl.arange(0, 2)
    acc = tl.zeros((BLOCK, 2), tl.float32)
    for corner in tl.static_range(8):
        di = corner % 2
        dj = corner // 2 % 2
        dk = corner // 4
        hashed = (i.to(tl.int32) + di).to(tl.uint32)
        hashed ^= (j.to(tl.int32) + dj).to(tl.uint32) * 2654435761
        hashed ^= (k.to(tl.int32) + dk).to(tl.uint32) * 805459861
        at = (level * SIZE + (hashed & (SIZE - 1)).to(tl.int32)) * 2
        weight = tl.abs(1 - di - (x - i)) * tl.abs(1 - dj - (y - j)) * tl.abs(1 - dk - (z - k))
        value = tl.load(table_ptr + at[:, None] + f[None, :], mask=mask[:, None], other=0.0)
        acc += weight[:, None] * value.to(tl.float32)
    tl.store(out_ptr + (offs * 32 + level * 2)[:, None] + f[None, :], acc.to(tl.float16),
             mask=mask[:, None])


@rendering("features of 500,000 points from 16 hashed grids, fp16",
           (Given((500_000, 3)), Given((16, 1 << 19, 2), "float16"),
            Given((500_000, 32), "float16")))
def _(point, table, out):
    hash_grid_kernel[(triton.cdiv(500_000, 256), 16)](point, table, out, 500_000, SIZE=1 << 19,
                                                      BLOCK=256)


@triton.jit
def composite_kernel(density_ptr, step_ptr, color_ptr, weight_ptr, pixel_ptr, n_rays,
                     RAYS: tl.constexpr, SAMPLES: tl.constexpr):
    """Colors along rays, dimmed by all that lies before them."""
    ray = tl.program_id(0) * RAYS + tl.arange(0, RAYS)
    at = ray[:, None] * SAMPLES + tl.arange(0, SAMPLES)[None, :]
    dense = tl.maximum(tl.load(density_ptr + at), 0.0) * tl.abs(tl.load(step_ptr + at))
    before = tl.cumsum(dense, axis=1) - dense
    weight = (1.0 - tl.exp(-dense)) * tl.exp(-before)
    tl.store(weight_ptr + at, weight)
    for channel in tl.static_range(3):
        color = tl.load(color_ptr + channel * n_rays * SAMPLES + at).to(tl.float32)
        color = 1.0 / (1.0 + tl.exp(-color))
        tl.store(pixel_ptr + ray * 3 + channel, tl.sum(weight * color, axis=1))


@rendering("colors of 131,072 rays of 128 samples, 8 a program",
           (*matrices(2, 131072, 128), Given((3, 131072, 128), "float16"),
            Given((131072, 128)), Given((131072, 3))))
def _(density, step, color, weight, pixel):
    composite_kernel[(131072 // 8,)](density, step, color, weight, pixel, 131072, RAYS=8,
                                     SAMPLES=128)


# -- integers ------------------------------------------------------------------------------------


@triton.jit
def _turn(x, LEFT: tl.constexpr):
    return (x << LEFT) | (x >> (32 - LEFT))


@triton.jit
def _quarter(a, b, c, d):
    a += b
    d = _turn(d ^ a, 16)
    c += d
    b = _turn(b ^ c, 12)
    a += b
    d = _turn(d ^ a, 8)
    c += d
    b = _turn(b ^ c, 7)
    return a, b, c, d


@triton.jit
def _word(key_ptr, number: tl.constexpr, BLOCK: tl.constexpr):
    return tl.zeros((BLOCK,), tl.uint32) + tl.load(key_ptr + number).to(tl.uint32)


@triton.jit
def _encrypt(text_ptr, out_ptr, at, number: tl.constexpr, word):
    text = tl.load(text_ptr + at * 16 + number).to(tl.uint32)
    tl.store(out_ptr + at * 16 + number, (text ^ word).to(tl.int32))


@triton.jit
def chacha_kernel(key_ptr, text_ptr, out_ptr, double_rounds, BLOCK: tl.constexpr):
    """ChaCha20, a block of 64 bytes a lane."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    zero = tl.zeros((BLOCK,), tl.uint32)
    x0 = zero + 0x61707865
    x1 = zero + 0x3320646E
    x2 = zero + 0x79622D32
    x3 = zero + 0x6B206574
    k0 = _word(key_ptr, 0, BLOCK)
    k1 = _word(key_ptr, 1, BLOCK)
    k2 = _word(key_ptr, 2, BLOCK)
    k3 = _word(key_ptr, 3, BLOCK)
    k4 = _word(key_ptr, 4, BLOCK)
    k5 = _word(key_ptr, 5, BLOCK)
    k6 = _word(key_ptr, 6, BLOCK)
    k7 = _word(key_ptr, 7, BLOCK)
    n0 = _word(key_ptr, 8, BLOCK)
    n1 = _word(key_ptr, 9, BLOCK)
    n2 = _word(key_ptr, 10, BLOCK)
    x4, x5, x6, x7 = k0, k1, k2, k3
    x8, x9, x10, x11 = k4, k5, k6, k7
    x12, x13, x14, x15 = at.to(tl.uint32), n0, n1, n2
    for _ in range(double_rounds):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    _encrypt(text_ptr, out_ptr, at, 0, x0 + 0x61707865)
    _encrypt(text_ptr, out_ptr, at, 1, x1 + 0x3320646E)
    _encrypt(text_ptr, out_ptr, at, 2, x2 + 0x79622D32)
    _encrypt(text_ptr, out_ptr, at, 3, x3 + 0x6B206574)
    _encrypt(text_ptr, out_ptr, at, 4, x4 + k0)
    _encrypt(text_ptr, out_ptr, at, 5, x5 + k1)
    _encrypt(text_ptr, out_ptr, at, 6, x6 + k2)
    _encrypt(text_ptr, out_ptr, at, 7, x7 + k3)
    _encrypt(text_ptr, out_ptr, at, 8, x8 + k4)
    _encrypt(text_ptr, out_ptr, at, 9, x9 + k5)
    _encrypt(text_ptr, out_ptr, at, 10, x10 + k6)
    _encrypt(text_ptr, out_ptr, at, 11, x11 + k7)
    _encrypt(text_ptr, out_ptr, at, 12, x12 + at.to(tl.uint32))
    _encrypt(text_ptr, out_ptr, at, 13, x13 + n0)
    _encrypt(text_ptr, out_ptr, at, 14, x14 + n1)
    _encrypt(text_ptr, out_ptr, at, 15, x15 + n2)


@integers("ChaCha20 of 64 MB",
          (Given((11,), "int32", below=2147483647),
           Given((1 << 20, 16), "int32", below=2147483647), Given((1 << 20, 16), "int32")))
def _(key, text, out):
    chacha_kernel[((1 << 20) // 128,)](key, text, out, 10, BLOCK=128)


@triton.jit
def checksum_kernel(message_ptr, table_ptr, out_ptr, length, BLOCK: tl.constexpr):
    """CRC-32 by a table, a message a lane and a byte a step."""
    message = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    crc = tl.full((BLOCK,), 0xFFFFFFFF, tl.uint32)
    for i in range(length):
        byte = tl.load(message_ptr + message * length + i).to(tl.uint32)
        entry = tl.load(table_ptr + ((crc ^ byte) & 255).to(tl.int32))
        crc = (crc >> 8) ^ entry.to(tl.uint32)
    tl.store(out_ptr + message, (crc ^ 0xFFFFFFFF).to(tl.int32))


@integers("CRC-32 of 131,072 messages of 200 bytes by a table, 1 warp",
          (Given((131072, 200), "uint8", below=256), Given((256,), "int32", below=2147483647),
           Given((131072,), "int32")))
def _(message, table, out):
    checksum_kernel[(131072 // 32,)](message, table, out, 200, BLOCK=32, num_warps=1)


@triton.jit
def min_hash_kernel(token_ptr, length_ptr, a_ptr, b_ptr, out_ptr, stride, PRIME: tl.constexpr,
                    HASHES: tl.constexpr, BLOCK: tl.constexpr):
    """The least of each of many hashes over the tokens of a document."""
    document = tl.program_id(0)
    length = tl.load(length_ptr + document) + 1
    h = tl.arange(0, HASHES)
    a = tl.load(a_ptr + h)[None, :]
    b = tl.load(b_ptr + h)[None, :]
    least = tl.full((HASHES,), PRIME, tl.int64)
    for start in range(0, length, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        token = tl.load(token_ptr + document * stride + offs, mask=offs < length, other=0)
        hashed = (a * token.to(tl.int64)[:, None] + b) % PRIME
        hashed = tl.where((offs < length)[:, None], hashed, PRIME)
        least = tl.minimum(least, tl.min(hashed, axis=0))
    tl.store(out_ptr + document * HASHES + h, least.to(tl.int32))


@integers("128 least hashes of 8,192 documents of up to 512 tokens, int64",
          (Given((8192, 512), "int32", below=100_000), Given((8192,), "int32", below=512),
           *(Given((128,), "int64", below=2147483647),) * 2, Given((8192, 128), "int32")),
          moves=8192 * (257 * 4 + 4 + 512))
def _(token, length, a, b, out):
    min_hash_kernel[(8192,)](token, length, a, b, out, 512, PRIME=2147483647, HASHES=128,
                             BLOCK=16)


@triton.jit
def probe_kernel(key_ptr, value_ptr, query_ptr, out_ptr, n, most, SIZE: tl.constexpr,
                 BLOCK: tl.constexpr):
    """Look-ups in a hash table with open addressing; a multiple of 4 marks an empty slot."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    query = tl.load(query_ptr + offs, mask=offs < n, other=0)
    mixed = query.to(tl.uint32) * 0x9E3779B1
    mixed = (mixed ^ (mixed >> 15)) * 0x85EBCA77
    slot = ((mixed ^ (mixed >> 13)) & (SIZE - 1)).to(tl.int32)
    found = tl.full((BLOCK,), -1, tl.int32)
    active = (offs < n).to(tl.int32)
    step = 0
    while (tl.max(active, axis=0) > 0) & (step < most):
        key = tl.load(key_ptr + slot, mask=active != 0, other=0)
        found = tl.where((active != 0) & (key == query), slot, found)
        active = tl.where((key == query) | ((key & 3) == 0), 0, active)
        slot = (slot + 1) & (SIZE - 1)
        step += 1
    value = tl.load(value_ptr + found, mask=found >= 0, other=-1)
    tl.store(out_ptr + offs, value, mask=offs < n)


@integers("3,000,000 look-ups in a hash table of 16 MB",
          (Given((1 << 22,), "int32", below=1 << 24), Given((1 << 22,), "int32", below=1 << 30),
           Given((3_000_000,), "int32", below=1 << 24), Given((3_000_000,), "int32")))
def _(key, value, query, out):
    probe_kernel[(triton.cdiv(3_000_000, 128),)](key, value, query, out, 3_000_000, 64,
                                                 SIZE=1 << 22, BLOCK=128)


@triton.jit
def digit_ranks_kernel(key_ptr, rank_ptr, count_ptr, shift, BLOCK: tl.constexpr):
    """One pass of a radix sort: places among the equal digits of a block, and their counts."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    digit = (tl.load(key_ptr + at) >> shift) & 15
    equal = (digit[:, None] == tl.arange(0, 16)[None, :]).to(tl.int32)
    before = tl.cumsum(equal, axis=0)
    tl.store(rank_ptr + at, (tl.sum(before * equal, axis=1) - 1).to(tl.int16))
    count = tl.sum(equal, axis=0)
    tl.store(count_ptr + tl.arange(0, 16) * tl.num_programs(0) + tl.program_id(0), count)


@integers("ranks of digits of 4 bits in blocks of 1,024 keys",
          (Given((1 << 24,), "int32", below=2147483647), Given((1 << 24,), "int16"),
           Given((16, 1 << 14), "int32")))
def _(key, rank, count):
    digit_ranks_kernel[(1 << 14,)](key, rank, count, 8, BLOCK=1024, num_warps=8)


# -- graphs and boxes ----------------------------------------------------------------------------


@triton.jit
def overlap_bits_kernel(box_ptr, bits_ptr, n, limit, BI: tl.constexpr, BJ: tl.constexpr):
    """A bit for each later box that overlaps too much; boxes are a corner and a size."""
    box_ptr += tl.program_id(2) * n * 4
    i = tl.program_id(1) * BI + tl.arange(0, BI)
    j = tl.program_id(0) * BJ + tl.arange(0, BJ)
    xi = tl.load(box_ptr + i * 4)[:, None]
    yi = tl.load(box_ptr + i * 4 + 1)[:, None]
    wi = tl.abs(tl.load(box_ptr + i * 4 + 2))[:, None]
    hi = tl.abs(tl.load(box_ptr + i * 4 + 3))[:, None]
    xj = tl.load(box_ptr + j * 4)[None, :]
    yj = tl.load(box_ptr + j * 4 + 1)[None, :]
    wj = tl.abs(tl.load(box_ptr + j * 4 + 2))[None, :]
    hj = tl.abs(tl.load(box_ptr + j * 4 + 3))[None, :]
    wide = tl.minimum(xi + wi, xj + wj) - tl.maximum(xi, xj)
    high = tl.minimum(yi + hi, yj + hj) - tl.maximum(yi, yj)
    both = tl.maximum(wide, 0.0) * tl.maximum(high, 0.0)
    over = (both > limit * (wi * hi + wj * hj - both)) & (j[None, :] > i[:, None])
    bits = tl.reshape(over.to(tl.int32), (BI, BJ // 32, 32)) << tl.arange(0, 32)[None, None, :]
    word = tl.program_id(0) * (BJ // 32) + tl.arange(0, BJ // 32)
    row = tl.program_id(2) * n + i
    tl.store(bits_ptr + row[:, None] * (n // 32) + word[None, :], tl.sum(bits, axis=2))


@sets("bits of overlapping boxes, 4 x 8,192",
      (Given((4, 8192, 4)), Given((4, 8192, 256), "int32")))
def _(box, bits):
    overlap_bits_kernel[(8192 // 128, 8192 // 32, 4)](box, bits, 8192, 0.5, BI=32, BJ=128)


@triton.jit
def spread_labels_kernel(from_ptr, to_ptr, label_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Both ends of each edge take the lesser of their labels."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    a = tl.load(from_ptr + offs, mask=mask, other=0)
    b = tl.load(to_ptr + offs, mask=mask, other=0)
    label_a = tl.load(label_ptr + a, mask=mask, other=0)
    label_b = tl.load(label_ptr + b, mask=mask, other=0)
    tl.atomic_min(out_ptr + a, label_b, mask=mask & (label_b < label_a), sem="relaxed")
    tl.atomic_min(out_ptr + b, label_a, mask=mask & (label_a < label_b), sem="relaxed")


@sets("labels along 5,000,000 edges by atomic minima",
      (*(Given((5_000_000,), "int32", below=1 << 20),) * 2,
       Given((1 << 20,), "int32", below=1 << 20), Given((1 << 20,), "int32")))
def _(source, target, label, out):
    spread_labels_kernel[(triton.cdiv(5_000_000, 512),)](source, target, label, out, 5_000_000,
                                                         BLOCK=512)


CASES: tuple[Case, ...] = tuple(
    case for family in (sampling, serving, quantized, images, physics, rendering, integers, sets)
    for case in family.cases)
