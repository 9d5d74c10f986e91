"""The watched interpreter: what it sees of memory, and that it computes as a GPU does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from grader import text
from grader.engine.interpreter import atomics, memory_checks, numerics, patch_triton, selftest
from grader.engine.interpreter.address_space import Storage
from grader.engine.interpreter.index_runs import Runs
from grader.engine.interpreter.launch import LaunchOutcome, Pointer, run
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.memory_checks import Checks
from grader.engine.interpreter.shadow_memory import KERNEL, NOBODY, Shadow

BF16 = np.dtype(ml_dtypes.bfloat16)
LIMIT = tl.constexpr(4)


class Bench:
    """Tensors and one memory; ``launch`` takes arrays as inputs and ``Fresh`` arrays as outputs."""

    def __init__(self, pattern: int = 0, duplicate_writes: bool = False) -> None:
        self.memory = Memory(pattern, duplicate_writes=duplicate_writes)
        self._pointers: dict[int, tuple[Any, Pointer]] = {}

    def input(self, array: NDArray[Any]) -> Pointer:
        return self._pointer(array, is_input=True)

    def fresh(self, array: NDArray[Any]) -> Pointer:
        return self._pointer(array, is_input=False)

    def _pointer(self, array: NDArray[Any], is_input: bool) -> Pointer:
        storage = Storage(array.reshape(-1).view(np.uint8), array.itemsize, is_input, is_input)
        name = {"bool": "bool"}.get(array.dtype.name, array.dtype.name)
        return Pointer(storage, name, 0, array.nbytes)

    def launch(self, kernel: Any, grid: tuple[int, ...], *, order: Any = "forward",
               sample: int | None = None, **arguments: Any) -> LaunchOutcome:
        full = (*grid, 1, 1)[:3]
        return run(kernel, full, arguments, self.memory, order=order, sample=sample)

    @property
    def findings(self) -> dict[str, str]:
        return {f.code: f.seen for f in self.memory.observed.findings()}


def floats(*shape: int) -> NDArray[np.float32]:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


# ---------------------------------------------------------------------------------------------
# Kernels


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=-float("inf")).to(tl.float32)
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offs, x / tl.sum(x, axis=0), mask=mask)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, MASK_LOAD: tl.constexpr, MASK_STORE: tl.constexpr,
                OTHER: tl.constexpr, AXIS: tl.constexpr, SHIFT: tl.constexpr,
                BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(AXIS) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    at = x_ptr + offs + SHIFT
    x = tl.load(at, mask=mask, other=OTHER) if MASK_LOAD else tl.load(at)
    if MASK_STORE:
        tl.store(out_ptr + offs, x, mask=mask)
    else:
        tl.store(out_ptr + offs, x)


def copy(bench: Bench, n: int = 10, size: int | None = None, grid: tuple[int, ...] = (2,), *,
         order: str = "forward", sample: int | None = None, **changes: Any) -> NDArray[Any]:
    settings = {"MASK_LOAD": True, "MASK_STORE": True, "OTHER": None, "AXIS": 0, "SHIFT": 0,
                "BLOCK_SIZE": 8} | changes
    out = np.full(n if size is None else size, -1, np.float32)
    outcome = bench.launch(copy_kernel, grid, x_ptr=bench.input(floats(n)),
                           out_ptr=bench.fresh(out), n=n, order=order, sample=sample, **settings)
    assert outcome.failure is None
    return out


# ---------------------------------------------------------------------------------------------
# Results


@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_vector_addition_is_exact_and_clean(order: str) -> None:
    bench, x, out = Bench(), floats(1000), np.full(1000, np.nan, np.float32)

    outcome = bench.launch(add_kernel, (4,), x_ptr=bench.input(x), y_ptr=bench.input(x),
                           out_ptr=bench.fresh(out), n=1000, BLOCK_SIZE=256, order=order)

    assert np.array_equal(out, x + x)
    assert bench.findings == {}
    assert (outcome.programs, outcome.idle_programs, outcome.failure) == (4, 0, None)
    assert (outcome.bytes_loaded, outcome.bytes_stored) == (8000, 4000)


def test_softmax_calls_library_helpers() -> None:
    bench, x = Bench(), np.random.default_rng(1).normal(size=(5, 100)).astype(np.float32)
    out = np.full_like(x, np.nan)

    outcome = bench.launch(softmax_kernel, (5,), x_ptr=bench.input(x), out_ptr=bench.fresh(out),
                           stride=100, n_cols=100, BLOCK_SIZE=128)

    assert outcome.failure is None
    assert bench.findings == {}
    expected = torch.softmax(torch.from_numpy(x).double(), 1).numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-6)


# ---------------------------------------------------------------------------------------------
# Memory: a kernel that must pass, and one for each finding


def test_a_right_copy_has_no_findings() -> None:
    bench = Bench()

    out = copy(bench)

    assert np.array_equal(out, floats(10))
    assert bench.findings == {}


WRONG = {
    "load past the end": (
        {"MASK_LOAD": False}, "M01",
        "program 1 loaded 6 elements past the end of `x_ptr` (first index 10, size 10)"),
    "load before the start": (
        {"SHIFT": -3}, "M01",
        "program 0 loaded 3 elements before the start of `x_ptr` (first index -3)"),
    "store past the end": (
        {"MASK_STORE": False, "OTHER": 0.0}, "M02",
        "program 1 stored 6 elements past the end of `out_ptr` (first index 10, size 10)"),
    "wrong axis": (
        {"AXIS": 1}, "M04",
        "programs 0 and 1 both stored element 0 of `out_ptr`; the kernel reads tl.program_id "
        "along axis 1 only, where the grid size is 1"),
    "wild address": (
        {"SHIFT": 1 << 44, "MASK_STORE": True}, "M01",
        "program 0 loaded 8 elements at an address outside every tensor argument; "
        "1 more program did the same"),
}


def test_an_axis_of_the_grid_that_a_kernel_never_asks_for_is_told() -> None:
    bench = Bench()

    copy(bench, n=16, grid=(2, 2))

    assert bench.findings["M04"].endswith(
        "; the grid is (2, 2), and the kernel reads tl.program_id along axis 0 only")


@pytest.mark.parametrize(("changes", "code", "seen"), WRONG.values(), ids=WRONG)
def test_a_wrong_copy_is_told_in_words(changes: dict[str, Any], code: str, seen: str) -> None:
    bench = Bench()

    copy(bench, **changes)

    assert bench.findings == {code: seen}


def test_a_finding_names_the_line_of_the_kernel() -> None:
    bench = Bench()

    copy(bench, MASK_LOAD=False)

    (finding,) = bench.memory.observed.findings()
    source = copy_kernel.fn.__code__
    assert finding.line is not None
    assert finding.line > source.co_firstlineno
    assert "tl.load(at)" in Path(__file__).read_text().splitlines()[finding.line - 1]


def test_dropped_lanes_change_nothing_outside() -> None:
    bench = Bench()
    whole = np.zeros(16, np.float32)
    storage = Storage(whole.view(np.uint8), 4, is_input=False, protected=False)
    first_half = Pointer(storage, "float32", 0, 40)  # a view of 10 elements beside another

    bench.launch(copy_kernel, (2,), x_ptr=bench.input(floats(16)), out_ptr=first_half, n=10,
                 MASK_LOAD=True, MASK_STORE=False, OTHER=0.0, AXIS=0, SHIFT=0, BLOCK_SIZE=8)

    assert "past the end of `out_ptr`" in bench.findings["M02"]
    assert np.array_equal(whole[:10], floats(10))
    assert not whole[10:].any()


def test_duplicate_writes_can_be_allowed() -> None:
    bench = Bench(duplicate_writes=True)

    copy(bench, AXIS=1)

    assert bench.findings == {}


def test_programs_are_named_by_their_place_in_the_grid() -> None:
    assert text.program(9, (10, 1, 1)) == "program 9"
    assert text.program(9, (4, 3, 1)) == "program (1, 2)"
    assert text.program(9, (2, 2, 3)) == "program (1, 0, 2)"


@triton.jit
def copy_own_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


def test_reading_uninitialized_memory() -> None:
    bench, source, out = Bench(), floats(8), floats(8)

    bench.launch(copy_own_kernel, (1,), x_ptr=bench.fresh(source), out_ptr=bench.fresh(out),
                 BLOCK_SIZE=8)

    assert bench.findings == {
        "M06": "program 0 loaded uninitialized memory: 8 elements of `x_ptr` (first index 0)"}


def test_storing_into_an_input() -> None:
    bench, x, out = Bench(), floats(8), floats(8)

    bench.launch(copy_own_kernel, (1,), x_ptr=bench.input(x), out_ptr=bench.input(out),
                 BLOCK_SIZE=8)

    assert bench.findings == {
        "M07": "input `out_ptr` was modified: program 0 stored 8 elements to it (first index 0)"}


@triton.jit
def count_kernel(count_ptr, odd_ptr):
    pid = tl.program_id(0)
    tl.atomic_add(count_ptr + pid, 1)
    tl.atomic_add(count_ptr + pid, 1)
    if pid % 2 == 1:  # programs part ways, and what they did is undone
        tl.atomic_add(odd_ptr, 1)


def test_an_atomic_that_changes_an_input_is_told() -> None:
    bench, count, odd = Bench(), np.zeros(4, np.int32), np.zeros(1, np.int32)

    bench.launch(count_kernel, (4,), count_ptr=bench.input(count), odd_ptr=bench.input(odd))

    assert list(bench.findings) == ["M07"]


def test_programs_that_part_ways_find_memory_as_it_was() -> None:
    bench, count, odd = Bench(), np.zeros(4, np.int32), np.zeros(1, np.int32)

    outcome = bench.launch(count_kernel, (4,), count_ptr=bench.fresh(count),
                           odd_ptr=bench.fresh(odd))

    assert outcome.failure is None
    assert (count.tolist(), odd.tolist()) == ([2, 2, 2, 2], [2])


@triton.jit
def neighbour_kernel(out_ptr, result_ptr, n):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, pid)
    left = tl.load(out_ptr + pid - 1, mask=pid > 0, other=0)
    tl.store(result_ptr + pid, left)


def test_loading_what_another_program_stored_in_the_same_launch() -> None:
    bench = Bench()

    bench.launch(neighbour_kernel, (4,), out_ptr=bench.fresh(np.zeros(4, np.int32)),
                 result_ptr=bench.fresh(np.zeros(4, np.int32)), n=4)

    assert bench.findings == {
        "M09": "program 1 loaded 1 element of `out_ptr` that program 0 stored in the same launch "
               "(first index 0); 2 more programs did the same"}


def test_a_second_launch_may_read_and_overwrite_the_first_ones_results() -> None:
    bench, x, y, z = Bench(), floats(8), floats(8), floats(8)
    source, middle, out = bench.input(x), bench.fresh(y), bench.fresh(z)

    bench.launch(copy_own_kernel, (1,), x_ptr=source, out_ptr=middle, BLOCK_SIZE=8)
    bench.launch(copy_own_kernel, (1,), x_ptr=middle, out_ptr=out, BLOCK_SIZE=8)
    bench.launch(copy_own_kernel, (1,), x_ptr=source, out_ptr=middle, BLOCK_SIZE=8)

    assert bench.findings == {}


@triton.jit
def histogram_kernel(x_ptr, bins_ptr, old_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    old = tl.atomic_add(bins_ptr + tl.load(x_ptr + offs), 1)
    tl.store(old_ptr + offs, old)


def test_atomics_are_no_conflict_and_run_lane_by_lane() -> None:
    memory = Memory()
    bench = Bench()
    bench.memory = memory
    values = np.array([0, 1, 1, 3, 1, 0, 0, 1], np.int32)
    bins, old = np.zeros(4, np.int32), np.zeros(8, np.int32)
    counted = bench.fresh(bins)
    counted.storage.shadow.fill(-1)  # the host filled it with zeros

    outcome = bench.launch(histogram_kernel, (2,), x_ptr=bench.input(values), bins_ptr=counted,
                           old_ptr=bench.fresh(old), BLOCK_SIZE=4)

    assert bins.tolist() == [3, 4, 0, 1]
    assert old.tolist() == [0, 0, 1, 0, 2, 1, 2, 3]
    assert bench.findings == {}
    assert (outcome.bytes_loaded, outcome.bytes_stored) == (64, 64)


@triton.jit
def locked_sum_kernel(lock_ptr, total_ptr, x_ptr):
    x = tl.load(x_ptr + tl.program_id(0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(total_ptr, tl.load(total_ptr) + x)
    tl.atomic_xchg(lock_ptr, 0)


def test_stores_under_a_lock_are_no_conflict() -> None:
    bench, total, lock = Bench(), np.zeros(1, np.float32), np.zeros(1, np.int32)
    pointers = bench.fresh(lock), bench.fresh(total)
    for pointer in pointers:
        pointer.storage.shadow.fill(-1)

    bench.launch(locked_sum_kernel, (4,), lock_ptr=pointers[0], total_ptr=pointers[1],
                 x_ptr=bench.input(floats(4)))

    assert total[0] == 6
    assert bench.findings == {}


# ---------------------------------------------------------------------------------------------
# Indices beyond 32 bits


def test_a_wrapped_index_is_told_from_a_missing_mask() -> None:
    big = 3 << 30

    assert memory_checks.wrapped(-(1 << 30), big)  # 3 << 30, cut to 32 bits
    assert memory_checks.wrapped(-5, 1 << 31)
    assert not memory_checks.wrapped(-5, 10_000)
    assert not memory_checks.wrapped(10_000, 10_000)
    assert not memory_checks.wrapped(big, big)


@triton.jit
def row_kernel(x_ptr, out_ptr, stride, WIDE: tl.constexpr):
    row = tl.program_id(0)
    if WIDE:
        row = row.to(tl.int64)
    tl.store(out_ptr + tl.program_id(0), tl.load(x_ptr + row * stride))


@pytest.mark.parametrize(("wide", "codes"), [(True, set()), (False, {"M05"})])
def test_offsets_that_wrap_round(wide: bool, codes: set[str]) -> None:
    bench, out = Bench(), np.zeros(4, np.int8)
    stride = 1 << 30
    pages = torch.empty(3 * stride + 1, dtype=torch.uint8)  # never touched but for four bytes
    for row in range(4):
        pages[row * stride] = row
    source = Pointer(Storage(pages.numpy(), 1, True, True), "int8", 0, pages.numel())

    bench.launch(row_kernel, (4,), x_ptr=source, out_ptr=bench.fresh(out), stride=stride, WIDE=wide)

    assert set(bench.findings) == codes
    if wide:
        assert out.tolist() == [0, 1, 2, 3]
    else:
        assert bench.findings["M05"].startswith(
            "program 2 loaded 1 element of `x_ptr` at index -2147483648, outside the valid range 0 "
            "to 3221225472")


def test_the_shadow_of_a_huge_storage_takes_pages_only_where_it_is_used() -> None:
    shadow = Shadow(1 << 33, NOBODY)
    index = np.array([5, (1 << 32) + 7])

    shadow.set(Runs(index), 3)
    shadow.set(Runs(index[:1]), KERNEL)

    asked = Runs(np.array([4, 5, (1 << 32) + 7, 1 << 31]))
    assert shadow.get(asked)[:, 0].tolist() == [0, KERNEL, 3, 0]


# ---------------------------------------------------------------------------------------------
# Masked lanes


@triton.jit
def show_lanes_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n))


@triton.jit
def show_given_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n, other=0))


POISON = {
    "float32": (np.float32, np.nan, np.float32(1e30)),
    "float16": (np.float16, np.nan, 65504),
    "bfloat16": (BF16, np.nan, np.array(1e30).astype(BF16)),
    "int64": (np.int64, 0x5A5A5A5B, -0x5A5A5A5B),
    "int32": (np.int32, 0x5A5A5A5B, -0x5A5A5A5B),
    "int16": (np.int16, 32767, -32768),
    "uint8": (np.uint8, 255, 0xA5),
}


@pytest.mark.parametrize(("dtype", "first", "second"), POISON.values(), ids=POISON)
@pytest.mark.parametrize("pattern", [0, 1])
def test_masked_lanes_hold_poison(dtype: Any, first: Any, second: Any, pattern: int) -> None:
    bench, x, out = Bench(pattern), np.ones(8, dtype), np.zeros(8, dtype)

    bench.launch(show_lanes_kernel, (1,), x_ptr=bench.input(x), out_ptr=bench.fresh(out), n=3,
                 BLOCK_SIZE=8)

    assert (out[:3] == 1).all()
    expected = np.array((first, second)[pattern]).astype(dtype)
    assert np.array_equal(out[3:].astype(np.float64), np.full(5, expected.astype(np.float64)),
                          equal_nan=True)


def test_other_is_given_where_it_is_given() -> None:
    bench, x, out = Bench(), floats(8), floats(8)

    bench.launch(show_given_kernel, (1,), x_ptr=bench.input(x), out_ptr=bench.fresh(out), n=3,
                 BLOCK_SIZE=8)

    assert out.tolist() == [0, 1, 2, 0, 0, 0, 0, 0]


@triton.jit
def scalar_other_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr, mask=tl.program_id(0) > 0, other=0.0))


def test_a_scalar_load_keeps_an_other_of_zero() -> None:
    bench, out = Bench(), np.ones(1, np.float32)

    bench.launch(scalar_other_kernel, (1,), x_ptr=bench.input(floats(1)), out_ptr=bench.fresh(out))

    assert out[0] == 0


# ---------------------------------------------------------------------------------------------
# Numerics


@triton.jit
def bf16_kernel(x_ptr, y_ptr, sum_ptr, rounded_ptr, less_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    tl.store(sum_ptr + offs, x + y)
    tl.store(rounded_ptr + offs, (x.to(tl.float32) * 1.00390625 + 0.5).to(tl.bfloat16))
    tl.store(less_ptr + offs, tl.where(x < y, x, -y))


def test_bfloat16_rounds_to_nearest_even() -> None:
    rng, bench = np.random.default_rng(0), Bench()
    x, y = (rng.normal(size=64).astype(BF16) for _ in range(2))
    total, rounded, least = (np.zeros(64, BF16) for _ in range(3))

    outcome = bench.launch(bf16_kernel, (1,), x_ptr=bench.input(x), y_ptr=bench.input(y),
                           sum_ptr=bench.fresh(total), rounded_ptr=bench.fresh(rounded),
                           less_ptr=bench.fresh(least), BLOCK_SIZE=64)

    assert outcome.failure is None
    as_torch = [torch.from_numpy(a.astype(np.float32)).bfloat16() for a in (x, y)]
    assert np.array_equal(total.astype(np.float32), (as_torch[0] + as_torch[1]).float().numpy())
    by_hand = (as_torch[0].float() * 1.00390625 + 0.5).bfloat16().float().numpy()
    assert np.array_equal(rounded.astype(np.float32), by_hand)
    assert np.array_equal(least, np.where(x < y, x, -y))


@triton.jit
def dot_kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    acc = tl.zeros((M, N), dtype=tl.float32)
    acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("dtype", [np.float16, BF16], ids=["float16", "bfloat16"])
def test_dot_accumulates_in_float32(dtype: Any) -> None:
    bench, rng = Bench(), np.random.default_rng(0)
    a, b = (rng.normal(size=(16, 32)).astype(dtype), rng.normal(size=(32, 16)).astype(dtype))
    c = np.zeros((16, 16), np.float32)

    outcome = bench.launch(dot_kernel, (1,), a_ptr=bench.input(a), b_ptr=bench.input(b),
                           c_ptr=bench.fresh(c), M=16, N=16, K=32)

    assert outcome.failure is None
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-5)


def test_dot_has_the_compilers_least_sizes() -> None:
    bench = Bench()

    outcome = bench.launch(
        dot_kernel, (1,), a_ptr=bench.input(np.ones((16, 8), np.float16)),
        b_ptr=bench.input(np.ones((8, 16), np.float16)),
        c_ptr=bench.fresh(np.zeros((16, 16), np.float32)), M=16, N=16, K=8)

    assert outcome.failure is not None
    assert outcome.failure.code == "L05"
    assert "K >= 16" in outcome.failure.seen


@triton.jit
def half_sum_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK_SIZE)), axis=0))


def test_sums_of_float16_overflow_as_on_a_gpu() -> None:
    bench, out = Bench(), np.zeros(1, np.float16)

    bench.launch(half_sum_kernel, (1,), x_ptr=bench.input(np.full(1024, 128, np.float16)),
                 out_ptr=bench.fresh(out), BLOCK_SIZE=1024)

    assert np.isinf(out[0])


# ---------------------------------------------------------------------------------------------
# The language


@triton.jit
def helper(x, EXTRA: tl.constexpr = 2):
    return x * EXTRA, x + EXTRA


@triton.jit
def language_kernel(x_ptr, out_ptr, n, scale, flag, nothing, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    inside = offs >= 1 and offs < n
    outside = not inside
    total = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for k in range(0, n, 2):
        total += k.to(tl.float32)
    for _ in tl.static_range(LIMIT):
        total += 1.0
    step = 0
    while step < 3:
        step += 1
    doubled, raised = helper(x)
    if flag and nothing is None:
        total += min(step, 10)
    value = total * scale if n > 2 else total
    tl.store(out_ptr + offs, tl.where(inside | (outside & (offs == 0)), value, doubled + raised))
    tl.store(out_ptr + offs, x.sum(axis=0) + value, mask=offs == BLOCK_SIZE - 1)


def test_a_kernels_python_means_what_it_means_on_a_gpu() -> None:
    bench, out = Bench(), floats(8)

    outcome = bench.launch(language_kernel, (1,), x_ptr=bench.input(floats(8)),
                           out_ptr=bench.fresh(out), n=5, scale=0.5, flag=True, nothing=None,
                           BLOCK_SIZE=8)

    assert outcome.failure is None
    value = ((0 + 2 + 4) + 4 + 3) * 0.5
    assert out.tolist() == [value] * 5 + [5 * 2 + 5 + 2, 6 * 2 + 6 + 2, 28 + value]


@triton.jit
def combine(a_value, a_index, b_value, b_index):
    larger = a_value > b_value
    return tl.where(larger, a_value, b_value), tl.where(larger, a_index, b_index)


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def reductions_kernel(x_ptr, out_ptr, scan_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    best, where = tl.reduce((x, offs), 0, combine)
    tl.store(out_ptr + 0, best)
    tl.store(out_ptr + 1, where)
    tl.store(out_ptr + 2, tl.argmax(x, axis=0))
    tl.store(out_ptr + 3, tl.min(x, axis=0))
    tl.store(out_ptr + 4, tl.max(tl.reshape(x, (2, BLOCK_SIZE // 2)), axis=1, keep_dims=True).sum())
    tl.store(scan_ptr + offs, tl.cumsum(x, axis=0))
    tl.store(scan_ptr + BLOCK_SIZE + offs, tl.associative_scan(x, 0, product, reverse=True))
    tl.store(scan_ptr + 2 * BLOCK_SIZE + offs, tl.sort(x))


def test_reductions_and_scans_take_any_combine_function() -> None:
    bench = Bench()
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.float32)
    out, scans = np.zeros(5, np.float32), np.zeros((3, 8), np.float32)

    outcome = bench.launch(reductions_kernel, (1,), x_ptr=bench.input(x), out_ptr=bench.fresh(out),
                           scan_ptr=bench.fresh(scans), BLOCK_SIZE=8)

    assert outcome.failure is None
    assert out.tolist() == [9, 5, 5, 1, 13]
    assert scans[0].tolist() == np.cumsum(x).tolist()
    assert scans[1].tolist() == np.cumprod(x[::-1])[::-1].tolist()
    assert scans[2].tolist() == sorted(x.tolist())


@triton.jit
def axes_kernel(x_ptr, columns_ptr, rows_ptr, largest_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :])
    tl.store(columns_ptr + columns, tl.sum(x, axis=0))
    tl.store(rows_ptr + rows, tl.sum(x, axis=1))
    tl.store(largest_ptr + rows, tl.max(tl.where(x == 5, float("nan"), x), axis=1))


def test_a_reduction_goes_along_its_axis_and_a_maximum_past_nan() -> None:
    bench, x = Bench(), floats(2, 4)
    columns, rows, largest = (np.zeros(n, np.float32) for n in (4, 2, 2))

    outcome = bench.launch(
        axes_kernel, (1,), x_ptr=bench.input(x), columns_ptr=bench.fresh(columns),
        rows_ptr=bench.fresh(rows), largest_ptr=bench.fresh(largest), M=2, N=4)

    assert outcome.failure is None
    assert columns.tolist() == [4, 6, 8, 10]
    assert (rows.tolist(), largest.tolist()) == ([6, 22], [3, 7])


@triton.jit
def sum_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK_SIZE)), axis=0))


def test_sums_of_float16_round_at_every_step() -> None:
    bench, out = Bench(), np.zeros(1, np.float16)
    x = np.array([2048, 1, 1, 1], np.float16)  # 2051 in float32, which rounds to 2052

    bench.launch(sum_kernel, (1,), x_ptr=bench.input(x), out_ptr=bench.fresh(out), BLOCK_SIZE=4)

    assert out.tolist() == [2050]


@pytest.mark.parametrize(("dtype", "largest"), [(tl.float8e4nv, 448), (tl.float8e5, 57_344)],
                         ids=["e4m3", "e5m2"])
def test_conversions_to_float8_saturate(dtype: Any, largest: float) -> None:
    narrow = numerics.cast(np.array([1e9, -1e9, 1.0], np.float32), dtype)

    assert narrow.astype(np.float32).tolist() == [largest, -largest, 1.0]


@triton.jit
def wrap_kernel(out_ptr, n, STEP: tl.constexpr):
    for k in range(n):
        tl.store(out_ptr + k, k * STEP)


def test_loop_variables_are_32_bits_wide() -> None:
    bench, out = Bench(), np.zeros(3, np.int64)

    bench.launch(wrap_kernel, (1,), out_ptr=bench.fresh(out), n=3, STEP=1 << 30)

    assert out.tolist() == [0, 1 << 30, -(1 << 31)]


# ---------------------------------------------------------------------------------------------
# Kernels that cannot go on


@triton.jit
def if_on_block_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK_SIZE))
    if x > 0:
        tl.store(x_ptr, 1.0)


@triton.jit
def arange_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    tl.load(x_ptr + tl.arange(0, BLOCK_SIZE - 1))


@triton.jit
def no_such_argument_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.sum(tl.load(x_ptr + offs), mask=offs < 3)


@triton.jit
def shapes_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    tl.load(x_ptr + tl.arange(0, BLOCK_SIZE) + tl.arange(0, 2 * BLOCK_SIZE))


@triton.jit
def blank_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    offs = ...
    tl.load(x_ptr + offs)


@triton.jit
def unset_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    if BLOCK_SIZE > 100:
        y = 1
    tl.store(x_ptr, y)


@triton.jit
def recursive_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    recursive_kernel(x_ptr, BLOCK_SIZE)


@triton.jit(debug=True)
def device_assert_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    tl.device_assert(tl.load(x_ptr) > 5, "x is small")


@triton.jit
def python_print_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    print(tl.load(x_ptr))


@triton.jit
def sentence_print_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    print("x is", tl.load(x_ptr), "here")


@triton.jit
def f_string_print_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    print(f"x is {tl.load(x_ptr)}")


STOPPED = {
    "if on a block": (if_on_block_kernel, "L05", "a block of shape [8]", 2),
    "not a power of two": (arange_kernel, "L05", "arange's range must be a power of 2", 1),
    "unknown argument": (no_such_argument_kernel, "L05", "unexpected keyword argument 'mask'", 2),
    "shapes": (shapes_kernel, "L05", "incompatible", 1),
    "blank": (blank_kernel, "P01", "blank", 2),
    "unset variable": (unset_kernel, "L05", "`y` is not defined here", 3),
    "endless recursion": (recursive_kernel, "R01", "calls itself", 1),
    "device assert": (device_assert_kernel, "R01", "x is small", 1),
    "print without a name": (python_print_kernel, "L05", '`tl.device_print("x", x)`', 1),
    "print of two strings": (sentence_print_kernel, "L05", '`tl.device_print("x", x)`', 1),
    "print of an f-string": (f_string_print_kernel, "L05", '`tl.device_print("x", x)`', 1),
}


@triton.jit
def printing_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK_SIZE))
    tl.static_print("x is", x, f"of {BLOCK_SIZE}")
    tl.device_print("x", x)


def test_lines_of_static_print_come_once_and_blocks_are_folded_within_the_width() -> None:
    bench = Bench()
    bench.memory.printed = []

    bench.launch(printing_kernel, (2,), x_ptr=bench.input(floats(64) / 7), BLOCK_SIZE=64)

    assert bench.memory.printed.count("x is fp32[64] of 64") == 1
    first, second = (index for index, line in enumerate(bench.memory.printed) if "x: [" in line)
    assert bench.memory.printed[first].startswith("(0, 0, 0)  x: [0.         0.14285715 0.2857143")
    assert bench.memory.printed[second].startswith("(1, 0, 0)  x: [")
    assert max(map(len, bench.memory.printed)) <= 76


@pytest.mark.parametrize(("kernel", "code", "seen", "line"), STOPPED.values(), ids=STOPPED)
def test_a_kernel_that_cannot_go_on(kernel: Any, code: str, seen: str, line: int) -> None:
    bench = Bench()

    outcome = bench.launch(kernel, (1,), x_ptr=bench.input(floats(8)), BLOCK_SIZE=8)

    assert outcome.failure is not None
    assert outcome.failure.code == code
    assert seen in outcome.failure.seen
    assert outcome.failure.line == kernel.fn.__code__.co_firstlineno + 1 + line


def test_triton_is_left_as_it_was() -> None:
    before = vars(tl).copy(), vars(tl.tensor).copy(), set(globals())
    bench = Bench()

    copy(bench)

    assert vars(tl) == before[0]
    assert vars(tl.tensor) == before[1]
    assert set(globals()) == before[2]
    with pytest.raises(RuntimeError, match="Cannot call @triton"):
        helper(1)


def test_an_unknown_triton_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(patch_triton.interpreter, "_patch_lang")

    with pytest.raises(patch_triton.UnknownTriton, match=r"_patch_lang is missing.*3\.6 to 3\.9"):
        patch_triton.check_seams.__wrapped__()


def test_an_operation_that_the_engine_never_heard_of_is_refused_by_name(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(patch_triton.Builder, "create_dot")

    with pytest.raises(patch_triton.UnknownTriton,
                       match=r"semantic asks for create_dot.*3\.6 to 3\.9"):
        patch_triton.check_seams.__wrapped__()


def test_a_failure_of_the_grader_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shadow, "set", lambda self: None)  # a call of it raises TypeError

    with pytest.raises(RuntimeError, match="the engine failed while it ran `copy_kernel`"):
        copy(Bench())


# ---------------------------------------------------------------------------------------------
# Which programs run


def test_programs_run_in_the_order_asked_for() -> None:
    outs = {
        order: copy(Bench(duplicate_writes=True), n=16, AXIS=1, order=order)
        for order in ("forward", "reverse")
    }

    assert np.array_equal(outs["forward"], outs["reverse"])


@triton.jit
def last_one_kernel(out_ptr):
    tl.store(out_ptr, tl.program_id(0))


@pytest.mark.parametrize(("order", "last"), [("forward", 6), ("reverse", 0)])
def test_the_last_program_is_the_one_whose_store_remains(order: Any, last: int) -> None:
    bench, out = Bench(duplicate_writes=True), np.zeros(1, np.int32)

    bench.launch(last_one_kernel, (7,), out_ptr=bench.fresh(out), order=order)

    assert out[0] == last


def test_a_sample_runs_the_first_and_last_programs() -> None:
    out = copy(Bench(), n=80, grid=(10,), sample=2)

    ran = np.r_[0:16, 64:80]
    assert np.array_equal(out[ran], floats(80)[ran])
    assert (np.delete(out, ran) == -1).all()


def test_programs_that_store_nothing_are_counted() -> None:
    bench = Bench()
    out = floats(10)

    outcome = bench.launch(
        copy_kernel, (5,), x_ptr=bench.input(floats(10)), out_ptr=bench.fresh(out), n=10,
        MASK_LOAD=True, MASK_STORE=True, OTHER=None, AXIS=0, SHIFT=0, BLOCK_SIZE=8)

    assert outcome.idle_programs == 3


def test_the_self_test_passes() -> None:
    assert selftest.check() is None  # it raises otherwise


@pytest.mark.parametrize(("owner", "name", "broken", "what"), [
    (numerics, "cast", lambda data, dtype: data, "bfloat16 is rounded"),
    (numerics, "tf32", lambda data: data, "products are computed in the precision"),
    (atomics, "rmw", lambda *_: np.zeros(16, np.int32), "programs that part"),
    (Checks, "outside", lambda *_: None, "a load outside"),
], ids=["rounding", "precision", "atomics", "bounds"])
def test_the_self_test_fails_where_the_engine_is_wrong(
        owner: Any, name: str, broken: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, broken)

    with pytest.raises(patch_triton.UnknownTriton, match=f"self-test that {what}"):
        selftest.check()
