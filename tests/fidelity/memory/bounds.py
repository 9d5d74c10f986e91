"""Accesses past the end, before the start, into a neighbour, and far away."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .cases import Kind, Right, Wrong, numbers

N = 1000
BLOCK = 256
GRID = (4,)


# ---------------------------------------------------------------------------------------------
# Loads past the end


@triton.jit
def copy_unmasked_load_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)  # <- M01
    tl.store(out_ptr + offs, x, mask=offs < n)


@triton.jit
def copy_one_too_many_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs <= n)  # <- M01
    tl.store(out_ptr + offs, x, mask=offs < n)


@triton.jit
def row_sum_unmasked_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        total += tl.sum(tl.load(x_ptr + row * n_cols + offs))  # <- M01
    tl.store(out_ptr + row, total)


@triton.jit
def ragged_copy_kernel(x_ptr, starts_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    start, end = tl.load(starts_ptr + pid), tl.load(starts_ptr + pid + 1)
    if end - start > 8:
        for first in range(start, end, BLOCK_SIZE):
            offs = first + tl.arange(0, BLOCK_SIZE)
            x = tl.load(x_ptr + offs)  # <- M01
            tl.store(out_ptr + offs, x, mask=offs < end)
    else:
        offs = start + tl.arange(0, BLOCK_SIZE)
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < end), mask=offs < end)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def copy_round_kernel(x_ptr, out_ptr, n, shift, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + (offs + shift) % n), mask=offs < n)


@triton.jit
def copy_clamped_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + tl.minimum(offs, n - 1)))


@triton.jit
def copy_exact_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


@triton.jit
def spare_programs_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = (row < n_rows) & (offs < n_cols)  # a scalar and a block
    x = tl.load(x_ptr + row * n_cols + offs, mask=mask)
    tl.store(out_ptr + row * n_cols + offs, x, mask=mask)


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        total += tl.sum(tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols, other=0.0))
    tl.store(out_ptr + row, total)


def _copies(kernel, *sizes):
    def run():
        out = torch.empty(N)
        kernel[GRID](numbers(N), out, *sizes, BLOCK_SIZE=BLOCK)
        return out, numbers(N)

    return run


def _ragged(*lengths):
    def run():
        starts = torch.tensor([0, *lengths]).cumsum(0).int()
        x, out = numbers(sum(lengths)), torch.empty(sum(lengths))
        ragged_copy_kernel[(len(lengths),)](x, starts, out, BLOCK_SIZE=8)
        return out, x

    return run


def _rolls():
    out = torch.empty(N)
    copy_round_kernel[GRID](numbers(N), out, N, 7, BLOCK_SIZE=BLOCK)
    return out, numbers(N).roll(-7)


def _clamps():
    out = torch.empty(1024)
    copy_clamped_kernel[GRID](numbers(N), out, N, BLOCK_SIZE=BLOCK)
    return out, numbers(1024).clamp(max=N - 1)


def _copies_exactly():
    out = torch.empty(1024)
    copy_exact_kernel[GRID](numbers(1024), out, BLOCK_SIZE=BLOCK)
    return out, numbers(1024)


def _spare_programs():
    x, out = numbers(3, 10), torch.empty(3, 10)
    spare_programs_kernel[(8,)](x, out, 3, 10, BLOCK_SIZE=16)
    return out, x


def _row_sums(kernel):
    def run():
        x, out = numbers(3, 10), torch.empty(3)
        kernel[(3,)](x, out, 10, BLOCK_SIZE=8)
        return out, x.sum(1)

    return run


LOAD_PAST_END = Kind(
    wrong={
        "no mask": Wrong(copy_unmasked_load_kernel, _copies(copy_unmasked_load_kernel, N),
                         "M01", "program 3", "x_ptr", N),
        "one lane too many": Wrong(copy_one_too_many_kernel, _copies(copy_one_too_many_kernel, N),
                                   "M01", "program 3", "x_ptr", N),
        "the last row's last step": Wrong(
            row_sum_unmasked_kernel, _row_sums(row_sum_unmasked_kernel),
            "M01", "program 2", "x_ptr", 30),
        "one of the programs that went another way": Wrong(
            ragged_copy_kernel, _ragged(3, 16, 8, 30, 5, 9, 2),
            "M01", "program 5", "x_ptr", 73),
    },
    right={
        "masked tail": Right(_copies(copy_kernel, N)),
        "index taken modulo n": Right(_rolls),
        "index clamped": Right(_clamps),
        "blocks fit exactly": Right(_copies_exactly),
        "more programs than rows": Right(_spare_programs),
        "each program its own way": Right(_ragged(3, 16, 8, 32, 5, 0, 2)),
        "masked steps along a row": Right(_row_sums(row_sum_kernel)),
    },
)


# ---------------------------------------------------------------------------------------------
# Loads before the start


@triton.jit
def shift_unmasked_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    left = tl.load(x_ptr + offs - 1, mask=offs < n)  # <- M01
    tl.store(out_ptr + offs, left, mask=offs < n)


@triton.jit
def flip_off_by_one_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    at = n - 2 - offs
    x = tl.load(x_ptr + at, mask=mask)  # <- M01
    tl.store(out_ptr + offs, x, mask=mask)


@triton.jit
def shift_modulo_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    at = (offs - 1) % n  # as in C: -1 % n is -1
    x = tl.load(x_ptr + at, mask=mask)  # <- M01
    tl.store(out_ptr + offs, x, mask=mask)


@triton.jit
def shift_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    left = tl.load(x_ptr + offs - 1, mask=(offs > 0) & (offs < n), other=-1.0)
    tl.store(out_ptr + offs, left, mask=offs < n)


@triton.jit
def flip_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + n - 1 - offs, mask=mask), mask=mask)


@triton.jit
def shift_clamped_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + tl.maximum(offs - 1, 0), mask=mask), mask=mask)


def _shifts():
    out = torch.empty(N)
    shift_kernel[GRID](numbers(N), out, N, BLOCK_SIZE=BLOCK)
    return out, numbers(N) - 1


def _flips():
    out = torch.empty(N)
    flip_kernel[GRID](numbers(N), out, N, BLOCK_SIZE=BLOCK)
    return out, numbers(N).flip(0)


def _shifts_clamped():
    out = torch.empty(N)
    shift_clamped_kernel[GRID](numbers(N), out, N, BLOCK_SIZE=BLOCK)
    return out, (numbers(N) - 1).clamp(min=0)


LOAD_BEFORE_START = Kind(
    wrong={
        "left neighbour": Wrong(shift_unmasked_kernel, _copies(shift_unmasked_kernel, N),
                                "M01", "program 0", "x_ptr", -1),
        "flip, one too low": Wrong(flip_off_by_one_kernel, _copies(flip_off_by_one_kernel, N),
                                   "M01", "program 3", "x_ptr", -1),
        "modulo of a negative number": Wrong(shift_modulo_kernel, _copies(shift_modulo_kernel, N),
                                             "M01", "program 0", "x_ptr", -1),
    },
    right={
        "left neighbour, masked": Right(_shifts),
        "flip": Right(_flips),
        "left neighbour, clamped": Right(_shifts_clamped),
    },
)


# ---------------------------------------------------------------------------------------------
# Stores past the end


@triton.jit
def copy_unmasked_store_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, x)  # <- M02


@triton.jit
def twice_kernel(x_ptr, out_ptr, n, odd, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + 2 * offs, x, mask=offs < n)
    tl.store(out_ptr + 2 * offs + 1, x, mask=offs < odd)  # <- M02


@triton.jit
def histogram_kernel(x_ptr, bins_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.atomic_add(bins_ptr + tl.load(x_ptr + offs, mask=mask), 1, mask=mask)  # <- M02


def _twice(odd):
    def run():
        out = torch.empty(N - 1)
        twice_kernel[(2,)](numbers(N // 2), out, N // 2, odd, BLOCK_SIZE=BLOCK)
        return out, numbers(N // 2).repeat_interleave(2)[:N - 1]

    return run


def _counts(n_bins):
    def run():
        x, bins = torch.arange(N, dtype=torch.int32) // 120, torch.zeros(n_bins, dtype=torch.int32)
        histogram_kernel[GRID](x, bins, N, BLOCK_SIZE=BLOCK)
        return bins, torch.bincount(x, minlength=n_bins).int()

    return run


STORE_PAST_END = Kind(
    wrong={
        "no mask": Wrong(copy_unmasked_store_kernel, _copies(copy_unmasked_store_kernel, N),
                         "M02", "program 3", "out_ptr", N),
        "the partner of the last element": Wrong(twice_kernel, _twice(N // 2),
                                                 "M02", "program 1", "out_ptr", N - 1),
        "an atomic on one bin too many": Wrong(histogram_kernel, _counts(8),
                                               "M02", "program 3", "bins_ptr", 8),
    },
    right={
        "masked tail": Right(_copies(copy_kernel, N)),
        "every partner but the last": Right(_twice(N // 2 - 1)),
        "bins for all values": Right(_counts(9)),
        "blocks fit exactly": Right(_copies_exactly),
    },
)


# ---------------------------------------------------------------------------------------------
# Stores before the start


@triton.jit
def store_left_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs - 1, x, mask=offs < n)  # <- M02


@triton.jit
def store_left_masked_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs - 1, x, mask=(offs > 0) & (offs < n))


@triton.jit
def scatter_kernel(x_ptr, at_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    at = tl.load(at_ptr + offs, mask=mask)
    tl.store(out_ptr + at, x, mask=mask)  # <- M02


@triton.jit
def scatter_some_kernel(x_ptr, at_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    at = tl.load(at_ptr + offs, mask=mask, other=-1)
    tl.store(out_ptr + at, x, mask=at >= 0)


def _permutation(hole=None):
    at = torch.arange(N, dtype=torch.int64).flip(0)
    if hole is not None:
        at[hole] = -1
    return at


def _scatters(kernel, hole=None):
    def run():
        out = torch.zeros(N)
        kernel[GRID](numbers(N), _permutation(hole), out, N, BLOCK_SIZE=BLOCK)
        expected = numbers(N).flip(0)
        if hole is not None:
            expected[N - 1 - hole] = 0
        return out, expected

    return run


def _stores_left():
    out = torch.full((N,), -1.0)
    store_left_masked_kernel[GRID](numbers(N), out, N, BLOCK_SIZE=BLOCK)
    return out, torch.cat([numbers(N)[1:], torch.tensor([-1.0])])


STORE_BEFORE_START = Kind(
    wrong={
        "one to the left": Wrong(store_left_kernel, _copies(store_left_kernel, N),
                                 "M02", "program 0", "out_ptr", -1),
        "-1 marks a hole": Wrong(scatter_kernel, _scatters(scatter_kernel, hole=600),
                                 "M02", "program 2", "out_ptr", -1),
    },
    right={
        "one to the left, masked": Right(_stores_left),
        "holes left out": Right(_scatters(scatter_some_kernel, hole=600)),
        "no holes": Right(_scatters(scatter_kernel)),
    },
)


# ---------------------------------------------------------------------------------------------
# Into a neighbour in the same storage


@triton.jit
def read_view_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)  # <- M01
    tl.store(out_ptr + offs, x)


@triton.jit
def write_two_views_kernel(a_ptr, b_ptr, BLOCK_SIZE: tl.constexpr, SHIFT: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(a_ptr + offs, offs + 100.0)
    tl.store(b_ptr + offs - SHIFT, offs + 200.0)  # <- M02


@triton.jit
def double_row_kernel(row_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(row_ptr + offs, mask=offs < n, other=0.0)
    tl.store(row_ptr + offs, 2 * x)  # <- M02


@triton.jit
def double_row_masked_kernel(row_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(row_ptr + offs, mask=offs < n)
    tl.store(row_ptr + offs, 2 * x, mask=offs < n)


@triton.jit
def double_strided_kernel(x_ptr, stride, BLOCK_SIZE: tl.constexpr):
    at = x_ptr + tl.arange(0, BLOCK_SIZE) * stride
    tl.store(at, 2 * tl.load(at))


@triton.jit
def add_views_kernel(a_ptr, b_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(a_ptr + offs) + tl.load(b_ptr + offs))


def _reads_view():
    out = torch.empty(128)
    read_view_kernel[(1,)](numbers(1000)[:100], out, BLOCK_SIZE=128)


def _writes_two_views(shift):
    def run():
        both = torch.zeros(130)
        write_two_views_kernel[(1,)](both[:64], both[64:128], BLOCK_SIZE=64, SHIFT=shift)
        expected = torch.cat([numbers(64) + 100, numbers(64) + 200, torch.zeros(2)])
        return both, expected

    return run


def _doubles_row(kernel):
    def run():
        x = numbers(5, 12)
        kernel[(1,)](x[1], 12, BLOCK_SIZE=16)
        expected = numbers(5, 12)
        expected[1] *= 2
        return x, expected

    return run


def _doubles_column():
    x = numbers(16, 5)
    double_strided_kernel[(1,)](x[:, 2], 5, BLOCK_SIZE=16)
    expected = numbers(16, 5)
    expected[:, 2] *= 2
    return x, expected


def _adds_overlapping_views():
    x, out = numbers(65), torch.empty(64)
    add_views_kernel[(1,)](x[:64], x[1:], out, BLOCK_SIZE=64)
    return out, x[:64] + x[1:]


NEIGHBOUR = Kind(
    wrong={
        "x[:100], read to 128": Wrong(read_view_kernel, _reads_view,
                                      "M01", "program 0", "x_ptr", 100),
        "the end of the view before": Wrong(write_two_views_kernel, _writes_two_views(1),
                                            "M02", "program 0", "b_ptr", -1),
        "the start of the next row": Wrong(double_row_kernel, _doubles_row(double_row_kernel),
                                           "M02", "program 0", "row_ptr", 12),
    },
    right={
        "two views side by side": Right(_writes_two_views(0)),
        "a row in place, masked": Right(_doubles_row(double_row_masked_kernel)),
        "a column in place": Right(_doubles_column),
        "overlapping views, read": Right(_adds_overlapping_views),
    },
)


# ---------------------------------------------------------------------------------------------
# Two-dimensional tiles

M2, N2, TILE = 30, 20, 16


@triton.jit
def tile_rows_only_kernel(x_ptr, out_ptr, M, N, TILE: tl.constexpr):
    offs_m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    offs_n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    at = offs_m[:, None] * N + offs_n[None, :]
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x = tl.load(x_ptr + at, mask=offs_m[:, None] < M)  # <- M01
    tl.store(out_ptr + at, x, mask=inside)


@triton.jit
def tile_columns_only_kernel(x_ptr, out_ptr, M, N, TILE: tl.constexpr):
    offs_m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    offs_n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    at = offs_m[:, None] * N + offs_n[None, :]
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x = tl.load(x_ptr + at, mask=inside)
    tl.store(out_ptr + at, x, mask=offs_n[None, :] < N)  # <- M02


@triton.jit
def transpose_wrong_stride_kernel(x_ptr, out_ptr, M, N, TILE: tl.constexpr):
    offs_m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    offs_n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x = tl.load(x_ptr + offs_m[:, None] * N + offs_n[None, :], mask=inside)
    at = offs_n[None, :] * (N + M) + offs_m[:, None]
    tl.store(out_ptr + at, x, mask=inside)  # <- M02


@triton.jit
def tile_kernel(x_ptr, out_ptr, M, N, TILE: tl.constexpr):
    offs_m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    offs_n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    at = offs_m[:, None] * N + offs_n[None, :]
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside), mask=inside)


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M, N, TILE: tl.constexpr):
    offs_m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    offs_n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x = tl.load(x_ptr + offs_m[:, None] * N + offs_n[None, :], mask=inside)
    tl.store(out_ptr + offs_n[None, :] * M + offs_m[:, None], x, mask=inside)


@triton.jit
def tile_descriptor_kernel(x_ptr, out_ptr, M, N, TILE: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [TILE, TILE])
    out_desc = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [TILE, TILE])
    at = [tl.program_id(0) * TILE, tl.program_id(1) * TILE]
    out_desc.store(at, x_desc.load(at))


def _tiles(kernel, transposed=False):
    def run():
        x = numbers(M2, N2)
        out = torch.empty((N2, M2) if transposed else (M2, N2))
        kernel[(2, 2)](x, out, M2, N2, TILE=TILE)
        return out, x.T.contiguous() if transposed else x

    return run


TILE_OVERRUN = Kind(
    wrong={
        "no mask along the columns": Wrong(tile_rows_only_kernel, _tiles(tile_rows_only_kernel),
                                           "M01", "program (1, 1)", "x_ptr", M2 * N2),
        "no mask along the rows": Wrong(
            tile_columns_only_kernel, _tiles(tile_columns_only_kernel),
            "M02", "program (1, 0)", "out_ptr", M2 * N2),
        "transposed with a wrong stride": Wrong(
            transpose_wrong_stride_kernel, _tiles(transpose_wrong_stride_kernel, transposed=True),
            "M02", "program (0, 0)", "out_ptr", 12 * (N2 + M2)),
    },
    right={
        "masked along both": Right(_tiles(tile_kernel)),
        "transposed": Right(_tiles(transpose_kernel, transposed=True)),
        "descriptors cut off by themselves": Right(_tiles(tile_descriptor_kernel)),
    },
)


# ---------------------------------------------------------------------------------------------
# Garbage as an index


@triton.jit
def gather_kernel(x_ptr, at_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    at = tl.load(at_ptr + offs, mask=offs < n, other=0)
    x = tl.load(x_ptr + at, mask=offs < n)  # <- M01
    tl.store(out_ptr + offs, x, mask=offs < n)


@triton.jit
def gather_checked_kernel(x_ptr, at_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    at = tl.load(at_ptr + offs, mask=offs < n, other=0)
    x = tl.load(x_ptr + at, mask=(offs < n) & (at >= 0) & (at < n), other=0.0)
    tl.store(out_ptr + offs, x, mask=offs < n)


@triton.jit
def gather_masked_garbage_kernel(x_ptr, at_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    at = tl.load(at_ptr + offs, mask=offs < n)  # anything at all where masked off
    x = tl.load(x_ptr + at, mask=offs < n)
    tl.store(out_ptr + offs, x, mask=offs < n)


def _gathers(kernel, bad=None):
    def run():
        at, out = _permutation(), torch.empty(N)
        if bad is not None:
            at[300] = bad
        kernel[GRID](numbers(N), at, out, N, BLOCK_SIZE=BLOCK)
        expected = numbers(N).flip(0)
        if bad is not None:
            expected[300] = 0
        return out, expected

    return run


def _scatters_far(bad):
    def run():
        at = _permutation()
        at[300] = bad
        scatter_kernel[GRID](numbers(N), at, torch.zeros(N), N, BLOCK_SIZE=BLOCK)

    return run


FAR = 1 << 40  # four TiB away, in floats

FAR_AWAY = Kind(
    wrong={
        "a gather from far behind": Wrong(gather_kernel, _gathers(gather_kernel, FAR),
                                          "M01", "program 1", "x_ptr", FAR),
        "a gather from far before": Wrong(gather_kernel, _gathers(gather_kernel, -FAR),
                                          "M01", "program 1", "x_ptr", -FAR),
        "a scatter to far behind": Wrong(scatter_kernel, _scatters_far(10**9),
                                         "M02", "program 1", "out_ptr", 10**9),
    },
    right={
        "a permutation": Right(_gathers(gather_kernel)),
        "indices checked": Right(_gathers(gather_checked_kernel, FAR)),
        "garbage where masked off": Right(_gathers(gather_masked_garbage_kernel)),
    },
)

KINDS = {
    "load past the end": LOAD_PAST_END,
    "load before the start": LOAD_BEFORE_START,
    "store past the end": STORE_PAST_END,
    "store before the start": STORE_BEFORE_START,
    "neighbouring view": NEIGHBOUR,
    "tile overrun": TILE_OVERRUN,
    "far out of bounds": FAR_AWAY,
}
