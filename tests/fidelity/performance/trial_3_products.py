"""Products and attention of a third trial, written without a look at the timing model."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Case, Family, Given

attention = Family("attention, third trial")
products = Family("products, third trial")
networks = Family("small networks, third trial")


# -- products ------------------------------------------------------------------------------------


@triton.jit
def ragged_groups_kernel(x_ptr, w_ptr, size_ptr, y_ptr, n_groups, longest, N, K,
                         BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of different heights; each program takes every so many of all their tiles."""
    tile = tl.program_id(0)
    first = 0
    k = tl.arange(0, BK)
    for group in range(n_groups):
        size = tl.load(size_ptr + group) + 1
        last = first + tl.cdiv(size, BM) * (N // BN)
        while tile < last:
            m = (tile - first) // (N // BN) * BM + tl.arange(0, BM)
            n = (tile - first) % (N // BN) * BN + tl.arange(0, BN)
            x_at = x_ptr + (group * longest + m)[:, None] * K + k[None, :]
            w_at = w_ptr + (group * K + k)[:, None] * N + n[None, :]
            acc = tl.zeros((BM, BN), tl.float32)
            for _ in range(0, K, BK):
                x = tl.load(x_at, mask=(m < size)[:, None], other=0.0)
                acc = tl.dot(x, tl.load(w_at), acc)
                x_at += BK
                w_at += BK * N
            tl.store(y_ptr + (group * longest + m)[:, None] * N + n[None, :],
                     acc.to(tl.bfloat16), mask=(m < size)[:, None])
            tile += tl.num_programs(0)
        first = last


@products("16 products of up to 1,024 rows by 132 programs, bf16",
          (Given((16, 1024, 2048), "bfloat16"), Given((16, 2048, 1408), "bfloat16"),
           Given((16,), "int32", below=1024), Given((16, 1024, 1408), "bfloat16")),
          flops=2 * 16 * 512 * 2048 * 1408)
def _(x, w, size, y):
    ragged_groups_kernel[(132,)](x, w, size, y, 16, 1024, 1408, 2048, BM=128, BN=128, BK=64,
                                 num_warps=8, num_stages=3)


@triton.jit
def gated_linear_kernel(x_ptr, gate_ptr, up_ptr, y_ptr, M, N, K, GROUP: tl.constexpr,
                        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """SiLU(x @ gate) * (x @ up) with two accumulators."""
    tile = tl.program_id(0)
    n_n = N // BN
    first = tile // (GROUP * n_n) * GROUP
    tall = tl.minimum(M // BM - first, GROUP)
    m = (first + tile % (GROUP * n_n) % tall) * BM + tl.arange(0, BM)
    n = tile % (GROUP * n_n) // tall * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x_at = x_ptr + m[:, None] * K + k[None, :]
    w_at = k[:, None] * N + n[None, :]
    gate = tl.zeros((BM, BN), tl.float32)
    up = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(x_at)
        gate = tl.dot(x, tl.load(gate_ptr + w_at), gate)
        up = tl.dot(x, tl.load(up_ptr + w_at), up)
        x_at += BK
        w_at += BK * N
    y = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(tl.bfloat16))


@products("gate and up projections of 2,048 tokens in one kernel, bf16",
          (Given((2048, 4096), "bfloat16"), *(Given((4096, 11008), "bfloat16"),) * 2,
           Given((2048, 11008), "bfloat16")), flops=4 * 2048 * 4096 * 11008)
def _(x, gate, up, y):
    gated_linear_kernel[(16 * 86,)](x, gate, up, y, 2048, 11008, 4096, GROUP=8, BM=128, BN=128,
                                    BK=64, num_warps=8, num_stages=3)


@triton.jit
def w8a8_kernel(x_ptr, w_ptr, x_scale_ptr, w_scale_ptr, bias_ptr, y_ptr, M, N, K,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """int8 with a scale for each token and each output; weights as rows of inputs."""
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    mask = (m < M)[:, None]
    acc = tl.zeros((BM, BN), tl.int32)
    for start in range(0, K, BK):
        x = tl.load(x_ptr + m[:, None] * K + start + k[None, :], mask=mask, other=0)
        w = tl.load(w_ptr + n[None, :] * K + start + k[:, None])
        acc += tl.dot(x, w)
    y = acc.to(tl.float32) * tl.load(x_scale_ptr + m, mask=m < M, other=0.0)[:, None]
    y = y * tl.load(w_scale_ptr + n)[None, :] + tl.load(bias_ptr + n).to(tl.float32)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(tl.bfloat16), mask=mask)


@products("int8 with scales and bias, 333 tokens to bf16",
          (Given((333, 4096), "int8", below=127), Given((6144, 4096), "int8", below=127),
           Given((333,)), Given((6144,)), Given((6144,), "bfloat16"),
           Given((333, 6144), "bfloat16")), flops=2 * 333 * 6144 * 4096)
def _(x, w, x_scale, w_scale, bias, y):
    w8a8_kernel[(6144 // 128, triton.cdiv(333, 64))](x, w, x_scale, w_scale, bias, y, 333, 6144,
                                                     4096, BM=64, BN=128, BK=128, num_stages=4)


@triton.jit
def stem_convolution_kernel(x_ptr, w_ptr, y_ptr, H, W, OH, OW, K, SIZE: tl.constexpr,
                            STRIDE: tl.constexpr, PAD: tl.constexpr, BM: tl.constexpr,
                            BN: tl.constexpr, BK: tl.constexpr):
    """Windows become rows of a product while they are loaded; channels first."""
    image = tl.program_id(1)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    top = m // OW * STRIDE - PAD
    left = m % OW * STRIDE - PAD
    channels = K // (SIZE * SIZE)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        c = k // (SIZE * SIZE)
        i = top[:, None] + (k % (SIZE * SIZE) // SIZE)[None, :]
        j = left[:, None] + (k % SIZE)[None, :]
        mask = (i >= 0) & (i < H) & (j >= 0) & (j < W) & (k < K)[None, :]
        x = tl.load(x_ptr + ((image * channels + c)[None, :] * H + i) * W + j, mask=mask,
                    other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(k < K)[:, None], other=0.0)
        acc = tl.dot(x, w, acc)
    y_at = y_ptr + (image * BN + n)[None, :] * (OH * OW) + m[:, None]
    tl.store(y_at, tl.maximum(acc, 0.0).to(tl.float16))


@products("convolution of 7 x 7 with stride 2 of 32 images of 224 x 224, fp16",
          (Given((32, 3, 224, 224), "float16"), Given((64, 3, 7, 7), "float16"),
           Given((32, 64, 112, 112), "float16")), flops=2 * 32 * 112 * 112 * 64 * 147)
def _(x, w, y):
    stem_convolution_kernel[(112 * 112 // 128, 32)](x, w, y, 224, 224, 112, 112, 147, SIZE=7,
                                                    STRIDE=2, PAD=3, BM=128, BN=64, BK=32)


@triton.jit
def pairwise_kernel(x_ptr, y_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                    BK: tl.constexpr):
    """Distances between all pairs of rows; lengths are summed along with the products."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    xx = tl.zeros((BM,), tl.float32)
    yy = tl.zeros((BN,), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :],
                    mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        y = tl.load(y_ptr + n[None, :] * K + k[:, None],
                    mask=(n < N)[None, :] & (k < K)[:, None], other=0.0)
        acc += tl.dot(x, y)
        xx += tl.sum(x * x, axis=1)
        yy += tl.sum(y * y, axis=0)
    far = tl.sqrt(tl.maximum(xx[:, None] + yy[None, :] - 2.0 * acc, 0.0))
    tl.store(out_ptr + m[:, None] * N + n[None, :], far,
             mask=(m < M)[:, None] & (n < N)[None, :])


@products("distances between 5,003 and 3,001 rows of 100 in tiles of 32, 8 warps, tf32",
          (Given((5003, 100)), Given((3001, 100)), Given((5003, 3001))),
          flops=2 * 5003 * 3001 * 100)
def _(x, y, out):
    pairwise_kernel[(triton.cdiv(5003, 32), triton.cdiv(3001, 32))](
        x, y, out, 5003, 3001, 100, BM=32, BN=32, BK=32, num_warps=8)


@triton.jit
def gaussian_sum_kernel(x_ptr, v_ptr, out_ptr, n, sharpness, D: tl.constexpr, BM: tl.constexpr,
                        BN: tl.constexpr):
    """Sums of values at all points, weighted by exp(-distance**2); the last block has a mask."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=(m < n)[:, None], other=0.0)
    xx = tl.sum(x * x, axis=1)[:, None]
    acc = tl.zeros((BM,), tl.float32)
    full = n // BN * BN
    for start in range(0, full, BN):
        j = start + tl.arange(0, BN)
        z = tl.load(x_ptr + j[:, None] * D + d[None, :])
        zz = tl.sum(z * z, axis=1)[None, :]
        weight = tl.exp2((2.0 * tl.dot(x, tl.trans(z)) - xx - zz) * sharpness)
        acc += tl.sum(weight * tl.load(v_ptr + j)[None, :], axis=1)
    for start in range(full, n, BN):
        j = start + tl.arange(0, BN)
        z = tl.load(x_ptr + j[:, None] * D + d[None, :], mask=(j < n)[:, None], other=0.0)
        zz = tl.sum(z * z, axis=1)[None, :]
        weight = tl.exp2((2.0 * tl.dot(x, tl.trans(z)) - xx - zz) * sharpness)
        acc += tl.sum(weight * tl.load(v_ptr + j, mask=j < n, other=0.0)[None, :], axis=1)
    tl.store(out_ptr + m, acc, mask=m < n)


@products("Gaussian sums over 30,011 points in 32 dimensions, tf32",
          (Given((30_011, 32)), *(Given((30_011,)),) * 2), flops=2 * 30_011**2 * 32)
def _(x, v, out):
    gaussian_sum_kernel[(triton.cdiv(30_011, 64),)](x, v, out, 30_011, 0.7, D=32, BM=64, BN=128,
                                                    num_stages=2)


# -- small networks ------------------------------------------------------------------------------


@triton.jit
def orthogonal_kernel(x_ptr, y_ptr, iterations, N: tl.constexpr):
    """Newton-Schulz iterations as in Muon, three products each, all in one program."""
    i = tl.arange(0, N)
    at = tl.program_id(0) * N * N + i[:, None] * N + i[None, :]
    x = tl.load(x_ptr + at).to(tl.float32)
    size = tl.sqrt(tl.sum(tl.sum(x * x, axis=1), axis=0)) + 1e-7
    x = (x / size).to(tl.bfloat16)
    for _ in range(iterations):
        a = tl.dot(x, tl.trans(x)).to(tl.bfloat16)
        b = -4.775 * a.to(tl.float32) + 2.0315 * tl.dot(a, a)
        x = (3.4445 * x.to(tl.float32) + tl.dot(b.to(tl.bfloat16), x)).to(tl.bfloat16)
    tl.store(y_ptr + at, x)


@networks("96 matrices of 128 x 128 made orthogonal, 10 iterations, 8 warps, bf16",
          (Given((96, 128, 128), "bfloat16"),) * 2, flops=96 * 10 * 3 * 2 * 128**3)
def _(x, y):
    orthogonal_kernel[(96,)](x, y, 10, N=128, num_warps=8)


@triton.jit
def fused_layers_kernel(x_ptr, w_ptr, last_ptr, y_ptr, n_layers, WIDTH: tl.constexpr,
                        OUT: tl.constexpr, BM: tl.constexpr):
    """A small network of many points; activations stay in registers between its layers."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    i = tl.arange(0, WIDTH)
    o = tl.arange(0, OUT)
    h = tl.load(x_ptr + m[:, None] * WIDTH + i[None, :])
    for layer in range(n_layers):
        w = tl.load(w_ptr + (layer * WIDTH + i)[:, None] * WIDTH + i[None, :])
        h = tl.maximum(tl.dot(h, w), 0.0).to(tl.float16)
    y = tl.dot(h, tl.load(last_ptr + i[:, None] * OUT + o[None, :]))
    tl.store(y_ptr + m[:, None] * OUT + o[None, :], (1.0 / (1.0 + tl.exp(-y))).to(tl.float16))


@networks("524,288 points through 4 layers of 64 and one of 16, fp16",
          (Given((524288, 64), "float16"), Given((4, 64, 64), "float16"),
           Given((64, 16), "float16"), Given((524288, 16), "float16")),
          flops=2 * 524288 * (4 * 64 * 64 + 64 * 16))
def _(x, w, last, y):
    fused_layers_kernel[(524288 // 128,)](x, w, last, y, 4, WIDTH=64, OUT=16, BM=128)


@triton.jit
def recurrent_kernel(x_ptr, w_ptr, h_ptr, length, n_sequences, BM: tl.constexpr,
                     D: tl.constexpr):
    """h = tanh(x + h @ w) step by step; the weights stay in the program."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    w = tl.load(w_ptr + d[:, None] * D + d[None, :])
    h = tl.zeros((BM, D), tl.float16)
    for t in range(length):
        at = (t * n_sequences + m)[:, None] * D + d[None, :]
        x = tl.load(x_ptr + at).to(tl.float32)
        s = tl.dot(h, w, x)
        h = (1.0 - 2.0 / (1.0 + tl.exp(2.0 * s))).to(tl.float16)
        tl.store(h_ptr + at, h)


@networks("a recurrent network of 128 units, 256 steps by 32 programs, fp16",
          (Given((256, 512, 128), "float16"), Given((128, 128), "float16"),
           Given((256, 512, 128), "float16")), flops=2 * 256 * 512 * 128 * 128)
def _(x, w, h):
    recurrent_kernel[(512 // 16,)](x, w, h, 256, 512, BM=16, D=128)


# -- attention -----------------------------------------------------------------------------------


@triton.jit
def _slope_step(q, k_ptr, v_ptr, n, m, d, m_i, l_i, acc, slope, scale, MASKED: tl.constexpr,
                D: tl.constexpr):
    k = tl.load(k_ptr + n[None, :] * D + d[:, None])
    s = tl.dot(q, k) * scale - slope * (m[:, None] - n[None, :]).to(tl.float32)
    if MASKED:
        s = tl.where(m[:, None] >= n[None, :], s, -1.0e6)
    m_new = tl.maximum(m_i, tl.max(s, axis=1))
    p = tl.exp2(s - m_new[:, None])
    alpha = tl.exp2(m_i - m_new)
    l_i = l_i * alpha + tl.sum(p, axis=1)
    v = tl.load(v_ptr + n[:, None] * D + d[None, :])
    acc = tl.dot(p.to(tl.float16), v, acc * alpha[:, None])
    return m_new, l_i, acc


@triton.jit
def slope_attention_kernel(q_ptr, k_ptr, v_ptr, slope_ptr, o_ptr, n_heads, length, scale,
                           BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Causal; scores fall with distance (ALiBi). Blocks before the diagonal need no mask."""
    head = tl.program_id(1)
    first = tl.program_id(0) * BM
    q_ptr += head * length * D
    k_ptr += head * length * D
    v_ptr += head * length * D
    o_ptr += head * length * D
    m = first + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    slope = tl.abs(tl.load(slope_ptr + head % n_heads)) * 1.44269504
    m_i = tl.full((BM,), -1.0e6, tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, first, BN):
        n = start + tl.arange(0, BN)
        m_i, l_i, acc = _slope_step(q, k_ptr, v_ptr, n, m, d, m_i, l_i, acc, slope, scale, False,
                                    D)
    for start in range(first, first + BM, BN):
        n = start + tl.arange(0, BN)
        m_i, l_i, acc = _slope_step(q, k_ptr, v_ptr, n, m, d, m_i, l_i, acc, slope, scale, True,
                                    D)
    tl.store(o_ptr + m[:, None] * D + d[None, :], (acc / l_i[:, None]).to(tl.float16))


@attention("causal attention with slopes, 64 wide, 2,048 long, two loops, fp16",
           (*(Given((64, 2048, 64), "float16"),) * 3, Given((16,)),
            Given((64, 2048, 64), "float16")), flops=2 * 64 * 2048**2 * 64)
def _(q, k, v, slope, o):
    slope_attention_kernel[(2048 // 128, 64)](q, k, v, slope, o, 16, 2048, 0.125 * 1.44269504,
                                              BM=128, BN=64, D=64, num_stages=3)


@triton.jit
def fp8_cache_decode_kernel(q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, o_ptr, n_heads, n_pages,
                            k_scale, v_scale, GROUP: tl.constexpr, BM: tl.constexpr,
                            PAGE: tl.constexpr, D: tl.constexpr):
    """The queries of a group share keys of fp8 in pages, a page an iteration."""
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    length = tl.load(length_ptr + sequence) + 1
    h = tl.arange(0, BM)
    slot = tl.arange(0, PAGE)
    d = tl.arange(0, D)
    q_at = ((sequence * n_heads + head) * GROUP + h)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + q_at, mask=(h < GROUP)[:, None], other=0.0)
    m_i = tl.full((BM,), -1.0e6, tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for page in range(tl.cdiv(length, PAGE)):
        number = tl.load(table_ptr + sequence * n_pages + page)
        row = (number * PAGE + slot) * n_heads + head
        k = tl.load(k_ptr + row[None, :] * D + d[:, None]).to(tl.bfloat16)
        s = tl.dot(q, k) * k_scale
        s = tl.where((page * PAGE + slot < length)[None, :], s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v = tl.load(v_ptr + row[:, None] * D + d[None, :]).to(tl.bfloat16)
        acc = tl.dot(p.to(tl.bfloat16), v, acc * alpha[:, None])
        m_i = m_new
    tl.store(o_ptr + q_at, (acc * v_scale / l_i[:, None]).to(tl.bfloat16),
             mask=(h < GROUP)[:, None])


@attention("8 queries over pages of 32 keys of fp8, up to 4,096 of them",
           (Given((32, 64, 128), "bfloat16"), *(Given((4096, 32, 8, 128), "float8_e4m3fn"),) * 2,
            Given((32, 128), "int32", below=4096), Given((32,), "int32", below=4096),
            Given((32, 64, 128), "bfloat16")),
           moves=32 * 2048 * 8 * 128 * 2, flops=4 * 32 * 64 * 2048 * 128)
def _(q, k, v, table, length, o):
    fp8_cache_decode_kernel[(32, 8)](q, k, v, table, length, o, 8, 128, 0.05 * 128**-0.5, 0.05,
                                     GROUP=8, BM=16, PAGE=32, D=128, num_stages=3)


@triton.jit
def query_gradients_kernel(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, length,
                           scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Causal; gradients of a block of queries, by keys up to its end."""
    base = tl.program_id(1) * length
    first = tl.program_id(0) * BM
    m = first + tl.arange(0, BM)
    d = tl.arange(0, D)
    at = (base + m)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at)
    do = tl.load(do_ptr + at)
    lse = tl.load(lse_ptr + base + m)
    delta = tl.load(delta_ptr + base + m)
    dq = tl.zeros((BM, D), tl.float32)
    for start in range(0, first + BM, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + (base + n)[:, None] * D + d[None, :])
        v = tl.load(v_ptr + (base + n)[:, None] * D + d[None, :])
        p = tl.exp2(tl.dot(q, tl.trans(k)) * (scale * 1.44269504) - lse[:, None])
        p = tl.where(m[:, None] >= n[None, :], p, 0.0)
        dp = tl.dot(do, tl.trans(v))
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(tl.bfloat16), k, dq)
    tl.store(dq_ptr + at, (dq * scale).to(tl.bfloat16))


@attention("gradients of queries, causal, 128 wide, 2,048 long, bf16",
           (*(Given((32, 2048, 128), "bfloat16"),) * 4, *(Given((32, 2048)),) * 2,
            Given((32, 2048, 128), "bfloat16")), flops=3 * 32 * 2048**2 * 128)
def _(q, k, v, do, lse, delta, dq):
    query_gradients_kernel[(2048 // 64, 32)](q, k, v, do, lse, delta, dq, 2048, 128**-0.5, BM=64,
                                             BN=64, D=128, num_stages=2)


CASES: tuple[Case, ...] = (*products.cases, *networks.cases, *attention.cases)
