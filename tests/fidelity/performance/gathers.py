"""Gathers and scatters: of lone elements anywhere, and of whole rows."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Family, Given

family = Family("gathers")
COUNT = 1 << 24
TABLE = 1 << 27


@triton.jit
def gather_kernel(x_ptr, at_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    at = tl.load(at_ptr + offs, mask=offs < n, other=0)
    x = tl.load(x_ptr + at, mask=offs < n)
    tl.store(out_ptr + offs, x, mask=offs < n)


@triton.jit
def scatter_kernel(x_ptr, at_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    at = tl.load(at_ptr + offs, mask=offs < n, other=0)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + at, x, mask=offs < n)


@triton.jit
def embedding_kernel(table_ptr, at_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.load(at_ptr + row)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(table_ptr + at * n_cols + offs, mask=offs < n_cols)
    tl.store(out_ptr + row.to(tl.int64) * n_cols + offs, x, mask=offs < n_cols)


@family("gather of random elements",
        (Given((TABLE,)), Given((COUNT,), "int64", below=TABLE), Given((COUNT,))),
        "uncoalesced access", moves=16 * COUNT)
def _(x, at, out):
    gather_kernel[(COUNT // 1024,)](x, at, out, COUNT, BLOCK_SIZE=1024)


@family("scatter to random elements",
        (Given((COUNT,)), Given((COUNT,), "int64", below=TABLE), Given((TABLE,))),
        "uncoalesced access", moves=16 * COUNT)
def _(x, at, out):
    scatter_kernel[(COUNT // 1024,)](x, at, out, COUNT, BLOCK_SIZE=1024)


@family("rows of an embedding",
        (Given((50257, 1024)), Given((65536,), "int64", below=50257), Given((65536, 1024))))
def _(table, at, out):
    embedding_kernel[(at.numel(),)](table, at, out, table.shape[1], BLOCK_SIZE=1024)
