"""What a kernel moves is counted as the formulas say: bytes, sectors, and their use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from grader.engine.interpreter.eager import interpreted
from grader.engine.interpreter.launch import LaunchOutcome

SECTOR = 32


def spanned(start: int, nbytes: int) -> int:
    """Sectors that ``nbytes`` bytes from byte ``start`` on lie in."""
    return (start + nbytes - 1) // SECTOR - start // SECTOR + 1 if nbytes else 0


def distinct(starts: Iterable[int]) -> int:
    """Sectors that elements at these bytes lie in; no element crosses from one to the next."""
    return len({start // SECTOR for start in starts})


def launched(run: Callable[[], object], chunk: int | None = None) -> LaunchOutcome:
    with interpreted(chunk=chunk) as trace:
        run()
    assert trace.findings == []
    (outcome,) = trace.launches
    return outcome


def counted(outcome: LaunchOutcome) -> dict[tuple[str, str], tuple[int, int, int, int, int]]:
    """(kind, tensor) -> lanes, bytes, sectors, ideal sectors, unique sectors."""
    return {(t.kind, t.tensor): (t.lanes, t.bytes, t.sectors, t.ideal_sectors, t.unique_sectors)
            for t in outcome.traffic}


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype)


# ---------------------------------------------------------------------------------------------
# Kernels


@triton.jit
def strided_kernel(x_ptr, out_ptr, n, step, shift, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs * step + shift, mask=mask), mask=mask)


@triton.jit
def transpose_store_kernel(x_ptr, out_ptr, M, N, TILE: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(out_ptr + n[None, :] * M + m[:, None], x)


@triton.jit
def transpose_trans_kernel(x_ptr, out_ptr, M, N, TILE: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(out_ptr + n[:, None] * M + m[None, :], tl.trans(x))


@triton.jit
def broadcast_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + pid * BLOCK_SIZE + offs, tl.load(x_ptr + pid + 0 * offs))


@triton.jit
def scalar_kernel(x_ptr, out_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, tl.load(x_ptr + pid))


@triton.jit
def gather_kernel(x_ptr, at_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    at = tl.load(at_ptr + offs)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + offs, x)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=-float("inf"))
    x = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * stride + offs, x / tl.sum(x), mask=mask)


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK_SIZE: tl.constexpr):
    column = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs * n_cols + column, mask=offs < n_rows, other=0.0)
    tl.store(out_ptr + column, tl.sum(x))


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_SIZE_M: tl.constexpr,
                  BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    n = tl.program_id(1) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_SIZE_K):
        k = start + tl.arange(0, BLOCK_SIZE_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :],
                    mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :],
                    mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty),
             mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def nothing_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < 0, other=2.0)
    tl.store(out_ptr + offs, x, mask=offs >= BLOCK_SIZE)


@triton.jit
def tile_kernel(x_ptr, out_ptr, M, N, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    n = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    at = m[:, None] * N + n[None, :]
    mask = (m[:, None] < M) & (n[None, :] < N)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask), mask=mask)


@triton.jit
def histogram_kernel(x_ptr, bins_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    tl.atomic_add(bins_ptr + x, 1)


@triton.jit
def count_kernel(count_ptr, seen_ptr):
    pid = tl.program_id(0)
    tl.atomic_add(count_ptr, 1)
    tl.atomic_cas(seen_ptr + pid, 0, 1)


@triton.jit
def descriptor_kernel(x_ptr, out_ptr, M, N, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [TILE_M, TILE_N])
    out_desc = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [TILE_M, TILE_N])
    at = [tl.program_id(0) * TILE_M, tl.program_id(1) * TILE_N]
    x = x_desc.load(at)
    out_desc.store(at, x)


@triton.jit
def host_descriptor_kernel(x_desc, out_ptr, N, TILE: tl.constexpr):
    m, n = tl.arange(0, TILE), tl.arange(0, TILE)
    pid = tl.program_id(0)
    x = x_desc.load([0, pid * TILE])
    tl.store(out_ptr + m[:, None] * N + pid * TILE + n[None, :], x)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) + tl.load(y_ptr + 2 * offs))
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


@triton.jit
def ragged_sum_kernel(x_ptr, starts_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    start, end = tl.load(starts_ptr + pid), tl.load(starts_ptr + pid + 1)
    total = 0.0
    for first in range(start, end, BLOCK_SIZE):
        offs = first + tl.arange(0, BLOCK_SIZE)
        total += tl.sum(tl.load(x_ptr + offs, mask=offs < end, other=0.0))
    if end - start > 40:
        tl.atomic_add(out_ptr + pid, total)
    else:
        tl.store(out_ptr + pid, total)


@triton.jit
def reread_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + pid, tl.sum(x))


# ---------------------------------------------------------------------------------------------
# One access each: lanes, bytes, sectors, ideal sectors, unique sectors

N, BLOCK = 1024, 256
CONTIGUOUS = (N, 4 * N, N // 8, N // 8, N // 8)


def copied(dtype: torch.dtype = torch.float32, *, n: int = N, step: int = 1, shift: int = 0,
           block: int = BLOCK) -> LaunchOutcome:
    x, out = ones(n * step + shift, dtype=dtype), torch.empty(n, dtype=dtype)
    return launched(lambda: strided_kernel[(triton.cdiv(n, block),)](
        x, out, n, step, shift, BLOCK_SIZE=block))


def test_a_contiguous_copy_uses_every_byte() -> None:
    outcome = copied()

    assert counted(outcome) == {("load", "x_ptr"): CONTIGUOUS, ("store", "out_ptr"): CONTIGUOUS}
    assert [(t.coalescing, t.redundancy) for t in outcome.traffic] == [(1, 1), (1, 1)]
    assert (outcome.bytes_loaded, outcome.bytes_stored) == (4 * N, 4 * N)
    assert (outcome.sectors_loaded, outcome.sectors_stored) == (N // 8, N // 8)
    assert outcome.footprint["x_ptr"].read_sectors == N // 8
    assert outcome.footprint["x_ptr"].written_sectors == 0
    assert outcome.footprint["out_ptr"].read_sectors == 0
    assert outcome.footprint["out_ptr"].written_sectors == N // 8
    assert outcome.flops == 0


@pytest.mark.parametrize(("dtype", "size"), [
    (torch.float16, 2), (torch.bfloat16, 2), (torch.int8, 1), (torch.bool, 1), (torch.int64, 8),
], ids=str)
def test_elements_of_every_size(dtype: torch.dtype, size: int) -> None:
    outcome = copied(dtype)

    sectors = N * size // SECTOR
    expected = (N, N * size, sectors, sectors, sectors)
    assert counted(outcome) == {("load", "x_ptr"): expected, ("store", "out_ptr"): expected}


@pytest.mark.parametrize(("step", "sectors"), [(2, N // 4), (4, N // 2), (8, N), (32, N)])
def test_a_stride_wastes_sectors(step: int, sectors: int) -> None:
    outcome = copied(step=step)

    load = (N, 4 * N, sectors, N // 8, sectors)
    assert counted(outcome) == {("load", "x_ptr"): load, ("store", "out_ptr"): CONTIGUOUS}
    (traffic,) = (t for t in outcome.traffic if t.kind == "load")
    assert traffic.coalescing == pytest.approx(N / 8 / sectors)
    assert traffic.redundancy == 1


def test_a_shift_by_one_element_costs_a_sector_for_each_program() -> None:
    outcome = copied(shift=1)

    load = (N, 4 * N, (N // BLOCK) * (BLOCK // 8 + 1), N // 8, N // 8 + 1)
    assert counted(outcome)["load", "x_ptr"] == load


def test_a_view_is_as_misaligned_as_it_lies_in_its_storage() -> None:
    x, out = ones(N + 8), torch.empty(N)

    outcomes = [launched(lambda first=first: strided_kernel[(N // BLOCK,)](
        x[first:first + N], out, N, 1, 0, BLOCK_SIZE=BLOCK)) for first in (0, 1, 7, 8)]

    crooked = (N // BLOCK) * (BLOCK // 8 + 1)
    assert [o.sectors_loaded for o in outcomes] == [N // 8, crooked, crooked, N // 8]


def test_a_masked_tail_counts_only_what_is_active() -> None:
    n = 1000  # 3 blocks of 256, and 232 elements

    outcome = copied(n=n)

    expected = (n, 4 * n, 3 * 32 + 29, 3 * 32 + 29, 125)
    assert counted(outcome) == {("load", "x_ptr"): expected, ("store", "out_ptr"): expected}


def test_a_tail_of_one_element_takes_a_whole_sector() -> None:
    outcome = copied(n=257)

    assert counted(outcome)["load", "x_ptr"] == (257, 4 * 257, 33, 33, 33)


def test_an_access_that_is_masked_off_moves_nothing() -> None:
    outcome = launched(lambda: nothing_kernel[(4,)](ones(8), torch.empty(8), BLOCK_SIZE=8))

    assert (outcome.bytes_loaded, outcome.bytes_stored) == (0, 0)
    assert (outcome.sectors_loaded, outcome.sectors_stored) == (0, 0)
    for traffic in outcome.traffic:  # whether an idle line is listed does not matter
        assert (traffic.lanes, traffic.bytes, traffic.sectors) == (0, 0, 0)
        assert (traffic.coalescing, traffic.redundancy) == (1, 1)
    assert outcome.idle_programs == 4


def test_lanes_at_one_address_share_a_sector() -> None:
    programs = 16

    outcome = launched(lambda: broadcast_kernel[(programs,)](
        ones(programs), torch.empty(programs * BLOCK), BLOCK_SIZE=BLOCK))

    lanes = programs * BLOCK
    assert counted(outcome) == {
        ("load", "x_ptr"): (lanes, 4 * lanes, programs, lanes // 8, programs // 8),
        ("store", "out_ptr"): (lanes, 4 * lanes, lanes // 8, lanes // 8, lanes // 8),
    }
    (load,) = (t for t in outcome.traffic if t.kind == "load")
    assert load.coalescing == 1  # never more than one
    assert load.redundancy == 8  # eight programs take the same sector


def test_a_scalar_takes_a_sector() -> None:
    outcome = launched(lambda: scalar_kernel[(20,)](ones(20), torch.empty(20)))

    expected = (20, 80, 20, 20, 3)
    assert counted(outcome) == {("load", "x_ptr"): expected, ("store", "out_ptr"): expected}


def test_a_gather_touches_the_sectors_of_its_indices() -> None:
    at = torch.tensor([0, 1, 7, 8, 8, 900, 63, 64, 5, 5, 5, 5, 1023, 512, 513, 0])

    outcome = launched(lambda: gather_kernel[(2,)](ones(1024), at, torch.empty(16), BLOCK_SIZE=8))

    starts = (4 * at).tolist()
    sectors = distinct(starts[:8]) + distinct(starts[8:])
    assert counted(outcome) == {
        ("load", "at_ptr"): (16, 128, 4, 4, 4),
        ("load", "x_ptr"): (16, 64, sectors, 2, distinct(starts)),
        ("store", "out_ptr"): (16, 64, 2, 2, 2),
    }
    assert sectors == 5 + 3


# ---------------------------------------------------------------------------------------------
# Rows, columns, tiles


@pytest.mark.parametrize("n_cols", [1000, 1001, 999, 1023])
def test_rows_that_do_not_start_at_a_sector(n_cols: int) -> None:
    rows = 17

    outcome = launched(lambda: softmax_kernel[(rows,)](
        ones(rows, n_cols), torch.empty(rows, n_cols), n_cols, n_cols, BLOCK_SIZE=1024))

    width = 4 * n_cols
    sectors = sum(spanned(row * width, width) for row in range(rows))
    expected = (rows * n_cols, rows * width, sectors, rows * ceil(width / SECTOR),
                spanned(0, rows * width))
    assert counted(outcome) == {("load", "x_ptr"): expected, ("store", "out_ptr"): expected}


def test_rows_of_a_wider_tensor() -> None:
    x, out = ones(9, 130), torch.empty(9, 130)

    outcome = launched(lambda: tile_kernel[(9, 1)](
        x[:, 3:103], out, 9, 130, TILE_M=1, TILE_N=64))

    per_row = [spanned(4 * (row * 130 + 3), 4 * 64) for row in range(9)]
    assert counted(outcome)["load", "x_ptr"] == (
        9 * 64, 9 * 64 * 4, sum(per_row), 9 * 8, sum(per_row))


def test_a_column_for_each_program_takes_a_sector_for_each_element() -> None:
    rows, columns = 100, 64

    outcome = launched(lambda: column_sum_kernel[(columns,)](
        ones(rows, columns), torch.empty(columns), rows, columns, BLOCK_SIZE=128))

    lanes = rows * columns
    assert counted(outcome) == {
        ("load", "x_ptr"): (lanes, 4 * lanes, lanes, columns * ceil(rows / 8), lanes // 8),
        ("store", "out_ptr"): (columns, 4 * columns, columns, columns, columns // 8),
    }
    (load,) = (t for t in outcome.traffic if t.kind == "load")
    assert load.redundancy == 8


@pytest.mark.parametrize(("kernel", "stored"), [
    (transpose_store_kernel, 64 * 64 // 8), (transpose_trans_kernel, 64 * 64 // 8)],
    ids=["strided store", "tl.trans"])
def test_a_transposed_tile_is_as_good_as_its_rows(kernel: Any, stored: int) -> None:
    """The lanes of a tile may be stored in any order: sectors are counted for the whole access."""
    outcome = launched(lambda: kernel[(4, 4)](
        ones(64, 64), torch.empty(64, 64), 64, 64, TILE=16))

    expected = (64 * 64, 64 * 64 * 4, stored, stored, stored)
    assert counted(outcome) == {("load", "x_ptr"): expected, ("store", "out_ptr"): expected}


def test_a_transposed_tile_of_four_columns_fills_half_sectors() -> None:
    outcome = launched(lambda: transpose_store_kernel[(16, 16)](
        ones(64, 64), torch.empty(64, 64), 64, 64, TILE=4))

    lanes = 64 * 64
    expected = (lanes, 4 * lanes, lanes // 4, lanes // 8, lanes // 8)
    assert counted(outcome) == {("load", "x_ptr"): expected, ("store", "out_ptr"): expected}
    assert [(t.coalescing, t.redundancy) for t in outcome.traffic] == [(0.5, 2)] * 2


@pytest.mark.parametrize(("rows", "columns"), [(30, 50), (16, 64), (33, 65)])
def test_a_tile_beyond_the_edges_counts_what_is_inside(rows: int, columns: int) -> None:
    tile_m, tile_n = 16, 32
    grid = (triton.cdiv(rows, tile_m), triton.cdiv(columns, tile_n))

    outcome = launched(lambda: tile_kernel[grid](
        ones(rows, columns), torch.empty(rows, columns), rows, columns, TILE_M=tile_m,
        TILE_N=tile_n))

    sectors = ideal = 0
    for n in range(0, columns, tile_n):
        wide = min(tile_n, columns - n)
        for m in range(0, rows, tile_m):
            high = min(tile_m, rows - m)
            touched = {(4 * (row * columns + n) + byte) // SECTOR
                       for row in range(m, m + high) for byte in range(0, 4 * wide, 4)}
            sectors += len(touched)  # the end of a row may share a sector with the next one
            ideal += ceil(4 * high * wide / SECTOR)
    lanes = rows * columns
    expected = (lanes, 4 * lanes, sectors, ideal, spanned(0, 4 * lanes))
    assert counted(outcome) == {("load", "x_ptr"): expected, ("store", "out_ptr"): expected}


@pytest.mark.parametrize(("M", "N", "K"), [(128, 128, 64), (64, 128, 96)])
def test_a_product_of_tiles(M: int, N: int, K: int) -> None:
    bm, bn, bk = 64, 64, 32
    a, b = ones(M, K, dtype=torch.float16), ones(K, N, dtype=torch.float16)

    outcome = launched(lambda: matmul_kernel[(M // bm, N // bn)](
        a, b, torch.empty(M, N, dtype=torch.float16), M, N, K,
        BLOCK_SIZE_M=bm, BLOCK_SIZE_N=bn, BLOCK_SIZE_K=bk))

    a_lanes, b_lanes = M * K * (N // bn), K * N * (M // bm)
    assert counted(outcome) == {
        ("load", "a_ptr"): (a_lanes, 2 * a_lanes, a_lanes // 16, a_lanes // 16, M * K // 16),
        ("load", "b_ptr"): (b_lanes, 2 * b_lanes, b_lanes // 16, b_lanes // 16, K * N // 16),
        ("store", "c_ptr"): (M * N, 2 * M * N, M * N // 16, M * N // 16, M * N // 16),
    }
    redundancy = {t.tensor: t.redundancy for t in outcome.traffic}
    assert redundancy == {"a_ptr": N // bn, "b_ptr": M // bm, "c_ptr": 1}
    assert outcome.flops == 2 * M * N * K


def test_a_dot_costs_its_whole_block_padding_included() -> None:
    M, N, K = 40, 50, 20
    bm, bn, bk = 32, 64, 16

    outcome = launched(lambda: matmul_kernel[(2, 1)](
        ones(M, K), ones(K, N), torch.empty(M, N), M, N, K,
        BLOCK_SIZE_M=bm, BLOCK_SIZE_N=bn, BLOCK_SIZE_K=bk))

    assert outcome.flops == 2 * (2 * bm * bn * bk) * 2  # two programs, two steps each
    assert counted(outcome)["load", "a_ptr"][:2] == (M * K, 4 * M * K)
    assert counted(outcome)["store", "c_ptr"][:2] == (M * N, 4 * M * N)


# ---------------------------------------------------------------------------------------------
# Atomics and descriptors


def test_atomics_read_and_write() -> None:
    x = (torch.arange(64) * 5 % 24).int()
    bins = torch.zeros(24, dtype=torch.int32)

    outcome = launched(lambda: histogram_kernel[(4,)](x, bins, BLOCK_SIZE=16))

    starts = (4 * x).tolist()
    sectors = sum(distinct(starts[first:first + 16]) for first in range(0, 64, 16))
    assert counted(outcome) == {
        ("atomic", "bins_ptr"): (64, 256, sectors, 4 * 2, 3),
        ("load", "x_ptr"): (64, 256, 8, 8, 8),
    }
    assert (outcome.sectors_loaded, outcome.sectors_stored) == (8 + sectors, sectors)
    assert (outcome.bytes_loaded, outcome.bytes_stored) == (512, 256)
    assert outcome.footprint["bins_ptr"].read_sectors == 3
    assert outcome.footprint["bins_ptr"].written_sectors == 3


def test_scalar_atomics() -> None:
    outcome = launched(lambda: count_kernel[(10,)](
        torch.zeros(1, dtype=torch.int32), torch.zeros(10, dtype=torch.int32)))

    assert counted(outcome) == {("atomic", "count_ptr"): (10, 40, 10, 10, 1),
                                ("atomic", "seen_ptr"): (10, 40, 10, 10, 2)}


@pytest.mark.parametrize(("rows", "columns"), [(32, 64), (20, 40)])
def test_descriptors_count_what_lies_inside_the_tensor(rows: int, columns: int) -> None:
    tile_m, tile_n = 16, 32
    grid = (triton.cdiv(rows, tile_m), triton.cdiv(columns, tile_n))

    outcome = launched(lambda: descriptor_kernel[grid](
        ones(rows, columns), torch.empty(rows, columns), rows, columns, TILE_M=tile_m,
        TILE_N=tile_n))

    sectors = rows * columns // 8  # rows and tiles start at sectors
    lanes = rows * columns
    expected = (lanes, 4 * lanes, sectors, sectors, sectors)
    assert counted(outcome) == {("load", "x_ptr"): expected, ("store", "out_ptr"): expected}


def test_a_descriptor_made_by_the_host() -> None:
    x, out = ones(16, 64), torch.empty(16, 64)

    outcome = launched(lambda: host_descriptor_kernel[(4,)](
        TensorDescriptor.from_tensor(x, [16, 16]), out, 64, TILE=16))

    expected = (16 * 64, 16 * 64 * 4, 128, 128, 128)
    assert counted(outcome) == {("load", "x_desc"): expected, ("store", "out_ptr"): expected}


# ---------------------------------------------------------------------------------------------
# Lines, launches, and how many programs run at once


def test_each_line_and_tensor_has_its_own_account() -> None:
    n, first = 64, add_kernel.fn.__code__.co_firstlineno + 3

    outcome = launched(lambda: add_kernel[(2,)](
        ones(n), ones(2 * n), torch.empty(n), BLOCK_SIZE=32))

    plain, spread = (n, 4 * n, 8, 8, 8), (n, 4 * n, 16, 8, 16)
    assert {(t.line, t.kind, t.tensor):
            (t.lanes, t.bytes, t.sectors, t.ideal_sectors, t.unique_sectors)
            for t in outcome.traffic} == {
        (first, "load", "x_ptr"): plain,
        (first, "load", "y_ptr"): spread,
        (first, "store", "out_ptr"): plain,
        (first + 1, "load", "x_ptr"): plain,
        (first + 1, "store", "out_ptr"): plain,
    }
    assert list(outcome.traffic) == sorted(
        outcome.traffic, key=lambda t: (t.line, t.kind, t.tensor))
    assert outcome.sectors_loaded == 8 + 16 + 8
    assert outcome.footprint["x_ptr"].read_sectors == 8  # the same ones twice


def test_programs_that_read_the_same_are_counted_each() -> None:
    outcome = launched(lambda: reread_kernel[(50,)](
        ones(100), torch.empty(50), 100, BLOCK_SIZE=128))

    assert counted(outcome)["load", "x_ptr"] == (5000, 20000, 50 * 13, 50 * 13, 13)
    assert outcome.footprint["x_ptr"].read_sectors == 13
    (load,) = (t for t in outcome.traffic if t.kind == "load")
    assert load.redundancy == 50


def test_every_launch_starts_to_count_anew() -> None:
    x, out = ones(N), torch.empty(N)

    with interpreted() as trace:
        for _ in range(3):
            strided_kernel[(N // BLOCK,)](x, out, N, 1, 0, BLOCK_SIZE=BLOCK)

    assert [counted(outcome) for outcome in trace.launches] == 3 * [
        {("load", "x_ptr"): CONTIGUOUS, ("store", "out_ptr"): CONTIGUOUS}]


LENGTHS = [0, 5, 16, 17, 64, 1, 33, 100, 48, 0, 15, 65]


def ragged() -> None:
    starts = torch.tensor([0, *LENGTHS], dtype=torch.int32).cumsum(0).int()
    x = torch.arange(float(sum(LENGTHS)))
    out = torch.zeros(len(LENGTHS))
    ragged_sum_kernel[(len(LENGTHS),)](x, starts, out, BLOCK_SIZE=16)
    expected = [part.sum().item() for part in x.split(LENGTHS)]
    assert out.tolist() == expected


def test_programs_that_part_ways_are_counted_once() -> None:
    outcome = launched(ragged)

    begin = [sum(LENGTHS[:i]) for i in range(len(LENGTHS))]
    steps = [(4 * first, 4 * min(16, begin[i] + length - first))
             for i, length in enumerate(LENGTHS)
             for first in range(begin[i], begin[i] + length, 16)]
    long = [i for i, length in enumerate(LENGTHS) if length > 40]
    short = [i for i, length in enumerate(LENGTHS) if length <= 40]
    programs, total = len(LENGTHS), sum(LENGTHS)
    assert counted(outcome) == {
        ("atomic", "out_ptr"): (len(long), 4 * len(long), len(long), len(long),
                                distinct(4 * i for i in long)),
        ("load", "starts_ptr"): (2 * programs, 8 * programs, 2 * programs, 2 * programs, 2),
        ("load", "x_ptr"): (total, 4 * total, sum(spanned(*step) for step in steps),
                            sum(ceil(nbytes / SECTOR) for _, nbytes in steps),
                            spanned(0, 4 * total)),
        ("store", "out_ptr"): (len(short), 4 * len(short), len(short), len(short),
                               distinct(4 * i for i in short)),
    }


CHUNKED: dict[str, Callable[[], object]] = {
    "copy": lambda: strided_kernel[(17,)](
        ones(1000 * 3 + 1), torch.empty(1000), 1000, 3, 1, BLOCK_SIZE=64),
    "softmax": lambda: softmax_kernel[(70,)](
        ones(70, 99), torch.empty(70, 99), 99, 99, BLOCK_SIZE=128),
    "tiles": lambda: tile_kernel[(5, 3)](
        ones(70, 90), torch.empty(70, 90), 70, 90, TILE_M=16, TILE_N=32),
    "product": lambda: matmul_kernel[(5, 2)](
        ones(70, 40), ones(40, 30), torch.empty(70, 30), 70, 30, 40, BLOCK_SIZE_M=16,
        BLOCK_SIZE_N=16, BLOCK_SIZE_K=16),
    "histogram": lambda: histogram_kernel[(20,)](
        (torch.arange(320) * 7 % 50).int(), torch.zeros(50, dtype=torch.int32), BLOCK_SIZE=16),
    "different trip counts": ragged,
    "broadcast": lambda: broadcast_kernel[(75,)](
        ones(75), torch.empty(75 * 16), BLOCK_SIZE=16),
}


@pytest.mark.parametrize("run", CHUNKED.values(), ids=CHUNKED)
def test_the_account_does_not_depend_on_how_many_programs_run_at_once(
        run: Callable[[], object]) -> None:
    one_by_one, *others = (launched(run, chunk) for chunk in (1, 7, 64, None))

    assert others == [one_by_one] * 3
    assert one_by_one.traffic
