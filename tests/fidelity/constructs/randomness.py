"""tl.rand and its like against Philox written down from its definition.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3,
SC 2011.
"""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal, near
from .values import floats, launch, out, whole

theme = Theme("random numbers")

_CONSTANTS = {  # word size: two multipliers, two increments of the key
    32: (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85),
    64: (0xD2E7470EE14C6C93, 0xCA5A826395121157, 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
}


def philox(counter, key, rounds=10, size=32):
    """Four words of Philox-4: ``counter`` four words, ``key`` two."""
    first, second, step0, step1 = _CONSTANTS[size]
    top = 2**size
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        low, high = first * c0, second * c2
        c0, c1, c2, c3 = (high // top ^ c1 ^ k0, high % top, low // top ^ c3 ^ k1, low % top)
        k0, k1 = (k0 + step0) % top, (k1 + step1) % top
    return c0, c1, c2, c3


def words(seed, offsets, rounds=10):
    key = (seed % 2**32, seed // 2**32 % 2**32)
    return np.array([philox((o % 2**32, o // 2**32 % 2**32, 0, 0), key, rounds)
                     for o in offsets], dtype=np.uint64).T


def uniform(drawn):
    signed = drawn.astype(np.uint32).view(np.int32)
    positive = np.where(signed < 0, ~signed, signed)
    return positive.astype(np.float32) * np.float32(4.6566127342e-10)


def _normal(drawn):
    first = np.maximum(np.float32(1e-7), uniform(drawn[0])).astype(np.float64)
    angle = 6.283185307179586 * uniform(drawn[1]).astype(np.float64)
    radius = np.sqrt(-2 * np.log(first))
    return radius * np.cos(angle), radius * np.sin(angle)


@triton.jit
def rand_kernel(out_ptr, seed, N: tl.constexpr):
    offs = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + offs, tl.rand(seed, offs))


@theme("rand, bit for bit")
def _(device):
    return [equal(launch(rand_kernel, device, out(128), seed, grid=(2,), N=64),
                  uniform(words(seed, range(128))[0])) for seed in (0, 42, 123456789)]


@triton.jit
def randint_kernel(out_ptr, seed, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.randint(seed, offs))
    a, b, c, d = tl.randint4x(seed, offs)
    tl.store(out_ptr + N + offs, a)
    tl.store(out_ptr + 2 * N + offs, b)
    tl.store(out_ptr + 3 * N + offs, c)
    tl.store(out_ptr + 4 * N + offs, d)


@theme("randint and randint4x")
def _(device):
    drawn = words(42, range(64))
    got = launch(randint_kernel, device, out(5, 64, dtype=torch.uint32), 42, N=64)
    return equal(got, np.concatenate([drawn[:1], drawn]))


@triton.jit
def rounds_kernel(out_ptr, seed, N: tl.constexpr, ROUNDS: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.randint(seed, offs, ROUNDS))
    tl.store(out_ptr + N + offs, tl.randint(seed, offs, n_rounds=ROUNDS))


@theme("another number of rounds")
def _(device):
    drawn = words(7, range(32), rounds=6)
    got = launch(rounds_kernel, device, out(2, 32, dtype=torch.uint32), 7, N=32, ROUNDS=6)
    return equal(got, np.stack([drawn[0]] * 2))


@theme("a seed of 64 bits and a negative one")
def _(device):
    checks = []
    for seed in (2**40 + 5, -3):
        drawn = words(seed % 2**64, range(64))
        got = launch(randint_kernel, device, out(5, 64, dtype=torch.uint32), seed, N=64)
        checks.append(equal(got, np.concatenate([drawn[:1], drawn])))
    return checks


@triton.jit
def wide_offsets_kernel(out_ptr, seed, start, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.randint(seed, start + offs.to(tl.int64)))


@theme("offsets of 64 bits")
def _(device):
    start = 2**33 + 5
    got = launch(wide_offsets_kernel, device, out(32, dtype=torch.uint32), 9, start, N=32)
    return equal(got, words(9, range(start, start + 32))[0])


@triton.jit
def rand4x_kernel(out_ptr, seed, N: tl.constexpr):
    offs = tl.arange(0, N)
    a, b, c, d = tl.rand4x(seed, offs)
    tl.store(out_ptr + offs, a)
    tl.store(out_ptr + N + offs, b)
    tl.store(out_ptr + 2 * N + offs, c)
    tl.store(out_ptr + 3 * N + offs, d)


@theme("rand4x")
def _(device):
    got = launch(rand4x_kernel, device, out(4, 64), 5, N=64)
    return equal(got, np.stack([uniform(w) for w in words(5, range(64))]))


@triton.jit
def randn_kernel(out_ptr, seed, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.randn(seed, offs))
    a, b, c, d = tl.randn4x(seed, offs)
    tl.store(out_ptr + N + offs, a)
    tl.store(out_ptr + 2 * N + offs, b)
    tl.store(out_ptr + 3 * N + offs, c)
    tl.store(out_ptr + 4 * N + offs, d)


@theme("randn and randn4x")
def _(device):
    drawn = words(42, range(64))
    a, b = _normal(drawn[:2])
    c, d = _normal(drawn[2:])
    got = launch(randn_kernel, device, out(5, 64), 42, N=64)
    return near(got, np.stack([a, a, b, c, d]), ulps=16, absolute=4e-6)


@triton.jit
def philox_kernel(out_ptr, N: tl.constexpr):
    c0 = tl.arange(0, N).to(tl.uint32)
    zero = c0 * 0
    a, b, c, d = tl.philox(77, c0, zero + 1, zero + 2, zero + 3)
    tl.store(out_ptr + c0, a)
    tl.store(out_ptr + N + c0, b)
    tl.store(out_ptr + 2 * N + c0, c)
    tl.store(out_ptr + 3 * N + c0, d)


@theme("philox with four counters")
def _(device):
    got = launch(philox_kernel, device, out(4, 32, dtype=torch.uint32), N=32)
    expected = np.array([philox((i, 1, 2, 3), (77, 0)) for i in range(32)], dtype=np.uint64).T
    return equal(got, expected)


@triton.jit
def philox_impl_kernel(out_ptr, N: tl.constexpr, ROUNDS: tl.constexpr):
    c0 = tl.arange(0, N).to(tl.uint64)
    zero = c0 * 0
    a, b, c, d = tl.philox_impl(c0, zero + 1, zero + 2, zero + 3, zero + 4, zero + 5, ROUNDS)
    tl.store(out_ptr + c0, a)
    tl.store(out_ptr + N + c0, b)
    tl.store(out_ptr + 2 * N + c0, c)
    tl.store(out_ptr + 3 * N + c0, d)


@theme("philox of 64-bit words")
def _(device):
    got = launch(philox_impl_kernel, device, out(4, 16, dtype=torch.uint64), N=16, ROUNDS=10)
    expected = [philox((i, 1, 2, 3), (4, 5), size=64) for i in range(16)]
    return equal(got, whole(list(zip(*expected, strict=True)), torch.uint64))


@triton.jit
def uniform_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.uint_to_uniform_float(tl.load(x_ptr + offs)))


@theme("uint_to_uniform_float")
def _(device):
    x = whole([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 12345678], torch.uint32)
    x = torch.cat([x.view(torch.int32)] * 2)[:8].view(torch.uint32)
    got = launch(uniform_kernel, device, x, out(8), N=8)
    return equal(got, uniform(x.numpy()))


@triton.jit
def normal_kernel(u_ptr, v_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    a, b = tl.pair_uniform_to_normal(tl.load(u_ptr + offs), tl.load(v_ptr + offs))
    tl.store(out_ptr + offs, a)
    tl.store(out_ptr + N + offs, b)


@theme("pair_uniform_to_normal")
def _(device):
    u, v = floats(32, low=0.01, high=0.99), floats(32, low=0, high=1, seed=1)
    radius = np.sqrt(-2 * np.log(u.double().numpy()))
    angle = 2 * np.pi * v.double().numpy()
    got = launch(normal_kernel, device, u, v, out(2, 32), N=32)
    return near(got, np.stack([radius * np.cos(angle), radius * np.sin(angle)]), ulps=8,
                absolute=4e-6)


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    keep = tl.rand(seed, offs) > p
    tl.store(out_ptr + offs, tl.where(keep, x / (1 - p), 0.0), mask=mask)


@theme("dropout by a seed")
def _(device):
    x = floats(200)
    got = launch(dropout_kernel, device, x, out(200), 200, 0.25, 123, grid=(4,), BLOCK=64)
    keep = uniform(words(123, range(200))[0]) > 0.25
    return near(got, np.where(keep, x.double().numpy() / 0.75, 0.0))


@triton.jit
def scalar_rand_kernel(out_ptr, seed):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, tl.rand(seed, pid))


@theme("rand of a scalar offset")
def _(device):
    got = launch(scalar_rand_kernel, device, out(16), 3, grid=(16,))
    return equal(got, uniform(words(3, range(16))[0]))


@triton.jit
def float_seed_kernel(out_ptr, seed, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.rand(seed, offs))


@theme("a seed that is a float", rejects=EVERY)
def _(device):
    launch(float_seed_kernel, device, out(16), 0.5, N=16)
