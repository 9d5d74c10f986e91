"""Tensor descriptors, made in the kernel or on the host, and the old block pointers."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .construct import EVERY, SINCE_3_9, UNTIL_3_6, Theme, equal, near
from .values import exact, floats, integers, launch, out

theme = Theme("descriptors")


def _scratch(device):
    """Descriptors that a kernel makes lie in memory that the host provides."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(
        size, dtype=torch.int8, device=device))


@triton.jit
def copy_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    y = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    y.store(at, x.load(at) * 2)


@theme("load and store of tiles; what is outside is 0 and is not stored")
def _(device):
    _scratch(device)
    checks = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8):
        x = integers(20, 48, low=-60, high=60, dtype=dtype)
        got = launch(copy_kernel, device, x, out(20, 48, dtype=dtype), 20, 48, grid=(3, 2), BM=8,
                     BN=32)
        checks.append(equal(got, 2 * exact(x)))
    return checks


@triton.jit
def outside_kernel(x_ptr, out_ptr, M, N, B: tl.constexpr, PADDING: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [B, B], padding_option=PADDING)
    block = x.load([M - 4, -4])
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out_ptr + at, block)


def _outside(x, padding):
    padded = np.full((16, 16), padding)
    padded[:4, 4:] = exact(x)[-4:, :12]
    return padded


@theme("padding outside of the tensor: zero")
def _(device):
    _scratch(device)
    x = floats(10, 16)
    got = launch(outside_kernel, device, x, out(16, 16), 10, 16, B=16, PADDING="zero")
    return equal(got, _outside(x, 0.0))


@theme("padding outside of the tensor: NaN")
def _(device):
    _scratch(device)
    x = floats(10, 16)
    got = launch(outside_kernel, device, x, out(16, 16), 10, 16, B=16, PADDING="nan")
    return equal(got, _outside(x, np.nan))


@theme("NaN padding of integers", rejects=EVERY)
def _(device):
    _scratch(device)
    launch(outside_kernel, device, integers(10, 16), out(16, 16, dtype=torch.int32), 10, 16, B=16,
           PADDING="nan")


@triton.jit
def vector_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [n], [1], [N])
    y = tl.make_tensor_descriptor(out_ptr, [n], [1], [N])
    start = tl.program_id(0) * N
    y.store([start], x.load([start]) + 1)


@theme("1-D descriptors")
def _(device):
    _scratch(device)
    x = floats(100)
    got = launch(vector_kernel, device, x, out(100), 100, grid=(4,), N=32)
    return equal(got, x + 1)


@triton.jit
def cube_kernel(x_ptr, out_ptr, A, B, C, BC: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [A, B, C], [B * C, C, 1], [1, 2, BC])
    block = x.load([tl.program_id(0), 1, 0])
    at = tl.arange(0, 2)[:, None] * BC + tl.arange(0, BC)[None, :]
    tl.store(out_ptr + tl.program_id(0) * 2 * BC + at, block.reshape(2, BC))


@theme("3-D descriptors")
def _(device):
    _scratch(device)
    x = floats(3, 4, 16)
    got = launch(cube_kernel, device, x, out(3, 2, 16), 3, 4, 16, grid=(3,), BC=16)
    return equal(got, exact(x)[:, 1:3])


@triton.jit
def function_form_kernel(x_ptr, out_ptr, M, N, B: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [B, B])
    y = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [B, B])
    block = tl.load_tensor_descriptor(x, [0, 0])
    tl.store_tensor_descriptor(y, [0, 0], block * 3)


@theme("load_tensor_descriptor and store_tensor_descriptor")
def _(device):
    _scratch(device)
    x = floats(16, 16)
    got = launch(function_form_kernel, device, x, out(16, 16), 16, 16, B=16)
    return equal(got, 3 * x)


@triton.jit
def attributes_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN])
    tl.static_assert(x.dtype == tl.float32)
    rows: tl.constexpr = x.block_shape[0]
    tl.store(out_ptr, x.shape[0] * 100 + x.shape[1])
    tl.store(out_ptr + 1, x.strides[0])
    tl.store(out_ptr + 2, rows)


@theme("a descriptor's shape, strides, block_shape, dtype")
def _(device):
    _scratch(device)
    got = launch(attributes_kernel, device, floats(10, 16), out(3, dtype=torch.int64), 10, 16,
                 BM=8, BN=16)
    return equal(got, [1016, 16, 8])


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [B, B])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [B, B])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [B, B])
    row = tl.program_id(0) * B
    column = tl.program_id(1) * B
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        acc = tl.dot(a.load([row, k]), b.load([column, k]).T, acc)
    c.store([row, column], acc.to(tl.float16))


