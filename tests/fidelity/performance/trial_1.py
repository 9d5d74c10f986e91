"""Kernels without products, on which the timing model was tried before it was fitted to them."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Case, Family, Given, matrices, vectors
from .unseen import OLD

arithmetic = Family("arithmetic, formerly held out")
dependent = Family("data-dependent, formerly held out")
tails = Family("tails, formerly held out")
layouts = Family("layouts, formerly held out")
grids = Family("small grids, formerly held out")
tables = Family("tables, formerly held out")
scans = Family("scans, formerly held out")
reductions = Family("reductions, formerly held out")
streams = Family("streaming, formerly held out")
windows = Family("windows, formerly held out")


# -- arithmetic ----------------------------------------------------------------------------------


@triton.jit
def gravity_kernel(x_ptr, y_ptr, z_ptr, m_ptr, ax_ptr, ay_ptr, az_ptr, n, BI: tl.constexpr,
                   BJ: tl.constexpr):
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    xi = tl.load(x_ptr + i)
    yi = tl.load(y_ptr + i)
    zi = tl.load(z_ptr + i)
    ax = tl.zeros((BI,), tl.float32)
    ay = tl.zeros((BI,), tl.float32)
    az = tl.zeros((BI,), tl.float32)
    for start in range(0, n, BJ):
        j = start + tl.arange(0, BJ)
        dx = tl.load(x_ptr + j)[None, :] - xi[:, None]
        dy = tl.load(y_ptr + j)[None, :] - yi[:, None]
        dz = tl.load(z_ptr + j)[None, :] - zi[:, None]
        near = tl.rsqrt(dx * dx + dy * dy + dz * dz + 0.01)
        pull = tl.load(m_ptr + j)[None, :] * near * near * near
        ax += tl.sum(pull * dx, axis=1)
        ay += tl.sum(pull * dy, axis=1)
        az += tl.sum(pull * dz, axis=1)
    tl.store(ax_ptr + i, ax)
    tl.store(ay_ptr + i, ay)
    tl.store(az_ptr + i, az)


@arithmetic("gravity among 16,384 bodies", vectors(7, 16384),
            "register spills" if OLD else ())
def _(x, y, z, m, ax, ay, az):
    gravity_kernel[(16384 // 64,)](x, y, z, m, ax, ay, az, 16384, BI=64, BJ=64)


@triton.jit
def option_kernel(moneyness_ptr, strike_ptr, log_years_ptr, call_ptr, put_ptr, n, rate, sigma,
                  BLOCK: tl.constexpr):
    """Black-Scholes; moneyness is the logarithm of price over strike."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    moneyness = tl.load(moneyness_ptr + offs, mask=mask, other=0.0)
    strike = tl.load(strike_ptr + offs, mask=mask, other=0.0)
    years = tl.exp(tl.load(log_years_ptr + offs, mask=mask, other=0.0))
    spread = sigma * tl.sqrt(years)
    d1 = (moneyness + (rate + 0.5 * sigma * sigma) * years) / spread
    d2 = d1 - spread
    price = strike * tl.exp(moneyness)
    due = strike * tl.exp(-rate * years)
    call = price * 0.5 * (1.0 + tl.erf(d1 * 0.7071067811865476))
    call -= due * 0.5 * (1.0 + tl.erf(d2 * 0.7071067811865476))
    tl.store(call_ptr + offs, call, mask=mask)
    tl.store(put_ptr + offs, call - price + due, mask=mask)


@arithmetic("Black-Scholes calls and puts in float64", vectors(5, 1 << 23, "float64"))
def _(moneyness, strike, log_years, call, put):
    n = moneyness.numel()
    option_kernel[(triton.cdiv(n, 256),)](moneyness, strike, log_years, call, put, n, 0.03, 0.2,
                                          BLOCK=256)


