"""Kernels without products of a third trial, written without a look at the timing model."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Case, Family, Given, matrices, vectors

training = Family("training, third trial")
inference = Family("inference, third trial")
vision = Family("vision, third trial")
registers = Family("registers and shared memory, third trial")
statistics = Family("statistics, third trial")
searches = Family("searches and sequences, third trial")


# -- training ------------------------------------------------------------------------------------


@triton.jit
def geglu_backward_kernel(grad_ptr, gate_ptr, up_ptr, stride, n_cols, BLOCK: tl.constexpr):
    """Both gradients take the place of the inputs."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    grad = tl.load(grad_ptr + row * stride + offs, mask=mask, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + row * stride + offs, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * stride + offs, mask=mask, other=0.0).to(tl.float32)
    inner = 0.7978845608 * (gate + 0.044715 * gate * gate * gate)
    tanh = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * inner))
    gelu = 0.5 * gate * (1.0 + tanh)
    slope = 0.7978845608 * (1.0 + 3.0 * 0.044715 * gate * gate)
    slope = 0.5 * (1.0 + tanh) + 0.5 * gate * (1.0 - tanh * tanh) * slope
    tl.store(gate_ptr + row * stride + offs, (grad * up * slope).to(tl.float16), mask=mask)
    tl.store(up_ptr + row * stride + offs, (grad * gelu).to(tl.float16), mask=mask)


@training("gradient of GEGLU in place, rows of 11,008, 16 warps, fp16",
          matrices(3, 4096, 11008, "float16"), moves=5 * 2 * 4096 * 11008)
def _(grad, gate, up):
    geglu_backward_kernel[(4096,)](grad, gate, up, 11008, 11008, BLOCK=16384, num_warps=16)


