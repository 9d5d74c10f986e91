"""Bank conflicts of shared memory: closed forms, addresses of PTX, and compiled kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import triton
import triton.language as tl

from grader.engine.compiler import bank_conflicts
from grader.engine.compiler.bank_conflicts import conflicts
from grader.engine.compiler.compile import address, build
from grader.engine.compiler.kernel_reader import binary_of
from tests.support.timed import H200, line

LANES = np.arange(32)
EVERY = np.ones(32, bool)


@triton.jit
def gather_kernel(x_ptr, y_ptr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    y = tl.gather(x, (offs * STRIDE) % BLOCK, axis=0)
    tl.store(y_ptr + offs, y)


@triton.jit
def transpose_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    rows, cols = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows[:, None] * n + cols[None, :])
    tl.store(y_ptr + cols[:, None] * n + rows[None, :], tl.trans(x))


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, K: tl.constexpr,
                   PRECISION: tl.constexpr):
    rows, cols, inner = tl.arange(0, M), tl.arange(0, M), tl.arange(0, K)
    acc = tl.zeros([M, M], tl.float32)
    for k in range(0, n, K):
        a = tl.load(a_ptr + rows[:, None] * n + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * n + cols[None, :])
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    tl.store(c_ptr + rows[:, None] * n + cols[None, :], acc)


def accesses(kernel, **arguments):
    arguments |= {name: address("float32", 0) for name in kernel.arg_names if name[1:] == "_ptr"}
    compiled = build(kernel, arguments, {}, H200)
    return binary_of(compiled, H200, "kernel", {}).shared_accesses


def ptx(*code: str) -> str:
    rows = "".join(f"\t{one};\n" for one in code)
    return f".visible .entry kernel()\n.reqntid 32\n{{\n{rows}}}\n"


def only(*code: str) -> float:
    """The ways of the only access."""
    (_, _, _, ways), = bank_conflicts.requests(ptx(*code))
    return ways


@pytest.mark.parametrize("stride", [0, 1, 2, 3, 4, 8, 16, 31, 32, 33, 64, 96])
def test_a_stride_in_words_conflicts_as_often_as_its_divisor_in_banks(stride):
    expected = math.gcd(stride, 32) if stride else 1  # one word for all lanes is a broadcast

    assert conflicts(4 * stride * LANES, EVERY, 4) == expected


@pytest.mark.parametrize(("n_bytes", "stride", "expected"), [
    (8, 8, 1), (8, 16, 2), (16, 16, 1), (16, 32, 2), (16, 128, 8), (16, 144, 1), (2, 2, 1),
    (2, 128, 32)])
def test_wide_accesses_are_served_in_halves_and_quarters_of_a_warp(n_bytes, stride, expected):
    assert conflicts(stride * LANES, EVERY, n_bytes) == expected


def test_threads_that_take_no_part_conflict_with_none():
    assert conflicts(128 * LANES, LANES < 4, 4) == 4
    assert conflicts(128 * LANES, LANES < 0, 4) == 1


def test_warps_with_and_without_conflicts_are_averaged():
    both = np.concatenate([4 * LANES, 128 * LANES])

    assert conflicts(both, np.ones(64, bool), 4) == 33 / 2


SLOT = ("mov.u32 %r1, %tid.x", "mov.b32 %r2, buffer")


@pytest.mark.parametrize(("code", "expected"), [
    (("shl.b32 %r3, %r1, 7", "add.s32 %r4, %r2, %r3", "ld.shared.b32 %r5, [%r4+4]"), 32),
    (("shl.b32 %r3, %r1, 4", "add.s32 %r4, %r2, %r3",
      "ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%r4]"), 1),
    # rows of 128 bytes, whose 16-byte parts are swizzled by the row
    (("and.b32 %r3, %r1, 7", "shl.b32 %r4, %r3, 7", "shl.b32 %r5, %r3, 4", "xor.b32 %r6, %r4, %r5",
      "add.s32 %r7, %r2, %r6", "st.shared.v4.b32 [%r7], {%r1, %r1, %r1, %r1}"), 1),
    (("and.b32 %r3, %r1, 7", "shl.b32 %r4, %r3, 7", "add.s32 %r7, %r2, %r4",
      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, [%r7]"), 8),
    (("setp.lt.u32 %p1, %r1, 4", "shl.b32 %r3, %r1, 7", "add.s32 %r4, %r2, %r3",
      "@%p1 ld.shared.b32 %r5, [%r4]"), 4),
    # a number that is the same for all threads shifts all banks alike
    (("mov.u32 %r3, %ctaid.x", "shl.b32 %r4, %r3, 10", "mad.lo.s32 %r5, %r1, 8, %r4",
      "add.s32 %r6, %r2, %r5", "ld.shared.b32 %r7, [%r6]"), 2),
    # the buffer of a pipeline's stage
    (("mov.b32 %r9, -1", "add.s32 %r3, %r9, 1", "setp.gt.s32 %p1, %r3, 1",
      "selp.b32 %r9, 0, %r3, %p1", "shl.b32 %r4, %r9, 12", "shl.b32 %r5, %r1, 3",
      "add.s32 %r6, %r2, %r4", "add.s32 %r7, %r6, %r5", "ld.shared.b32 %r8, [%r7]"), 2),
    (("ld.global.b32 %r3, [%rd1]", "add.s32 %r4, %r2, %r3", "ld.shared.b32 %r5, [%r4]"), 0),
])
def test_addresses_are_evaluated_for_each_thread(code, expected):
    assert only(*SLOT, *code) == expected


def test_a_gather_of_every_32nd_element_conflicts():
    rows = accesses(gather_kernel, STRIDE=32, BLOCK=1024)

    # a thread has 4 elements: lanes are 128 words apart, modulo 1024
    worst = max(rows, key=lambda one: one.ways)
    assert (worst.kind, worst.ways) == ("load", 8)
    assert worst.line == line(gather_kernel, "tl.gather")


def test_a_product_on_fma_units_reads_rows_that_share_a_bank():
    rows = accesses(product_kernel, n=1024, M=64, K=16, PRECISION="ieee")
    if all(one.bits > 32 for one in rows):
        pytest.skip("this Triton reads several words at a time")

    # two rows of threads read rows of 16 words that are 4 rows apart: 64 words
    assert {one.ways for one in rows if one.kind == "load"} == {1, 2}


@pytest.mark.parametrize("block", [32, 64])
def test_a_transposed_tile_is_swizzled_and_has_none(block):
    rows = accesses(transpose_kernel, n=4096, BLOCK=block)

    assert {one.kind for one in rows} == {"load", "store"}
    assert {one.ways for one in rows} == {1}
