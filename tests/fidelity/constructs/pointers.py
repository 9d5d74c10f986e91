"""Pointers: arithmetic, casts, tables of addresses, constness."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal
from .values import exact, floats, launch, out, whole

theme = Theme("pointers")


@triton.jit
def table_kernel(table_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    x_ptr = tl.load(table_ptr + pid).to(tl.pointer_type(tl.float32))
    offs = tl.arange(0, N)
    tl.store(out_ptr + pid * N + offs, tl.load(x_ptr + offs))


@theme("a table of addresses, loaded and cast to pointers")
def _(device):
    parts = [floats(16, seed=seed).to(device) for seed in range(3)]
    table = torch.tensor([part.data_ptr() for part in parts], dtype=torch.int64, device=device)
    got = launch(table_kernel, device, table, out(3, 16), grid=(3,), N=16)
    return equal(got, np.stack([exact(part.cpu()) for part in parts]))


@triton.jit
def table_write_kernel(table_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    y_ptr = tl.load(table_ptr + pid).to(tl.pointer_type(tl.int32))
    offs = tl.arange(0, N)
    tl.store(y_ptr + offs, offs * (pid + 1))


@theme("stores through a table of addresses")
def _(device):
    parts = [torch.zeros(16, dtype=torch.int32, device=device) for _ in range(3)]
    table = torch.tensor([part.data_ptr() for part in parts], dtype=torch.int64, device=device)
    table_write_kernel[(3,)](table, N=16)
    return [equal(part, np.arange(16) * (i + 1)) for i, part in enumerate(parts)]


@triton.jit
def pointer_cast_kernel(x_ptr, out_ptr, bytes_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    as_int = x_ptr.to(tl.pointer_type(tl.int32))
    tl.store(out_ptr + offs, tl.load(as_int + offs))
    as_bytes = x_ptr.to(tl.pointer_type(tl.uint8), bitcast=True)
    tl.store(bytes_ptr + tl.arange(0, 4 * N), tl.load(as_bytes + tl.arange(0, 4 * N)))


@theme("float memory read as int32 and as bytes")
def _(device):
    x = floats(16)
    ints, bytes_ = launch(pointer_cast_kernel, device, x, out(16, dtype=torch.int32),
                          out(64, dtype=torch.uint8), N=16)
    return [equal(ints, x.view(torch.int32)), equal(bytes_, x.view(torch.uint8))]


@triton.jit
def offsets_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    end = x_ptr + 2 * N
    tl.store(out_ptr + offs, tl.load(end - N + offs))
    tl.store(out_ptr + N + offs, tl.load(offs.to(tl.int64) + x_ptr))
    tl.store(out_ptr + 2 * N + offs, tl.load(x_ptr + offs.to(tl.uint32)))
    tl.store(out_ptr + 3 * N + offs, tl.load(x_ptr + offs.to(tl.int8)))


@theme("pointer arithmetic: back, int64, uint32, int8 offsets")
def _(device):
    x = floats(32)
    got = launch(offsets_kernel, device, x, out(4, 16), N=16)
    first, second = exact(x).reshape(2, 16)
    return equal(got, np.stack([second, first, first, first]))


@triton.jit
def address_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, (x_ptr + offs).to(tl.int64) - x_ptr.to(tl.int64))
    tl.store(out_ptr + N + offs, (y_ptr + offs).to(tl.int64) - y_ptr.to(tl.int64))
    tl.store(out_ptr + 2 * N + offs, x_ptr.to(tl.int64) % 16 + tl.zeros((N,), tl.int64))


@theme("an address as a number")
def _(device):
    got = launch(address_kernel, device, floats(16), floats(16, dtype=torch.float16),
                 out(3, 16, dtype=torch.int64), N=16)
    places = np.arange(16)
    return equal(got, np.stack([4 * places, 2 * places, 0 * places]))


@triton.jit
def choose_pointer_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    at = tl.where(offs % 2 == 0, x_ptr + offs, y_ptr + offs)
    tl.store(out_ptr + offs, tl.load(at))


@triton.jit
def branch_pointer_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    source = x_ptr
    if tl.program_id(0) == 1:
        source = y_ptr
    tl.store(out_ptr + tl.program_id(0) * N + offs, tl.load(source + offs))


@theme("pointers chosen by tl.where and by if")
def _(device):
    x, y = floats(16), floats(16, seed=1)
    mixed = launch(choose_pointer_kernel, device, x, y, out(16), N=16)
    whole_rows = launch(branch_pointer_kernel, device, x, y, out(2, 16), grid=(2,), N=16)
    return [equal(mixed, np.where(np.arange(16) % 2 == 0, exact(x), exact(y))),
            equal(whole_rows, torch.stack([x, y]))]


@triton.jit
def element_type_kernel(x_ptr, y_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(y_ptr + offs, x.to(y_ptr.dtype.element_ty) + 1)


@theme("a pointer's element type")
def _(device):
    x = floats(16, low=0, high=90)
    return [equal(launch(element_type_kernel, device, x, out(16, dtype=dtype), N=16), expected)
            for dtype, expected in ((torch.int32, np.trunc(exact(x)) + 1),
                                    (torch.float64, exact(x) + 1))]


@triton.jit
def zero_dimensional_kernel(x_ptr, y_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr) + tl.load(y_ptr))


@theme("tensors of no dimension and of one element are pointers")
def _(device):
    got = launch(zero_dimensional_kernel, device, torch.tensor(2.5), torch.tensor([3.0]), out())
    return equal(got, 5.5)


@triton.jit
def member_store_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    (out_ptr + offs).store(tl.load(x_ptr + offs), mask=offs < N)


@theme("store as a method of the pointers")
def _(device):
    x = floats(16)
    return equal(launch(member_store_kernel, device, x, out(16), N=16), exact(x))


@triton.jit
def const_kernel(x_ptr: tl.const, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) + 1)


@triton.jit
def const_store_kernel(x_ptr: tl.const, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), 1.0)


@theme("a pointer to const is loaded from")
def _(device):
    x = floats(16)
    return equal(launch(const_kernel, device, x, out(16), N=16), x + 1)


@theme("a store to a pointer to const", rejects=EVERY)
def _(device):
    const_store_kernel[(1,)](torch.zeros(16, device=device), N=16)


@triton.jit
def far_row_kernel(out_ptr, stride, N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, N)
    tl.store(out_ptr + tl.program_id(0) * N + offs, row * stride + offs)


@theme("row offsets in int64 pass 2**31")
def _(device):
    got = launch(far_row_kernel, device, out(3, 4, dtype=torch.int64), grid=(3,),
                 stride=2_000_000_000, N=4)
    return equal(got, np.arange(3)[:, None] * 2_000_000_000 + np.arange(4))


@triton.jit
def float_offset_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N).to(tl.float32)
    tl.store(out_ptr + tl.arange(0, N), tl.load(x_ptr + offs))


@theme("a pointer plus a float", rejects=EVERY)
def _(device):
    launch(float_offset_kernel, device, floats(16), out(16), N=16)


@triton.jit
def block_to_scalar_pointer_kernel(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, tl.arange(0, N))


@theme("a block stored through one pointer", rejects=EVERY)
def _(device):
    block_to_scalar_pointer_kernel[(1,)](torch.zeros(16, device=device), N=16)


@triton.jit
def load_of_values_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(offs))


@theme("a load from numbers that are no pointers", rejects=EVERY)
def _(device):
    launch(load_of_values_kernel, device, whole(np.arange(16)), out(16), N=16)


@triton.jit
def sum_of_pointers_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), tl.load(x_ptr + out_ptr))


@theme("two pointers added", rejects=EVERY)
def _(device):
    launch(sum_of_pointers_kernel, device, floats(16), out(16), N=16)