@triton.jit
def kl_divergence_kernel(pred_ptr, true_ptr, loss_ptr, stride, n_cols, eps,
                         BLOCK: tl.constexpr):
    """Predictions are logarithms, targets are probabilities; one sum for each row."""
    row = tl.program_id(0).to(tl.int64)
    pred_ptr += row * stride
    true_ptr += row * stride
    base = tl.arange(0, BLOCK)
    loss = 0.0
    for i in range(0, n_cols, BLOCK):
        offs = i + base
        mask = offs < n_cols
        pred = tl.load(pred_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        true = tl.load(true_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        loss += tl.sum(true * (tl.log(tl.maximum(true, eps)) - pred), axis=0)
    tl.store(loss_ptr + row, loss)


@training("Kullback-Leibler losses of rows of 32,000, 16 warps, bf16",
          (*matrices(2, 2048, 32000, "bfloat16"), Given((2048,))))
def _(pred, true, loss):
    kl_divergence_kernel[(2048,)](pred, true, loss, 32000, 32000, 1e-10, BLOCK=8192,
                                  num_warps=16)


@triton.jit
def layer_norm_backward_kernel(x_ptr, weight_ptr, mean_ptr, rstd_ptr, dy_ptr, dx_ptr, dw_ptr,
                               db_ptr, n_rows, n_cols, rows_per_program, BLOCK: tl.constexpr):
    """All three gradients; those of weight and bias as one partial sum a program."""
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    first = pid * rows_per_program
    for row in range(first, tl.minimum(first + rows_per_program, n_rows)):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        x_hat = (x - mean) * rstd
        wdy = w * dy
        c1 = tl.sum(x_hat * wdy, axis=0) / n_cols
        c2 = tl.sum(wdy, axis=0) / n_cols
        dx = (wdy - (x_hat * c1 + c2)) * rstd
        tl.store(dx_ptr + row * n_cols + cols, dx.to(tl.bfloat16), mask=mask)
        dw += dy * x_hat
        db += dy
    tl.store(dw_ptr + pid * n_cols + cols, dw, mask=mask)
    tl.store(db_ptr + pid * n_cols + cols, db, mask=mask)


@training("layer norm backward, rows of 2,560, 264 programs that take many, bf16",
          (Given((16384, 2560), "bfloat16"), Given((2560,), "bfloat16"), Given((16384,)),
           Given((16384,)), *matrices(2, 16384, 2560, "bfloat16"), *matrices(2, 264, 2560)))
def _(x, weight, mean, rstd, dy, dx, dw, db):
    layer_norm_backward_kernel[(264,)](x, weight, mean, rstd, dy, dx, dw, db, 16384, 2560,
                                       triton.cdiv(16384, 264), BLOCK=4096, num_warps=8)


@triton.jit
def _code(code_ptr, value, BLOCK: tl.constexpr):
    """The last of 256 sorted numbers that is not greater, by bisection."""
    place = tl.zeros((BLOCK,), tl.int32)
    for bit in tl.static_range(8):
        ahead = place + (128 >> bit)
        place = tl.where(tl.load(code_ptr + ahead) <= value, ahead, place)
    return place


@triton.jit
def adam_8bit_kernel(w_ptr, g_ptr, m_ptr, v_ptr, m_max_ptr, v_max_ptr, m_code_ptr, v_code_ptr,
                     rate, beta1, beta2, eps, BLOCK: tl.constexpr):
    """Moments are bytes that stand for entries of a table, with a scale for each block."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(w_ptr + offs).to(tl.float32)
    g = tl.load(g_ptr + offs).to(tl.float32)
    m = tl.load(m_code_ptr + tl.load(m_ptr + offs).to(tl.int32)) * tl.load(m_max_ptr + pid)
    v = tl.load(v_code_ptr + tl.load(v_ptr + offs).to(tl.int32)) * tl.load(v_max_ptr + pid)
    m = beta1 * m + (1.0 - beta1) * g
    v = beta2 * tl.abs(v) + (1.0 - beta2) * g * g
    w -= rate * m / (tl.sqrt(v) + eps)
    m_max = tl.maximum(tl.max(tl.abs(m), axis=0), 1e-12)
    v_max = tl.maximum(tl.max(v, axis=0), 1e-12)
    tl.store(w_ptr + offs, w.to(tl.bfloat16))
    tl.store(m_ptr + offs, _code(m_code_ptr, m / m_max, BLOCK).to(tl.uint8))
    tl.store(v_ptr + offs, _code(v_code_ptr, v / v_max, BLOCK).to(tl.uint8))
    tl.store(m_max_ptr + pid, m_max)
    tl.store(v_max_ptr + pid, v_max)


@training("Adam step with moments of 8 bits by a table, blocks of 2,048",
          (*vectors(2, 1 << 24, "bfloat16"), *(Given((1 << 24,), "uint8", below=256),) * 2,
           *vectors(2, 1 << 13), *vectors(2, 256)), moves=(10 << 24) + (16 << 13))
def _(w, g, m, v, m_max, v_max, m_code, v_code):
    adam_8bit_kernel[(1 << 13,)](w, g, m, v, m_max, v_max, m_code, v_code, 1e-4, 0.9, 0.999,
                                 1e-8, BLOCK=2048, num_warps=8)


@triton.jit
def skip_gram_kernel(center_ptr, context_ptr, center_w_ptr, context_w_ptr, loss_ptr, width,
                     CONTEXTS: tl.constexpr, BLOCK: tl.constexpr):
    """The first context is a true one, the rest are negative samples."""
    pair = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    center = tl.load(center_ptr + pair)
    a = tl.load(center_w_ptr + center * width + cols, mask=mask, other=0.0)
    loss = 0.0
    for i in range(CONTEXTS):
        context = tl.load(context_ptr + pair * CONTEXTS + i)
        b = tl.load(context_w_ptr + context * width + cols, mask=mask, other=0.0)
        score = tl.sum(a * b, axis=0)
        score = tl.where(i == 0, -score, score)
        loss += tl.log(1.0 + tl.exp(tl.minimum(score, 30.0)))
    tl.store(loss_ptr + pair, loss)


@training("skip-gram losses with 5 negatives, rows of 300, a pair a program",
          (Given((200_000,), "int32", below=150_000), Given((200_000, 6), "int32", below=150_000),
           *matrices(2, 150_000, 300), Given((200_000,))))
def _(center, context, center_w, context_w, loss):
    skip_gram_kernel[(200_000,)](center, context, center_w, context_w, loss, 300, CONTEXTS=6,
                                 BLOCK=512)


# -- inference -----------------------------------------------------------------------------------


@triton.jit
def add_rms_norm_kernel(x_ptr, residual_ptr, weight_ptr, n_cols, eps, BLOCK: tl.constexpr):
    """Adds to the residual stream, and norms the sum; both in place."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(residual_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(residual_ptr + row * n_cols + cols, x.to(tl.bfloat16), mask=mask)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    w = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(x_ptr + row * n_cols + cols, (x * rstd * w).to(tl.bfloat16), mask=mask)


@inference("residual added and RMS norm in place, rows of 5,120, bf16",
           (*matrices(2, 8192, 5120, "bfloat16"), Given((5120,), "bfloat16")),
           moves=4 * 2 * 8192 * 5120)
def _(x, residual, weight):
    add_rms_norm_kernel[(8192,)](x, residual, weight, 5120, 1e-6, BLOCK=8192, num_warps=8)


@triton.jit
def rope_in_place_kernel(q_ptr, k_ptr, cos_ptr, sin_ptr, seq_len, N_Q: tl.constexpr,
                         N_K: tl.constexpr, HALF: tl.constexpr):
    """All heads of a token in one program: first its queries, then its keys."""
    token = tl.program_id(0)
    d = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token % seq_len * HALF + d)[None, :]
    sin = tl.load(sin_ptr + token % seq_len * HALF + d)[None, :]
    q_at = q_ptr + (token * N_Q + tl.arange(0, N_Q)[:, None]) * (2 * HALF) + d[None, :]
    q1 = tl.load(q_at).to(tl.float32)
    q2 = tl.load(q_at + HALF).to(tl.float32)
    tl.store(q_at, (q1 * cos - q2 * sin).to(tl.bfloat16))
    tl.store(q_at + HALF, (q2 * cos + q1 * sin).to(tl.bfloat16))
    k_at = k_ptr + (token * N_K + tl.arange(0, N_K)[:, None]) * (2 * HALF) + d[None, :]
    k1 = tl.load(k_at).to(tl.float32)
    k2 = tl.load(k_at + HALF).to(tl.float32)
    tl.store(k_at, (k1 * cos - k2 * sin).to(tl.bfloat16))
    tl.store(k_at + HALF, (k2 * cos + k1 * sin).to(tl.bfloat16))


@inference("queries and keys of 16,384 tokens rotated in place, 32 and 8 heads, bf16",
           (Given((16384, 32, 128), "bfloat16"), Given((16384, 8, 128), "bfloat16"),
            *matrices(2, 4096, 64)), moves=2 * 2 * 16384 * 40 * 128)
def _(q, k, cos, sin):
    rope_in_place_kernel[(16384,)](q, k, cos, sin, 4096, N_Q=32, N_K=8, HALF=64)


@triton.jit
def silu_mul_fp8_kernel(x_ptr, q_ptr, scale_ptr, width, BLOCK: tl.constexpr):
    """One scale a token, so that the gate is computed twice: for the maximum and for the result."""
    token = tl.program_id(0).to(tl.int64)
    gate_ptr = x_ptr + token * (2 * width)
    up_ptr = gate_ptr + width
    offs = tl.arange(0, BLOCK)
    most = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        gate = tl.load(gate_ptr + start + offs).to(tl.float32)
        up = tl.load(up_ptr + start + offs).to(tl.float32)
        most = tl.maximum(most, tl.abs(gate / (1.0 + tl.exp(-gate)) * up))
    scale = tl.maximum(tl.max(most, axis=0), 1e-6) / 448.0
    tl.store(scale_ptr + token, scale)
    inverse = 1.0 / scale
    for start in range(0, width, BLOCK):
        gate = tl.load(gate_ptr + start + offs).to(tl.float32)
        up = tl.load(up_ptr + start + offs).to(tl.float32)
        y = gate / (1.0 + tl.exp(-gate)) * up * inverse
        y = tl.minimum(tl.maximum(y, -448.0), 448.0)
        tl.store(q_ptr + token * width + start + offs, y.to(tl.float8e4nv))


@inference("SiLU and product of rows of 14,336 to fp8, one scale a token",
           (Given((4096, 2 * 14336), "bfloat16"), Given((4096, 14336), "float8_e4m3fn"),
            Given((4096,))))
def _(x, q, scale):
    silu_mul_fp8_kernel[(4096,)](x, q, scale, 14336, BLOCK=2048, num_warps=8)


@triton.jit
def gather_int8_pages_kernel(cache_ptr, scale_ptr, table_ptr, out_ptr, n_pages, n_heads,
                             PAGE: tl.constexpr, D: tl.constexpr):
    """A page of int8 keys back to bf16 in order; a scale for each token and head."""
    page = tl.program_id(0)
    sequence = tl.program_id(1)
    number = tl.load(table_ptr + sequence * n_pages + page)
    slot = tl.arange(0, PAGE)
    d = tl.arange(0, D)
    source = number * PAGE + slot
    target = (sequence * n_pages + page) * PAGE + slot
    for head in range(n_heads):
        x = tl.load(cache_ptr + ((source * n_heads + head) * D)[:, None] + d[None, :])
        scale = tl.load(scale_ptr + source * n_heads + head)
        x = x.to(tl.float32) * scale.to(tl.float32)[:, None]
        tl.store(out_ptr + ((target * n_heads + head) * D)[:, None] + d[None, :],
                 x.to(tl.bfloat16))


@inference("pages of int8 keys back to bf16 in order, 8 heads of 128",
           (Given((8192, 16, 8, 128), "int8", below=127), Given((8192, 16, 8), "float16"),
            Given((64, 128), "int32", below=8192), Given((64, 2048, 8, 128), "bfloat16")))
def _(cache, scale, table, out):
    gather_int8_pages_kernel[(128, 64)](cache, scale, table, out, 128, 8, PAGE=16, D=128)


@triton.jit
def route_kernel(logit_ptr, expert_ptr, weight_ptr, top, scaling, N: tl.constexpr,
                 BT: tl.constexpr):
    """The likeliest experts of each token, one after the other."""
    token = tl.program_id(0) * BT + tl.arange(0, BT)
    n = tl.arange(0, N)
    x = tl.load(logit_ptr + token[:, None] * N + n[None, :]).to(tl.float32)
    p = tl.exp(x - tl.max(x, axis=1)[:, None])
    p = p / tl.sum(p, axis=1)[:, None]
    for i in range(top):
        best, expert = tl.max(p, axis=1, return_indices=True)
        tl.store(expert_ptr + token * top + i, expert)
        tl.store(weight_ptr + token * top + i, best * scaling)
        p = tl.where(n[None, :] == expert[:, None], -1.0, p)


@inference("6 of 64 experts for 131,072 tokens, 32 tokens a program",
           (Given((131072, 64), "bfloat16"), Given((131072, 6), "int32"), Given((131072, 6))))
def _(logit, expert, weight):
    route_kernel[(131072 // 32,)](logit, expert, weight, 6, 2.5, N=64, BT=32)


@triton.jit
def pad_sequences_kernel(packed_ptr, first_ptr, length_ptr, dense_ptr, longest, width, padding,
                         BT: tl.constexpr, BLOCK: tl.constexpr):
    """Packed sequences to a dense tensor; the places after their ends are filled."""
    sequence = tl.program_id(1)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    cols = tl.arange(0, BLOCK)
    first = tl.load(first_ptr + sequence)
    length = tl.load(length_ptr + sequence)
    inside = (t < length)[:, None] & (cols < width)[None, :]
    x = tl.load(packed_ptr + (first + t)[:, None] * width + cols[None, :], mask=inside,
                other=padding)
    tl.store(dense_ptr + (sequence * longest + t)[:, None] * width + cols[None, :], x,
             mask=(t < longest)[:, None] & (cols < width)[None, :])


@inference("512 packed sequences of rows of 96 padded to 1,000, fp16",
           (Given((262144, 96), "float16"), Given((512,), "int32", below=262144 - 1000),
            Given((512,), "int32", below=1000), Given((512, 1000, 96), "float16")))
def _(packed, first, length, dense):
    pad_sequences_kernel[(triton.cdiv(1000, 32), 512)](packed, first, length, dense, 1000, 96,
                                                       0.0, BT=32, BLOCK=128)


@triton.jit
def causal_softmax_kernel(x_ptr, y_ptr, size, scale, BLOCK: tl.constexpr):
    """Two passes over the columns up to the diagonal; those after it become zeros."""
    row = tl.program_id(0)
    at = (tl.program_id(1) * size + row).to(tl.int64) * size
    offs = tl.arange(0, BLOCK)
    m_i = -1.0e6
    l_i = 0.0
    for start in range(0, row + 1, BLOCK):
        cols = start + offs
        x = tl.load(x_ptr + at + cols, mask=cols <= row, other=-1.0e6).to(tl.float32) * scale
        m_new = tl.maximum(m_i, tl.max(x, axis=0))
        l_i = l_i * tl.exp(m_i - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m_i = m_new
    for start in range(0, row + 1, BLOCK):
        cols = start + offs
        x = tl.load(x_ptr + at + cols, mask=cols <= row, other=-1.0e6).to(tl.float32) * scale
        tl.store(y_ptr + at + cols, (tl.exp(x - m_i) / l_i).to(tl.float16))
    for start in range((row // BLOCK + 1) * BLOCK, size, BLOCK):
        tl.store(y_ptr + at + start + offs, tl.zeros((BLOCK,), tl.float16))


@inference("causal softmax of 32 squares of scores of 2,048, 2 warps, fp16",
           (Given((32, 2048, 2048), "float16"),) * 2, moves=3 * 32 * 2048 * 2048)
def _(x, y):
    causal_softmax_kernel[(2048, 32)](x, y, 2048, 0.125, BLOCK=256, num_warps=2)


# -- vision --------------------------------------------------------------------------------------


@triton.jit
def norm_add_relu_kernel(x_ptr, shortcut_ptr, y_ptr, mean_ptr, var_ptr, weight_ptr, bias_ptr,
                         n_channels, area, eps, BLOCK: tl.constexpr):
    """Batch norm in evaluation, with the shortcut added; a plane a program."""
    plane = tl.program_id(0)
    channel = plane % n_channels
    scale = tl.load(weight_ptr + channel) * tl.rsqrt(tl.abs(tl.load(var_ptr + channel)) + eps)
    shift = tl.load(bias_ptr + channel) - tl.load(mean_ptr + channel) * scale
    for start in range(0, area, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < area
        x = tl.load(x_ptr + plane * area + offs, mask=mask, other=0.0).to(tl.float32)
        y = x * scale + shift
        y += tl.load(shortcut_ptr + plane * area + offs, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + plane * area + offs, tl.maximum(y, 0.0).to(tl.float16), mask=mask)


@vision("batch norm, shortcut and ReLU of 64 x 256 planes of 56 x 56, fp16",
        (*(Given((64, 256, 56, 56), "float16"),) * 3, *vectors(4, 256)))
def _(x, shortcut, y, mean, var, weight, bias):
    norm_add_relu_kernel[(64 * 256,)](x, shortcut, y, mean, var, weight, bias, 256, 3136, 1e-5,
                                      BLOCK=1024)


@triton.jit
def plane_mean_kernel(x_ptr, y_ptr, area, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + plane * area + offs, mask=offs < area, other=0.0).to(tl.float32)
    tl.store(y_ptr + plane, (tl.sum(x, axis=0) / area).to(tl.float16))


@vision("means of planes of 7 x 7, one a program, fp16",
        (Given((256, 1280, 49), "float16"), Given((256, 1280), "float16")))
def _(x, y):
    plane_mean_kernel[(256 * 1280,)](x, y, 49, BLOCK=64)


@triton.jit
def to_planes_kernel(x_ptr, mean_ptr, inverse_ptr, y_ptr, area, BLOCK: tl.constexpr):
    """Pixels of three bytes to three normalized planes, turned in registers."""
    image = tl.program_id(1)
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, 4)
    x = tl.load(x_ptr + (image * area + pixel)[:, None] * 3 + c[None, :], mask=(c < 3)[None, :],
                other=0)
    mean = tl.load(mean_ptr + c, mask=c < 3, other=0.0)
    inverse = tl.load(inverse_ptr + c, mask=c < 3, other=0.0)
    y = (x.to(tl.float32) * (1.0 / 255.0) - mean[None, :]) * inverse[None, :]
    tl.store(y_ptr + (image * 3 + c)[:, None] * area + pixel[None, :],
             tl.trans(y.to(tl.float16)), mask=(c < 3)[:, None])


@vision("256 images of bytes, channels last, to normalized planes in fp16",
        (Given((256, 224, 224, 3), "uint8", below=256), Given((3,)), Given((3,)),
         Given((256, 3, 224, 224), "float16")))
def _(x, mean, inverse, y):
    to_planes_kernel[(224 * 224 // 256, 256)](x, mean, inverse, y, 224 * 224, BLOCK=256)


@triton.jit
def _order(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def median_kernel(x_ptr, y_ptr, H, W, BLOCK: tl.constexpr):
    """The middle of 3 x 3 pixels by a network of 19 comparisons."""
    i = tl.program_id(1)
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = j < W
    up = x_ptr + tl.maximum(i - 1, 0) * W
    here = x_ptr + i * W
    down = x_ptr + tl.minimum(i + 1, H - 1) * W
    left = tl.maximum(j - 1, 0)
    right = tl.minimum(j + 1, W - 1)
    p0 = tl.load(up + left, mask=mask, other=0.0)
    p1 = tl.load(up + j, mask=mask, other=0.0)
    p2 = tl.load(up + right, mask=mask, other=0.0)
    p3 = tl.load(here + left, mask=mask, other=0.0)
    p4 = tl.load(here + j, mask=mask, other=0.0)
    p5 = tl.load(here + right, mask=mask, other=0.0)
    p6 = tl.load(down + left, mask=mask, other=0.0)
    p7 = tl.load(down + j, mask=mask, other=0.0)
    p8 = tl.load(down + right, mask=mask, other=0.0)
    p1, p2 = _order(p1, p2)
    p4, p5 = _order(p4, p5)
    p7, p8 = _order(p7, p8)
    p0, p1 = _order(p0, p1)
    p3, p4 = _order(p3, p4)
    p6, p7 = _order(p6, p7)
    p1, p2 = _order(p1, p2)
    p4, p5 = _order(p4, p5)
    p7, p8 = _order(p7, p8)
    p0, p3 = _order(p0, p3)
    p5, p8 = _order(p5, p8)
    p4, p7 = _order(p4, p7)
    p3, p6 = _order(p3, p6)
    p1, p4 = _order(p1, p4)
    p2, p5 = _order(p2, p5)
    p4, p7 = _order(p4, p7)
    p4, p2 = _order(p4, p2)
    p6, p4 = _order(p6, p4)
    p4, p2 = _order(p4, p2)
    tl.store(y_ptr + i * W + j, p4, mask=mask)


@vision("medians of 3 x 3 of a picture of 6,000 x 4,097", matrices(2, 6000, 4097))
def _(x, y):
    median_kernel[(triton.cdiv(4097, 512), 6000)](x, y, 6000, 4097, BLOCK=512)


@triton.jit
def equalize_kernel(x_ptr, y_ptr, W, TILE: tl.constexpr):
    """Each tile's histogram becomes a table, by which its pixels change."""
    offs = tl.arange(0, TILE * TILE)
    i = tl.program_id(1) * TILE + offs // TILE
    j = tl.program_id(0) * TILE + offs % TILE
    x = tl.load(x_ptr + i * W + j).to(tl.int32)
    count = tl.histogram(x, 256)
    table = (tl.cumsum(count, axis=0) * 255) // (TILE * TILE)
    tl.store(y_ptr + i * W + j, tl.gather(table, x, 0).to(tl.uint8))


@vision("histograms of tiles of 64 x 64 equalized, bytes, 8 warps",
        (Given((6144, 8192), "uint8", below=256), Given((6144, 8192), "uint8")))
def _(x, y):
    equalize_kernel[(8192 // 64, 6144 // 64)](x, y, 8192, TILE=64, num_warps=8)


# -- registers and shared memory -----------------------------------------------------------------


@triton.jit
def permute_columns_kernel(x_ptr, order_ptr, y_ptr, n_rows, N: tl.constexpr):
    """The same new order for all rows; each passes through shared memory."""
    cols = tl.arange(0, N)
    order = tl.load(order_ptr + cols)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * N + cols)
        tl.store(y_ptr + row * N + cols, tl.gather(x, order, 0))


@registers("columns of rows of 4,096 in another order by 528 programs, fp16",
           (Given((16384, 4096), "float16"), Given((4096,), "int32", below=4096),
            Given((16384, 4096), "float16")))
def _(x, order, y):
    permute_columns_kernel[(528,)](x, order, y, 16384, N=4096)


@triton.jit
def fft_kernel(re_ptr, im_ptr, cos_ptr, sin_ptr, reversed_ptr, out_re_ptr, out_im_ptr, stages,
               N: tl.constexpr):
    """Radix 2, from wide to narrow; partners meet through tl.gather."""
    row = tl.program_id(0)
    offs = tl.arange(0, N)
    re = tl.load(re_ptr + row * N + offs)
    im = tl.load(im_ptr + row * N + offs)
    for stage in range(stages):
        half = (N // 2) >> stage
        other_re = tl.gather(re, offs ^ half, 0)
        other_im = tl.gather(im, offs ^ half, 0)
        upper = (offs & half) != 0
        turn = (offs & (half - 1)) << stage
        c = tl.load(cos_ptr + turn)
        s = tl.load(sin_ptr + turn)
        apart_re = other_re - re
        apart_im = other_im - im
        re = tl.where(upper, apart_re * c + apart_im * s, re + other_re)
        im = tl.where(upper, apart_im * c - apart_re * s, im + other_im)
    place = tl.load(reversed_ptr + offs)
    tl.store(out_re_ptr + row * N + place, re)
    tl.store(out_im_ptr + row * N + place, im)


@registers("Fourier transforms of rows of 1,024",
           (*matrices(2, 16384, 1024), *vectors(2, 512), Given((1024,), "int32", below=1024),
            *matrices(2, 16384, 1024)))
def _(re, im, cos, sin, order, out_re, out_im):
    fft_kernel[(16384,)](re, im, cos, sin, order, out_re, out_im, 10, N=1024)


@triton.jit
def inverse_kernel(x_ptr, y_ptr, n, N: tl.constexpr):
    """Gauss-Jordan elimination in place, one pivot an iteration; no rows change places."""
    i = tl.arange(0, N)[:, None]
    j = tl.arange(0, N)[None, :]
    at = tl.program_id(0) * N * N + i * N + j
    a = tl.load(x_ptr + at) + tl.where(i == j, 8.0, 0.0)
    for k in range(n):
        row = tl.sum(tl.where(i == k, a, 0.0), axis=0)[None, :]
        col = tl.sum(tl.where(j == k, a, 0.0), axis=1)[:, None]
        pivot = 1.0 / tl.sum(tl.where(j == k, row, 0.0), axis=1)[:, None]
        rest = a - col * row * pivot
        rest = tl.where(i == k, row * pivot, rest)
        rest = tl.where(j == k, -col * pivot, rest)
        a = tl.where((i == k) & (j == k), pivot, rest)
    tl.store(y_ptr + at, a)


@registers("inverses of 16,384 matrices of 32 x 32, 2 warps", (Given((16384, 32, 32)),) * 2)
def _(x, y):
    inverse_kernel[(16384,)](x, y, 32, N=32, num_warps=2)


@triton.jit
def sinkhorn_kernel(x_ptr, y_ptr, sharpness, iterations, N: tl.constexpr):
    """Rows and columns in turn are brought to the sum 1, in logarithms."""
    i = tl.arange(0, N)[:, None]
    j = tl.arange(0, N)[None, :]
    at = tl.program_id(0) * N * N + i * N + j
    x = tl.load(x_ptr + at) * sharpness
    for _ in range(iterations):
        m = tl.max(x, axis=1)
        x = x - (m + tl.log(tl.sum(tl.exp(x - m[:, None]), axis=1)))[:, None]
        m = tl.max(x, axis=0)
        x = x - (m + tl.log(tl.sum(tl.exp(x - m[None, :]), axis=0)))[None, :]
    tl.store(y_ptr + at, tl.exp(x))


@registers("20 Sinkhorn iterations of 4,096 matrices of 64 x 64", (Given((4096, 64, 64)),) * 2)
def _(x, y):
    sinkhorn_kernel[(4096,)](x, y, 5.0, 20, N=64)


# -- statistics ----------------------------------------------------------------------------------


@triton.jit
def logsumexp_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    """Full blocks without a mask, then the remainder with one."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x_ptr += row * n_cols
    m = tl.full((BLOCK,), -1.0e6, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    full = n_cols // BLOCK * BLOCK
    for start in range(0, full, BLOCK):
        x = tl.load(x_ptr + start + offs).to(tl.float32)
        m_new = tl.maximum(m, x)
        total = total * tl.exp(m - m_new) + tl.exp(x - m_new)
        m = m_new
    for start in range(full, n_cols, BLOCK):
        mask = start + offs < n_cols
        x = tl.load(x_ptr + start + offs, mask=mask, other=-1.0e6).to(tl.float32)
        m_new = tl.maximum(m, x)
        total = total * tl.exp(m - m_new) + tl.where(mask, tl.exp(x - m_new), 0.0)
        m = m_new
    most = tl.max(m, axis=0)
    tl.store(y_ptr + row, most + tl.log(tl.sum(total * tl.exp(m - most), axis=0)))


@statistics("logarithms of sums of exponentials of rows of 12,345, fp16",
            (Given((8192, 12345), "float16"), Given((8192,))))
def _(x, y):
    logsumexp_kernel[(8192,)](x, y, 12345, BLOCK=1024)


@triton.jit
def cosine_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    ab = tl.zeros((BLOCK,), tl.float32)
    aa = tl.zeros((BLOCK,), tl.float32)
    bb = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + offs < n
        a = tl.load(a_ptr + row * n + start + offs, mask=mask, other=0.0)
        b = tl.load(b_ptr + row * n + start + offs, mask=mask, other=0.0)
        ab += a * b
        aa += a * a
        bb += b * b
    scale = tl.rsqrt(tl.sum(aa, axis=0) + 1e-12) * tl.rsqrt(tl.sum(bb, axis=0) + 1e-12)
    tl.store(out_ptr + row, tl.sum(ab, axis=0) * scale)


@statistics("cosines between 100 pairs of vectors of 1,000,003, 8 warps",
            (*matrices(2, 100, 1_000_003), Given((100,))))
def _(a, b, out):
    cosine_kernel[(100,)](a, b, out, 1_000_003, BLOCK=2048, num_warps=8)


@triton.jit
def _add_exponentials(m_a, s_a, m_b, s_b):
    m = tl.maximum(m_a, m_b)
    return m, s_a * tl.exp(m_a - m) + s_b * tl.exp(m_b - m)


@triton.jit
def log_cumsum_exp_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * n_cols + offs, mask=mask, other=-1.0e6)
    one = tl.full((BLOCK,), 1.0, tl.float32)
    m, s = tl.associative_scan((x, one), 0, _add_exponentials)
    tl.store(y_ptr + row * n_cols + offs, m + tl.log(s), mask=mask)


@statistics("logarithms of running sums of exponentials of rows of 4,097, 8 warps",
            matrices(2, 8192, 4097))
def _(x, y):
    log_cumsum_exp_kernel[(8192,)](x, y, 4097, BLOCK=8192, num_warps=8)


@triton.jit
def standardize_columns_kernel(x_ptr, y_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    """A column a program, though rows lie together in memory."""
    col = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + rows * n_cols + col, mask=rows < n_rows, other=0.0)
        total += x
        squares += x * x
    mean = tl.sum(total, axis=0) / n_rows
    var = tl.sum(squares, axis=0) / n_rows - mean * mean
    rstd = tl.rsqrt(tl.maximum(var, 0.0) + 1e-6)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + rows * n_cols + col, mask=rows < n_rows, other=0.0)
        tl.store(y_ptr + rows * n_cols + col, (x - mean) * rstd, mask=rows < n_rows)


@statistics("1,000 columns of 20,000 rows standardized, a column a program",
            matrices(2, 20_000, 1000))
def _(x, y):
    standardize_columns_kernel[(1000,)](x, y, 20_000, 1000, BLOCK=1024)


# -- searches and sequences ----------------------------------------------------------------------


@triton.jit
def _bits(x):
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def nearest_code_kernel(query_ptr, code_ptr, far_ptr, near_ptr, n_codes, WORDS: tl.constexpr,
                        BQ: tl.constexpr, BN: tl.constexpr):
    """The nearest of many binary codes by the number of bits that differ."""
    q = tl.program_id(0) * BQ + tl.arange(0, BQ)
    least = tl.full((BQ,), 32 * WORDS + 1, tl.int32)
    near = tl.zeros((BQ,), tl.int32)
    for start in range(0, n_codes, BN):
        n = start + tl.arange(0, BN)
        far = tl.zeros((BQ, BN), tl.int32)
        for word in tl.static_range(WORDS):
            a = tl.load(query_ptr + q * WORDS + word).to(tl.uint32)
            b = tl.load(code_ptr + n * WORDS + word, mask=n < n_codes, other=0).to(tl.uint32)
            far += _bits(a[:, None] ^ b[None, :])
        far = tl.where((n < n_codes)[None, :], far, 32 * WORDS + 1)
        best, place = tl.min(far, axis=1, return_indices=True)
        near = tl.where(best < least, start + place, near)
        least = tl.minimum(least, best)
    tl.store(far_ptr + q, least)
    tl.store(near_ptr + q, near)


@searches("nearest of 30,011 codes of 256 bits for 2,048 queries",
          (Given((2048, 8), "int32", below=2147483647),
           Given((30_011, 8), "int32", below=2147483647), *(Given((2048,), "int32"),) * 2))
def _(query, code, far, near):
    nearest_code_kernel[(2048 // 16,)](query, code, far, near, 30_011, WORDS=8, BQ=16, BN=64)


@triton.jit
def forest_kernel(x_ptr, feature_ptr, limit_ptr, value_ptr, out_ptr, n_samples, n_trees, depth,
                  FEATURES: tl.constexpr, NODES: tl.constexpr, BLOCK: tl.constexpr):
    """Lanes walk down a tree together until all are at leaves: nodes without a feature."""
    sample = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = sample < n_samples
    score = tl.zeros((BLOCK,), tl.float32)
    for tree in range(n_trees):
        node = tl.zeros((BLOCK,), tl.int32)
        active = mask.to(tl.int32)
        step = 0
        while (tl.max(active, axis=0) > 0) & (step < depth):
            feature = tl.load(feature_ptr + tree * NODES + node)
            limit = tl.load(limit_ptr + tree * NODES + node)
            active = tl.where(feature < FEATURES, active, 0)
            x = tl.load(x_ptr + sample * FEATURES + feature, mask=active != 0, other=0)
            node = tl.where(active != 0, 2 * node + 1 + (x > limit).to(tl.int32), node)
            step += 1
        score += tl.load(value_ptr + tree * NODES + node)
    tl.store(out_ptr + sample, 1.0 / (1.0 + tl.exp(-score)), mask=mask)


@searches("100 trees of depth 9 for 100,000 samples of 28 bytes",
          (Given((100_000, 28), "uint8", below=256), Given((100, 1023), "int32", below=32),
           Given((100, 1023), "uint8", below=256), Given((100, 1023)), Given((100_000,))))
def _(x, feature, limit, value, out):
    forest_kernel[(triton.cdiv(100_000, 128),)](x, feature, limit, value, out, 100_000, 100, 9,
                                                FEATURES=28, NODES=1023, BLOCK=128)


@triton.jit
def viterbi_kernel(emission_ptr, move_ptr, back_ptr, score_ptr, length, S: tl.constexpr):
    """The best way to each state of each step; one sequence a program."""
    sequence = tl.program_id(0)
    before = tl.arange(0, S)
    after = tl.arange(0, S)
    move = tl.load(move_ptr + before[:, None] * S + after[None, :])
    at = sequence * length * S
    score = tl.load(emission_ptr + at + after)
    for t in range(1, length):
        emission = tl.load(emission_ptr + at + t * S + after)
        best, source = tl.max(score[:, None] + move, axis=0, return_indices=True)
        tl.store(back_ptr + at + t * S + after, source.to(tl.uint8))
        score = best + emission
    tl.store(score_ptr + sequence * S + after, score)


@searches("Viterbi's algorithm, 64 states, 400 steps of 512 sequences",
          (Given((512, 400, 64)), Given((64, 64)), Given((512, 400, 64), "uint8"),
           Given((512, 64))))
def _(emission, move, back, score):
    viterbi_kernel[(512,)](emission, move, back, score, 400, S=64)


CASES: tuple[Case, ...] = tuple(
    case for family in (training, inference, vision, registers, statistics, searches)
    for case in family.cases)
