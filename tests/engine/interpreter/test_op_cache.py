"""Plans of operations: asked once, followed afterwards, and never for operands of other kinds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import triton
import triton.language as tl
from triton.language.semantic import TritonSemantic

from grader.engine.interpreter.eager import KernelFailed, interpreted


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[list[str]]:
    """Each time that Triton's semantics are asked for an operation."""
    asked: list[str] = []
    original = getattr(TritonSemantic, name)

    def ask(*args, **kwargs):
        asked.append(name)
        return original(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(TritonSemantic, name, ask)
        yield asked


@triton.jit
def floor_of_halves_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x // 7, mask=offs < n)


def test_what_was_worked_out_once_is_not_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randint(-1000, 1000, (100,), dtype=torch.int16)

    with interpreted() as trace, counted(monkeypatch, "floordiv") as asked:
        for _ in range(3):
            out = torch.empty_like(x)
            floor_of_halves_kernel[(4,)](x, out, 100, N=32)

    assert torch.equal(out, torch.div(x, 7, rounding_mode="trunc"))
    assert len(asked) <= 1  # none, where another test has asked
    assert trace.findings == []


@triton.jit
def products_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x, y = tl.load(x_ptr + offs), tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, x * x)
    tl.store(out_ptr + N + offs, x * y)
    tl.store(out_ptr + 2 * N + offs, y * x)
    tl.store(out_ptr + 3 * N + offs, tl.fma(x, y, x))
    tl.store(out_ptr + 4 * N + offs, tl.fma(x, y, y))


def test_a_product_with_itself_says_nothing_of_a_product_of_two() -> None:
    x, y = torch.randn(2, 8, dtype=torch.float64).unbind()

    with interpreted():
        out = torch.empty(5, 8, dtype=torch.float64)
        products_kernel[(1,)](x, y, out, N=8)

    assert torch.equal(out[:3], torch.stack([x * x, x * y, x * y]))
    torch.testing.assert_close(out[3:], torch.stack([x * y + x, x * y + y]))


@triton.jit
def constants_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.where(x > 0, x * 0.0, x * 0.0))
    tl.store(out_ptr + N + offs, x * -0.0)
    tl.store(out_ptr + 2 * N + offs, x * float("nan"))
    tl.store(out_ptr + 3 * N + offs, x * 1)
    tl.store(out_ptr + 4 * N + offs, x * True)
    tl.store(out_ptr + 5 * N + offs, x / 2)
    tl.store(out_ptr + 6 * N + offs, x / 2.0)


def test_constants_that_are_equal_and_not_the_same_have_plans_of_their_own() -> None:
    x = torch.arange(1, 9, dtype=torch.float32)

    with interpreted():
        out = torch.empty(7, 8)
        constants_kernel[(1,)](x, out, N=8)

    assert not out[0].signbit().any()
    assert out[1].signbit().all()
    assert out[2].isnan().all()
    assert torch.equal(out[3:], torch.stack([x, x, x / 2, x / 2]))


@triton.jit
def type_of_the_first_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) + tl.load(y_ptr + offs))


@pytest.mark.parametrize("dtypes", [
    (torch.uint8, torch.uint8), (torch.int8, torch.int8), (torch.int8, torch.int32),
    (torch.float16, torch.float32), (torch.bfloat16, torch.bfloat16),
    (torch.int32, torch.float16), (torch.uint8, torch.int8)], ids=str)
def test_types_of_one_width_are_not_taken_for_each_other(
        dtypes: tuple[torch.dtype, torch.dtype]) -> None:
    x, y = (torch.tensor([100, 120, 3, 4]).to(dtype) for dtype in dtypes)

    with interpreted():
        out = torch.empty(4, dtype=torch.float32)
        type_of_the_first_kernel[(1,)](x, y, out, N=4)

    assert torch.equal(out, (x + y).float())


@triton.jit
def shapes_that_do_not_meet_kernel(out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), tl.arange(0, N) + tl.arange(0, 2 * N))


def test_what_is_refused_is_refused_each_time() -> None:
    out = torch.empty(8)

    for _ in range(3):
        with interpreted(), pytest.raises(KernelFailed, match="shape"):
            shapes_that_do_not_meet_kernel[(1,)](out, N=4)


@triton.jit
def steps_kernel(out_ptr, N: tl.constexpr):
    total = 0
    for step in tl.static_range(N):
        total += step
    tl.store(out_ptr, total)


def test_a_loop_over_constants_makes_plans_without_end_for_nobody(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.engine.interpreter.op_cache._MOST", 20)

    with interpreted():
        out = torch.empty(1, dtype=torch.int32)
        steps_kernel[(1,)](out, N=200)

    assert out.item() == 199 * 100
