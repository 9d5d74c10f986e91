"""Right kernels that the engine once refused or misjudged."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from grader.engine.interpreter.eager import KernelFailed, interpreted
from tests.fidelity.memory import helpers


@triton.jit
def tile_kernel(x_ptr, out_ptr, stride, N: tl.constexpr):
    offs = tl.arange(0, N)
    tile = tl.load(x_ptr + offs[:, None] * stride + offs[None, :])
    tl.store(out_ptr + offs[:, None] * N + offs[None, :], tile)


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.float8_e4m3fn, torch.bfloat16])
def test_tiles_of_every_type_are_moved(dtype: torch.dtype) -> None:
    x = torch.randn(64, 64).to(dtype)

    with interpreted() as trace:
        out = torch.empty(32, 32, dtype=dtype)
        tile_kernel[(1,)](x, out, 64, N=32)

    assert torch.equal(out.view(torch.uint8), x[:32, :32].contiguous().view(torch.uint8))
    assert trace.findings == []


SHAPES = [[4], [4, 8], [tl.constexpr(2), 16], tl.tuple([1, 32]), [4], tl.tuple([4, 8])]


def test_the_type_of_a_block_is_what_it_is_without_the_engine() -> None:
    elements = [tl.float32, tl.float16, tl.pointer_type(tl.float32), tl.int1]
    usual = [tl.block_type(element, shape) for element in elements for shape in SHAPES]

    with interpreted():
        made = [tl.block_type(element, shape) for element in elements for shape in SHAPES]
        for shape, error in (([], TypeError), ([3], ValueError), ([4.0], TypeError),
                             ([1 << 30], ValueError)):
            for _ in range(2):  # what was refused once is refused again
                with pytest.raises(error):
                    tl.block_type(tl.float32, shape)

    for own, engines in zip(usual, made, strict=True):
        assert engines == own
        assert (str(engines), engines.numel, list(engines.shape), engines.scalar) == (
            str(own), own.numel, list(own.shape), own.scalar)


@triton.jit
def sums_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    square = x[:, None] + x[None, :]
    tl.store(out_ptr + offs[:, None] * N + offs[None, :], square * 2 + (square - square))


def test_blocks_of_one_shape_and_of_others_meet_as_ever() -> None:
    x = torch.randn(16)

    with interpreted() as trace:
        out = torch.empty(16, 16)
        sums_kernel[(1,)](x, out, N=16)

    assert torch.equal(out, (x[:, None] + x[None, :]) * 2)
    assert trace.findings == []


@triton.jit
def relu(x):
    return tl.maximum(x, 0.0)


def with_activation(act: Any) -> Any:
    @triton.jit
    def kernel(x_ptr, out_ptr, N: tl.constexpr):
        offs = tl.arange(0, N)
        tl.store(out_ptr + offs, act(tl.load(x_ptr + offs)))

    return kernel


def test_a_kernel_sees_what_encloses_it() -> None:
    x = torch.randn(16)

    with interpreted():
        out = torch.empty(16)
        with_activation(relu)[(1,)](x, out, N=16)

    assert torch.equal(out, x.relu())


@triton.jit
def stores_by_another_module_kernel(x_ptr):
    pid = tl.program_id(0)
    right = tl.load(x_ptr + (pid + 1) % tl.num_programs(0))
    helpers.put(x_ptr, pid, right)


def test_a_store_by_a_helper_of_another_module_is_a_store() -> None:
    with interpreted() as trace:
        stores_by_another_module_kernel[(8,)](torch.arange(8.0))

    assert {finding.code for finding in trace.findings} == {"M09"}


@triton.jit
def table_kernel(table_ptr, out_ptr, N: tl.constexpr):
    pid, offs = tl.program_id(0), tl.arange(0, N)
    source = tl.load(table_ptr + pid).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + pid * N + offs, tl.load(source + offs))


@pytest.mark.parametrize("count", [3, 200])
def test_tables_of_pointers_to_parameters_are_followed(count: int) -> None:
    weights = [torch.nn.Parameter(torch.randn(8)) for _ in range(count)]
    table = torch.tensor([weight.data_ptr() for weight in weights])

    with interpreted() as trace:
        out = torch.empty(count, 8)
        table_kernel[(count,)](table, out, N=8)

    assert torch.equal(out, torch.stack(weights))
    assert trace.findings == []


@triton.jit
def refuses_kernel(x_ptr, N: tl.constexpr, HOW: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    if HOW == "break":
        for _ in range(3):
            break
    elif HOW == "lambda":
        double = lambda y: y * 2  # noqa: E731
        x = double(x)
    elif HOW == "tuple loop":
        for k in (1, 2):
            x += k
    elif HOW == "name":
        x = x + sum((1, 2))
    tl.store(x_ptr + tl.arange(0, N), x)


@pytest.mark.parametrize("how", ["break", "lambda", "tuple loop", "name"])
def test_python_that_triton_does_not_compile_is_refused_where_it_is_reached(how: str) -> None:
    with interpreted(), pytest.raises(KernelFailed, match=r"L05.*does not compile"):
        refuses_kernel[(1,)](torch.ones(8), N=8, HOW=how)


def test_what_a_constant_switches_off_is_not_refused() -> None:
    with interpreted() as trace:
        refuses_kernel[(1,)](torch.ones(8), N=8, HOW="none")

    assert trace.findings == []
