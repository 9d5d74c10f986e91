"""Pointers that were made rather than given: out of nothing, or with another element type."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .cases import Kind, Right, Wrong, numbers

# ---------------------------------------------------------------------------------------------
# Wild pointers


@triton.jit
def null_kernel(x_ptr, out_ptr, hole, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    address = tl.where(pid == hole, 0, x_ptr.to(tl.int64))
    source = address.to(tl.pointer_type(tl.float32))
    x = tl.load(source + offs)  # <- M01
    tl.store(out_ptr + pid * BLOCK_SIZE + offs, x)


@triton.jit
def fixed_address_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    address = tl.full((), 1 << 56, tl.int64)  # above what a process can map
    tl.store(address.to(tl.pointer_type(tl.float32)) + offs, 1.0)  # <- M02


@triton.jit
def address_as_data_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    y = tl.load(x.to(tl.int64).to(tl.pointer_type(tl.float32)))  # <- M01
    tl.store(out_ptr + offs, y)


@triton.jit
def there_and_back_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    address = x_ptr.to(tl.int64) + 4 * offs
    tl.store(out_ptr + offs, tl.load(address.to(tl.pointer_type(tl.float32))))


@triton.jit
def choose_kernel(a_ptr, b_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    source = b_ptr
    if pid % 2 == 0:
        source = a_ptr
    tl.store(out_ptr + pid * BLOCK_SIZE + offs, tl.load(source + offs))


@triton.jit
def choose_lanes_kernel(a_ptr, b_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    source = tl.where(offs % 2 == 0, a_ptr + offs, b_ptr + offs)
    tl.store(out_ptr + offs, tl.load(source))


@triton.jit
def masked_null_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    address = tl.where(pid == 1, 0, x_ptr.to(tl.int64))
    x = tl.load(address.to(tl.pointer_type(tl.float32)) + offs, mask=(pid != 1) & (offs >= 0),
                other=-1.0)
    tl.store(out_ptr + pid * BLOCK_SIZE + offs, x)


@triton.jit
def table_kernel(table_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    source = tl.load(table_ptr + pid).to(tl.pointer_type(tl.float32))
    x = tl.load(source + offs)  # <- M01
    tl.store(out_ptr + pid * BLOCK_SIZE + offs, x)


def _nulls(hole):
    def run():
        out = torch.empty(32)
        null_kernel[(4,)](numbers(8), out, hole, BLOCK_SIZE=8)
        return out, numbers(8).repeat(4)

    return run


def _stores_at_fixed_address():
    fixed_address_kernel[(1,)](torch.zeros(8), BLOCK_SIZE=8)


def _follows_data():
    address_as_data_kernel[(1,)](numbers(8), torch.empty(8), BLOCK_SIZE=8)


def _there_and_back():
    out = torch.empty(32)
    there_and_back_kernel[(4,)](numbers(32), out, BLOCK_SIZE=8)
    return out, numbers(32)


def _chooses():
    a, b, out = numbers(8), 100 + numbers(8), torch.empty(32)
    choose_kernel[(4,)](a, b, out, BLOCK_SIZE=8)
    return out, torch.cat([a, b, a, b])


def _chooses_lanes():
    a, b, out = numbers(16), 100 + numbers(16), torch.empty(16)
    choose_lanes_kernel[(2,)](a, b, out, BLOCK_SIZE=8)
    return out, torch.where(torch.arange(16) % 2 == 0, a, b)


def _masks_null():
    out = torch.empty(24)
    masked_null_kernel[(3,)](numbers(8), out, BLOCK_SIZE=8)
    return out, torch.cat([numbers(8), torch.full((8,), -1.0), numbers(8)])


def _tables(entry=None):
    def run():
        sources = [numbers(8) + 10 * i for i in range(3)]
        addresses = [source.data_ptr() for source in sources]
        if entry is not None:
            addresses[1] = entry
        table, out = torch.tensor(addresses), torch.empty(24)
        table_kernel[(3,)](table, out, BLOCK_SIZE=8)
        return out, torch.cat(sources)

    return run


WILD = Kind(
    wrong={
        "null in one program": Wrong(null_kernel, _nulls(2), "M01", "program 2"),
        "an address written into the source": Wrong(
            fixed_address_kernel, _stores_at_fixed_address, "M02", "program 0"),
        "data taken for addresses": Wrong(address_as_data_kernel, _follows_data,
                                          "M01", "program 0"),
        "a table with an empty entry": Wrong(table_kernel, _tables(0), "M01", "program 1"),
    },
    right={
        "to an integer and back": Right(_there_and_back),
        "one of two tensors by program": Right(_chooses),
        "one of two tensors by lane": Right(_chooses_lanes),
        "null where masked off": Right(_masks_null),
        "a full table of addresses": Right(_tables()),
    },
)


# ---------------------------------------------------------------------------------------------
# Misaligned accesses


@triton.jit
def words_at_kernel(bytes_ptr, out_ptr, first, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    source = (bytes_ptr + first).to(tl.pointer_type(tl.int32))
    x = tl.load(source + offs)  # <- M01
    tl.store(out_ptr + offs, x)


@triton.jit
def store_shorts_at_kernel(bytes_ptr, first, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    target = (bytes_ptr + first).to(tl.pointer_type(tl.int16))
    tl.store(target + offs, (offs + 1).to(tl.int16))  # <- M02


@triton.jit
def doubles_in_floats_kernel(x_ptr, out_ptr, first, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    source = (x_ptr + first).to(tl.pointer_type(tl.int64)) + offs
    pair = tl.load(source)  # <- M01
    tl.store(out_ptr + offs, pair)


@triton.jit
def bytes_of_words_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr.to(tl.pointer_type(tl.uint8)) + offs))


@triton.jit
def own_type_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


def _words_at(first):
    def run():
        data, out = numbers(64, dtype=torch.uint8), torch.empty(8, dtype=torch.int32)
        words_at_kernel[(1,)](data, out, first, BLOCK_SIZE=8)
        return out, data[first:first + 32].clone().view(torch.int32)

    return run


def _shorts_at(first):
    def run():
        data = torch.zeros(32, dtype=torch.uint8)
        store_shorts_at_kernel[(1,)](data, first, BLOCK_SIZE=8)
        expected = torch.zeros(32, dtype=torch.uint8)
        expected[first:first + 16] = (numbers(8, dtype=torch.int16) + 1).view(torch.uint8)
        return data, expected

    return run


def _doubles_at(first):
    def run():
        x, out = numbers(20), torch.empty(8, dtype=torch.int64)
        doubles_in_floats_kernel[(1,)](x, out, first, BLOCK_SIZE=8)
        return out, x[first:first + 16].clone().view(torch.int64)

    return run


def _bytes_of_words():
    x, out = numbers(8, dtype=torch.int32) * 0x01020304, torch.empty(32, dtype=torch.uint8)
    bytes_of_words_kernel[(1,)](x, out, BLOCK_SIZE=32)
    return out, x.view(torch.uint8)


def _an_odd_view():
    x, out = numbers(33, dtype=torch.int16), torch.empty(32, dtype=torch.int16)
    own_type_kernel[(1,)](x[1:], out, BLOCK_SIZE=32)
    return out, x[1:]


MISALIGNED = Kind(
    wrong={
        "words at an odd byte": Wrong(words_at_kernel, _words_at(1),
                                      "M01", "program 0", "bytes_ptr"),
        "16-bit stores at an odd byte": Wrong(store_shorts_at_kernel, _shorts_at(3),
                                              "M02", "program 0", "bytes_ptr"),
        "8 bytes from an odd float": Wrong(doubles_in_floats_kernel, _doubles_at(1),
                                           "M01", "program 0", "x_ptr"),
    },
    right={
        "words at a multiple of four": Right(_words_at(12)),
        "16-bit stores at an even byte": Right(_shorts_at(6)),
        "8 bytes from an even float": Right(_doubles_at(2)),
        "the bytes of words": Right(_bytes_of_words),
        "a view that starts at an odd element": Right(_an_odd_view),
    },
)

KINDS = {"wild pointer": WILD, "misaligned access": MISALIGNED}
