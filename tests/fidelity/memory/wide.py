"""Offsets that pass 2**31 in views of a few gigabytes, of which only a few pages are ever used."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .cases import Kind, Right, Wrong

STRIDE = 1 << 30
ROWS = 4
COLUMNS = 8


@triton.jit
def load_rows_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * stride + offs, mask=offs < n_cols)  # <- M05
    tl.store(out_ptr + row * n_cols + offs, x, mask=offs < n_cols)


@triton.jit
def store_rows_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols)
    tl.store(out_ptr + row * stride + offs, x, mask=offs < n_cols)  # <- M05


@triton.jit
def load_tile_kernel(x_ptr, out_ptr, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    m, n = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + m[:, None] * stride + n[None, :])  # <- M05
    tl.store(out_ptr + m[:, None] * COLUMNS + n[None, :], x)


@triton.jit
def load_rows_64_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row.to(tl.int64) * stride + offs, mask=offs < n_cols)
    tl.store(out_ptr + row * n_cols + offs, x, mask=offs < n_cols)


@triton.jit
def store_rows_64_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols)
    tl.store(out_ptr + row * stride + offs, x, mask=offs < n_cols)


@triton.jit
def load_tile_64_kernel(x_ptr, out_ptr, stride: tl.int64, ROWS: tl.constexpr,
                        COLUMNS: tl.constexpr):
    m, n = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + m[:, None] * stride + n[None, :])
    tl.store(out_ptr + m[:, None] * COLUMNS + n[None, :], x)


@triton.jit
def walk_rows_kernel(x_ptr, out_ptr, stride, n_rows, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    for _ in range(n_rows):  # no step is too long, and a pointer has 64 bits
        tl.store(out_ptr + offs, tl.load(x_ptr + offs))
        x_ptr += stride
        out_ptr += BLOCK_SIZE


# Made outside of the watch: there, fresh memory would be filled.
_ARENA = torch.empty((ROWS - 1) * STRIDE + COLUMNS, dtype=torch.int8)
_EXPECTED = torch.arange(ROWS * COLUMNS, dtype=torch.int8).reshape(ROWS, COLUMNS)


def _rows():
    return _ARENA.as_strided((ROWS, COLUMNS), (STRIDE, 1))


def _loads(kernel):
    def run():
        x, out = _rows(), torch.zeros(ROWS, COLUMNS, dtype=torch.int8)
        x.copy_(_EXPECTED)
        kernel[(ROWS,)](x, out, STRIDE, COLUMNS, BLOCK_SIZE=COLUMNS)
        return out, _EXPECTED

    return run


def _stores(kernel):
    def run():
        out = _rows()
        out.zero_()
        kernel[(ROWS,)](_EXPECTED.clone(), out, STRIDE, COLUMNS, BLOCK_SIZE=COLUMNS)
        return out.clone(), _EXPECTED

    return run


def _tiles(kernel):
    def run():
        x, out = _rows(), torch.zeros(ROWS, COLUMNS, dtype=torch.int8)
        x.copy_(_EXPECTED)
        kernel[(1,)](x, out, STRIDE, ROWS=ROWS, COLUMNS=COLUMNS)
        return out, _EXPECTED

    return run


def _walks():
    x, out = _rows(), torch.zeros(ROWS, COLUMNS, dtype=torch.int8)
    x.copy_(_EXPECTED)
    walk_rows_kernel[(1,)](x, out, STRIDE, ROWS, BLOCK_SIZE=COLUMNS)
    return out, _EXPECTED


OVERFLOW = Kind(
    wrong={
        "row times stride, loaded": Wrong(load_rows_kernel, _loads(load_rows_kernel),
                                          "M05", "program 2", "x_ptr", -(1 << 31)),
        "row times stride, stored": Wrong(store_rows_kernel, _stores(store_rows_kernel),
                                          "M05", "program 2", "out_ptr", -(1 << 31)),
        "a tile of far rows": Wrong(load_tile_kernel, _tiles(load_tile_kernel),
                                    "M05", "program 0", "x_ptr", -(1 << 31)),
    },
    right={
        "the row in 64 bits, loaded": Right(_loads(load_rows_64_kernel)),
        "the row in 64 bits, stored": Right(_stores(store_rows_64_kernel)),
        "the stride in 64 bits": Right(_tiles(load_tile_64_kernel)),
        "a pointer that walks": Right(_walks),
    },
)

KINDS = {"offset beyond 32 bits": OVERFLOW}