@theme("a matrix product through descriptors, one operand transposed")
def _(device):
    _scratch(device)
    a, b = floats(40, 48, dtype=torch.float16), floats(24, 48, dtype=torch.float16, seed=1)
    got = launch(matmul_kernel, device, a, b, out(40, 24, dtype=torch.float16), 40, 24, 48,
                 grid=(3, 2), B=16)
    return near(got, exact(a) @ exact(b).T, ulps=2, absolute=5e-3)


@triton.jit
def host_kernel(x, y, B: tl.constexpr):
    at = [tl.program_id(0) * B, tl.program_id(1) * B]
    block = x.load(at)
    y.store(at, block + x.shape[1])


@theme("host descriptors: load and store")
def _(device):
    x = floats(20, 24).to(device)
    result = torch.empty(20, 24, device=device)
    block = [8, 8]
    host_kernel[(3, 3)](TensorDescriptor(x, x.shape, x.stride(), block),
                        TensorDescriptor.from_tensor(result, block), B=8)
    return equal(result, (x + 24).cpu())


@triton.jit
def host_padding_kernel(x, out_ptr, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out_ptr + at, x.load([6, -4]))


@theme("host descriptors: NaN padding")
def _(device):
    x = floats(10, 16)
    result = torch.empty(16, 16, device=device)
    host_padding_kernel[(1,)](TensorDescriptor.from_tensor(x.to(device), [16, 16], padding="nan"),
                              result, B=16)
    return equal(result, _outside(x, np.nan))


@theme("host descriptors of a view with an offset and wide rows")
def _(device):
    buffer = floats(20, 64).to(device)
    x, result = buffer[4:14, 16:40], torch.empty(10, 24, device=device)
    host_kernel[(2, 3)](TensorDescriptor.from_tensor(x, [8, 8]),
                        TensorDescriptor.from_tensor(result, [8, 8]), B=8)
    return equal(result, (x + 24).cpu())


@theme("a host descriptor whose rows are not aligned", rejects=EVERY)
def _(device):
    x = floats(20, 21).to(device)
    host_kernel[(3, 3)](TensorDescriptor.from_tensor(x, [8, 8]),
                        TensorDescriptor.from_tensor(x, [8, 8]), B=8)


@triton.jit
def tuple_kernel(pair, out_ptr, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out_ptr + at, pair[0].load([0, 0]) - pair[1].load([0, 0]))


@theme("a tuple of host descriptors")
def _(device):
    x, y = floats(16, 16), floats(16, 16, seed=1)
    result = torch.empty(16, 16, device=device)
    pair = tuple(TensorDescriptor.from_tensor(t.to(device), [16, 16]) for t in (x, y))
    tuple_kernel[(1,)](pair, result, B=16)
    return equal(result, x - y)


@triton.jit
def helper_load(x, row):
    return x.load([row, 0])