@triton.jit
def modular_power_kernel(base_ptr, exponent_ptr, out_ptr, n, modulus, bits, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    base = tl.load(base_ptr + offs, mask=mask, other=0)
    exponent = tl.load(exponent_ptr + offs, mask=mask, other=0)
    power = tl.full((BLOCK,), 1, tl.int64)
    for bit in range(bits):
        power = tl.where((exponent >> bit) & 1 == 1, power * base % modulus, power)
        base = base * base % modulus
    tl.store(out_ptr + offs, power, mask=mask)


@arithmetic("modular powers in int64 by squaring",
            (Given((1 << 21,), "int64", below=2147483647),
             Given((1 << 21,), "int32", below=1 << 20), Given((1 << 21,), "int64")))
def _(base, exponent, out):
    modular_power_kernel[((1 << 21) // 512,)](base, exponent, out, 1 << 21, 2147483647, 20,
                                              BLOCK=512, num_warps=8)


@triton.jit
def pi_kernel(count_ptr, seed, draws, BLOCK: tl.constexpr):
    first = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) * 2 * draws
    inside = tl.zeros((BLOCK,), tl.int32)
    for draw in range(draws):
        x = tl.rand(seed, first + 2 * draw)
        y = tl.rand(seed, first + 2 * draw + 1)
        inside += (x * x + y * y < 1.0).to(tl.int32)
    tl.store(count_ptr + tl.program_id(0), tl.sum(inside, axis=0))


@arithmetic("pi from random points", (Given((2048,), "int32"),), "small size")
def _(count):
    pi_kernel[(2048,)](count, 7, 32, BLOCK=1024)


# -- loops whose number of iterations depends on data --------------------------------------------


@triton.jit
def sparse_row_kernel(start_ptr, length_ptr, column_ptr, value_ptr, x_ptr, y_ptr,
                      BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.load(start_ptr + row)
    length = tl.load(length_ptr + row)
    acc = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, length, BLOCK):
        offs = first + tl.arange(0, BLOCK)
        mask = offs < length
        column = tl.load(column_ptr + start + offs, mask=mask, other=0)
        value = tl.load(value_ptr + start + offs, mask=mask, other=0.0)
        acc += value * tl.load(x_ptr + column, mask=mask, other=0.0)
    tl.store(y_ptr + row, tl.sum(acc, axis=0))


@dependent("sparse matrix times a vector, one row a program",
           (Given((1 << 17,), "int32", below=(1 << 25) - 512),
            Given((1 << 17,), "int32", below=512), Given((1 << 25,), "int32", below=1 << 20),
            Given((1 << 25,)), Given((1 << 20,)), Given((1 << 17,))),
           "uncoalesced access", moves=(1 << 17) * (256 * 8 + 12) + (1 << 22))
def _(start, length, column, value, x, y):
    sparse_row_kernel[(1 << 17,)](start, length, column, value, x, y, BLOCK=64, num_warps=1)


@triton.jit
def sparse_lanes_kernel(start_ptr, length_ptr, column_ptr, value_ptr, x_ptr, y_ptr,
                        BLOCK: tl.constexpr):
    """Each lane walks along a row of its own."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    start = tl.load(start_ptr + rows)
    length = tl.load(length_ptr + rows)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(tl.max(length, axis=0)):
        mask = i < length
        column = tl.load(column_ptr + start + i, mask=mask, other=0)
        value = tl.load(value_ptr + start + i, mask=mask, other=0.0)
        acc += value.to(tl.float32) * tl.load(x_ptr + column, mask=mask, other=0.0)
    tl.store(y_ptr + rows, acc)


@dependent("sparse matrix times a vector, one row a lane",
           (Given((1 << 20,), "int32", below=(1 << 23) - 16),
            Given((1 << 20,), "int32", below=16), Given((1 << 23,), "int32", below=1 << 18),
            Given((1 << 23,), "float16"), Given((1 << 18,)), Given((1 << 20,))),
           "uncoalesced access", moves=(1 << 20) * (12 + 45 + 1))
def _(start, length, column, value, x, y):
    sparse_lanes_kernel[((1 << 20) // 256,)](start, length, column, value, x, y, BLOCK=256,
                                             num_warps=8)


@triton.jit
def lower_bound_kernel(table_ptr, query_ptr, place_ptr, n, n_queries, BLOCK: tl.constexpr):
    """The first place in a sorted table whose value is not below the query."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    query = tl.load(query_ptr + offs, mask=offs < n_queries, other=0)
    low = tl.zeros((BLOCK,), tl.int32)
    high = tl.zeros((BLOCK,), tl.int32) + n
    while tl.max(high - low, axis=0) > 0:
        middle = (low + high) // 2
        value = tl.load(table_ptr + middle, mask=low < high, other=0)
        right = (low < high) & (value < query)
        low = tl.where(right, middle + 1, low)
        high = tl.where(right, high, middle)
    tl.store(place_ptr + offs, low, mask=offs < n_queries)


@dependent("binary search in a table of 8 MB",
           (Given((1 << 21,), "int32", below=1 << 30),
            Given((3_000_000,), "int32", below=1_000_000_007), Given((3_000_000,), "int32")))
def _(table, query, place):
    lower_bound_kernel[(triton.cdiv(3_000_000, 256),)](table, query, place, 1 << 21, 3_000_000,
                                                       BLOCK=256, num_warps=2)


@triton.jit
def packed_max_kernel(x_ptr, start_ptr, length_ptr, out_ptr, D: tl.constexpr, ROWS: tl.constexpr):
    sequence = tl.program_id(0)
    start = tl.load(start_ptr + sequence)
    length = tl.load(length_ptr + sequence)
    d = tl.arange(0, D)
    best = tl.full((ROWS, D), -float("inf"), tl.float32)
    for first in range(0, length, ROWS):
        token = first + tl.arange(0, ROWS)[:, None]
        x = tl.load(x_ptr + (start + token) * D + d[None, :], mask=token < length,
                    other=-float("inf"))
        best = tl.maximum(best, x.to(tl.float32))
    tl.store(out_ptr + sequence * D + d, tl.max(best, axis=0).to(tl.bfloat16))


@dependent("maxima over packed sequences of different lengths, bf16",
           (Given((1 << 20, 256), "bfloat16"), Given((8192,), "int32", below=(1 << 20) - 256),
            Given((8192,), "int32", below=256), Given((8192, 256), "bfloat16")),
           moves=8192 * (128 + 1) * 512)
def _(x, start, length, out):
    packed_max_kernel[(8192,)](x, start, length, out, D=256, ROWS=8)


# -- sizes that no block divides -----------------------------------------------------------------


@triton.jit
def quantize_rows_kernel(x_ptr, q_ptr, scale_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * n_cols + offs, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-6) / 127.0
    q = x / scale
    q = tl.where(q < 0.0, q - 0.5, q + 0.5).to(tl.int8)
    tl.store(q_ptr + row * n_cols + offs, q, mask=mask)
    tl.store(scale_ptr + row, scale)


@tails("rows of 1,531 in bf16 quantized to int8",
       (Given((65536, 1531), "bfloat16"), Given((65536, 1531), "int8"), Given((65536,))),
       "scalar access")
def _(x, q, scale):
    quantize_rows_kernel[(65536,)](x, q, scale, 1531, BLOCK=2048)


@triton.jit
def unit_rows_kernel(x_ptr, y_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    at = rows * n_cols + cols
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    length = tl.sqrt(tl.sum(x * x, axis=1) + 1e-12)
    tl.store(y_ptr + at, (x / length[:, None]).to(tl.float16), mask=mask)


@tails("rows of 100 in fp16 brought to length 1, 16 a program",
       matrices(2, 1_000_003, 100, "float16"), "scalar access")
def _(x, y):
    unit_rows_kernel[(triton.cdiv(1_000_003, 16),)](x, y, 1_000_003, 100, ROWS=16, BLOCK=128)


# -- layouts changed through shared memory and shuffles ------------------------------------------


@triton.jit
def channels_last_kernel(x_ptr, y_ptr, C, P, BC: tl.constexpr, BP: tl.constexpr):
    """y[image, pixel, channel] = x[image, channel, pixel]."""
    image = tl.program_id(2)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    x = tl.load(x_ptr + (image * C + c)[:, None] * P + p[None, :],
                mask=(c < C)[:, None] & (p < P)[None, :])
    tl.store(y_ptr + (image * P + p)[:, None] * C + c[None, :], tl.trans(x),
             mask=(p < P)[:, None] & (c < C)[None, :])


@layouts("images of 96 x 55 x 55 to channels last, fp16",
         (Given((256, 96, 3025), "float16"), Given((256, 3025, 96), "float16")), "scalar access")
def _(x, y):
    channels_last_kernel[(triton.cdiv(3025, 64), 3, 256)](x, y, 96, 3025, BC=32, BP=64)


@triton.jit
def patches_kernel(x_ptr, y_ptr, H, W, P: tl.constexpr, WIDE: tl.constexpr):
    """Each patch of P x P pixels becomes a row."""
    image = tl.program_id(2)
    i = tl.program_id(1) * P + tl.arange(0, P)
    j = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    x = tl.load(x_ptr + (image * H + i)[:, None] * W + j[None, :])
    x = tl.permute(tl.reshape(x, (P, WIDE // P, P)), (1, 0, 2))
    x = tl.reshape(x, (WIDE // P, P * P))
    first = (image * (H // P) + tl.program_id(1)) * (W // P) + tl.program_id(0) * (WIDE // P)
    patch = first + tl.arange(0, WIDE // P)
    tl.store(y_ptr + patch[:, None] * (P * P) + tl.arange(0, P * P)[None, :], x)


@layouts("images cut into patches of 16 x 16",
         (Given((64, 1024, 1024)), Given((64, 64 * 64, 256))))
def _(x, y):
    patches_kernel[(1024 // 128, 1024 // 16, 64)](x, y, 1024, 1024, P=16, WIDE=128)


@triton.jit
def flip_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.flip(tl.load(x_ptr + at), 0))


@layouts("rows of 1,024 reversed, bf16", matrices(2, 131072, 1024, "bfloat16"))
def _(x, y):
    flip_kernel[(131072,)](x, y, BLOCK=1024)


# -- small grids ---------------------------------------------------------------------------------


@triton.jit
def smoothing_kernel(x_ptr, y_ptr, n_steps, n_channels, decay, BLOCK: tl.constexpr):
    """Exponential averages along time, a block of channels a program."""
    channels = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros((BLOCK,), tl.float32)
    for step in range(n_steps):
        x = tl.load(x_ptr + step * n_channels + channels)
        state = decay * state + (1.0 - decay) * x
        tl.store(y_ptr + step * n_channels + channels, state)


@grids("exponential averages by 64 programs of 1 warp", matrices(2, 2048, 8192),
       "too few programs")
def _(x, y):
    smoothing_kernel[(64,)](x, y, 2048, 8192, 0.9, BLOCK=128, num_warps=1)


@triton.jit
def long_dot_kernel(x_ptr, y_ptr, out_ptr, length, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, length, BLOCK):
        at = row * length + start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + at).to(tl.float32) * tl.load(y_ptr + at).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


@grids("16 long inner products, 32 warps, bf16",
       (*matrices(2, 16, 1 << 20, "bfloat16"), Given((16,))), "too few programs")
def _(x, y, out):
    long_dot_kernel[(16,)](x, y, out, 1 << 20, BLOCK=8192, num_warps=32)


@triton.jit
def walk_kernel(next_ptr, first_ptr, last_ptr, steps, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(first_ptr + offs)
    for _ in range(steps):
        at = tl.load(next_ptr + at)
    tl.store(last_ptr + offs, at)


@grids("12,800 walks through a table of 64 MB by 200 programs",
       (Given((1 << 24,), "int32", below=1 << 24), Given((12800,), "int32", below=1 << 24),
        Given((12800,), "int32")), {"no pipelining", "uncoalesced access"},
       moves=12800 * (1024 + 2) * 4)
def _(follow, first, last):
    walk_kernel[(200,)](follow, first, last, 1024, BLOCK=64, num_warps=2)


@triton.jit
def julia_kernel(count_ptr, side, n_blocks, steps, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), n_blocks, tl.num_programs(0)):
        offs = block * BLOCK + tl.arange(0, BLOCK)
        x = (offs % side).to(tl.float32) * (3.0 / side) - 1.5
        y = (offs // side).to(tl.float32) * (3.0 / side) - 1.5
        count = tl.zeros((BLOCK,), tl.int32)
        for _ in range(steps):
            xx = x * x
            yy = y * y
            count += (xx + yy < 4.0).to(tl.int32)
            y = 2.0 * x * y + 0.156
            x = xx - yy - 0.8
        tl.store(count_ptr + offs, count)


@grids("Julia set by 264 programs that take many blocks", (Given((4096, 4096), "int32"),))
def _(count):
    julia_kernel[(264,)](count, 4096, 4096 * 4096 // 1024, 100, BLOCK=1024)


# -- tables and atomics --------------------------------------------------------------------------


@triton.jit
def embedding_gradient_kernel(dy_ptr, token_ptr, dw_ptr, D, ROWS: tl.constexpr,
                              COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    token = tl.load(token_ptr + rows)
    dy = tl.load(dy_ptr + rows[:, None] * D + cols[None, :]).to(tl.float32)
    tl.atomic_add(dw_ptr + token[:, None] * D + cols[None, :], dy)


@tables("gradient of an embedding of 50,257 tokens, bf16",
        (Given((65536, 768), "bfloat16"), Given((65536,), "int32", below=50257),
         Given((50257, 768))))
def _(dy, token, dw):
    embedding_gradient_kernel[(65536 // 8, 3)](dy, token, dw, 768, ROWS=8, COLS=256)


@triton.jit
def class_sums_kernel(x_ptr, label_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    label = tl.load(label_ptr + offs, mask=mask, other=0)
    tl.atomic_add(sum_ptr + label, tl.load(x_ptr + offs, mask=mask), mask=mask)


@tables("sums of 64 classes by atomics",
        (Given((1 << 22,)), Given((1 << 22,), "int32", below=64), Given((64,))),
        "contended atomics")
def _(x, label, total):
    class_sums_kernel[((1 << 22) // 1024,)](x, label, total, 1 << 22, BLOCK=1024)


@triton.jit
def bilinear_kernel(image_ptr, points_ptr, out_ptr, n, width, BLOCK: tl.constexpr):
    """All y come before all x, in 256ths of a pixel."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    y = tl.load(points_ptr + offs, mask=mask, other=0)
    x = tl.load(points_ptr + n + offs, mask=mask, other=0)
    at = (y >> 8) * width + (x >> 8)
    v = (y & 255).to(tl.float32) / 256.0
    u = (x & 255).to(tl.float32) / 256.0
    top = tl.load(image_ptr + at, mask=mask, other=0.0).to(tl.float32) * (1.0 - u)
    top += tl.load(image_ptr + at + 1, mask=mask, other=0.0).to(tl.float32) * u
    low = tl.load(image_ptr + at + width, mask=mask, other=0.0).to(tl.float32) * (1.0 - u)
    low += tl.load(image_ptr + at + width + 1, mask=mask, other=0.0).to(tl.float32) * u
    tl.store(out_ptr + offs, top * (1.0 - v) + low * v, mask=mask)


@tables("bilinear samples of an image of 8 MB at random points",
        (Given((2048, 2048), "float16"), Given((2, 5_000_000), "int32", below=2047 * 256),
         Given((5_000_000,))), "uncoalesced access")
def _(image, points, out):
    bilinear_kernel[(triton.cdiv(5_000_000, 512),)](image, points, out, 5_000_000, 2048,
                                                    BLOCK=512)


# -- scans and sorts -----------------------------------------------------------------------------


@triton.jit
def _segment(a, begins_a, b, begins_b):
    return tl.where(begins_b != 0, b, a + b), begins_a | begins_b


@triton.jit
def segment_sums_kernel(x_ptr, begins_ptr, y_ptr, BLOCK: tl.constexpr):
    """Running sums along a row that begin anew at marked elements."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    begins = tl.load(begins_ptr + at).to(tl.int32)
    y, _ = tl.associative_scan((x, begins), 0, _segment)
    tl.store(y_ptr + at, y)


@scans("running sums of segments, 2 warps",
       (Given((65536, 1024)), Given((65536, 1024), "int8", below=2), Given((65536, 1024))))
def _(x, begins, y):
    segment_sums_kernel[(65536,)](x, begins, y, BLOCK=1024, num_warps=2)


@triton.jit
def sort_rows_kernel(x_ptr, y_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    at = rows * COLS + tl.arange(0, COLS)[None, :]
    tl.store(y_ptr + at, tl.sort(tl.load(x_ptr + at), dim=1))


@scans("sorted rows of 64, 32 a program, fp16", matrices(2, 1 << 19, 64, "float16"))
def _(x, y):
    sort_rows_kernel[((1 << 19) // 32,)](x, y, ROWS=32, COLS=64)


@triton.jit
def compact_kernel(x_ptr, kept_ptr, count_ptr, limit, BLOCK: tl.constexpr):
    """Elements under a limit move to the front of their row."""
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))
    keep = x < limit
    place = tl.cumsum(keep.to(tl.int32), axis=0) - 1
    tl.store(kept_ptr + row * BLOCK + place, x, mask=keep)
    tl.store(count_ptr + row, tl.sum(keep.to(tl.int32), axis=0))


@scans("elements under a limit moved to the front of rows",
       (Given((32768, 2048), "int32", below=100), Given((32768, 2048), "int32"),
        Given((32768,), "int32")), moves=32768 * (2048 * 6 + 4))
def _(x, kept, count):
    compact_kernel[(32768,)](x, kept, count, 50, BLOCK=2048, num_warps=8)


# -- reductions ----------------------------------------------------------------------------------


@triton.jit
def _merge(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    share = count_b / tl.maximum(count, 1.0)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def welford_kernel(x_ptr, mean_ptr, variance_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    count = tl.zeros((BLOCK,), tl.float32)
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < n_cols
        x = tl.load(x_ptr + row * n_cols + offs, mask=mask, other=0.0).to(tl.float32)
        count += mask.to(tl.float32)
        delta = tl.where(mask, x - mean, 0.0)
        mean += delta / tl.maximum(count, 1.0)
        m2 += delta * (x - mean)
    mean_row, m2_row, count_row = tl.reduce((mean, m2, count), 0, _merge)
    tl.store(mean_ptr + row, mean_row)
    tl.store(variance_ptr + row, m2_row / count_row)


@reductions("Welford's mean and variance of rows of 20,000, fp16",
            (Given((4096, 20000), "float16"), *vectors(2, 4096)))
def _(x, mean, variance):
    welford_kernel[(4096,)](x, mean, variance, 20000, BLOCK=2048)


@triton.jit
def batch_statistics_kernel(x_ptr, mean_ptr, variance_ptr, n_images, C, P, BLOCK: tl.constexpr):
    c = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    square = tl.zeros((BLOCK,), tl.float32)
    for image in range(n_images):
        x = tl.load(x_ptr + (image * C + c) * P + offs, mask=offs < P, other=0.0).to(tl.float32)
        total += x
        square += x * x
    mean = tl.sum(total, axis=0) / (n_images * P)
    tl.store(mean_ptr + c, mean)
    tl.store(variance_ptr + c, tl.sum(square, axis=0) / (n_images * P) - mean * mean)


@reductions("batch norm statistics of 256 channels of 28 x 28, fp16",
            (Given((256, 256, 784), "float16"), *vectors(2, 256)), "no pipelining")
def _(x, mean, variance):
    batch_statistics_kernel[(256,)](x, mean, variance, 256, 256, 784, BLOCK=1024, num_warps=8)


@triton.jit
def column_argmax_kernel(x_ptr, place_ptr, n_rows, n_cols, ROWS: tl.constexpr,
                         COLS: tl.constexpr):
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    best = tl.full((COLS,), -float("inf"), tl.float32)
    place = tl.zeros((COLS,), tl.int32)
    for start in range(0, n_rows, ROWS):
        at = (start + tl.arange(0, ROWS))[:, None] * n_cols + cols[None, :]
        value, row = tl.max(tl.load(x_ptr + at).to(tl.float32), axis=0, return_indices=True)
        place = tl.where(value > best, start + row, place)
        best = tl.maximum(best, value)
    tl.store(place_ptr + cols, place)


@reductions("argmax down columns, bf16", (Given((16384, 8192), "bfloat16"),
                                          Given((8192,), "int32")), "no pipelining")
def _(x, place):
    column_argmax_kernel[(8192 // 64,)](x, place, 16384, 8192, ROWS=64, COLS=64)


# -- streaming -----------------------------------------------------------------------------------


@triton.jit
def paired_swiglu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Gates and values alternate: x[2i] gates x[2i + 1]."""
    first = tl.program_id(0) * BLOCK
    x = tl.load(x_ptr + 2 * first + tl.arange(0, 2 * BLOCK))
    gate, value = tl.split(tl.reshape(x, (BLOCK, 2)))
    gate = gate.to(tl.float32)
    y = gate / (1.0 + tl.exp(-gate)) * value.to(tl.float32)
    tl.store(y_ptr + first + tl.arange(0, BLOCK), y.to(tl.bfloat16))


@streams("SwiGLU of alternating gates and values, bf16",
         (Given((16384, 2 * 5632), "bfloat16"), Given((16384, 5632), "bfloat16")))
def _(x, y):
    n = 16384 * 5632
    paired_swiglu_kernel[(n // 2048,)](x, y, n, BLOCK=2048, num_warps=8)


@triton.jit
def adam_kernel(w_ptr, g_ptr, m_ptr, v_ptr, n, rate, beta1, beta2, unbias1, unbias2,
                BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    w = tl.load(w_ptr + offs, mask=mask).to(tl.float32)
    g = tl.load(g_ptr + offs, mask=mask).to(tl.float32)
    m = beta1 * tl.load(m_ptr + offs, mask=mask) + (1.0 - beta1) * g
    v = beta2 * tl.load(v_ptr + offs, mask=mask) + (1.0 - beta2) * g * g
    w -= rate * m * unbias1 / (tl.sqrt(v * unbias2) + 1e-8)
    tl.store(w_ptr + offs, w.to(tl.bfloat16), mask=mask)
    tl.store(m_ptr + offs, m, mask=mask)
    tl.store(v_ptr + offs, v, mask=mask)


@streams("Adam step of weights in bf16, moments in fp32",
         (*vectors(2, 1 << 26, "bfloat16"), *vectors(2, 1 << 26)), moves=22 << 26)
def _(w, g, m, v):
    adam_kernel[((1 << 26) // 1024,)](w, g, m, v, 1 << 26, 1e-3, 0.9, 0.95, 1.1, 1.2, BLOCK=1024)


@triton.jit
def fp8_groups_kernel(x_ptr, q_ptr, scale_ptr, GROUPS: tl.constexpr, SIZE: tl.constexpr):
    groups = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    at = groups[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x = tl.load(x_ptr + at).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=1), 1e-4) / 448.0
    tl.store(q_ptr + at, (x / scale[:, None]).to(tl.float8e4nv))
    tl.store(scale_ptr + groups, scale)


@streams("bf16 to fp8 with a scale for each 128",
         (Given((32768, 4096), "bfloat16"), Given((32768, 4096), "float8_e4m3fn"),
          Given((32768, 32))))
def _(x, q, scale):
    fp8_groups_kernel[(32768 * 32 // 16,)](x, q, scale, GROUPS=16, SIZE=128)


# -- windows: neighbors read the same elements ---------------------------------------------------


@triton.jit
def causal_convolution_kernel(x_ptr, w_ptr, y_ptr, length, C, TAPS: tl.constexpr,
                              BT: tl.constexpr, BC: tl.constexpr):
    """A filter of its own for each channel, along time, and SiLU."""
    base = tl.program_id(2) * length
    t = tl.program_id(1) * BT + tl.arange(0, BT)[:, None]
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    acc = tl.zeros((BT, BC), tl.float32)
    for tap in tl.static_range(TAPS):
        w = tl.load(w_ptr + tap * C + c)[None, :]
        x = tl.load(x_ptr + (base + t - tap) * C + c[None, :], mask=t >= tap, other=0.0)
        acc += w * x.to(tl.float32)
    y = acc / (1.0 + tl.exp(-acc))
    tl.store(y_ptr + (base + t) * C + c[None, :], y.to(tl.bfloat16))


@windows("causal convolution of 4 taps for each channel, bf16",
         (Given((16, 4096, 2048), "bfloat16"), Given((4, 2048)),
          Given((16, 4096, 2048), "bfloat16")))
def _(x, w, y):
    causal_convolution_kernel[(2048 // 128, 4096 // 32, 16)](x, w, y, 4096, 2048, TAPS=4, BT=32,
                                                             BC=128)


@triton.jit
def seven_point_kernel(x_ptr, y_ptr, side, BJ: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(2)
    j = tl.program_id(1) * BJ + tl.arange(0, BJ)[:, None]
    k = tl.program_id(0) * BK + tl.arange(0, BK)[None, :]
    at = (i * side + j) * side + k
    mask = (j < side) & (k < side)
    acc = -6.0 * tl.load(x_ptr + at, mask=mask, other=0.0)
    acc += tl.load(x_ptr + at - side * side, mask=mask & (i > 0), other=0.0)
    acc += tl.load(x_ptr + at + side * side, mask=mask & (i < side - 1), other=0.0)
    acc += tl.load(x_ptr + at - side, mask=mask & (j > 0), other=0.0)
    acc += tl.load(x_ptr + at + side, mask=mask & (j < side - 1), other=0.0)
    acc += tl.load(x_ptr + at - 1, mask=mask & (k > 0), other=0.0)
    acc += tl.load(x_ptr + at + 1, mask=mask & (k < side - 1), other=0.0)
    tl.store(y_ptr + at, acc, mask=mask)


@windows("a stencil of seven points in space, 255 a side, float64",
         (Given((255, 255, 255), "float64"),) * 2)
def _(x, y):
    seven_point_kernel[(4, 64, 255)](x, y, 255, BJ=4, BK=64)


@triton.jit
def pool_kernel(x_ptr, y_ptr, side, out_side, BLOCK: tl.constexpr):
    """Maxima of 3 x 3 with stride 2 and a border of 1."""
    plane = tl.program_id(1)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < out_side * out_side
    i = offs // out_side * 2 - 1
    j = offs % out_side * 2 - 1
    best = tl.full((BLOCK,), -float("inf"), tl.float16)
    for di in tl.static_range(3):
        for dj in tl.static_range(3):
            row = i + di
            col = j + dj
            mask = inside & (row >= 0) & (row < side) & (col >= 0) & (col < side)
            x = tl.load(x_ptr + (plane * side + row) * side + col, mask=mask,
                        other=-float("inf"))
            best = tl.maximum(best, x)
    tl.store(y_ptr + plane * out_side * out_side + offs, best, mask=inside)


@windows("maxima of 3 x 3 with stride 2 of images of 113 x 113, fp16",
         (Given((4096, 113, 113), "float16"), Given((4096, 57, 57), "float16")))
def _(x, y):
    pool_kernel[(triton.cdiv(57 * 57, 1024), 4096)](x, y, 113, 57, BLOCK=1024)


CASES: tuple[Case, ...] = tuple(
    case for family in (arithmetic, dependent, tails, layouts, grids, tables, scans, reductions,
                        streams, windows)
    for case in family.cases)
