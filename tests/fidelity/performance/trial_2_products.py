"""Products and attention, of the second trial of the timing model."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Case, Family, Given

attention = Family("attention, held out")
products = Family("products, held out")


# -- products ------------------------------------------------------------------------------------


@triton.jit
def experts_kernel(x_ptr, w_ptr, sorted_ptr, expert_ptr, weight_ptr, y_ptr, n_pairs, N, K,
                   TOP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows sorted by expert: each block of rows meets the weights of one expert."""
    block = tl.program_id(0) // (N // BN)
    n = tl.program_id(0) % (N // BN) * BN + tl.arange(0, BN)
    pair = tl.load(sorted_ptr + block * BM + tl.arange(0, BM))
    real = pair < n_pairs
    w_ptr += tl.load(expert_ptr + block).to(tl.int64) * N * K
    k = tl.arange(0, BK)
    x_at = x_ptr + (pair // TOP)[:, None] * K + k[None, :]
    w_at = w_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(x_at, mask=real[:, None], other=0.0)
        acc = tl.dot(x, tl.load(w_at), acc)
        x_at += BK
        w_at += BK
    acc *= tl.load(weight_ptr + pair, mask=real, other=0.0)[:, None]
    tl.store(y_ptr + pair[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=real[:, None])


@products("16 experts on rows sorted by expert, bf16",
          (Given((4096, 2048), "bfloat16"), Given((16, 2816, 2048), "bfloat16"),
           Given((8192,), "int32", below=8192), Given((128,), "int32", below=16),
           Given((8192,)), Given((8192, 2816), "bfloat16")), flops=2 * 8192 * 2816 * 2048)
def _(x, w, order, expert, weight, y):
    experts_kernel[(128 * (2816 // 128),)](x, w, order, expert, weight, y, 8192, 2816, 2048,
                                           TOP=2, BM=64, BN=128, BK=64, num_stages=4)


@triton.jit
def four_bit_linear_kernel(x_ptr, q_ptr, scale_ptr, zero_ptr, y_ptr, M, N, K,
                           GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                           BK: tl.constexpr):
    """Eight weights of 4 bits down a column in a word; unpacked between load and product."""
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        q = tl.load(q_ptr + (k // 8)[:, None] * N + n[None, :])
        group = start // GROUP
        scale = tl.load(scale_ptr + group * N + n)
        zero = tl.load(zero_ptr + group * (N // 8) + n // 8)
        zero = ((zero >> (n % 8 * 4)) & 15) + 1
        q = (q >> (k % 8 * 4)[:, None]) & 15
        w = (q - zero[None, :]).to(tl.float16) * scale[None, :]
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m < M)[:, None])


@products("50 rows through weights of 4 bits, fp16",
          (Given((50, 4096), "float16"), Given((512, 11008), "int32", below=2147483647),
           Given((32, 11008), "float16"), Given((32, 1376), "int32", below=2147483647),
           Given((50, 11008), "float16")), flops=2 * 50 * 11008 * 4096)
def _(x, q, scale, zero, y):
    four_bit_linear_kernel[(11008 // 64, 1)](x, q, scale, zero, y, 50, 11008, 4096, GROUP=128,
                                             BM=64, BN=64, BK=64, num_stages=3)


@triton.jit
def block_scaled_kernel(a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K,
                        GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                        BK: tl.constexpr):
    """fp8 with a scale for each 128 along a row of a, and for each square of b."""
    tile = tl.program_id(0)
    n_n = N // BN
    first = tile // (GROUP * n_n) * GROUP
    tall = tl.minimum(M // BM - first, GROUP)
    m = (first + tile % (GROUP * n_n) % tall) * BM + tl.arange(0, BM)
    number_n = tile % (GROUP * n_n) // tall
    n = number_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for block in range(K // BK):
        k = block * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + n[None, :] * K + k[:, None])
        a_scale = tl.load(a_scale_ptr + m * (K // BK) + block)
        b_scale = tl.load(b_scale_ptr + number_n * (K // BK) + block)
        acc += tl.dot(a, b) * (a_scale * b_scale)[:, None]
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


@products("product fp8 with scales for each 128 of the sum",
          (Given((2048, 7168), "float8_e4m3fn"), Given((4096, 7168), "float8_e4m3fn"),
           Given((2048, 56)), Given((32, 56)), Given((2048, 4096), "bfloat16")),
          flops=2 * 2048 * 4096 * 7168)
def _(a, b, a_scale, b_scale, c):
    block_scaled_kernel[(32 * 32,)](a, b, a_scale, b_scale, c, 2048, 4096, 7168, GROUP=8, BM=64,
                                    BN=128, BK=128, num_stages=3)


@triton.jit
def chunk_states_kernel(x_ptr, b_ptr, dt_ptr, decay_ptr, state_ptr, length, n_heads,
                        CHUNK: tl.constexpr, P: tl.constexpr, N: tl.constexpr,
                        BT: tl.constexpr):
    """What a chunk of time adds to the state of a head; late steps have decayed less."""
    chunk = tl.program_id(0)
    head = tl.program_id(1)
    batch = tl.program_id(2)
    p = tl.arange(0, P)
    n = tl.arange(0, N)
    along = (batch * n_heads + head) * length + chunk * CHUNK
    last = tl.load(decay_ptr + along + CHUNK - 1)
    acc = tl.zeros((P, N), tl.float32)
    for start in range(0, CHUNK, BT):
        t = start + tl.arange(0, BT)
        row = batch * length + chunk * CHUNK + t
        x = tl.load(x_ptr + (row[None, :] * n_heads + head) * P + p[:, None])
        b = tl.load(b_ptr + row[:, None] * N + n[None, :]).to(tl.float32)
        factor = tl.exp(tl.minimum(last - tl.load(decay_ptr + along + t), 0.0))
        factor *= tl.load(dt_ptr + along + t)
        acc = tl.dot(x, (b * factor[:, None]).to(tl.bfloat16), acc)
    at = ((batch * (length // CHUNK) + chunk) * n_heads + head) * P + p
    tl.store(state_ptr + at[:, None] * N + n[None, :], acc)


@products("states of chunks of 256 of a state space model, bf16",
          (Given((4, 4096, 32, 64), "bfloat16"), Given((4, 4096, 128), "bfloat16"),
           *(Given((4, 32, 4096)),) * 2, Given((4, 16, 32, 64, 128))),
          flops=2 * 4 * 4096 * 32 * 64 * 128)
def _(x, b, dt, decay, state):
    chunk_states_kernel[(16, 32, 4)](x, b, dt, decay, state, 4096, 32, CHUNK=256, P=64, N=128,
                                     BT=32, num_stages=2)


@triton.jit
def vocabulary_kernel(x_ptr, w_ptr, label_ptr, lse_ptr, hit_ptr, V, K, PARTS: tl.constexpr,
                      BM: tl.constexpr, BV: tl.constexpr, BK: tl.constexpr):
    """Logarithms of sums of exponentials of x @ w.T over a part of the rows of w."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    part = tl.program_id(1)
    label = tl.load(label_ptr + m)
    m_i = tl.full((BM,), -1.0e6, tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    hit = tl.zeros((BM,), tl.float32)
    for tile in range(part, tl.cdiv(V, BV), PARTS):
        v = tile * BV + tl.arange(0, BV)
        acc = tl.zeros((BM, BV), tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            x = tl.load(x_ptr + m[:, None] * K + k[None, :])
            w = tl.load(w_ptr + v[None, :] * K + k[:, None], mask=(v < V)[None, :], other=0.0)
            acc = tl.dot(x, w, acc)
        acc = tl.where((v < V)[None, :], acc, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(acc, axis=1))
        l_i = l_i * tl.exp(m_i - m_new) + tl.sum(tl.exp(acc - m_new[:, None]), axis=1)
        m_i = m_new
        hit += tl.sum(tl.where(v[None, :] == label[:, None], acc, 0.0), axis=1)
    tl.store(lse_ptr + m * PARTS + part, m_i + tl.log(l_i))
    tl.store(hit_ptr + m * PARTS + part, hit)


@products("losses of 4,096 tokens over 50,257 words without logits in memory, bf16",
          (Given((4096, 768), "bfloat16"), Given((50257, 768), "bfloat16"),
           Given((4096,), "int64", below=50257), *(Given((4096, 8)),) * 2),
          flops=2 * 4096 * 50257 * 768)
def _(x, w, label, lse, hit):
    vocabulary_kernel[(32, 8)](x, w, label, lse, hit, 50257, 768, PARTS=8, BM=128, BV=128, BK=64,
                               num_warps=8, num_stages=3)


@triton.jit
def gram_kernel(x_ptr, c_ptr, M, K, BM: tl.constexpr, BK: tl.constexpr):
    """c = x @ x.T; tiles under the diagonal are copies of those above it."""
    row = tl.program_id(0)
    col = tl.program_id(1)
    if col < row:
        return
    i = row * BM + tl.arange(0, BM)
    j = col * BM + tl.arange(0, BM)
    acc = tl.zeros((BM, BM), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(x_ptr + i[:, None] * K + k[None, :])
        b = tl.load(x_ptr + j[:, None] * K + k[None, :])
        acc = tl.dot(a, tl.trans(b), acc)
    c = acc.to(tl.bfloat16)
    tl.store(c_ptr + i[:, None] * M + j[None, :], c)
    if col > row:
        tl.store(c_ptr + j[:, None] * M + i[None, :], tl.trans(c))


@products("product bf16 of a matrix of 3,072 x 4,096 with itself, half of the tiles",
          (Given((3072, 4096), "bfloat16"), Given((3072, 3072), "bfloat16")),
          flops=3072 * 3072 * 4096)
def _(x, c):
    gram_kernel[(24, 24)](x, c, 3072, 4096, BM=128, BK=64, num_warps=8, num_stages=4)


@triton.jit
def sparse_blocks_kernel(first_ptr, count_ptr, column_ptr, value_ptr, b_ptr, c_ptr, N,
                         S: tl.constexpr, BN: tl.constexpr):
    """A matrix of which few squares are stored, times a dense one."""
    row = tl.program_id(1)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    i = tl.arange(0, S)
    first = tl.load(first_ptr + row)
    count = tl.load(count_ptr + row)
    acc = tl.zeros((S, BN), tl.float32)
    for block in range(first, first + count):
        column = tl.load(column_ptr + block)
        a = tl.load(value_ptr + block * S * S + i[:, None] * S + i[None, :])
        b = tl.load(b_ptr + (column * S + i)[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + (row * S + i)[:, None] * N + n[None, :], acc.to(tl.float16))


@products("sparse matrix of squares of 32 x 32 times a dense one, fp16",
          (Given((256,), "int32", below=16384 - 64), Given((256,), "int32", below=64),
           Given((16384,), "int32", below=256), Given((16384, 32, 32), "float16"),
           Given((8192, 1024), "float16"), Given((8192, 1024), "float16")),
          flops=2 * 256 * 31 * 32 * 32 * 1024,
          moves=256 * 32 * 2048 + 2 * 8192 * 1024 * 2)
def _(first, count, column, value, b, c):
    sparse_blocks_kernel[(8, 256)](first, count, column, value, b, c, 1024, S=32, BN=128,
                                   num_stages=3)


@triton.jit
def nearest_kernel(x_ptr, center_ptr, near_ptr, n, n_centers, D: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr):
    """The nearest center of each point, by products of three times TF32."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=(m < n)[:, None], other=0.0)
    best = tl.full((BM,), float("inf"), tl.float32)
    near = tl.zeros((BM,), tl.int32)
    for start in range(0, n_centers, BN):
        c = tl.load(center_ptr + (start + tl.arange(0, BN))[:, None] * D + d[None, :])
        far = tl.sum(c * c, axis=1)[None, :]
        far -= 2.0 * tl.dot(x, tl.trans(c), input_precision="tf32x3")
        least, which = tl.min(far, axis=1, return_indices=True)
        near = tl.where(least < best, start + which, near)
        best = tl.minimum(best, least)
    tl.store(near_ptr + m, near, mask=m < n)


@products("nearest of 1,024 centers of 200,000 points in 64 dimensions, 3 times TF32",
          (Given((200_000, 64)), Given((1024, 64)), Given((200_000,), "int32")),
          flops=2 * 200_000 * 1024 * 64)
def _(x, center, near):
    nearest_kernel[(triton.cdiv(200_000, 128),)](x, center, near, 200_000, 1024, D=64, BM=128,
                                                 BN=64, num_warps=8, num_stages=2)


@triton.jit
def small_products_kernel(a_ptr, b_ptr, c_ptr, MANY: tl.constexpr, S: tl.constexpr):
    """A product of blocks with three axes: many small matrices a program."""
    z = (tl.program_id(0) * MANY + tl.arange(0, MANY))[:, None, None]
    i = tl.arange(0, S)
    at = (z * S + i[None, :, None]) * S + i[None, None, :]
    c = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at))
    tl.store(c_ptr + at, c.to(tl.float16))


@products("65,536 products of 32 x 32, 4 a program, fp16",
          (Given((65536, 32, 32), "float16"),) * 3, flops=2 * 65536 * 32**3)
def _(a, b, c):
    small_products_kernel[(65536 // 4,)](a, b, c, MANY=4, S=32, num_warps=2)


# -- attention -----------------------------------------------------------------------------------


@triton.jit
def packed_attention_kernel(q_ptr, k_ptr, v_ptr, length_ptr, o_ptr, longest, scale, cap,
                            H: tl.constexpr, GROUP: tl.constexpr, BM: tl.constexpr,
                            BN: tl.constexpr, D: tl.constexpr):
    """Causal, over sequences of different lengths; scores pass through a scaled tanh."""
    sequence = tl.program_id(2)
    head = tl.program_id(1)
    first = tl.program_id(0) * BM
    length = tl.load(length_ptr + sequence) + 1
    if first >= length:
        return
    m = first + tl.arange(0, BM)
    d = tl.arange(0, D)
    at = ((sequence * longest + m) * H + head)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at, mask=(m < length)[:, None], other=0.0)
    m_i = tl.full((BM,), -1.0e6, tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, tl.minimum(first + BM, length), BN):
        n = start + tl.arange(0, BN)
        key = ((sequence * longest + n) * (H // GROUP) + head // GROUP)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + key, mask=(n < length)[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = cap * (1.0 - 2.0 / (1.0 + tl.exp(2.0 * s / cap)))
        s = tl.where((m[:, None] >= n[None, :]) & (n < length)[None, :], s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v = tl.load(v_ptr + key, mask=(n < length)[:, None], other=0.0)
        acc = tl.dot(p.to(tl.bfloat16), v, acc * alpha[:, None])
        m_i = m_new
    tl.store(o_ptr + at, (acc / l_i[:, None]).to(tl.bfloat16), mask=(m < length)[:, None])


@attention("causal attention of 32 sequences of up to 2,048 with capped scores, bf16",
           (Given((32, 2048, 16, 128), "bfloat16"),
            *(Given((32, 2048, 8, 128), "bfloat16"),) * 2, Given((32,), "int32", below=2048),
            Given((32, 2048, 16, 128), "bfloat16")),
           moves=32 * 1024 * 128 * 2 * 48, flops=4 * 32 * 16 * 128 * 2048**2 // 6)
def _(q, k, v, length, o):
    packed_attention_kernel[(2048 // 128, 16, 32)](q, k, v, length, o, 2048, 128**-0.5, 50.0,
                                                   H=16, GROUP=2, BM=128, BN=64, D=128,
                                                   num_warps=8, num_stages=2)


@triton.jit
def latent_decode_kernel(q_ptr, cache_ptr, table_ptr, length_ptr, part_ptr, lse_ptr, n_pages,
                         scale, PARTS: tl.constexpr, PAGE: tl.constexpr, H: tl.constexpr,
                         BN: tl.constexpr, L: tl.constexpr, R: tl.constexpr):
    """All heads share one latent row for each token: L numbers of content and R of position."""
    sequence = tl.program_id(0)
    part = tl.program_id(1)
    length = tl.load(length_ptr + sequence) + 1
    each = tl.cdiv(tl.cdiv(length, PARTS), BN) * BN
    h = tl.arange(0, H)
    c = tl.arange(0, L)
    r = tl.arange(0, R)
    row = (sequence * H + h)[:, None] * (L + R)
    q = tl.load(q_ptr + row + c[None, :])
    q_place = tl.load(q_ptr + row + L + r[None, :])
    m_i = tl.full((H,), -1.0e6, tl.float32)
    l_i = tl.zeros((H,), tl.float32)
    acc = tl.zeros((H, L), tl.float32)
    for start in range(part * each, tl.minimum(part * each + each, length), BN):
        n = start + tl.arange(0, BN)
        page = tl.load(table_ptr + sequence * n_pages + n // PAGE, mask=n < length, other=0)
        at = (page * PAGE + n % PAGE) * (L + R)
        latent = tl.load(cache_ptr + at[None, :] + c[:, None], mask=(n < length)[None, :],
                         other=0.0)
        place = tl.load(cache_ptr + at[None, :] + L + r[:, None], mask=(n < length)[None, :],
                        other=0.0)
        s = tl.dot(q, latent)
        s = tl.dot(q_place, place, s) * scale
        s = tl.where((n < length)[None, :], s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(tl.bfloat16), tl.trans(latent), acc * alpha[:, None])
        m_i = m_new
    out = (sequence * PARTS + part) * H + h
    l_i = tl.maximum(l_i, 1e-20)
    tl.store(part_ptr + out[:, None] * L + c[None, :], acc / l_i[:, None])
    tl.store(lse_ptr + out, m_i + tl.log(l_i))


@attention("16 queries over shared latent rows of 576 in pages of 64, 4 parts, bf16",
           (Given((64, 16, 576), "bfloat16"), Given((2048, 64, 576), "bfloat16"),
            Given((64, 32), "int32", below=2048), Given((64,), "int32", below=2048),
            Given((64, 4, 16, 512)), Given((64, 4, 16))),
           moves=64 * 1024 * 576 * 2 + 64 * 4 * 16 * 512 * 4,
           flops=2 * 64 * 16 * 1024 * (576 + 512))
def _(q, cache, table, length, part, lse):
    latent_decode_kernel[(64, 4)](q, cache, table, length, part, lse, 32, 576**-0.5, PARTS=4,
                                  PAGE=64, H=16, BN=32, L=512, R=64, num_stages=2)


@triton.jit
def key_gradients_kernel(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, length,
                         scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Gradients of a block of keys and values; the weights are computed again."""
    base = tl.program_id(1) * length
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    at = (base + n)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at)
    v = tl.load(v_ptr + at)
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    for start in range(0, length, BM):
        m = base + start + tl.arange(0, BM)
        q = tl.load(q_ptr + m[:, None] * D + d[None, :])
        lse = tl.load(lse_ptr + m)
        p = tl.exp2(tl.dot(k, tl.trans(q)) * (scale * 1.44269504) - lse[None, :])
        do = tl.load(do_ptr + m[:, None] * D + d[None, :])
        dv = tl.dot(p.to(tl.float16), do, dv)
        dp = tl.dot(v, tl.trans(do))
        ds = p * (dp - tl.load(delta_ptr + m)[None, :])
        dk = tl.dot(ds.to(tl.float16), q, dk)
    tl.store(dk_ptr + at, (dk * scale).to(tl.float16))
    tl.store(dv_ptr + at, dv.to(tl.float16))


@attention("gradients of keys and values, 64 wide, 2,048 long, fp16",
           (*(Given((64, 2048, 64), "float16"),) * 4, *(Given((64, 2048)),) * 2,
            *(Given((64, 2048, 64), "float16"),) * 2), flops=8 * 64 * 2048**2 * 64)
def _(q, k, v, do, lse, delta, dk, dv):
    key_gradients_kernel[(2048 // 128, 64)](q, k, v, do, lse, delta, dk, dv, 2048, 64**-0.5,
                                            BM=32, BN=128, D=64, num_stages=3)


CASES: tuple[Case, ...] = (*products.cases, *attention.cases)