@triton.jit
def passed_kernel(x, out_ptr, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for row in range(0, x.shape[0], B):
        acc += helper_load(x, row)
    tl.store(out_ptr + at, acc)


@theme("a descriptor passed to a helper, in a loop")
def _(device):
    x = integers(24, 8, dtype=torch.float32)
    result = torch.empty(8, 8, device=device)
    passed_kernel[(1,)](TensorDescriptor.from_tensor(x.to(device), [8, 8]), result, B=8)
    return equal(result, exact(x).reshape(3, 8, 8).sum(0))


@triton.jit
def reduce_kernel(x_ptr, out, B: tl.constexpr, KIND: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    x = tl.load(x_ptr + pid * B * B + at)
    if KIND == "add":
        out.atomic_add([0, 0], x)
    elif KIND == "max":
        out.atomic_max([0, 0], x)
    elif KIND == "min":
        out.atomic_min([0, 0], x)
    elif KIND == "and":
        out.atomic_and([0, 0], x)
    elif KIND == "or":
        out.atomic_or([0, 0], x)
    else:
        out.atomic_xor([0, 0], x)


def _reduced(device, x, start, kind):
    result = torch.full((8, 8), start, dtype=x.dtype, device=device)
    reduce_kernel[(5,)](x.to(device), TensorDescriptor.from_tensor(result, [8, 8]), B=8, KIND=kind)
    return result


@theme("descriptor.atomic_add of float32 and int32")
def _(device):
    return [equal(_reduced(device, x, 100, "add"), exact(x).sum(0) + 100)
            for x in (integers(5, 8, 8, dtype=torch.float32), integers(5, 8, 8))]


@theme("descriptor.atomic_max and atomic_min of int32")
def _(device):
    x = integers(5, 8, 8)
    return [equal(_reduced(device, x, 0, "max"), np.maximum(exact(x).max(0), 0)),
            equal(_reduced(device, x, 0, "min"), np.minimum(exact(x).min(0), 0))]


@theme("descriptor.atomic_and, atomic_or, atomic_xor")
def _(device):
    x = integers(5, 8, 8, low=0, high=2**30)
    a = exact(x)
    return [equal(_reduced(device, x, -1, "and"), np.bitwise_and.reduce(a, 0)),
            equal(_reduced(device, x, 0, "or"), np.bitwise_or.reduce(a, 0)),
            equal(_reduced(device, x, 0, "xor"), np.bitwise_xor.reduce(a, 0))]


@triton.jit
def gather_kernel(x, rows_ptr, out_ptr, B: tl.constexpr):
    rows = tl.load(rows_ptr + tl.arange(0, B))
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out_ptr + at, x.gather(rows, 0))


@theme("descriptor.gather, which only newer GPUs have", rejects=EVERY,
       differs="whether a GPU has it is a question for the compile gate")
def _(device):
    x = TensorDescriptor.from_tensor(floats(20, 8).to(device), [1, 8])
    rows = integers(8, low=0, high=19).to(device)
    gather_kernel[(1,)](x, rows, torch.empty(8, 8, device=device), B=8)


@triton.jit
def scatter_kernel(x_ptr, rows_ptr, out, B: tl.constexpr):
    rows = tl.load(rows_ptr + tl.arange(0, B))
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    out.scatter(tl.load(x_ptr + at), rows, 0)


@theme("descriptor.scatter, which only newer GPUs have", rejects=EVERY,
       differs="whether a GPU has it is a question for the compile gate")
def _(device):
    result = torch.zeros(20, 8, device=device)
    scatter_kernel[(1,)](floats(8, 8).to(device), torch.arange(8, dtype=torch.int32, device=device),
                         TensorDescriptor.from_tensor(result, [1, 8]), B=8)


@triton.jit
def narrow_kernel(x_ptr, out_ptr, M, N):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [8, 2])
    tl.store(out_ptr + tl.arange(0, 8)[:, None] * 2 + tl.arange(0, 2)[None, :], x.load([0, 0]))


@theme("a descriptor block of fewer than 16 bytes a row", rejects=EVERY)
def _(device):
    _scratch(device)
    launch(narrow_kernel, device, floats(8, 16), out(8, 2), 8, 16)


@triton.jit
def column_kernel(x_ptr, out_ptr, M, N, B: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [2 * N, 2], [B, B])
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out_ptr + at, x.load([0, 0]))


@theme("a descriptor whose last stride is not 1", rejects=EVERY)
def _(device):
    _scratch(device)
    launch(column_kernel, device, floats(16, 32), out(16, 16), 16, 16, B=16)


@triton.jit
def rounded_kernel(x, out_ptr, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out_ptr + at, x.load([0, 0]))


@theme("a host descriptor that rounds to tf32", rejects=UNTIL_3_6)
def _(device):
    x = (1 + torch.arange(64) * 2.0**-13).reshape(8, 8).to(device)
    result = torch.empty(8, 8, device=device)
    rounded_kernel[(1,)](TensorDescriptor.from_tensor(x, [8, 8], round_f32_to_tf32=True), result,
                         B=8)
    return near(result, x.cpu(), ulps=0, absolute=2.0**-11)


@triton.jit
def block_pointer_kernel(x_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, shape=(M, N), strides=(N, 1), offsets=(tl.program_id(0) * BM, 0),
                          block_shape=(BM, BN), order=(1, 0))
    y = tl.make_block_ptr(out_ptr, shape=(M, N), strides=(N, 1),
                          offsets=(tl.program_id(0) * BM, 0), block_shape=(BM, BN), order=(1, 0))
    for _ in range(0, K):  # noqa: PIE808
        block = tl.load(x, boundary_check=(0, 1), padding_option="zero")
        tl.store(y, block * 2, boundary_check=(0, 1))
        x = tl.advance(x, (0, BN))
        y = tl.advance(y, (0, BN))


@theme("block pointers, removed in 3.9", rejects=SINCE_3_9)
def _(device):
    x = floats(20, 40)
    got = launch(block_pointer_kernel, device, x, out(20, 40), 20, 40, 3, grid=(3,), BM=8, BN=16)
    return equal(got, 2 * x)
